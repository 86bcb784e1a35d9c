// SPDX-License-Identifier: GPL-2.0
/*
 * Cleaning: GC begins victims and reads their live blocks into chunks.
 *
 * GC walks a victim without the engine lock, since it looks at many entries of
 * the maps. A zone stays a VICTIM while it is one of e->gc.victims. There are
 * as many of these as GC has lanes. Successive chunks are filled from different
 * victims, so that parallel reads do not all go to the same dies.
 *
 * A chunk goes to a lane of its class of survivors.
 */
#include "gc.h"

/* Victims being read, except those that GC passes over. */
static u32 victims_being_read(const struct zse_engine *e)
{
	u32 nr = 0, i;

	for (i = 0; i < e->gc.nr_victims; i++)
		nr += !share_is_slow(e, &e->zones[e->gc.victims[i]]);
	return nr;
}

/* Zones whose reset is in flight or can be issued. */
static u32 zones_to_reset(const struct zse_engine *e)
{
	u32 nr = e->nr_state[ZSE_ZONE_RESETTING];
	const struct zse_zone *z;

	list_for_each_entry(z, &e->drained, link)
		nr += !atomic_read(&z->readers);
	return nr;
}

/*
 * Does swap-out wait, and will resets give it enough zones for all its lanes
 * and for GC? The survivors of more victims would take these zones. If GC is
 * faster than resets and gains little, swap-out would wait until no stale block
 * is left. The check is repeated when the next reset ends. It does not apply to
 * isolated streams, which may wait for other zones.
 */
static bool resets_suffice(const struct zse_engine *e)
{
	u32 enough = e->cfg.reserve + e->gc.nr_classed + e->gc.nr_victims +
		     e->placement.nr_streams * e->streams[0].stripe.nr, nr;

	if (list_empty(&e->pool.stalled) || e->share.on)
		return false;
	nr = zones_to_reset(e);
	return nr && e->nr_state[ZSE_ZONE_EMPTY] + nr > enough;
}

/*
 * Update whether GC runs: it does from the low watermark to the high one.
 * Returns true if GC is to begin another victim. Besides the watermarks,
 * isolated streams and the places that failed zones hold are reasons to.
 */
static bool flow_gc_update(struct zse_engine *e)
{
	struct zse_flow *f = &e->flow;
	u32 soon = e->nr_state[ZSE_ZONE_EMPTY] + e->nr_state[ZSE_ZONE_VICTIM] +
		   e->nr_state[ZSE_ZONE_DRAINED] +
		   e->nr_state[ZSE_ZONE_RESETTING] - share_others_victims(e);

	lockdep_assert_held(&e->lock);
	if (soon < f->low)
		f->gc_running = true;
	else if (soon >= f->high)
		f->gc_running = false;
	WRITE_ONCE(f->urgent, !list_empty(&e->pool.stalled) &&
		   !flow_swap_out_waits(e));
	WRITE_ONCE(e->share.gc_only, !f->gc_running && share_wants_gc(e));
	return flow_gc_may_begin(e) &&
	       ((f->gc_running && !resets_suffice(e)) ||
		e->recovery.nr_held || e->share.gc_only);
}

/* Is GC to begin another victim, and can it? Updates slow streams first. */
static bool gc_update(struct zse_engine *e)
{
	share_update_slow(e);
	return flow_gc_update(e) && victims_being_read(e) < e->gc.lanes &&
	       e->gc.nr_victims < ZSE_MAX_LANES &&
	       !list_empty(&e->pool.gc_free);
}

/* Do chunks wait for which GC would find another victim? */
bool clean_find_victim(struct zse_engine *e)
{
	lockdep_assert_held(&e->lock);
	return !list_empty(&e->pool.stalled) && gc_update(e) &&
	       victim_by_rule(e, flow_gc_room(e), e->flow.gc_running ||
			      e->share.gc_only) != ZSE_NONE;
}

/*
 * Begin the failed zone with the fewest live blocks. That may gain nothing,
 * since its reset may fail as well. Returns false if there is no such zone.
 */
bool clean_begin_failed(struct zse_engine *e)
{
	u32 room = flow_gc_room(e), best = ZSE_NONE, least = ZSE_NONE, i;

	lockdep_assert_held(&e->lock);
	if (!e->recovery.nr_failed || list_empty(&e->pool.gc_free))
		return false;
	for (i = 0; i < e->cfg.nr_zones; i++) {
		const struct zse_zone *z = &e->zones[i];
		u32 live = round_up_unit(e, zone_live(z));

		if (zone_is_failed(z) && live < least &&
		    victim_will_do(e, i, room)) {
			best = i;
			least = live;
		}
	}
	if (best == ZSE_NONE)
		return false;
	victim_begin(e, best, 0);
	return true;
}

/*
 * Begin another victim if GC is to go on and its survivors have room. The
 * choice may take long, so it is made without the lock and checked again under
 * it.
 */
static void begin_victim(struct zse_engine *e)
{
	u32 room, zone, class;
	unsigned long flags;
	bool wants, any, none;

	spin_lock_irqsave(&e->lock, flags);
	wants = gc_update(e);
	room = flow_gc_room(e);
	any = e->flow.gc_running || e->share.gc_only;
	spin_unlock_irqrestore(&e->lock, flags);
	census_work(e, any);
	if (!wants)
		return;
	zone = victim_choose(e, room, any);
	class = zone == ZSE_NONE ? 0 : policy_survivor(e, zone);
	none = zone == ZSE_NONE && READ_ONCE(e->share.gc_only) &&
	       victim_by_rule(e, ZSE_NONE, true) == ZSE_NONE;

	spin_lock_irqsave(&e->lock, flags);
	if (zone == ZSE_NONE)
		share_no_victim(e, none);
	else if (victim_blocks(e, &e->zones[zone]) <= flow_gc_room(e))
		victim_begin(e, zone, class);
	spin_unlock_irqrestore(&e->lock, flags);
}

/* Number of lanes of a class of survivors. */
static u32 class_lanes(const struct zse_engine *e, u32 class)
{
	u32 nr = 0, i;

	for (i = 0; i < e->gc.nr_classed; i++)
		nr += e->gc.class[i] == class;
	return nr;
}

/* Give @class a lane without an open zone, from a class that keeps another. */
static void class_take_lane(struct zse_engine *e, u32 class)
{
	u32 i;

	for (i = 0; i < e->gc.nr_classed; i++) {
		u32 from = e->gc.class[i];

		if (from == class || e->gc.stripe.zone[i] != ZSE_NONE ||
		    (from < e->placement.nr_survivors &&
		     class_lanes(e, from) < 2))
			continue;
		e->gc.class[i] = class;
		return;
	}
}

/*
 * The lane for the next chunk of @class, one of its lanes in turn. The class
 * that writes most takes lanes from the others, which keep one each.
 */
static u32 next_lane(struct zse_engine *e, u32 class)
{
	u32 lanes = class_lanes(e, class), nth, i;

	for (i = e->gc.nr_classed; i < e->gc.stripe.nr; i++)
		if (e->gc.stripe.zone[i] != ZSE_NONE)
			return i;
	if (lanes < e->gc.lanes || !lanes) {
		class_take_lane(e, class);
		lanes = class_lanes(e, class);
	}
	if (!lanes)
		return class % e->gc.nr_classed;
	nth = e->gc.turn++ % lanes;
	for (i = 0; i < e->gc.nr_classed; i++)
		if (e->gc.class[i] == class && !nth--)
			break;
	return i;
}

/* Record in @c that it gets pages of @z; it may have some of another victim. */
static void describe(struct zse_engine *e, const struct zse_zone *z,
		     struct zse_chunk *c)
{
	if (c->nr) {
		c->mixed |= z->mixed || z->key != c->key;
		return;
	}
	c->lane = next_lane(e, z->class);
	c->stream = z->stream;
	c->key = z->key;
	c->mixed = z->mixed;
	c->moves = z->moves + 1;
	c->written_at = z->born;
}

/* The victim to read next into @c, or into a new chunk if NULL; or ZSE_NONE. */
static u32 next_to_read(const struct zse_engine *e, const struct zse_chunk *c)
{
	u32 i;

	for (i = 0; i < e->gc.nr_victims; i++) {
		u32 nth = (e->gc.next_victim + i) % e->gc.nr_victims;
		u32 zone = e->gc.victims[nth];

		if (census_has(e, zone) &&
		    share_may_read(e, &e->zones[zone], c))
			return zone;
	}
	return ZSE_NONE;
}

/* Is there a victim that GC can read into a new chunk now? */
bool clean_can_read(struct zse_engine *e)
{
	lockdep_assert_held(&e->lock);
	return !list_empty(&e->pool.gc_free) && !flow_gc_waits(e) &&
	       next_to_read(e, NULL) != ZSE_NONE;
}

/* Choose a victim to read, and set @c to a chunk for it; or return ZSE_NONE. */
static u32 prepare(struct zse_engine *e, struct zse_chunk **c)
{
	u32 zone;

	if (!*c && !clean_can_read(e))
		return ZSE_NONE;
	zone = next_to_read(e, *c);
	if (zone != ZSE_NONE && !*c) {
		*c = list_first_entry(&e->pool.gc_free, struct zse_chunk, link);
		list_del_init(&(*c)->link);
		e->pool.gc_used++;
		share_gc_taken(e, *c, &e->zones[zone]);
	}
	if (zone != ZSE_NONE)
		describe(e, &e->zones[zone], *c);
	return zone;
}

/*
 * Add live blocks of @zone to @c, and advance to the next live one even if the
 * chunk is full, so that GC notices when it has read the last one. Blocks that
 * were never written, since the zone failed early, are not in the forward map.
 * Returns the offset of the next live block, or the zone's end. Without the
 * lock.
 */
static u32 read_out(struct zse_engine *e, u32 zone, struct zse_chunk *c)
{
	const struct zse_zone *z = &e->zones[zone];
	u32 base = zone * e->cfg.zone_blocks;
	u32 at;

	for (at = z->cursor; at < e->cfg.zone_blocks && zone_live(z);
	     at++) {
		u32 block = base + at;
		u32 slot = census_slot(e, block);
		struct zse_entry *entry = &c->entries[c->nr];

		if (!(at % ZSE_RESCHED))
			cond_resched();
		if (slot == ZSE_NONE || !map_is(e, slot, block))
			continue;
		if (c->nr == batch_pages(&e->cfg))
			break;
		entry->slot = slot;
		entry->expect = block;
		entry->page = c->nr;
		c->nr++;
	}
	return at;
}

/*
 * Account for @nr entries from read_out(). Returns true if @zone has no more.
 */
static bool settle(struct zse_engine *e, u32 zone, u32 cursor, u32 nr)
{
	struct zse_zone *z = &e->zones[zone];

	z->moving += nr;
	census_gc_read(e, cursor - z->cursor);
	z->cursor = cursor;
	e->gc.unplaced += nr;
	e->counters.gc_read_blocks += nr;
	flow_gc_read(e, nr);
	if (z->cursor != e->cfg.zone_blocks && zone_live(z))
		return false;
	clean_read_out(e, zone);
	return true;
}

/*
 * Fill a GC chunk. On a device with a write unit, survivors of the next victim
 * take the place of padding; otherwise the chunk ends with its victim. A chunk
 * that stays empty goes back to the pool, since the next victim may belong to
 * another stream.
 */
bool clean_fill(struct zse_engine *e, struct zse_op *op)
{
	struct zse_chunk *c = NULL;
	unsigned long flags;

	for (;;) {
		u32 zone, nr, cursor;
		bool last, ready;

		begin_victim(e);
		spin_lock_irqsave(&e->lock, flags);
		zone = prepare(e, &c);
		if (zone == ZSE_NONE)
			break;
		if (e->cfg.pack) {
			ready = packed_span(e, zone, c, op);
			e->gc.next_victim += ready;
			spin_unlock_irqrestore(&e->lock, flags);
			if (ready)
				return true;
			c = NULL;
			continue;
		}
		nr = c->nr;
		spin_unlock_irqrestore(&e->lock, flags);

		cursor = read_out(e, zone, c);

		spin_lock_irqsave(&e->lock, flags);
		last = settle(e, zone, cursor, c->nr - nr);
		if (c->nr == batch_pages(&e->cfg) ||
		    (last && c->nr && c->nr % e->cfg.write_unit == 0))
			break;
		if (!c->nr) {
			chunk_release(e, c);
			c = NULL;
		}
		spin_unlock_irqrestore(&e->lock, flags);
	}
	e->gc.next_victim++;
	spin_unlock_irqrestore(&e->lock, flags);
	if (!c)
		return false;

	*op = (struct zse_op){ .kind = ZSE_OP_READ, .chunk = c, .nr = c->nr };
	return true;
}

/**
 * zse_gc_read_done() - the blocks of a GC chunk are in memory
 * @e: engine
 * @c: chunk of ZSE_OP_READ
 *
 * Return: true, zse_next_op() has its append.
 */
bool zse_gc_read_done(struct zse_engine *e, struct zse_chunk *c)
{
	unsigned long flags;

	spin_lock_irqsave(&e->lock, flags);
	chunk_wait(e, c, &e->pool.gc_ready, false);
	spin_unlock_irqrestore(&e->lock, flags);
	return true;
}
