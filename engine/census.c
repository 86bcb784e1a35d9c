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
 * Packed pages need no lists: scan.c.
 */
#include "gc.h"

/* Slots walked before other work has a turn: some 0.1 ms. */
#define STEP	65536

/* Note the slot of @block, if its zone has a list. */
static void note(struct zse_engine *e, u32 slot, u32 block)
{
	u32 zone = zse_block_zone(e, block);
	u32 list = READ_ONCE(e->zones[zone].list);

	if (list != ZSE_NONE)
		e->census.slots[(u64)list * e->cfg.zone_blocks +
				zse_block_offset(e, block)] = slot;
}

/*
 * Walk slots [@from, @to). Most have a block, and few of these are in a zone
 * with a list, so there is one branch that a CPU foresees: what is no block
 * counts as the first one beyond the device.
 */
static void walk_slots(struct zse_engine *e, u32 from, u32 to)
{
	u32 nr_blocks = e->nr_blocks, shift = e->census.shift, slot;
	const u8 *parts = e->census.parts;
	const u32 *fwd = e->fwd;

	for (slot = from; slot < to; slot++) {
		u32 block = READ_ONCE(fwd[slot]);
		u32 part = (block < nr_blocks ? block : nr_blocks) >> shift;

		if (READ_ONCE(parts[part]) && block < nr_blocks)
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
		if (READ_ONCE(e->zones[e->gc.victims[i]].list) == ZSE_NONE)
			census_begin(e, e->gc.victims[i]);
	if (more && READ_ONCE(cs->nr_free) && READ_ONCE(cs->search)) {
		WRITE_ONCE(cs->search, false);
		zone = victim_ahead(e);
		if (zone != ZSE_NONE) {
			WRITE_ONCE(cs->search, true);
			census_begin(e, zone);
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
