// SPDX-License-Identifier: GPL-2.0
/*
 * Zones: their states, and which zone an append goes to.
 *
 *	EMPTY -> OPEN -> CLOSING [-> FINISH -> FINISHING] -> FULL
 *	FULL -> VICTIM -> DRAINED -> RESETTING -> EMPTY
 *	VICTIM -> FULL when something in it could not be moved
 *	FINISHING -> FINISH, RESETTING -> DRAINED to try again after an error
 *	RETIRED instead of DRAINED or EMPTY after an error
 *
 * zone_set_state() is the only place that changes a state or counts zones.
 *
 * A zone is open or active on the device from its first append to its last
 * block or its finish: in the states OPEN to FINISHING. Their number stays
 * below max_active, and one of these places is always left to GC. A zone that
 * the device does not finish has failed, and may be active or, more likely,
 * read-only. It holds its place until GC has moved what is in it, and it was
 * reset before it is retired; or until nothing else is left to try.
 *
 * Everything here runs under the engine lock.
 */
#include "internal.h"

static u32 zones_active(const struct zse_engine *e)
{
	return e->nr_state[ZSE_ZONE_OPEN] + e->nr_state[ZSE_ZONE_CLOSING] +
	       e->nr_state[ZSE_ZONE_FINISH] +
	       e->nr_state[ZSE_ZONE_FINISHING] + e->nr_held;
}

void zone_set_state(struct zse_engine *e, u32 zone, enum zse_zone_state to)
{
	struct zse_zone *z = &e->zones[zone];

	/* zse_gc_due() reads these without the lock. */
	zp_store(&e->nr_state[z->state], e->nr_state[z->state] - 1);
	zp_store(&e->nr_state[to], e->nr_state[to] + 1);
	list_del_init(&z->link);
	zp_store(&z->state, to);

	switch (to) {
	case ZSE_ZONE_EMPTY:
		z->alloc = 0;
		z->written = 0;
		list_add_tail(&z->link, &e->empty);
		break;
	case ZSE_ZONE_FINISH:
		list_add_tail(&z->link, &e->to_finish);
		break;
	case ZSE_ZONE_DRAINED:
		list_add_tail(&z->link, &e->drained);
		break;
	case ZSE_ZONE_RETIRED:
		e->usable_blocks -= z->cap;
		e->nr_held -= z->held;
		z->held = false;
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
		list_add_tail(&z->link, &e->empty);
	}
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
	u32 kept_active = !gc && !stripe_is_open(&e->gc_stripe);

	if (e->nr_state[ZSE_ZONE_EMPTY] <= kept_zones)
		return false;
	return !e->cfg.max_active ||
	       zones_active(e) + kept_active < e->cfg.max_active;
}

static struct zse_stripe *stripe_of(struct zse_engine *e,
				    const struct zse_chunk *c)
{
	return c->gc ? &e->gc_stripe : &e->streams[c->stream].stripe;
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

/**
 * zone_for_append() - allocate blocks for what is left of a chunk
 * @e: engine
 * @c: chunk; sets zone, nr_inflight and nr_padding
 *
 * Takes as many entries as the stream's zone has room for; the rest is for
 * another zone.
 *
 * Return: the zone, or ZSE_NONE if the stream has none and may open none now.
 */
u32 zone_for_append(struct zse_engine *e, struct zse_chunk *c)
{
	struct zse_stripe *s = stripe_of(e, c);
	u32 lane = stripe_usable(e, s, c->lane, c->gc);
	u32 nr = c->nr - c->done, blocks, *open;
	struct zse_zone *z;

	if (lane == ZSE_NONE)
		return ZSE_NONE;
	open = &s->zone[lane];
	if (*open == ZSE_NONE) {
		z = list_first_entry(&e->empty, struct zse_zone, link);
		*open = z - e->zones;
		zone_set_state(e, *open, ZSE_ZONE_OPEN);
	}

	z = &e->zones[*open];
	blocks = round_up_unit(e, nr);
	if (blocks > z->cap - z->alloc) {
		blocks = z->cap - z->alloc;
		nr = nr < blocks ? nr : blocks;
	}
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
 * Take a zone that the device did not finish for inactive. Returns false if
 * there is none.
 */
bool zone_let_go(struct zse_engine *e)
{
	u32 i;

	for (i = 0; e->nr_held && i < e->cfg.nr_zones; i++) {
		if (!e->zones[i].held)
			continue;
		e->zones[i].held = false;
		e->nr_held--;
		return true;
	}
	return false;
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
	for (i = 0; i < e->nr_streams; i++) {
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
	} else {
		z->bad = true;
		e->counters.write_errors++;
		for (i = 0; i < e->nr_streams; i++)
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

/*
 * Is GC done with this victim? A bad zone is not written again; a zone in
 * which something stayed (its copy could not be written) is full again.
 */
void zone_check_drained(struct zse_engine *e, u32 zone)
{
	struct zse_zone *z = &e->zones[zone];

	if (z->state != ZSE_ZONE_VICTIM || gc_is_reading(e, zone) || z->moving)
		return;
	if (zp_load(&z->live)) {
		zone_set_state(e, zone, ZSE_ZONE_FULL);
		return;
	}
	if (ZP_DEBUG)
		zp_warn(check_count_live(e, zone));
	zone_set_state(e, zone, z->bad && !z->active ? ZSE_ZONE_RETIRED :
						       ZSE_ZONE_DRAINED);
}

/* A finish or reset of @z has ended. Is it to be tried again? */
static bool zone_try_again(struct zse_engine *e, struct zse_zone *z, bool ok)
{
	if (!ok)
		e->counters.write_errors++;
	if (!ok && z->tries++ < ZSE_MAX_RETRIES)
		return true;
	z->tries = 0;
	return false;
}

/**
 * zse_reset_done() - a reset asked for by ZSE_OP_RESET has ended
 * @e:	  engine
 * @zone: zone
 * @ok:	  false: the device refused; after some tries the zone is retired
 *
 * Return: true, chunks may have waited for it.
 */
bool zse_reset_done(struct zse_engine *e, u32 zone, bool ok)
{
	struct zse_zone *z = &e->zones[zone];
	unsigned long flags;

	zp_lock(&e->lock, flags);
	e->counters.zone_resets += ok;
	if (zone_try_again(e, z, ok))
		zone_set_state(e, zone, ZSE_ZONE_DRAINED);
	else
		zone_set_state(e, zone, ok && !z->bad ? ZSE_ZONE_EMPTY :
							ZSE_ZONE_RETIRED);
	zp_unlock(&e->lock, flags);
	return true;
}

/**
 * zse_finish_done() - a finish asked for by ZSE_OP_FINISH has ended
 * @e:	  engine
 * @zone: zone
 * @ok:	  false: the device refused, which is tried again; the zone takes no
 *	  more appends either way
 *
 * Return: true, chunks may have waited for the place among active zones.
 */
bool zse_finish_done(struct zse_engine *e, u32 zone, bool ok)
{
	struct zse_zone *z = &e->zones[zone];
	unsigned long flags;

	zp_lock(&e->lock, flags);
	if (zone_try_again(e, z, ok)) {
		zone_set_state(e, zone, ZSE_ZONE_FINISH);
	} else {
		if (!ok) {
			z->bad = true;
			z->active = true;
			z->held = true;
			e->nr_held++;
		}
		zone_set_state(e, zone, ZSE_ZONE_FULL);
	}
	zp_unlock(&e->lock, flags);
	return true;
}
