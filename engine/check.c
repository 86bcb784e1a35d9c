// SPDX-License-Identifier: GPL-2.0
/*
 * Checks of the invariants. With the engine at rest they are exact. Slots may
 * be freed meanwhile; live counts are then compared with bounds. The caller
 * first stops submissions, and GC with zse_set_gc(): pages that are written or
 * moved meanwhile would cause false findings.
 */
#include "api.h"

struct check {
	struct zse_engine *e;
	zse_say_fn say;
	void *arg;
	u32 violations;
};

static void violation(struct check *ck, const char *what, u32 where, u64 is,
		      u64 want)
{
	ck->violations++;
	if (ck->say)
		ck->say(ck->arg, what, where, is, want);
}

/* A complete list of a zone's slots has @slot for @block, which is live. */
static void check_list(struct check *ck, u32 slot, u32 block)
{
	struct zse_engine *e = ck->e;
	u32 zone = zse_block_zone(e, block);
	u32 list = READ_ONCE(e->zones[zone].list);

	if (list != ZSE_NONE && census_has(e, zone) &&
	    census_slot(e, block) != slot && map_is(e, slot, block) &&
	    READ_ONCE(e->zones[zone].list) == list)
		violation(ck, "list lacks a live block", block,
			  census_slot(e, block), slot);
}

/*
 * If forward[s] = b, then b is in a zone that can hold data. A packed page is
 * as long as it may be, and ends in its zone.
 */
static void check_slots(struct check *ck)
{
	struct zse_engine *e = ck->e;
	u32 slot;

	for (slot = 0; slot < e->cfg.nr_slots; slot++) {
		u64 ref = map_get(e, slot);
		u32 b = ref_block(ref), len = ref_len(e, ref), state;

		if (!(slot % ZSE_RESCHED))
			cond_resched();
		if (b >= ZSE_WORD_BASE)
			continue;
		if (b >= e->nr_blocks) {
			violation(ck, "slot maps beyond the device", slot, b,
				  e->nr_blocks);
			continue;
		}
		state = READ_ONCE(e->zones[zse_block_zone(e, b)].state);
		if (map_get(e, slot) != ref)
			continue;	/* changed meanwhile */
		if (len < packed_shortest(&e->cfg) ||
		    len > longest_page(&e->cfg) ||
		    len > e->cfg.zone_blocks - zse_block_offset(e, b))
			violation(ck, "length of a page", slot, len,
				  longest_page(&e->cfg));
		if (state == ZSE_ZONE_EMPTY || state == ZSE_ZONE_DRAINED ||
		    state == ZSE_ZONE_RESETTING || state == ZSE_ZONE_RETIRED)
			violation(ck, "slot maps into a zone without data",
				  slot, b, state);
		check_list(ck, slot, b);
	}
}

/*
 * Compare each zone's live count with what the forward map has, counted in one
 * walk. A free changes the map first and then lowers the count, so the number
 * found lies between the counts read before and after, unless a free is between
 * its two steps. Returns false then, or reports it if @last.
 */
static bool check_live(struct check *ck, bool last)
{
	struct zse_engine *e = ck->e;
	struct zse_zone *z = e->zones, *end = z + e->cfg.nr_zones;
	bool good = true;
	u32 i;

	for (; z < end; z++) {
		z->check_live = zone_live(z);
		z->check_found = 0;
	}
	for (i = 0; i < e->cfg.nr_slots; i++) {
		u64 ref = map_get(e, i);

		if (ref_block(ref) < e->nr_blocks)
			e->zones[zse_block_zone(e, ref_block(ref))].check_found +=
				ref_len(e, ref);
		if (!(i % ZSE_RESCHED))
			cond_resched();
	}
	for (z = e->zones; z < end; z++) {
		if (z->check_found <= z->check_live &&
		    z->check_found >= zone_live(z))
			continue;
		good = false;
		if (last)
			violation(ck, "live count of a zone is off",
				  z - e->zones, z->check_live, z->check_found);
	}
	return good;
}

static void check_zones_live(struct check *ck)
{
	u32 tries = 8;

	while (tries-- && !check_live(ck, !tries))
		;
}

/* The fields of one zone. With the engine lock. */
static void check_zone_fields(struct check *ck, u32 zone)
{
	const struct zse_zone *z = &ck->e->zones[zone];
	u32 cap = ck->e->cfg.zone_blocks;

	if (z->alloc > cap)
		violation(ck, "more allocated than fits", zone, z->alloc,
			  cap);
	if (zone_written(ck->e, z) > z->alloc)
		violation(ck, "more written than allocated", zone,
			  zone_written(ck->e, z), z->alloc);
	if (zone_live(z) > cap)
		violation(ck, "more live than fits", zone, zone_live(z),
			  cap);
	if (atomic_read(&z->appends) && z->state != ZSE_ZONE_OPEN &&
	    z->state != ZSE_ZONE_CLOSING)
		violation(ck, "append to a zone that takes none", zone,
			  z->state, ZSE_ZONE_OPEN);
	if (z->moving && z->state != ZSE_ZONE_VICTIM)
		violation(ck, "GC moves from a zone that is no victim", zone,
			  z->state, ZSE_ZONE_VICTIM);
	if (z->place == ZSE_PLACE_HELD && (z->health == ZSE_GOOD ||
	    z->state == ZSE_ZONE_OPEN || z->state == ZSE_ZONE_EMPTY ||
	    z->state == ZSE_ZONE_RETIRED))
		violation(ck, "zone holds a place that it cannot have", zone,
			  z->state, ZSE_ZONE_FULL);
	if (zone_written(ck->e, z) > READ_ONCE(z->end))
		violation(ck, "more written than the appends' places", zone,
			  zone_written(ck->e, z), READ_ONCE(z->end));
	if (z->state == ZSE_ZONE_FULL && !ck->e->counters.write_errors &&
	    !zone_is_gone(z) && zone_written(ck->e, z) != z->alloc)
		violation(ck, "full zone lacks what was allocated", zone,
			  zone_written(ck->e, z), z->alloc);
}

/* Shares of zones and GC. With the engine lock. */
static void check_shares(struct check *ck, u64 counted)
{
	const struct zse_engine *e = ck->e;
	u32 chunks = 0, victims = 0, i;
	u64 live = 0;

	for (i = 0; i <= ZSE_NOBODY; i++) {
		live += e->share.of[i].live;
		chunks += e->share.of[i].chunks;
		victims += e->share.of[i].victims;
	}
	if (live != counted)
		violation(ck, "live blocks that streams have", 0, live,
			  counted);
	if (chunks != e->pool.gc_used)
		violation(ck, "chunks of GC that streams have", 0, chunks,
			  e->pool.gc_used);
	if (victims != e->nr_state[ZSE_ZONE_VICTIM])
		violation(ck, "victims that streams have", 0, victims,
			  e->nr_state[ZSE_ZONE_VICTIM]);
}

/*
 * Unless something failed, GC has room for all it has begun: the entries of its
 * chunks, and the live blocks of victims that it has not read. Streams that
 * share GC's zones have none of their own. With the engine lock.
 */
static void check_gc_room(struct check *ck)
{
	struct zse_engine *e = ck->e;
	u32 zones = e->nr_state[ZSE_ZONE_EMPTY], i, k;
	u64 room = stripe_room(e, &e->gc.stripe), needed = e->gc.unplaced;
	u64 open = 0;

	if (!e->shared && zones > e->cfg.reserve)
		zones = e->cfg.reserve;
	room += (u64)zones * e->cfg.zone_blocks;
	for (i = 0; i < e->gc.nr_victims; i++) {
		const struct zse_zone *z = &e->zones[e->gc.victims[i]];
		u32 live = zone_live(z);

		needed += live > z->moving ? live - z->moving : 0;
	}
	if (needed > room && !e->counters.write_errors &&
	    !e->counters.read_errors && !e->counters.zones_lost)
		violation(ck, "GC has begun more than it has room for", 0,
			  needed, room);
	for (i = 0; i < e->max_streams; i++) {
		const struct zse_stripe *s = &e->streams[i].stripe;

		for (k = 0; k < s->nr; k++)
			open += zone_room(e, s->zone[k]);
	}
	if (open != e->flow.open_room)
		violation(ck, "room in the zones that streams have open", 0,
			  e->flow.open_room, open);
	for (i = 0; e->shared && i < e->max_streams; i++)
		if (stripe_room(e, &e->streams[i].stripe) ||
		    e->streams[i].stripe.nr)
			violation(ck, "stream with zones of its own", i,
				  e->streams[i].stripe.nr, 0);
}

/* Zones have the lists that have them. With the engine lock. */
static void check_lists(struct check *ck)
{
	const struct zse_engine *e = ck->e;
	u32 nr_free = 0, listed = 0, i;

	for (i = 0; i < e->census.nr; i++) {
		u32 zone = e->census.lists[i].zone;

		nr_free += zone == ZSE_NONE;
		if (zone != ZSE_NONE && e->zones[zone].list != i)
			violation(ck, "list of a zone", zone,
				  e->zones[zone].list, i);
	}
	for (i = 0; i < e->cfg.nr_zones; i++)
		listed += e->zones[i].list != ZSE_NONE;
	if (nr_free != e->census.nr_free || listed != e->census.nr - nr_free)
		violation(ck, "number of lists without a zone", 0,
			  e->census.nr_free, nr_free);
}

/* Compare the zones with their counters and the device's limits. */
static void check_zones(struct check *ck)
{
	struct zse_engine *e = ck->e;
	u32 count[ZSE_NR_ZONE_STATES] = { 0 }, appends = 0, held = 0, active;
	u32 failed = 0, in_flight, i;
	unsigned long flags;
	u64 counted = 0;

	spin_lock_irqsave(&e->lock, flags);
	in_flight = atomic_read(&e->appends);
	for (i = 0; i < e->cfg.nr_zones; i++) {
		count[e->zones[i].state]++;
		appends += atomic_read(&e->zones[i].appends);
		held += e->zones[i].place == ZSE_PLACE_HELD;
		counted += e->zones[i].counted;
		failed += e->zones[i].state != ZSE_ZONE_RETIRED &&
			  zone_is_failed(&e->zones[i]);
		check_zone_fields(ck, i);
	}
	for (i = 0; i < ZSE_NR_ZONE_STATES; i++)
		if (count[i] != e->nr_state[i])
			violation(ck, "number of zones in a state", i,
				  e->nr_state[i], count[i]);
	/* An end lowers the zone's number first, without the lock. */
	if (appends > in_flight ||
	    (appends < in_flight && !pool_used(e) && !e->pool.gc_used))
		violation(ck, "number of appends in flight", 0, in_flight,
			  appends);
	if (held != e->recovery.nr_held)
		violation(ck, "number of zones that hold a place", 0,
			  e->recovery.nr_held, held);
	if (failed != e->recovery.nr_failed)
		violation(ck, "number of failed zones", 0,
			  e->recovery.nr_failed, failed);
	if (!e->pool.gc_used && e->gc.unplaced + e->gc.claimed)
		violation(ck, "blocks without a zone in no chunk of GC", 0,
			  e->gc.unplaced + e->gc.claimed, 0);
	check_shares(ck, counted);
	check_gc_room(ck);
	check_lists(ck);
	active = count[ZSE_ZONE_OPEN];
	if (!e->cfg.wide)
		active += count[ZSE_ZONE_CLOSING] + count[ZSE_ZONE_FINISH] +
			  count[ZSE_ZONE_FINISHING] + held;
	if (e->cfg.max_active && active > e->cfg.max_active)
		violation(ck, "more active zones than the device allows", 0,
			  active, e->cfg.max_active);
	spin_unlock_irqrestore(&e->lock, flags);
}

static u64 slots_used(const struct zse_engine *e)
{
	u64 used = 0;
	u32 i;

	for (i = 0; i < e->nr_shards; i++)
		used += atomic64_read(&e->shards[i].filled) -
			atomic64_read(&e->shards[i].freed);
	return used;
}

/* At rest, the slots in use are those in the forward map. */
static void check_totals(struct check *ck)
{
	struct zse_engine *e = ck->e;
	u64 used = slots_used(e), mapped = 0;
	u32 i;

	for (i = 0; i < e->cfg.nr_slots; i++) {
		mapped += !map_is(e, i, ZSE_NONE);
		if (!(i % ZSE_RESCHED))
			cond_resched();
	}
	if (zse_idle(e) && slots_used(e) == used && used != mapped)
		violation(ck, "number of slots in use", 0, used, mapped);
}

/* Mark blocks of @bits. Returns true if one was marked before. */
static bool mark(u32 *bits, u32 from, u32 nr)
{
	bool was = false;

	for (; nr--; from++) {
		was |= bits[from / 32] >> from % 32 & 1;
		bits[from / 32] |= 1u << from % 32;
	}
	return was;
}

/**
 * zse_check_twice() - do two slots have the same block?
 * @e:	   engine
 * @bits:  memory to work with; the more there is, the faster
 * @words: of it
 * @say:   as for zse_check()
 * @arg:   passed to @say
 *
 * Context: as zse_check().
 * Return: number of slots with a block that another one has.
 */
u32 zse_check_twice(struct zse_engine *e, u32 *bits, u32 words,
		    zse_say_fn say, void *arg)
{
	struct check ck = { .e = e, .say = say, .arg = arg };
	u32 room = words * 32, from, slot, i;

	for (from = 0; from < e->nr_blocks; from += room) {
		u32 left = e->nr_blocks - from;

		if (room > left)
			room = left;
		for (i = 0; i < words; i++)
			bits[i] = 0;
		for (slot = 0; slot < e->cfg.nr_slots; slot++) {
			u64 ref = map_get(e, slot);
			u32 b = ref_block(ref), len = ref_len(e, ref);

			if (!(slot % ZSE_RESCHED))
				cond_resched();
			if (b < from || b - from >= room)
				continue;
			if (len > room - (b - from))
				len = room - (b - from);
			if (mark(bits, b - from, len))
				violation(&ck, "slot with a block that another has",
					  slot, b, ZSE_NONE);
		}
	}
	return ck.violations;
}

/**
 * zse_check() - compare the maps with every counter
 * @e:	 engine
 * @say: called for each violation, perhaps under the engine lock; or NULL
 * @arg: passed to @say
 *
 * Context: may sleep, but allocates nothing; the time grows with the device. One
 * caller at a time.
 * Return: number of violations.
 */
u32 zse_check(struct zse_engine *e, zse_say_fn say, void *arg)
{
	struct check ck = { .e = e, .say = say, .arg = arg };

	check_slots(&ck);
	check_zones_live(&ck);
	check_zones(&ck);
	check_totals(&ck);
	return ck.violations;
}
