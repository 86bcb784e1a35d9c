// SPDX-License-Identifier: GPL-2.0
/*
 * Zones: their states, and which zone an append goes to.
 *
 *	EMPTY -> OPEN -> CLOSING [-> FINISH -> FINISHING] -> FULL
 *	FULL -> VICTIM -> DRAINED -> RESETTING -> EMPTY
 *	VICTIM -> FULL when something in it could not be moved
 *	FINISHING -> FINISH, RESETTING -> DRAINED to try again after an error
 *	RETIRED instead of EMPTY after an error of the reset, or several others
 *	RETIRED -> DRAINED when appends fail or all else is used up: zone_revive()
 *
 * zone_set_state() is the only place that changes a state or counts zones.
 *
 * A zone is open or active on the device from its first append to its last
 * block or its finish: in the states OPEN to FINISHING. Their number stays
 * below max_active, and one of these places is always left to GC, or if there
 * is but one, shared with it. A zone that
 * the device does not finish has failed, and may be active or, more likely,
 * read-only. It holds its place until GC has moved what is in it, and it was
 * reset; or until nothing else is left to try.
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

/* Zones that the device counts as open or active. */
u32 zones_active(const struct zse_engine *e)
{
	return e->nr_state[ZSE_ZONE_OPEN] + e->nr_state[ZSE_ZONE_CLOSING] +
	       e->nr_state[ZSE_ZONE_FINISH] +
	       e->nr_state[ZSE_ZONE_FINISHING] + e->nr_held;
}

void zone_set_state(struct zse_engine *e, u32 zone, enum zse_zone_state to)
{
	struct zse_zone *z = &e->zones[zone];

	if (e->cfg.zone_event)
		e->cfg.zone_event(e->cfg.host, zone, zone_state_names[z->state],
				  zone_state_names[to]);
	share_moves(e, z, to);
	/* zse_gc_due() reads these without the lock. */
	zp_store(&e->nr_state[z->state], e->nr_state[z->state] - 1);
	zp_store(&e->nr_state[to], e->nr_state[to] + 1);
	list_del_init(&z->link);
	zp_store(&z->state, to);

	switch (to) {
	case ZSE_ZONE_EMPTY:
		z->alloc = 0;
		z->written = 0;
		zp_store(&z->stream, ZSE_NONE);
		share_own(e, z, ZSE_NONE);
		zp_store(&z->reads, 0);
		list_add_tail(&z->link, &e->empty);
		break;
	case ZSE_ZONE_FULL:
		zp_store64(&z->filled, e->clock);
		/* Pairs with the end of block_died(): one of the two sees it. */
		zp_mb();
		if (!zp_load(&z->live))
			zp_store(&e->dead, 1);
		break;
	case ZSE_ZONE_FINISH:
		list_add_tail(&z->link, &e->to_finish);
		break;
	case ZSE_ZONE_DRAINED:
		/* Its place may be what all others wait for. */
		if (z->active)
			list_add(&z->link, &e->drained);
		else
			list_add_tail(&z->link, &e->drained);
		break;
	case ZSE_ZONE_RETIRED:
		zp_store(&e->nr_bad, e->nr_bad - z->bad);
		share_own(e, z, ZSE_NONE);
		e->usable_blocks -= z->cap;
		e->nr_held -= z->held;
		z->held = false;
		list_add_tail(&z->link, z->failures > ZSE_MAX_FAILURES ?
					&e->worn : &e->retired);
		break;
	default:
		break;
	}
}

void zones_init(struct zse_engine *e)
{
	u32 i;

	e->nr_state[ZSE_ZONE_EMPTY] = e->cfg.nr_zones;
	e->min_cap = e->cfg.zone_blocks;
	for (i = 0; i < e->cfg.nr_zones; i++) {
		struct zse_zone *z = &e->zones[i];

		z->cap = e->cfg.zone_caps ? e->cfg.zone_caps[i] :
					    e->cfg.zone_blocks;
		if (z->cap < e->min_cap)
			e->min_cap = z->cap;
		e->usable_blocks += z->cap;
		z->stream = ZSE_NONE;
		z->owner = ZSE_NONE;
		list_add_tail(&z->link, &e->empty);
	}
}

/* Age of what is in @z, in blocks swapped out. */
u64 zone_age(const struct zse_engine *e, const struct zse_zone *z)
{
	u64 now = zp_load64(&e->clock), born = zp_load64(&z->born);

	return now > born ? now - born : 0;
}

/* What policies may know of a zone. */
void zone_look(const struct zse_engine *e, u32 zone, struct znsage_zone *look)
{
	const struct zse_zone *z = &e->zones[zone];

	*look = (struct znsage_zone){
		.capacity = z->cap,
		.live = zp_load(&z->live),
		.stream = zp_load(&z->stream),
		.moves = zp_load(&z->moves),
		.reads = zp_load(&z->reads),
		.age = zone_age(e, z),
		.key = zp_load64(&z->key),
		.mixed = zp_load(&z->mixed),
		.failed = zp_load(&z->bad),
	};
}

/*
 * Note what goes into @z: the stream that its first pages came from and their
 * key; whether other keys' pages are with them; how often they were moved, at
 * most; and when they were swapped out, on average.
 */
static void zone_describe(struct zse_zone *z, const struct zse_chunk *c, u32 nr)
{
	u32 total = z->alloc + nr;

	if (!z->alloc) {
		zp_store(&z->stream, c->stream);
		zp_store(&z->moves, c->moves);
		zp_store64(&z->key, c->key);
		zp_store(&z->mixed, c->mixed);
		zp_store64(&z->born, c->written_at);
		return;
	}
	if (c->mixed || c->key != z->key)
		zp_store(&z->mixed, true);
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
	return e->zones[zone].cap - e->zones[zone].alloc;
}

/* Zones that are empty or on their way there. */
u32 zones_soon_empty(const struct zse_engine *e)
{
	return e->nr_state[ZSE_ZONE_EMPTY] + e->nr_state[ZSE_ZONE_VICTIM] +
	       e->nr_state[ZSE_ZONE_DRAINED] + e->nr_state[ZSE_ZONE_RESETTING];
}

/* Is there an empty zone for swap-out, or for GC, and a place to open it? */
bool zone_may_open(const struct zse_engine *e, bool gc)
{
	u32 kept_zones = gc ? 0 : e->cfg.reserve + stripe_missing(&e->gc_stripe);
	u32 kept_active = !gc && !e->shared && !stripe_is_open(&e->gc_stripe);

	if (e->nr_state[ZSE_ZONE_EMPTY] <= kept_zones)
		return false;
	return !e->cfg.max_active ||
	       zones_active(e) + kept_active < e->cfg.max_active;
}

/*
 * No more appends to @zone. When those in flight have ended it is full; a bad
 * one is finished, so that it is not counted as active by the device.
 */
static void zone_close(struct zse_engine *e, u32 zone)
{
	struct zse_zone *z = &e->zones[zone];

	if (z->state == ZSE_ZONE_OPEN)
		zone_set_state(e, zone, ZSE_ZONE_CLOSING);
	if (z->state != ZSE_ZONE_CLOSING || z->appends)
		return;
	zone_set_state(e, zone, e->cfg.finish || z->bad ? ZSE_ZONE_FINISH :
							  ZSE_ZONE_FULL);
}

/*
 * The place of the open zone that @c goes to. A zone that was left open is
 * written on before another one is opened. NULL if there is none to be had.
 */
static u32 *zone_open(struct zse_engine *e, const struct zse_chunk *c)
{
	struct zse_stripe *s = c->gc ? &e->gc_stripe : stripe_of(e, c->stream);
	u32 lane = stripe_usable(e, s, c->lane, c->gc), zone;
	struct zse_zone *z;

	if (lane != ZSE_NONE && s->zone[lane] != ZSE_NONE)
		return &s->zone[lane];
	zone = c->gc ? ZSE_NONE : stripe_take_left_open(e);
	if (zone == ZSE_NONE && lane == ZSE_NONE)
		return NULL;
	if (zone == ZSE_NONE && !c->gc && !share_of_zones(e, c->stream))
		return NULL;
	if (lane == ZSE_NONE)
		lane = 0;
	if (zone == ZSE_NONE) {
		z = list_first_entry(&e->empty, struct zse_zone, link);
		zone = z - e->zones;
		zone_set_state(e, zone, ZSE_ZONE_OPEN);
		if (e->isolates)
			share_open(e, z, c);
		e->shares_off &= c->gc;
	}
	s->zone[lane] = zone;
	/* Of a stream that has come to its end with this chunk. */
	if (lane >= s->nr)
		e->left_open = true;
	return &s->zone[lane];
}

/* Blocks that @c may have, in whole units; a zone may have less. */
static u32 room_for(const struct zse_engine *e, const struct zse_chunk *c)
{
	u32 room = c->gc || !e->shared ? e->cfg.zone_blocks : clean_spare(e);

	return room - room % e->cfg.write_unit;
}

/**
 * zone_for_append() - allocate blocks for what is left of a chunk
 * @e: engine
 * @c: chunk; sets zone, nr_inflight and nr_padding
 *
 * Takes as many entries as the stream's zone has room for, or as GC leaves of
 * it where they share one; the rest is for later, or another zone.
 *
 * Return: the zone, or ZSE_NONE if the stream has none and may open none now.
 */
u32 zone_for_append(struct zse_engine *e, struct zse_chunk *c)
{
	u32 nr = c->nr - c->done, most = room_for(e, c), blocks, *open;
	struct zse_zone *z;

	open = most ? zone_open(e, c) : NULL;
	if (!open)
		return ZSE_NONE;
	z = &e->zones[*open];
	if (most > z->cap - z->alloc)
		most = z->cap - z->alloc;
	blocks = round_up_unit(e, nr);
	if (blocks > most) {
		blocks = most;
		nr = nr < blocks ? nr : blocks;
	}
	zone_describe(z, c, nr);
	c->zone = *open;
	c->nr_inflight = nr;
	c->nr_padding = blocks - nr;
	z->alloc += blocks;
	z->appends++;
	e->appends++;
	if (z->alloc == z->cap) {
		zone_set_state(e, *open, ZSE_ZONE_CLOSING);
		*open = ZSE_NONE;
	}
	return c->zone;
}

/*
 * Let GC have the zone with most room that a stream has open, in exchange for
 * one of its own. Returns false if none has more than that.
 */
bool zone_swap_for_gc(struct zse_engine *e)
{
	u32 *least = &e->gc_stripe.zone[0], *best = NULL, room, i, k;

	for (k = 1; k < e->gc_stripe.nr; k++)
		if (zone_room(e, e->gc_stripe.zone[k]) < zone_room(e, *least))
			least = &e->gc_stripe.zone[k];
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
	i = *best;
	*best = *least;
	*least = i;
	return true;
}

/* An append of @blocks (data and padding) to @zone has ended. */
void zone_append_ended(struct zse_engine *e, u32 zone, u32 blocks, bool ok)
{
	struct zse_zone *z = &e->zones[zone];
	u32 i;

	z->appends--;
	e->appends--;
	if (ok) {
		z->written += blocks;
		zone_append_worked(e);
		if (z->written == z->cap)
			z->failures = 0;
	} else {
		zone_append_failed(e, z);
		for (i = 0; i < e->max_streams; i++)
			stripe_forget(&e->streams[i].stripe, zone);
		stripe_forget(&e->gc_stripe, zone);
	}
	if (z->bad || z->state == ZSE_ZONE_CLOSING)
		zone_close(e, zone);
}

/* GC has settled @entries that it had read from @zone. */
void zone_moved(struct zse_engine *e, u32 zone, u32 entries)
{
	struct zse_zone *z = &e->zones[zone];

	zp_warn(z->moving < entries);
	z->moving -= entries;
	zone_check_drained(e, zone);
}

/* Nothing in @zone is live. */
static void zone_drained(struct zse_engine *e, u32 zone)
{
	struct zse_zone *z = &e->zones[zone];

	if (ZP_DEBUG) {
		/* The map is no older than the live count of 0. */
		zp_mb();
		zp_warn(check_count_live(e, zone));
	}
	zone_take_back(e, z);
	zone_set_state(e, zone, ZSE_ZONE_DRAINED);
}

/*
 * Is GC done with this victim? A zone in
 * which something stayed (its copy could not be written) is full again.
 */
void zone_check_drained(struct zse_engine *e, u32 zone)
{
	struct zse_zone *z = &e->zones[zone];

	if (z->state != ZSE_ZONE_VICTIM || clean_is_reading(e, zone) || z->moving)
		return;
	policy_cleaning(e, zone, false);
	if (zp_load(&z->live)) {
		zone_set_state(e, zone, ZSE_ZONE_FULL);
		return;
	}
	e->counters.gc_zones++;
	zone_drained(e, zone);
}

/*
 * Full zones in which nothing is live need no GC. What is looked for is told by
 * e->dead, which is cleared first: a block that dies later sets it again.
 */
void zones_take_dead(struct zse_engine *e)
{
	u32 i;

	if (!zp_load(&e->dead) || !zp_xchg(&e->dead, 0))
		return;
	for (i = 0; i < e->cfg.nr_zones; i++) {
		struct zse_zone *z = &e->zones[i];

		if (z->state != ZSE_ZONE_FULL || zp_load(&z->live))
			continue;
		e->counters.zones_dead++;
		zone_drained(e, i);
	}
}
