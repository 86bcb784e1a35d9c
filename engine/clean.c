// SPDX-License-Identifier: GPL-2.0
/*
 * Cleaning a zone: victims are begun, and read out into chunks.
 *
 * Reading out a victim looks at many entries of the maps. That is done without
 * the engine lock; a zone cannot leave the state VICTIM while it is one of
 * e->victims. Of these there are as many as GC has lanes, and chunks are filled
 * from one after the other: what is read in parallel is not all on the same
 * dies.
 *
 * What is read goes on the lanes of its class of survivors. Until it is written
 * it can be swapped in from the chunk.
 */
#include "internal.h"

/* Is GC to read on? Between the watermarks it goes on if it has begun. */
static void update_running(struct zse_engine *e)
{
	u32 soon = zones_soon_empty(e) - share_stuck(e);

	if (soon < e->gc_low)
		e->gc_running = true;
	else if (soon >= e->gc_high)
		e->gc_running = false;
}

/*
 * Blocks that the victims that are begun will take, at most. Each chunk is
 * padded for itself, and may lose entries before that. What was read of a victim
 * is live there until it is moved; so of one that is read out, no more counts
 * than was not looked at.
 */
static u32 blocks_taken(const struct zse_engine *e)
{
	u32 padding = e->nr_used_gc_chunks * (e->cfg.write_unit - 1), i;
	u32 taken = round_up_unit(e, e->gc_unplaced + padding);

	for (i = 0; i < e->nr_victims; i++) {
		const struct zse_reading *v = &e->victims[i];
		const struct zse_zone *z = &e->zones[v->zone];
		u32 live = zp_load(&z->live), left = z->cap - v->passed;

		taken += round_up_unit(e, live < left ? live : left);
	}
	return taken;
}

/*
 * Blocks that GC can surely write: the rest of its zone and the reserve,
 * without what is taken.
 */
u32 clean_room(const struct zse_engine *e)
{
	u32 zones = e->nr_state[ZSE_ZONE_EMPTY], taken = blocks_taken(e);
	u32 room = stripe_room(e, &e->gc_stripe);

	if (!stripe_is_open(&e->gc_stripe) && !zone_may_open(e, true))
		return 0;
	if (zones > e->cfg.reserve)
		zones = e->cfg.reserve;
	room += zones * e->min_cap;
	return room > taken ? room - taken : 0;
}

/*
 * Blocks that swap-out may write where it shares zones with GC: all that there
 * are, but those that are taken, and what the reserve holds for the next victim.
 */
u32 clean_spare(const struct zse_engine *e)
{
	u32 room = stripe_room(e, &e->gc_stripe) +
		   e->nr_state[ZSE_ZONE_EMPTY] * e->min_cap;
	u32 kept = blocks_taken(e) + e->cfg.reserve * e->min_cap;

	return room > kept ? room - kept : 0;
}

/*
 * May GC begin a victim? Switched off it rests, unless chunks wait for a zone:
 * who waits until the engine is idle waits for them as well.
 */
bool clean_may_begin(const struct zse_engine *e)
{
	return e->gc_on || !list_empty(&e->stalled);
}

/* Is there more to read from @zone, a victim? */
bool clean_is_reading(const struct zse_engine *e, u32 zone)
{
	u32 i;

	for (i = 0; i < e->nr_victims; i++)
		if (e->victims[i].zone == zone)
			return true;
	return false;
}

/* Victims that GC reads, but for those that it goes past. */
static u32 victims_read(const struct zse_engine *e)
{
	u32 nr = 0, i;

	for (i = 0; i < e->nr_victims; i++)
		nr += !share_is_slow(e, &e->zones[e->victims[i].zone]);
	return nr;
}

/* Zones whose reset is under way, or can be. */
static u32 zones_to_reset(const struct zse_engine *e)
{
	u32 nr = e->nr_state[ZSE_ZONE_RESETTING];
	const struct zse_zone *z;

	list_for_each_entry(z, &e->drained, link)
		nr += !zp_load(&z->readers);
	return nr;
}

/*
 * Swap-out waits, and zones enough for all its lanes and for GC wait only for
 * their resets: more victims would take these for their survivors. Where GC is
 * faster than resets and gains little, swap-out would wait until nothing dead is
 * left, if the watermarks are high. The next reset to end looks again. Streams
 * that are isolated may wait for other zones than these.
 */
static bool resets_will_do(const struct zse_engine *e)
{
	u32 enough = e->cfg.reserve + e->gc_stripe.nr + e->nr_victims +
		     e->nr_streams * e->streams[0].stripe.nr, coming;

	if (list_empty(&e->stalled) || e->isolates)
		return false;
	coming = zones_to_reset(e);
	return coming && e->nr_state[ZSE_ZONE_EMPTY] + coming > enough;
}

/* Is GC to begin another victim? Wants the engine lock. */
bool clean_wants_victim(struct zse_engine *e)
{
	share_see_slow(e);
	zones_look_again(e);
	update_running(e);
	zp_store(&e->urgent, !list_empty(&e->stalled));
	zp_store(&e->gc_for_shares, !e->gc_running && share_wants_gc(e));
	return victims_read(e) < e->gc_stripe.kept &&
	       e->nr_victims < ZSE_MAX_LANES && clean_may_begin(e) &&
	       ((e->gc_running && !resets_will_do(e)) || e->nr_held ||
		e->gc_for_shares) &&
	       !list_empty(&e->free_gc_chunks);
}

/* @zone is a victim, whose survivors are of @class. Wants the engine lock. */
void clean_begin(struct zse_engine *e, u32 zone, u32 class)
{
	zone_set_state(e, zone, ZSE_ZONE_VICTIM);
	e->victims[e->nr_victims++] = (struct zse_reading){
		.zone = zone,
		.class = class,
	};
	policy_cleaning(e, zone, true);
}

/* GC is done with reading @v. Wants the engine lock. */
void clean_end(struct zse_engine *e, struct zse_reading *v)
{
	u32 zone = v->zone;

	*v = e->victims[--e->nr_victims];
	zone_check_drained(e, zone);
}

/*
 * Begin a zone that failed though it may gain nothing, since its reset may fail as
 * well: nothing else would help those that wait. Returns false if there is none.
 */
bool clean_begin_bad(struct zse_engine *e)
{
	u32 room = clean_room(e), best = ZSE_NONE, least = ZSE_NONE, i;

	for (i = 0; i < e->cfg.nr_zones; i++) {
		const struct zse_zone *z = &e->zones[i];
		u32 live = round_up_unit(e, zp_load(&z->live));

		if (z->bad && live < least && victim_will_do(e, i, room)) {
			best = i;
			least = live;
		}
	}
	if (best == ZSE_NONE || list_empty(&e->free_gc_chunks))
		return false;
	clean_begin(e, best, 0);
	return true;
}

/*
 * Begin another victim if GC is to go on, and the survivors have room. The
 * choice may take long: it is made without the lock, and looked at again.
 */
static void begin_victim(struct zse_engine *e)
{
	bool wants, any;
	unsigned long flags;
	u32 room, zone, class;

	zp_lock(&e->lock, flags);
	wants = clean_wants_victim(e);
	room = clean_room(e);
	any = e->gc_running || e->gc_for_shares;
	zp_unlock(&e->lock, flags);
	if (!wants)
		return;
	zone = victim_choose(e, room, any);
	class = zone == ZSE_NONE ? 0 : policy_survivor(e, zone);

	zp_lock(&e->lock, flags);
	if (zone == ZSE_NONE) {
		if (e->gc_for_shares)
			share_yield(e);
	} else if (round_up_unit(e, zp_load(&e->zones[zone].live)) <= clean_room(e)) {
		clean_begin(e, zone, class);
	}
	zp_unlock(&e->lock, flags);
}

/* Lanes of a class of survivors. */
static u32 class_lanes(const struct zse_engine *e, u32 class)
{
	u32 nr = 0, i;

	for (i = 0; i < e->gc_stripe.nr; i++)
		nr += e->gc_class[i] == class;
	return nr;
}

/* A lane without a zone goes to @class from one that has others left. */
static void take_lane(struct zse_engine *e, u32 class)
{
	u32 i;

	for (i = 0; i < e->gc_stripe.nr; i++) {
		u32 from = e->gc_class[i];

		if (from == class || e->gc_stripe.zone[i] != ZSE_NONE ||
		    (from < e->nr_survivors && class_lanes(e, from) < 2))
			continue;
		e->gc_class[i] = class;
		return;
	}
}

/*
 * The lane of the next chunk of a class of survivors. The class that has most
 * to write takes lanes from the others, but for one each.
 */
static u32 pick_lane(struct zse_engine *e, u32 class)
{
	u32 lanes = class_lanes(e, class), nth, i;

	if (lanes < e->gc_stripe.kept || !lanes) {
		take_lane(e, class);
		lanes = class_lanes(e, class);
	}
	if (!lanes)
		return class % e->gc_stripe.nr;
	nth = e->gc_turn++ % lanes;
	for (i = 0; e->gc_class[i] != class || nth--; i++)
		;
	return i;
}

/* What is written of @v in chunk @c; @c may have some of another victim. */
static void describe(struct zse_engine *e, const struct zse_reading *v,
		     struct zse_chunk *c)
{
	const struct zse_zone *z = &e->zones[v->zone];

	if (c->nr) {
		c->mixed |= z->mixed || z->key != c->key;
		return;
	}
	c->lane = pick_lane(e, v->class);
	c->stream = z->stream;
	c->key = z->key;
	c->mixed = z->mixed;
	c->moves = z->moves + 1;
	c->written_at = z->born;
}

/*
 * The victim to read next: into @c, or if that is NULL into another chunk.
 * NULL if there is none.
 */
static struct zse_reading *next_to_read(struct zse_engine *e,
					const struct zse_chunk *c)
{
	u32 i;

	for (i = 0; i < e->nr_victims; i++) {
		u32 nth = (e->turn + i) % e->nr_victims;
		struct zse_reading *v = &e->victims[nth];

		if (share_may_read(e, &e->zones[v->zone], c))
			return v;
	}
	return NULL;
}

/* Is there a victim that can be read? Wants the engine lock. */
bool clean_can_read(struct zse_engine *e)
{
	return next_to_read(e, NULL);
}

/*
 * The victim to read and a chunk to read it into, or NULL. Wants the engine
 * lock.
 */
static struct zse_reading *prepare(struct zse_engine *e, struct zse_chunk **c)
{
	struct zse_reading *v;

	if (!*c && (list_empty(&e->free_gc_chunks) || pace_holds(e)))
		return NULL;
	v = next_to_read(e, *c);
	if (v && !*c) {
		*c = list_first_entry(&e->free_gc_chunks, struct zse_chunk,
				      link);
		list_del_init(&(*c)->link);
		e->nr_used_gc_chunks++;
		share_gc_taken(e, *c, &e->zones[v->zone]);
	}
	return v;
}

/*
 * Add live blocks of the victim to the chunk, from the cursor on, and go on to the
 * next live one: who has read the last knows it, though the chunk is full. Blocks
 * that were never written (a zone that failed early) are not in the forward map.
 * What the kernel has in memory, it will write again. Without the lock. Returns
 * how many were added.
 */
static u32 read_out(struct zse_engine *e, struct zse_reading *v,
		    struct zse_chunk *c, u32 *skipped)
{
	const struct zse_zone *z = &e->zones[v->zone];
	u32 base = v->zone * e->cfg.zone_blocks, nr = c->nr;

	*skipped = 0;
	for (; v->cursor < z->cap && zp_load(&z->live); v->cursor++) {
		u32 block = base + v->cursor;
		u32 slot = zp_load(&e->rev[block]);
		struct zse_entry *entry = &c->entries[c->nr];

		if (slot == ZSE_NONE || !map_is(e, slot, block))
			continue;
		if (c->nr == e->cfg.chunk_blocks)
			break;
		if (e->cfg.in_memory && e->cfg.in_memory(e->cfg.host, slot) &&
		    map_drop(e, slot, block)) {
			++*skipped;
			continue;
		}
		entry->slot = slot;
		entry->expect = block;
		entry->page = c->nr++;
	}
	return c->nr - nr;
}

/*
 * Account for @nr entries just read out. Returns true if that was the last of
 * this victim. Wants the engine lock.
 */
static bool settle(struct zse_engine *e, struct zse_reading *v, u32 nr)
{
	struct zse_zone *z = &e->zones[v->zone];

	z->moving += nr;
	e->gc_unplaced += nr;
	e->counters.gc_read_blocks += nr;
	pace_moved(e, nr);
	v->passed = v->cursor;
	if (v->cursor != z->cap && zp_load(&z->live))
		return false;
	clean_end(e, v);
	return true;
}

/*
 * Fill a GC chunk. On a device with a write unit, survivors of the next
 * victim are added where padding would be; otherwise the chunk ends with its
 * victim. One that nothing came into goes back: the next victim may be another
 * stream's.
 */
bool clean_fill(struct zse_engine *e, struct zse_op *op)
{
	struct zse_chunk *c = NULL;
	unsigned long flags;

	for (;;) {
		struct zse_reading *v;
		u32 nr, skipped;
		bool last;

		begin_victim(e);
		zp_lock(&e->lock, flags);
		v = prepare(e, &c);
		if (!v)
			break;
		describe(e, v, c);
		zp_unlock(&e->lock, flags);

		nr = read_out(e, v, c, &skipped);

		zp_lock(&e->lock, flags);
		e->counters.gc_skipped_cached += skipped;
		last = settle(e, v, nr);
		if (c->nr == e->cfg.chunk_blocks ||
		    (last && c->nr && c->nr % e->cfg.write_unit == 0))
			break;
		if (!c->nr) {
			chunk_release(e, c);
			c = NULL;
		}
		zp_unlock(&e->lock, flags);
	}
	e->turn++;
	zp_unlock(&e->lock, flags);
	if (!c)
		return false;

	op->kind = ZSE_OP_READ;
	op->chunk = c;
	op->first = 0;
	op->nr = c->nr;
	return true;
}

/**
 * zse_gc_entry_failed() - a block could not be read
 * @e:	   engine
 * @c:	   chunk of ZSE_OP_READ, not yet reported as read
 * @index: entry
 *
 * The page stays where it is, and GC leaves its zone alone for some time; when it
 * has tried often enough, the page is lost.
 *
 * Return: true if the page is lost; its slot reads as an error now.
 */
bool zse_gc_entry_failed(struct zse_engine *e, struct zse_chunk *c, u32 index)
{
	struct zse_entry *entry = &c->entries[index];
	u32 zone = zse_block_zone(e, entry->expect);

	zse_read_failed(e, 1);
	entry->page = ZSE_NONE;
	return zp_load(&e->zones[zone].unread) >= ZSE_MAX_UNREAD &&
	       map_lose(e, entry->slot, entry->expect);
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

	zp_lock(&e->lock, flags);
	c->loaded = true;
	list_add_tail(&c->link, &e->gc_ready);
	zp_unlock(&e->lock, flags);
	return true;
}

/*
 * Does GC have @run's first block in memory? Then its chunk is held until the
 * page was copied. Entries whose append has ended are not looked at: the zone
 * that they were read from may have been reset and written since, while the
 * chunk waits to append the rest or to be put back. What could not be read
 * has no page, and what is lost left the map before the chunk was loaded. Wants
 * the engine lock.
 */
bool clean_buffer(struct zse_engine *e, u32 slot, struct zse_run *run)
{
	u32 i, k;

	for (i = 0; i < e->cfg.nr_gc_chunks; i++) {
		struct zse_chunk *c = &e->chunks[e->cfg.nr_chunks + i];

		for (k = c->done; c->loaded && k < c->nr; k++) {
			if (c->entries[k].expect != run->block)
				continue;
			if (c->entries[k].page == ZSE_NONE ||
			    !map_is(e, slot, run->block))
				return false;
			c->readers++;
			run->nr = 1;
			run->chunk = c;
			run->page = c->entries[k].page;
			e->counters.gc_read_hits++;
			return true;
		}
	}
	return false;
}
