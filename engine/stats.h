/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of the engine's counters. The structure, the module's sysfs files
 * and the names in `znsage status` are made from it.
 */
#ifndef ZNSAGE_STATS_H
#define ZNSAGE_STATS_H

/* X(name): grows since attach; a block is a page on the device. */
#define ZSE_COUNTERS(X)							\
	X(host_blocks)		/* written by swap-out and acknowledged */ \
	X(host_pages)		/* swapped out: more, if pages are packed */ \
	X(gc_blocks)		/* copied by GC and acknowledged */	\
	X(padding_blocks)	/* written to fill up a write unit */	\
	X(refused_pages)	/* no room: they shrink less than expected */ \
	X(read_blocks)		/* swapped in */			\
	X(gc_read_blocks)	/* live blocks that GC read */		\
	X(chunks)		/* appends acknowledged */		\
	X(zone_resets)							\
	X(slots_freed)		/* slots with data that were freed */	\
	X(read_errors)		/* blocks that could not be read */	\
	X(write_errors)		/* appends, resets, finishes that failed */ \
	X(zones_lost)		/* that another program reset */	\
	X(pages_lost)		/* there, or GC gave them up */		\
	X(stalls)		/* swap-out chunks that waited for GC */ \
	X(zones_dead)		/* reset without GC: no live block was left */ \
	X(gc_zones)		/* emptied by GC */			\
	X(policy_refused)	/* invalid answers of a policy */

/* X(name): the present value. */
#define ZSE_GAUGES(X)							\
	X(slots_used)		/* that hold data or are being written */ \
	X(live_blocks)							\
	X(zones_total)		/* empty + open + full + retired */	\
	X(zones_empty)							\
	X(zones_open)		/* being written, cleaned or reset */	\
	X(zones_full)							\
	X(zones_retired)						\
	X(blocks_total)		/* capacity of zones not retired */	\
	X(streams)							\
	X(stripe)		/* zones that a stream writes at a time */ \
	X(gc_stripe)		/* ... and GC */			\
	X(gc_shared)		/* 1: GC and swap-out write the same zones */ \
	X(survivors)		/* classes of survivors */		\
	X(keys)			/* that have a stream */		\
	X(keys_sharing)		/* ... together with other keys */	\
	X(write_window)		/* blocks of swap-out that may be in flight */ \
	X(map_bytes)

#define ZSE_STAT_MEMBER(name) u64 name;

struct zse_stats {
	ZSE_COUNTERS(ZSE_STAT_MEMBER)
	ZSE_GAUGES(ZSE_STAT_MEMBER)
};

#endif /* ZNSAGE_STATS_H */
