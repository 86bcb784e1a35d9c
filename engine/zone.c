// SPDX-License-Identifier: GPL-2.0
/*
 * Zones: their states, and which zone an append goes to.
 *
 *	EMPTY -> OPEN -> CLOSING [-> FINISH -> FINISHING] -> FULL
 *	FULL -> VICTIM -> DRAINED -> RESETTING -> EMPTY
 *	FULL -> DRAINED when its last live block dies
 *	VICTIM -> FULL when GC could not empty it
 *	FINISHING -> FINISH, RESETTING -> DRAINED to retry after an error
 *	RESETTING -> RETIRED -> DRAINED: see recover.c, also for a zone's health
 *
 * zone_set_state() is the only place that changes a state or counts zones.
 *
 * The device counts a zone as open or active from its first append until it is
 * full or finished: in the states OPEN to FINISHING. A zone that the device
 * fails to finish keeps its place (ZSE_PLACE_HELD) until it is reset. At most
 * max_active places are taken. One of them is kept for GC; if there is only
 * one, GC shares it with swap-out. A virtual zone needs its place only while it
 * is OPEN, so that the next one can be opened while its last appends are in
 * flight.
 *
 * Everything here runs under the engine lock.
 */
#include "internal.h"

const char *const zone_state_names[ZSE_NR_ZONE_STATES] = {
	[ZSE_ZONE_EMPTY] = "empty",
	[ZSE_ZONE_OPEN] = "open",
	[ZSE_ZONE_CLOSING] = "closing",
	[ZSE_ZONE_FINISH] = "finish",
	[ZSE_ZONE_FINISHING] = "finishing",
	[ZSE_ZONE_FULL] = "full",
	[ZSE_ZONE_VICTIM] = "victim",
	[ZSE_ZONE_DRAINED] = "drained",
	[ZSE_ZONE_RESETTING] = "resetting",
	[ZSE_ZONE_RETIRED] = "retired",
};

/*
 * Zones that the device counts as open or active. Virtual zones are none of its
 * business: only how many take new appends matters to it.
 */
u32 zones_active(const struct zse_engine *e)
{
	if (e->cfg.wide)
		return e->nr_state[ZSE_ZONE_OPEN];
	return e->nr_state[ZSE_ZONE_OPEN] + e->nr_state[ZSE_ZONE_CLOSING] +
	       e->nr_state[ZSE_ZONE_FINISH] +
	       e->nr_state[ZSE_ZONE_FINISHING] + e->recovery.nr_held;
}

/* A retired zone is neither room nor a zone that GC has to empty. */
static void zone_count_retired(struct zse_engine *e, const struct zse_zone *z,
			       bool retires)
{
	struct zse_recovery *r = &e->recovery;

	if (retires) {
		e->usable_blocks -= e->cfg.zone_blocks;
		zp_store(&r->nr_failed, r->nr_failed - zone_is_failed(z));
	} else {
		e->usable_blocks += e->cfg.zone_blocks;
		zp_store(&r->nr_failed, r->nr_failed + zone_is_failed(z));
	}
}

void zone_set_state(struct zse_engine *e, u32 zone, enum zse_zone_state to)
{
	struct zse_zone *z = &e->zones[zone];

	if (e->cfg.zone_event)
		e->cfg.zone_event(e->cfg.host, zone, zone_state_names[z->state],
				  zone_state_names[to]);
	share_zone_state(e, z, to);
	if (z->state == ZSE_ZONE_RETIRED || to == ZSE_ZONE_RETIRED)
		zone_count_retired(e, z, to == ZSE_ZONE_RETIRED);
	zp_store(&e->nr_state[z->state], e->nr_state[z->state] - 1);
	zp_store(&e->nr_state[to], e->nr_state[to] + 1);
	list_del_init(&z->link);
	zp_store(&z->state, to);

	switch (to) {
	case ZSE_ZONE_EMPTY:
		zp_store(&z->alloc, 0);
		zp_store(&z->unwritten, e->cfg.zone_blocks);
		zp_store(&z->end, 0);
		zp_store(&z->stream, ZSE_NONE);
		zp_store(&z->reads, 0);
		list_add_tail(&z->link, &e->empty);
		break;
	case ZSE_ZONE_FULL:
		zp_store64(&z->filled, e->clock);
		/*
		 * Pairs with page_died(): one of the two sees 0 live blocks.
		 */
		zp_mb();
		if (!zp_load(&z->live))
			zone_note_dead(e, z);
		break;
	case ZSE_ZONE_FINISH:
		list_add_tail(&z->link, &e->to_finish);
		break;
	case ZSE_ZONE_DRAINED:
		census_drop(e, z);
		/* First, since all others may wait for the place it holds. */
		if (z->place != ZSE_PLACE_NONE)
			list_add(&z->link, &e->drained);
		else
			list_add_tail(&z->link, &e->drained);
		break;
	case ZSE_ZONE_RETIRED:
		recover_release_held(e, z);
		list_add_tail(&z->link, &e->retired);
		break;
	default:
		break;
	}
}

void zones_init(struct zse_engine *e)
{
	u32 i;

	e->nr_state[ZSE_ZONE_EMPTY] = e->cfg.nr_zones;
	e->usable_blocks = e->nr_blocks;
	for (i = 0; i < e->cfg.nr_zones; i++) {
		struct zse_zone *z = &e->zones[i];

		z->stream = ZSE_NONE;
		z->owner = ZSE_NONE;
		z->list = ZSE_NONE;
		z->unwritten = e->cfg.zone_blocks;
		list_add_tail(&z->link, &e->empty);
	}
}

/* Blocks that appends have written in @z. */
u32 zone_written(const struct zse_engine *e, const struct zse_zone *z)
{
	return e->cfg.zone_blocks - zp_load(&z->unwritten);
}

/* Average age of the blocks in @z, in blocks swapped out. */
u64 zone_age(const struct zse_engine *e, const struct zse_zone *z)
{
	u64 now = zp_load64(&e->clock), born = zp_load64(&z->born);

	return now > born ? now - born : 0;
}

/* Describe a zone to a policy. */
void zone_look(const struct zse_engine *e, u32 zone, struct znsage_zone *look)
{
	const struct zse_zone *z = &e->zones[zone];

	*look = (struct znsage_zone){
		.capacity = e->cfg.zone_blocks / page_blocks(&e->cfg),
		.live = zp_load(&z->live) / page_blocks(&e->cfg),
		.stream = zp_load(&z->stream),
		.moves = zp_load(&z->moves),
		.reads = zp_load(&z->reads),
		.age = zone_age(e, z),
		.key = zp_load64(&z->key),
		.mixed = zp_load8(&z->mixed),
		.failed = zone_is_failed(z),
	};
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
		zp_store(&z->stream, c->stream);
		zp_store(&z->moves, c->moves);
		zp_store64(&z->key, c->key);
		zp_store8(&z->mixed, c->mixed);
		zp_store64(&z->born, c->written_at);
		return;
	}
	if (c->mixed || c->key != z->key)
		zp_store8(&z->mixed, true);
	if (c->moves > z->moves)
		zp_store(&z->moves, c->moves);
	if (c->written_at > z->born)
		zp_store64(&z->born, z->born +
			   zp_div((c->written_at - z->born) * nr, total));
	else
		zp_store64(&z->born, z->born -
			   zp_div((z->born - c->written_at) * nr, total));
}

/* Blocks that can still be allocated in @zone, 0 for ZSE_NONE. */
u32 zone_room(const struct zse_engine *e, u32 zone)
{
	if (zone == ZSE_NONE)
		return 0;
	return e->cfg.zone_blocks - e->zones[zone].alloc;
}

/* Are there an empty zone for swap-out (or @gc) and a place to open it? */
bool zone_may_open(const struct zse_engine *e, bool gc)
{
	u32 kept_active = !gc && !e->shared && !stripe_is_open(&e->gc.stripe);

	if (e->nr_state[ZSE_ZONE_EMPTY] <= (gc ? 0 : flow_kept_zones(e)))
		return false;
	return !e->cfg.max_active ||
	       zones_active(e) + kept_active < e->cfg.max_active;
}

/*
 * Send no more appends to @zone. It is full when those in flight have ended. If
 * an append failed, the zone is not written to its end. Then it is finished, so
 * that the device does not count it as active.
 */
static void zone_close(struct zse_engine *e, u32 zone)
{
	struct zse_zone *z = &e->zones[zone];

	if (z->state == ZSE_ZONE_OPEN)
		zone_set_state(e, zone, ZSE_ZONE_CLOSING);
	/*
	 * Pairs with zone_append_worked(): one of the two sees the last one
	 * end.
	 */
	zp_mb();
	if (z->state != ZSE_ZONE_CLOSING || zp_load(&z->appends))
		return;
	zone_set_state(e, zone, e->cfg.finish || zp_load(&z->unwritten) ?
				ZSE_ZONE_FINISH : ZSE_ZONE_FULL);
}

/* Has @z pages, or appends in flight? */
bool zone_has_data(const struct zse_zone *z)
{
	return z->state >= ZSE_ZONE_OPEN && z->state <= ZSE_ZONE_VICTIM;
}

/* Does an append in flight keep @zone from taking another? */
bool zone_is_busy(const struct zse_engine *e, u32 zone)
{
	return e->cfg.serial && zp_load(&e->zones[zone].appends);
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
 * The open zone that @c goes to, as a place in its stripe, where ZSE_NONE is
 * stored when the zone closes. In this order: the zone of its lane, or of
 * another one if no zone can be opened; a zone left open by a lane that is
 * gone; an empty one. NULL if there is none now. Where a zone takes one append
 * at a time, swap-out takes any idle lane, and opens another zone only if all
 * are busy.
 */
static u32 *zone_open(struct zse_engine *e, const struct zse_chunk *c)
{
	struct zse_stripe *s = c->gc ? &e->gc.stripe : stripe_of(e, c->stream);
	u32 lane, zone = ZSE_NONE;

	if (e->cfg.serial && !c->gc)
		lane = stripe_idle(e, s);
	else
		lane = stripe_usable(e, s, c->lane, c->gc);
	if (lane != ZSE_NONE && s->zone[lane] != ZSE_NONE)
		return zone_is_busy(e, s->zone[lane]) ? NULL : &s->zone[lane];
	if (lane == ZSE_NONE && stripe_is_busy(e, s))
		return NULL;
	if (!c->gc)
		zone = stripe_take_left_open(e);
	if (zone == ZSE_NONE) {
		if (lane == ZSE_NONE ||
		    (!c->gc && !share_of_zones(e, c->stream)))
			return NULL;
		zone = zone_take_empty(e, c);
		if (!c->gc && !e->shared)
			e->flow.open_room += e->cfg.zone_blocks;
	}
	if (lane == ZSE_NONE)
		lane = 0;
	zp_store(&s->zone[lane], zone);
	/* The stream may have lost all its lanes while the chunk filled. */
	if (lane >= s->nr)
		e->left_open = true;
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
	zp_store(&e->longest, blocks - blocks % e->cfg.write_unit);
	return enough;
}

/*
 * Must GC empty a zone before @c can be written? Else it waits for a place
 * among the active zones, or for chunks before it.
 */
bool zone_has_no_room(const struct zse_engine *e, const struct zse_chunk *c)
{
	return !room_for(e, c) ||
	       e->nr_state[ZSE_ZONE_EMPTY] <= flow_kept_zones(e) ||
	       e->streams[c->stream].over_share;
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

	open = most ? zone_open(e, c) : NULL;
	if (!open)
		return ZSE_NONE;
	z = &e->zones[*open];
	if (most > zone_room(e, *open))
		most = zone_room(e, *open);
	if (most > zp_load(&e->longest))
		most = zp_load(&e->longest);
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
	c->floor = zp_load(&z->end);
	zp_store(&z->alloc, z->alloc + blocks);
	if (!c->gc && !e->shared)
		e->flow.open_room -= blocks;
	zp_add(&z->appends, 1);
	zp_add(&e->appends, 1);
	if (z->alloc == e->cfg.zone_blocks) {
		zone_set_state(e, *open, ZSE_ZONE_CLOSING);
		zp_store(open, ZSE_NONE);
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

	for (k = 1; k < gc->nr; k++)
		if (zone_room(e, gc->zone[k]) < zone_room(e, *least))
			least = &gc->zone[k];
	room = zone_room(e, *least);
	for (i = 0; i < e->max_streams; i++) {
		struct zse_stripe *s = &e->streams[i].stripe;

		for (k = 0; k < ZSE_MAX_LANES; k++) {
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
	zp_store(best, *least);
	zp_store(least, i);
	return true;
}

/* @zone cannot be written: no stripe has it any more. */
static void zone_leave_stripes(struct zse_engine *e, u32 zone)
{
	u32 i;

	for (i = 0; i < e->max_streams; i++)
		if (stripe_forget(&e->streams[i].stripe, zone))
			e->flow.open_room -= zone_room(e, zone);
	stripe_forget(&e->gc.stripe, zone);
}

/* Nothing more is to be written to @zone, whatever its state. */
void zone_take_out(struct zse_engine *e, u32 zone)
{
	zone_leave_stripes(e, zone);
	if (e->zones[zone].state == ZSE_ZONE_OPEN)
		zone_close(e, zone);
}

/*
 * An append to @zone is settled. If it was the last one of a zone that closes:
 * full.
 */
static void zone_drop_append(struct zse_engine *e, u32 zone)
{
	struct zse_zone *z = &e->zones[zone];

	zp_sub_return(&z->appends, 1);
	if (zone_is_failed(z) || z->state == ZSE_ZONE_CLOSING)
		zone_close(e, zone);
}

/*
 * An append to @zone worked; @last: it wrote the last block. With the engine
 * lock.
 */
static void zone_written_to(struct zse_engine *e, u32 zone, bool last)
{
	recover_append_worked(e);
	if (last)
		zone_health_event(e, &e->zones[zone], ZSE_FILLED);
	zone_drop_append(e, zone);
}

/* An append to @zone has ended; @last: it wrote the last block. */
void zone_append_ended(struct zse_engine *e, u32 zone, bool ok, bool last)
{
	struct zse_zone *z = &e->zones[zone];

	if (ok) {
		zone_written_to(e, zone, last);
		return;
	}
	recover_append_failed(e, z);
	if (zone_is_failed(z))
		zone_leave_stripes(e, zone);
	zone_drop_append(e, zone);
}

/**
 * zone_append_worked() - an append of swap-out worked
 * @e:	  engine
 * @zone: zone
 * @last: it wrote the last block
 *
 * Takes the engine lock only at the end of a zone and after errors. Whoever
 * writes the last block counts among z->appends until it has the lock, so the
 * zone is not closed, reset and written again in between. A zone that closes
 * for another reason is closed by the end of its last append: either
 * zone_close() sees that there is none, or this sees that the zone closes.
 *
 * Return: true if zse_next_op() may have something new.
 */
bool zone_append_worked(struct zse_engine *e, u32 zone, bool last)
{
	struct zse_zone *z = &e->zones[zone];
	unsigned long flags;

	if (last || recover_after_errors(e)) {
		zp_lock(&e->lock, flags);
		zone_written_to(e, zone, last);
		zp_unlock(&e->lock, flags);
		return true;
	}
	if (zp_sub_return(&z->appends, 1) ||
	    zp_load(&z->state) != ZSE_ZONE_CLOSING)
		return false;
	zp_lock(&e->lock, flags);
	if (z->state == ZSE_ZONE_CLOSING)
		zone_close(e, zone);
	zp_unlock(&e->lock, flags);
	return true;
}

/* GC has moved or dropped pages of @blocks that it had read from @zone. */
void zone_moved(struct zse_engine *e, u32 zone, u32 blocks)
{
	struct zse_zone *z = &e->zones[zone];

	zp_warn(z->moving < blocks);
	z->moving -= blocks;
	zone_check_drained(e, zone);
}

/*
 * If GC is done with @zone, a victim, it is drained, or full if a block stayed.
 */
void zone_check_drained(struct zse_engine *e, u32 zone)
{
	struct zse_zone *z = &e->zones[zone];

	if (z->state != ZSE_ZONE_VICTIM || z->moving || z->windows ||
	    clean_is_reading(e, zone))
		return;
	packed_judge(e, z);
	policy_cleaning(e, zone, false);
	if (zp_load(&z->live)) {
		zone_set_state(e, zone, ZSE_ZONE_FULL);
		return;
	}
	e->counters.gc_zones++;
	zone_set_state(e, zone, ZSE_ZONE_DRAINED);
}

/**
 * zone_note_dead() - the last live block of a full zone died
 * @e: engine
 * @z: zone
 *
 * Pushes the zone on a stack that zones_take_dead() takes as a whole.
 * Context: any, without a lock. The compare-and-swap publishes next_dead.
 */
void zone_note_dead(struct zse_engine *e, struct zse_zone *z)
{
	u32 head;

	if (zp_xchg(&z->on_dead_list, 1))
		return;
	do {
		head = zp_load(&e->dead);
		zp_store(&z->next_dead, head);
	} while (!zp_cas(&e->dead, head, z - e->zones));
}

/*
 * Drain the full zones that have no live block; they need no GC. Each zone
 * leaves the list before its live count is read, so if the last block dies
 * afterwards, the zone is listed again.
 *
 * A discard may kill all zones of the device at once, and interrupts are off
 * here. So this looks at ZSE_TAKE_DEAD zones at most; the rest stay in
 * e->dying.
 */
void zones_take_dead(struct zse_engine *e)
{
	u32 nr;

	if (e->dying == ZSE_NONE && zp_load(&e->dead) != ZSE_NONE)
		e->dying = zp_xchg(&e->dead, ZSE_NONE);
	for (nr = 0; e->dying != ZSE_NONE && nr < ZSE_TAKE_DEAD; nr++) {
		u32 zone = e->dying;
		struct zse_zone *z = &e->zones[zone];

		e->dying = zp_load(&z->next_dead);
		zp_xchg(&z->on_dead_list, 0);
		if (z->state != ZSE_ZONE_FULL || zp_load(&z->live))
			continue;
		e->counters.zones_dead++;
		zone_set_state(e, zone, ZSE_ZONE_DRAINED);
	}
}
