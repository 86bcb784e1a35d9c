// SPDX-License-Identifier: GPL-2.0
/*
 * Which slots have their pages in a victim? A reverse map would answer for all
 * zones, and take as much memory as the forward map. GC asks for a few zones at
 * a time. So it walks the forward map, and writes a list of the slots of some
 * full zones: the victims, and zones that will soon be. A list has a slot for
 * each block of its zone. There are lists for a small part of the zones.
 *
 * The walk goes round and round. A zone gets a list when it is chosen, wherever
 * the walk is, and the list is complete when the walk comes to that place
 * again. GC reads a victim when its list is complete.
 *
 * Why a complete list has all live blocks: the blocks of a full zone can only
 * become stale. So the forward map has a block that is live now in its slot
 * since before the list was begun, and the walk has been at each slot since
 * then. A list may also have blocks that became stale meanwhile, so GC asks the
 * forward map about each. A list is dropped when its zone is drained, before
 * the zone is written again.
 *
 * Only the caller of zse_next_op() begins lists, walks and reads lists. Others
 * drop the lists of zones that they drain, under the engine lock. The walk
 * reads a zone's list without the lock, and may write to a list that was
 * dropped. Nobody else has it until the walk's caller begins another.
 *
 * Packed pages need no lists: packed.c.
 */
#include "internal.h"

/* Slots walked before other work has a turn: some 0.1 ms. */
#define STEP	65536

/* Lists for one zone of this many: how much memory against how much walking. */
#define ZONES_A_LIST	32

/*
 * Lists for a device. Beside those of the victims, for each lane one whose list
 * is complete, and two that the walk is at.
 */
u32 census_lists(const struct zse_config *cfg)
{
	u32 nr = 4 * zse_gc_lanes(cfg);

	if (cfg->pack)
		return 0;
	if (nr < cfg->nr_zones / ZONES_A_LIST)
		nr = cfg->nr_zones / ZONES_A_LIST;
	return nr < cfg->nr_zones ? nr : cfg->nr_zones;
}

/*
 * A zone has this many parts or twice as many, each a power of two of blocks.
 * The walk knows by a block's part if its zone may have a list: a division
 * would take as long as all else.
 */
#define PARTS	4

static u32 part_shift(const struct zse_config *cfg)
{
	u32 shift = 0;

	while (cfg->zone_blocks >> shift >= 2 * PARTS)
		shift++;
	return shift;
}

/* Memory for the lists; may sleep. Returns false if there is none. */
bool census_alloc(struct zse_engine *e)
{
	struct zse_census *cs = &e->census;
	u32 nr = census_lists(&e->cfg), parts, i;

	if (!nr)
		return true;
	cs->shift = part_shift(&e->cfg);
	parts = ((e->nr_blocks - 1) >> cs->shift) + 1;
	cs->slots = zp_alloc(sizeof(u32) * nr * e->cfg.zone_blocks);
	cs->lists = zp_alloc(sizeof(*cs->lists) * nr);
	cs->parts = zp_alloc(parts);
	if (!cs->slots || !cs->lists || !cs->parts)
		return false;
	cs->nr = nr;
	cs->nr_free = nr;
	cs->due = true;
	for (i = 0; i < nr; i++)
		cs->lists[i].zone = ZSE_NONE;
	e->map_bytes += nr * (sizeof(u32) * (u64)e->cfg.zone_blocks +
			      sizeof(*cs->lists)) + parts;
	/* Half of the lists are read while the walk goes round once. */
	cs->pace = 2 * (u64)e->cfg.nr_slots /
		   ((u64)nr * e->cfg.zone_blocks) + 1;
	return true;
}

void census_free(struct zse_engine *e)
{
	zp_free(e->census.slots);
	zp_free(e->census.lists);
	zp_free(e->census.parts);
}

static u32 *slots_of(const struct zse_engine *e, const struct zse_zone *z)
{
	return &e->census.slots[(u64)z->list * e->cfg.zone_blocks];
}

/* One more, or less, list for the parts of @zone. With the engine lock. */
static void count_parts(struct zse_engine *e, u32 zone, u8 more)
{
	u32 from = zone * e->cfg.zone_blocks;
	u32 last = from + e->cfg.zone_blocks - 1, shift = e->census.shift, i;

	for (i = from >> shift; i <= last >> shift; i++) {
		u8 *part = &e->census.parts[i];

		zp_store8(part, zp_load8(part) + more);
	}
}

/* Has GC a list of all live blocks of @zone? */
bool census_has(const struct zse_engine *e, u32 zone)
{
	u32 list = zp_load(&e->zones[zone].list);

	return e->cfg.pack || !zp_load(&e->zones[zone].live) ||
	       (list != ZSE_NONE &&
		e->census.walked >= e->census.lists[list].complete);
}

/* Slot that had @block of a zone with a list, or ZSE_NONE. */
u32 census_slot(const struct zse_engine *e, u32 block)
{
	const struct zse_zone *z = &e->zones[zse_block_zone(e, block)];

	return slots_of(e, z)[zse_block_offset(e, block)];
}

/* The list of @z, if any, is not needed any longer. With the engine lock. */
void census_drop(struct zse_engine *e, struct zse_zone *z)
{
	struct zse_census *cs = &e->census;

	if (z->list == ZSE_NONE)
		return;
	count_parts(e, z - e->zones, -1);
	cs->lists[z->list].zone = ZSE_NONE;
	zp_store(&z->list, ZSE_NONE);
	zp_store(&cs->nr_free, cs->nr_free + 1);
	zp_store(&cs->due, true);
}

/*
 * A free list, with the engine lock. For a victim, this may be the list of a
 * zone that is none: GC begins one without a list only if no other would do.
 */
static u32 free_list(struct zse_engine *e, bool victim)
{
	struct zse_census *cs = &e->census;
	u32 i;

	for (i = 0; victim && !cs->nr_free && i < cs->nr; i++) {
		struct zse_zone *z = &e->zones[cs->lists[i].zone];

		if (z->state != ZSE_ZONE_VICTIM)
			census_drop(e, z);
	}
	for (i = 0; cs->nr_free && i < cs->nr; i++)
		if (cs->lists[i].zone == ZSE_NONE)
			return i;
	return ZSE_NONE;
}

/*
 * Begin a list of @zone, a victim or full. The lock lies between the last
 * publication of a block of the zone and the walk.
 */
static void begin_list(struct zse_engine *e, u32 zone)
{
	struct zse_zone *z = &e->zones[zone];
	struct zse_census *cs = &e->census;
	unsigned long flags;
	u32 list, i;

	zp_lock(&e->lock, flags);
	list = free_list(e, z->state == ZSE_ZONE_VICTIM);
	zp_unlock(&e->lock, flags);
	if (list == ZSE_NONE)
		return;
	for (i = 0; i < e->cfg.zone_blocks; i++) {
		cs->slots[(u64)list * e->cfg.zone_blocks + i] = ZSE_NONE;
		if (!(i % ZSE_RESCHED))
			zp_resched();
	}
	zp_lock(&e->lock, flags);
	if (z->state == ZSE_ZONE_VICTIM || z->state == ZSE_ZONE_FULL) {
		cs->lists[list].zone = zone;
		cs->lists[list].complete = cs->walked + e->cfg.nr_slots;
		cs->newest = cs->lists[list].complete;
		zp_store(&cs->nr_free, cs->nr_free - 1);
		zp_store(&z->list, list);
		count_parts(e, zone, 1);
	}
	zp_unlock(&e->lock, flags);
}

/* Note the slot of @block, if its zone has a list. */
static void note(struct zse_engine *e, u32 slot, u32 block)
{
	u32 zone = zse_block_zone(e, block);
	u32 list = zp_load(&e->zones[zone].list);

	if (list != ZSE_NONE)
		e->census.slots[(u64)list * e->cfg.zone_blocks +
				zse_block_offset(e, block)] = slot;
}

/* Walk slots [@from, @to). */
static void walk_slots(struct zse_engine *e, u32 from, u32 to)
{
	u32 nr_blocks = e->nr_blocks, shift = e->census.shift, slot;
	const u8 *parts = e->census.parts;
	const u32 *fwd = e->fwd;

	for (slot = from; slot < to; slot++) {
		u32 block = zp_load(&fwd[slot]);

		if (block < nr_blocks && zp_load8(&parts[block >> shift]))
			note(e, slot, block);
	}
}

/* Walk @nr slots on, at most all. */
static void walk(struct zse_engine *e, u32 nr)
{
	struct zse_census *cs = &e->census;
	u32 left = e->cfg.nr_slots - cs->at;

	if (nr < left) {
		walk_slots(e, cs->at, cs->at + nr);
		cs->at += nr;
	} else {
		walk_slots(e, cs->at, e->cfg.nr_slots);
		cs->at = nr - left;
		walk_slots(e, 0, cs->at);
	}
	cs->walked += nr;
}

/* Does a victim wait for its list? */
bool census_waits(const struct zse_engine *e)
{
	u32 i;

	for (i = 0; i < e->gc.nr_victims; i++)
		if (!census_has(e, e->gc.victims[i]))
			return true;
	return false;
}

/* GC has come @blocks further in a victim. */
void census_gc_read(struct zse_engine *e, u32 blocks)
{
	e->census.debt += blocks * e->census.pace;
}

/*
 * Begin the lists of victims that have none, or one more of a zone that may be
 * a victim soon, if GC will go on (@more). Then walk on: as fast as GC reads,
 * or faster if it waits. May sleep.
 */
void census_work(struct zse_engine *e, bool more)
{
	struct zse_census *cs = &e->census;
	u32 step = STEP < e->cfg.nr_slots ? STEP : e->cfg.nr_slots, zone, i;

	if (!cs->nr)
		return;
	for (i = 0; i < e->gc.nr_victims; i++)
		if (zp_load(&e->zones[e->gc.victims[i]].list) == ZSE_NONE)
			begin_list(e, e->gc.victims[i]);
	if (more && zp_load(&cs->nr_free) && zp_load(&cs->due)) {
		zp_store(&cs->due, false);
		zone = victim_ahead(e);
		if (zone != ZSE_NONE) {
			zp_store(&cs->due, true);
			begin_list(e, zone);
		}
	}
	if (cs->walked >= cs->newest)
		cs->debt = 0;
	else if (census_waits(e))
		walk(e, step);
	else if (cs->debt) {
		if (cs->debt < step)
			step = (u32)cs->debt;
		walk(e, step);
		cs->debt -= step;
	}
}
