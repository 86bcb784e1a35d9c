// SPDX-License-Identifier: GPL-2.0
/*
 * Which zone an append goes to, and where in it. Everything here runs under the
 * engine lock.
 */
#include "alloc.h"

/*
 * May @s open another zone? GC's first one may be the last of the reserve. A
 * stream with an open zone leaves the last one to streams without any.
 */
static bool stripe_may_open(const struct zse_engine *e,
			    const struct zse_stripe *s, bool gc)
{
	u32 left = e->cfg.reserve;

	if (!gc)
		left = flow_kept_zones(e) + 1;
	if (stripe_is_open(s) && e->nr_state[ZSE_ZONE_EMPTY] <= left)
		return false;
	return zone_may_open(e, gc);
}

/* The lane that a chunk can take now: @lane or another one, or ZSE_NONE. */
static u32 stripe_usable(const struct zse_engine *e, const struct zse_stripe *s,
			 u32 lane, bool gc)
{
	u32 i;

	if (lane >= s->nr)
		lane = 0;
	if (s->zone[lane] != ZSE_NONE || stripe_may_open(e, s, gc))
		return lane;
	for (i = 0; i < s->nr; i++)
		if (s->zone[i] != ZSE_NONE)
			return i;
	return ZSE_NONE;
}

/*
 * Where a zone takes one append at a time: an open lane without one, else one
 * that may open a zone; ZSE_NONE if there is neither. So as many zones are open
 * as swap-out keeps busy.
 */
static u32 stripe_idle(const struct zse_engine *e, const struct zse_stripe *s)
{
	u32 closed = ZSE_NONE, i;

	for (i = 0; i < s->nr; i++) {
		if (s->zone[i] == ZSE_NONE)
			closed = i;
		else if (!zone_is_busy(e, s->zone[i]))
			return i;
	}
	return closed != ZSE_NONE && stripe_may_open(e, s, false) ? closed :
								    ZSE_NONE;
}

/*
 * Record what goes into @z: the stream and key of its first pages, whether it
 * also has pages of other keys, the most that GC moved any of them, and when
 * they were swapped out on average. @nr: blocks of @c's pages.
 */
static void zone_describe(struct zse_zone *z, const struct zse_chunk *c, u32 nr)
{
	u32 total = z->alloc + nr;

	if (!z->alloc) {
		WRITE_ONCE(z->stream, c->stream);
		WRITE_ONCE(z->moves, c->moves);
		WRITE_ONCE(z->key, c->key);
		WRITE_ONCE(z->mixed, c->mixed);
		WRITE_ONCE(z->born, c->written_at);
		return;
	}
	if (c->mixed || c->key != z->key)
		WRITE_ONCE(z->mixed, true);
	if (c->moves > z->moves)
		WRITE_ONCE(z->moves, c->moves);
	if (c->written_at > z->born)
		WRITE_ONCE(z->born, z->born +
			   div_u64((c->written_at - z->born) * nr, total));
	else
		WRITE_ONCE(z->born, z->born -
			   div_u64((z->born - c->written_at) * nr, total));
}

/* Open an empty zone for @c; the caller has checked that it may. */
static u32 zone_take_empty(struct zse_engine *e, const struct zse_chunk *c)
{
	struct zse_zone *z = list_first_entry(&e->empty, struct zse_zone, link);
	u32 zone = z - e->zones;

	zone_set_state(e, zone, ZSE_ZONE_OPEN);
	share_open(e, z, c);
	return zone;
}

/*
 * The zone with the most room that any stream has open, as zone_open(), for a
 * stream that has none while only GC's zones are empty. So no stream waits for
 * GC while others have room. NULL if there is none that may be shared: isolated
 * streams share none, and after errors the room that GC counts on may be gone.
 */
static u32 *zone_borrow(struct zse_engine *e)
{
	u32 *best = NULL, room = 0, i, k;

	if (e->shared || e->share.on || e->recovery.nr_failed ||
	    e->nr_state[ZSE_ZONE_EMPTY] > flow_kept_zones(e))
		return NULL;
	for (i = 0; i < e->max_streams; i++) {
		struct zse_stripe *s = &e->streams[i].stripe;

		for (k = 0; k < s->nr; k++) {
			if (zone_room(e, s->zone[k]) <= room ||
			    zone_is_busy(e, s->zone[k]))
				continue;
			room = zone_room(e, s->zone[k]);
			best = &s->zone[k];
		}
	}
	return best;
}

/*
 * The open zone that @c goes to, as a place in its stripe, where ZSE_NONE is
 * stored when the zone closes: that of its lane, or of another lane if no zone
 * can be opened; else an empty zone, or another stream's. NULL if there is none
 * now. Where a zone takes one append at a time, swap-out takes any idle lane,
 * and opens another zone only if all are busy.
 */
static u32 *zone_open(struct zse_engine *e, const struct zse_chunk *c)
{
	struct zse_stripe *s = c->gc ? &e->gc.stripe : stripe_of(e, c->stream);
	u32 lane;

	if (e->cfg.serial && !c->gc)
		lane = stripe_idle(e, s);
	else
		lane = stripe_usable(e, s, c->lane, c->gc);
	if (lane == ZSE_NONE)
		return c->gc || stripe_is_open(s) ? NULL : zone_borrow(e);
	if (s->zone[lane] != ZSE_NONE)
		return zone_is_busy(e, s->zone[lane]) ? NULL : &s->zone[lane];
	if (!c->gc && !share_of_zones(e, c->stream))
		return NULL;
	WRITE_ONCE(s->zone[lane], zone_take_empty(e, c));
	if (!c->gc && !e->shared)
		e->flow.open_room += e->cfg.zone_blocks;
	return &s->zone[lane];
}

/*
 * Blocks that @c may write, in whole units. Its zone may have less room. A
 * packed page may need two blocks of the device, and one more to end the zone.
 */
static u32 room_for(const struct zse_engine *e, const struct zse_chunk *c)
{
	u32 room = e->cfg.zone_blocks;
	u64 left = !c->gc && e->shared ? flow_room(e) : room;

	if (left < room)
		room = (u32)left;
	if (e->cfg.pack && room < round_up_unit(e, 3 * e->cfg.pack))
		return 0;
	return room - room % e->cfg.write_unit;
}

/**
 * zse_limit_append() - set how long an append may be
 * @e:	    engine
 * @blocks: data and padding; there is no limit before the first call
 *
 * An append that is already with the host may be longer.
 *
 * Context: any, without a lock.
 * Return: false if some appends need more than @blocks.
 */
bool zse_limit_append(struct zse_engine *e, u32 blocks)
{
	u32 least = round_up_unit(e, e->cfg.pack ? 3 * e->cfg.pack : 1);
	u32 ending = 2 * e->cfg.pack;
	bool enough = blocks >= least + ending;

	blocks = enough ? blocks - ending : least;
	WRITE_ONCE(e->longest, blocks - blocks % e->cfg.write_unit);
	return enough;
}

/*
 * Must GC empty a zone before @c can be written? Else it waits for a place
 * among the active zones, or for chunks before it.
 */
bool zone_has_no_room(const struct zse_engine *e, const struct zse_chunk *c)
{
	lockdep_assert_held(&e->lock);
	return !room_for(e, c) ||
	       e->nr_state[ZSE_ZONE_EMPTY] <= flow_kept_zones(e) ||
	       e->streams[c->stream].over_share;
}

/* Where the next append of @c begins, in what it appends. */
u32 packed_from(const struct zse_config *cfg, const struct zse_chunk *c)
{
	u32 at = c->entries[c->done].at;

	return at - at % cfg->pack;
}

/*
 * Entries of @c for an append of at most @room blocks, whole write units; at
 * least one. Sets @blocks to what these take, from the beginning of a block of
 * the device to the end of one.
 */
static u32 packed_fits(const struct zse_config *cfg, const struct zse_chunk *c,
		       u32 room, u32 *blocks)
{
	u32 from = packed_from(cfg, c), nr = c->nr - c->done, end;

	for (;; nr--) {
		const struct zse_entry *last = &c->entries[c->done + nr - 1];

		end = last->at + last->len + cfg->pack - 1;
		*blocks = end - end % cfg->pack - from;
		if (*blocks <= room || nr == 1)
			return nr;
	}
}

/*
 * Entries of @c for an append of at most @most blocks, whole units. Sets
 * @blocks to what these take.
 */
static u32 entries_that_fit(const struct zse_engine *e,
			    const struct zse_chunk *c, u32 most, u32 *blocks)
{
	u32 nr = c->nr - c->done;

	if (e->cfg.pack)
		return packed_fits(&e->cfg, c, most, blocks);
	*blocks = nr < most ? nr : most;
	return *blocks;
}

/**
 * zone_for_append() - allocate blocks for what is left of a chunk
 * @e: engine
 * @c: chunk; sets zone, nr_inflight and nr_padding
 *
 * Takes as many entries as the stream's zone has room for, an append may have,
 * and if swap-out shares GC's zone, swap-out may write. The rest needs another
 * append.
 *
 * Return: the zone, or ZSE_NONE if the stream has none and cannot open one now.
 */
u32 zone_for_append(struct zse_engine *e, struct zse_chunk *c)
{
	u32 nr, most = room_for(e, c), data, blocks, rest, *open;
	struct zse_zone *z;

	lockdep_assert_held(&e->lock);
	open = most ? zone_open(e, c) : NULL;
	if (!open)
		return ZSE_NONE;
	z = &e->zones[*open];
	if (most > zone_room(e, *open))
		most = zone_room(e, *open);
	if (most > READ_ONCE(e->longest))
		most = READ_ONCE(e->longest);
	nr = entries_that_fit(e, c, most, &data);
	blocks = round_up_unit(e, data);
	/* The rest of a zone has room for a packed page, or is padded. */
	rest = zone_room(e, *open) - blocks;
	if (rest < 2 * e->cfg.pack)
		blocks += rest;
	zone_describe(z, c, data);
	c->zone = *open;
	c->offset = z->alloc;
	c->nr_inflight = nr;
	c->nr_blocks = data;
	c->nr_padding = blocks - data;
	c->floor = READ_ONCE(z->end);
	WRITE_ONCE(z->alloc, z->alloc + blocks);
	if (!c->gc && !e->shared)
		e->flow.open_room -= blocks;
	atomic_inc_return(&z->appends);
	atomic_inc_return(&e->appends);
	if (z->alloc == e->cfg.zone_blocks) {
		zone_set_state(e, *open, ZSE_ZONE_CLOSING);
		WRITE_ONCE(*open, ZSE_NONE);
	}
	return c->zone;
}

/*
 * Exchange GC's open zone with the least room for the one with the most room
 * that a stream has open. Returns false if no stream's zone has more room.
 */
bool zone_swap_for_gc(struct zse_engine *e)
{
	struct zse_stripe *gc = &e->gc.stripe;
	u32 *least = &gc->zone[0], *best = NULL, room, i, k;

	lockdep_assert_held(&e->lock);
	for (k = 1; k < gc->nr; k++)
		if (zone_room(e, gc->zone[k]) < zone_room(e, *least))
			least = &gc->zone[k];
	room = zone_room(e, *least);
	for (i = 0; i < e->max_streams; i++) {
		struct zse_stripe *s = &e->streams[i].stripe;

		for (k = 0; k < s->nr; k++) {
			if (zone_room(e, s->zone[k]) <= room)
				continue;
			room = zone_room(e, s->zone[k]);
			best = &s->zone[k];
		}
	}
	if (!best)
		return false;
	e->flow.open_room -= room - zone_room(e, *least);
	i = *best;
	WRITE_ONCE(*best, *least);
	WRITE_ONCE(*least, i);
	return true;
}

/* @zone cannot be written: no stripe has it any more. */
void zone_leave_stripes(struct zse_engine *e, u32 zone)
{
	u32 i;

	lockdep_assert_held(&e->lock);
	for (i = 0; i < e->max_streams; i++)
		if (stripe_forget(&e->streams[i].stripe, zone))
			e->flow.open_room -= zone_room(e, zone);
	stripe_forget(&e->gc.stripe, zone);
}

/* Nothing more is to be written to @zone, whatever its state. */
void zone_take_out(struct zse_engine *e, u32 zone)
{
	lockdep_assert_held(&e->lock);
	zone_leave_stripes(e, zone);
	if (e->zones[zone].state == ZSE_ZONE_OPEN)
		zone_close(e, zone);
}
