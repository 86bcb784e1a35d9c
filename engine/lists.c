// SPDX-License-Identifier: GPL-2.0
/*
 * Lists of the slots that have the blocks of a zone. census.c says why a list
 * is complete, and walks the forward map to write it.
 *
 * Only the caller of zse_next_op() begins and reads lists. Others drop the
 * lists of zones that they drain, under the engine lock.
 */
#include "zone.h"

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
	parts = (e->nr_blocks >> cs->shift) + 1;
	cs->slots = zport_alloc(sizeof(u32) * nr * e->cfg.zone_blocks);
	cs->lists = zport_alloc(sizeof(*cs->lists) * nr);
	cs->parts = zport_alloc(parts);
	if (!cs->slots || !cs->lists || !cs->parts)
		return false;
	cs->nr = nr;
	cs->nr_free = nr;
	cs->search = true;
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
	zport_free(e->census.slots);
	zport_free(e->census.lists);
	zport_free(e->census.parts);
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

		WRITE_ONCE(*part, READ_ONCE(*part) + more);
	}
}

/* Has GC a list of all live blocks of @zone? */
bool census_has(const struct zse_engine *e, u32 zone)
{
	u32 list = READ_ONCE(e->zones[zone].list);

	return e->cfg.pack || !zone_live(&e->zones[zone]) ||
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

	lockdep_assert_held(&e->lock);
	if (z->list == ZSE_NONE)
		return;
	count_parts(e, z - e->zones, -1);
	WRITE_ONCE(cs->lists[z->list].zone, ZSE_NONE);
	WRITE_ONCE(z->list, ZSE_NONE);
	WRITE_ONCE(cs->nr_free, cs->nr_free + 1);
	WRITE_ONCE(cs->search, true);
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
void census_begin(struct zse_engine *e, u32 zone)
{
	struct zse_zone *z = &e->zones[zone];
	struct zse_census *cs = &e->census;
	unsigned long flags;
	u32 list, i;

	spin_lock_irqsave(&e->lock, flags);
	list = free_list(e, z->state == ZSE_ZONE_VICTIM);
	spin_unlock_irqrestore(&e->lock, flags);
	if (list == ZSE_NONE)
		return;
	for (i = 0; i < e->cfg.zone_blocks; i++) {
		cs->slots[(u64)list * e->cfg.zone_blocks + i] = ZSE_NONE;
		if (!(i % ZSE_RESCHED))
			cond_resched();
	}
	spin_lock_irqsave(&e->lock, flags);
	if (z->state == ZSE_ZONE_VICTIM || z->state == ZSE_ZONE_FULL) {
		WRITE_ONCE(cs->lists[list].zone, zone);
		cs->lists[list].complete = cs->walked + e->cfg.nr_slots;
		cs->newest = cs->lists[list].complete;
		WRITE_ONCE(cs->nr_free, cs->nr_free - 1);
		WRITE_ONCE(z->list, list);
		count_parts(e, zone, 1);
	}
	spin_unlock_irqrestore(&e->lock, flags);
}
