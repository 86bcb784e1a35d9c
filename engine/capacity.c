// SPDX-License-Identifier: GPL-2.0
/*
 * Capacity: how many slots and live blocks a device takes, so that GC always
 * finds a victim. What packed pages (packed.c) add to that is here, too.
 */
#include "limits.h"

/* The fewest blocks of a page. */
u32 packed_shortest(const struct zse_config *cfg)
{
	return cfg->pack ? cfg->pack / ZSE_LEAST_PART : 1;
}

/* Blocks of a span. */
u32 packed_span_blocks(const struct zse_config *cfg)
{
	return batch_pages(cfg) * cfg->pack;
}

/* Entries that a chunk of GC needs: the pages that can begin in a span. */
u32 packed_gc_entries(const struct zse_config *cfg)
{
	if (!cfg->pack)
		return cfg->chunk_pages;
	return packed_span_blocks(cfg) / packed_shortest(cfg);
}

/*
 * Blocks that GC may write for a victim beyond its live ones. The chunk of each
 * span ends with a write unit. The survivors may reach into a second zone: the
 * chunk between the two is split, and both may be padded to the end.
 */
u32 packed_waste(const struct zse_config *cfg)
{
	u32 spans;

	if (!cfg->pack)
		return 0;
	spans = (cfg->zone_blocks + packed_span_blocks(cfg) - 1) /
		  packed_span_blocks(cfg);
	return (spans + 4) * cfg->write_unit;
}

/* Blocks of live pages in a full zone that GC can still gain by emptying. */
u32 packed_full_zone(const struct zse_config *cfg)
{
	u32 taken = cfg->write_unit + packed_waste(cfg);

	return cfg->zone_blocks > taken ? cfg->zone_blocks - taken : 0;
}

/*
 * The most blocks of live pages with which GC always finds a victim; see
 * zse_max_slots().
 */
u64 packed_most_live(const struct zse_config *cfg)
{
	u32 zones = limits_not_full(cfg);

	return cfg->nr_zones > zones ?
	       (u64)(cfg->nr_zones - zones) * packed_full_zone(cfg) : 0;
}

/**
 * zse_max_slots() - the largest swap area on which GC always finds a victim
 * @cfg: configuration; nr_slots is ignored
 *
 * When swap-out has to wait, at most the reserve is empty, and each lane of a
 * stream or of GC, or the lane they share, has at most one open zone. All other
 * zones are full, whatever the policy. Take a write unit off the capacity of
 * each full zone. If there are fewer slots than what is left, some full zone
 * has a whole unit of stale blocks. GC finds it by the live counts, of which
 * each CPU in the middle of a free or a write may leave one too high by one.
 *
 * Where pages are packed, so many fit if none shrinks. There may be more slots
 * then: zse_chunk_fits().
 *
 * Return: slots, or 0 if there are too few zones.
 */
u32 zse_max_slots(const struct zse_config *cfg)
{
	u32 zones = limits_not_full(cfg);
	u64 slots;

	/* Watermarks need three zones beyond the reserve. */
	if (cfg->nr_zones <= zones || cfg->nr_zones < cfg->reserve + 3 ||
	    cfg->zone_blocks <= cfg->write_unit)
		return 0;
	if (cfg->zone_blocks <= cfg->write_unit + packed_waste(cfg))
		return 0;
	slots = (u64)(cfg->nr_zones - zones) *
		(cfg->zone_blocks - cfg->write_unit - packed_waste(cfg));
	slots = div_u64(slots, longest_page(cfg));
	slots = slots > cfg->nr_cpus ? slots - cfg->nr_cpus : 0;
	return slots < ZSE_MAX_BLOCKS ? (u32)slots : ZSE_MAX_BLOCKS;
}
