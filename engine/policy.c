// SPDX-License-Identifier: GPL-2.0
/*
 * Choices that are matters of policy, apart from the machinery that carries
 * them out: which stream a page goes to, which zone GC empties next, and when
 * GC runs.
 */
#include "internal.h"

/**
 * zse_nr_streams() - streams that a configuration gets
 * @cfg: configuration
 *
 * Each stream keeps a zone open, GC another; one more place is left free if
 * the device has it, so that a stream can open its next zone while the last
 * appends to the old one are in flight. Where that leaves fewer places than
 * CPUs, CPUs share. Zones bound them too: at least half are to be full, or
 * GC has nothing to choose from.
 */
u32 zse_nr_streams(const struct zse_config *cfg)
{
	u32 nr = cfg->policy == ZSE_POLICY_CPU ? cfg->nr_cpus : 1;
	u32 most = cfg->nr_zones / 8;

	if (cfg->max_active) {
		u32 active = cfg->max_active > 2 ? cfg->max_active - 2 : 1;

		if (most > active)
			most = active;
	}
	if (nr > most)
		nr = most;
	return nr ? nr : 1;
}

/* Appends of a chunk that a zone takes, for several zones at a time to help. */
#define CHUNKS_OF_A_LANE	16
/* Of all zones, what may be open if the device sets no limit. */
#define ZONES_OF_A_LANE		32

/* More would keep more zones empty for GC, and hurt reads. */
#define MAX_GC_LANES		8

/**
 * zse_lanes() - zones that are written at a time
 * @cfg:    configuration
 * @stream: by each stream
 * @gc:	    by GC
 *
 * One place among the active zones is left for a zone whose last appends are
 * in flight. Half of the others are for swap-out, the rest for GC, which
 * writes more than swap-out does on a device that is more than about 70 %
 * full. Zones of few chunks follow one another so fast that one at a time is
 * enough. On a device without a limit the number of its zones is one: those
 * that are not full hold no dead blocks.
 */
void zse_lanes(const struct zse_config *cfg, u32 *stream, u32 *gc)
{
	u32 streams = zse_nr_streams(cfg), most = cfg->nr_zones / 8, places;

	*stream = 1;
	*gc = 1;
	if (!cfg->stripe &&
	    cfg->zone_blocks / CHUNKS_OF_A_LANE < cfg->chunk_blocks)
		return;
	if (cfg->max_active && cfg->max_active - 1 < most)
		most = cfg->max_active - 1;
	if (most > ZSE_MAX_LANES * 2)
		most = ZSE_MAX_LANES * 2;
	if (cfg->stripe) {
		*stream = cfg->stripe;
		if (*stream > ZSE_MAX_LANES)
			*stream = ZSE_MAX_LANES;
		if (streams * *stream >= most)
			*stream = most ? (most - 1) / streams : 0;
	} else {
		places = cfg->max_active ? most : cfg->nr_zones / ZONES_OF_A_LANE;
		if (places < most)
			most = places;
		*stream = most / 2 / streams;
	}
	if (!*stream)
		*stream = 1;
	if (most > streams * *stream)
		*gc = most - streams * *stream;
	if (*gc > MAX_GC_LANES)
		*gc = MAX_GC_LANES;
}

u32 policy_place(const struct zse_engine *e, u32 cpu)
{
	return cpu % e->nr_streams;
}

/*
 * Watermarks, checked and with 0 replaced by the default. GC starts while
 * there is still one zone beyond the reserve, so that swap-out does not wait
 * while the first victim is read, and stops one zone later: each zone kept
 * empty is one that dead blocks cannot gather in, and at 90 % utilization a
 * percent of the device costs a fifth of the WAF. Lanes that fill at the same
 * time need as many zones at once, or they would go on with fewer. On a device
 * of very few zones there may be none to spare; zse_max_slots() leaves room for
 * one.
 */
bool policy_watermarks(const struct zse_engine *e, u32 *low, u32 *high)
{
	u32 lanes, gc_lanes, min;

	zse_lanes(&e->cfg, &lanes, &gc_lanes);
	/* Above what swap-out leaves to GC, see zone_may_open(). */
	min = e->cfg.reserve + gc_lanes;
	if (!*low) {
		*low = min + 1 + e->nr_streams * (lanes - 1);
		if (*low + 1 >= e->cfg.nr_zones)
			*low = min;
	}
	if (!*high)
		*high = *low + 1;
	return *low >= min && *high > *low && *high < e->cfg.nr_zones;
}

/**
 * policy_victim() - the zone that GC should empty next
 * @e:	  engine; locked
 * @room: blocks that GC can write
 * @any:  false: only one that failed
 *
 * Greedy: the full zone with the fewest live blocks, if they fit. A zone in
 * which not even one write unit is dead is no use: cleaning it would gain
 * nothing. A zone that failed is emptied first, to save what is in it; since
 * that gains nothing either, only while swap-out has a zone left, or if there
 * is nothing to save.
 *
 * Return: the zone or ZSE_NONE.
 */
u32 policy_victim(struct zse_engine *e, u32 room, bool any)
{
	bool rescue = e->nr_state[ZSE_ZONE_EMPTY] > e->cfg.reserve;
	u32 best = ZSE_NONE, best_live = ~0u, i;

	for (i = 0; i < e->cfg.nr_zones; i++) {
		const struct zse_zone *z = &e->zones[i];
		u32 live;

		if (z->state != ZSE_ZONE_FULL)
			continue;
		live = round_up_unit(e, zp_load(&z->live));
		if (live > room)
			continue;
		if (z->bad && (rescue || !live))
			return i;
		if (z->bad || !any)
			continue;
		if (live < z->cap && live < best_live) {
			best = i;
			best_live = live;
		}
	}
	return best;
}
