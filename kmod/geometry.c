// SPDX-License-Identifier: GPL-2.0
/*
 * The zones of the backing device, and which of them the engine gets.
 *
 * Only writable sequential zones are used; conventional, read-only and offline
 * ones are left alone. So are zones that the requested size does not need,
 * since every block costs memory for the maps.
 */
#include <linux/bitmap.h>
#include <linux/blkdev.h>
#include <linux/sizes.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include "znsage.h"

/*
 * A chunk holds a batch of reclaim: under one plug the classic LRU writes 32
 * pages (SWAP_CLUSTER_MAX), the multi-generational one 45 on average.
 */
#define DEFAULT_CHUNK		SZ_256K
/*
 * Chunks for swap-out, enough that it rarely waits for one. With 40 pages each,
 * 10 MiB are in flight; on a ZN540, at 1.2 GB/s, reads queue behind them for
 * 9 ms.
 */
#define NR_CHUNKS		64

/* Zones of the device, before some are chosen. */
struct report {
	struct znsage_geometry *geo;
	sector_t zone_sectors;
	u32 *caps;		/* writable sectors of each; 0: not usable */
	u32 nr_writable;	/* zones that a reset of the device resets */
};

static int report_zone(struct blk_zone *z, unsigned int idx, void *data)
{
	struct report *rep = data;

	if (z->cond == BLK_ZONE_COND_IMP_OPEN ||
	    z->cond == BLK_ZONE_COND_EXP_OPEN ||
	    z->cond == BLK_ZONE_COND_CLOSED)
		__set_bit(idx, rep->geo->active);
	if (z->cond != BLK_ZONE_COND_EMPTY)
		__set_bit(idx, rep->geo->dirty);
	if (z->type == BLK_ZONE_TYPE_CONVENTIONAL ||
	    z->cond == BLK_ZONE_COND_READONLY ||
	    z->cond == BLK_ZONE_COND_OFFLINE)
		return 0;
	rep->nr_writable++;
	/* The last zone may be smaller than the others. */
	if (z->len == rep->zone_sectors)
		rep->caps[idx] = z->capacity ? z->capacity : z->len;
	return 0;
}

static int compare_u32(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/*
 * The engine's zones all have one size. Of the capacities that the device's
 * zones have, return the one that makes most blocks usable: smaller zones are
 * left alone, larger ones are used up to it.
 */
static u32 best_capacity(const u32 *caps, u32 *sorted, u32 nr, u32 unit)
{
	u32 i, best = 0;
	u64 most = 0;

	for (i = 0; i < nr; i++)
		sorted[i] = rounddown(caps[i] / (u32)ZNSAGE_PAGE_SECTORS, unit);
	sort(sorted, nr, sizeof(*sorted), compare_u32, NULL);
	for (i = 0; i < nr; i++) {
		u64 blocks = (u64)sorted[i] * (nr - i);

		if (blocks > most) {
			most = blocks;
			best = sorted[i];
		}
	}
	return best;
}

/* Number the zones that hold at least @blocks from 0. */
static void use_zones(struct znsage_geometry *geo, const u32 *caps, u32 nr,
		      u32 blocks)
{
	u32 sectors = blocks * ZNSAGE_PAGE_SECTORS, idx, i = 0;

	for (idx = 0; idx < nr; idx++) {
		if (!sectors || caps[idx] < sectors)
			continue;
		geo->zone_nr[i++] = idx;
		if (caps[idx] != sectors)
			geo->cfg.finish = true;
	}
	geo->cfg.zone_blocks = blocks;
	geo->cfg.nr_zones = i;
	geo->nr_unused = nr - i;
}

static int report_zones(const char *name, struct block_device *bdev,
			struct znsage_geometry *geo)
{
	u32 nr = bdev_nr_zones(bdev);
	struct report rep = {
		.geo = geo,
		.zone_sectors = bdev_zone_sectors(bdev),
	};
	int err;

	geo->nr_all = nr;
	geo->zone_nr = kvcalloc(nr, sizeof(*geo->zone_nr), GFP_KERNEL);
	geo->dirty = kvcalloc(BITS_TO_LONGS(nr), sizeof(long), GFP_KERNEL);
	geo->active = kvcalloc(BITS_TO_LONGS(nr), sizeof(long), GFP_KERNEL);
	/* The second half is for best_capacity() to sort in. */
	rep.caps = kvcalloc(nr, 2 * sizeof(*rep.caps), GFP_KERNEL);
	if (!geo->zone_nr || !rep.caps || !geo->dirty || !geo->active) {
		err = -ENOMEM;
		goto out;
	}
	err = blkdev_report_zones(bdev, 0, BLK_ALL_ZONES, report_zone, &rep);
	if (err < 0) {
		znsage_err(name, "cannot read the zones (%d)", err);
		goto out;
	}
	err = 0;
	use_zones(geo, rep.caps, nr,
		  best_capacity(rep.caps, rep.caps + nr, nr,
				geo->cfg.write_unit));
	geo->nr_writable = rep.nr_writable;
	if (!geo->cfg.nr_zones) {
		znsage_err(name, "no writable sequential zone");
		err = -ENOSPC;
	}
out:
	kvfree(rep.caps);
	return err;
}

/* The device's limit on open or active zones, 0 for none. */
static u32 active_limit(struct block_device *bdev)
{
	u32 active = bdev_max_active_zones(bdev);
	u32 open = bdev_max_open_zones(bdev);

	if (!open || (active && active < open))
		return active;
	return open;
}

/*
 * Longest append, in blocks, that the block layer does not split. Up to 6.11 it
 * also splits at max_sectors_kb, which root can change. That is read only here:
 * if root sets it below the chunk size while the device runs, appends fail.
 */
static u32 append_limit(struct block_device *bdev)
{
	struct request_queue *q = bdev_get_queue(bdev);
	u32 sectors = min(bdev_max_zone_append_sectors(bdev),
			  queue_max_sectors(q));

	return min3(sectors / (u32)ZNSAGE_PAGE_SECTORS,
		    (u32)queue_max_segments(q), (u32)BIO_MAX_VECS);
}

/* The device's preferred size. Drivers without one report a single block. */
static u32 preferred_chunk(struct block_device *bdev, u32 unit_bytes)
{
	u32 bytes = bdev_io_opt(bdev);

	if (bytes <= bdev_physical_block_size(bdev) || bytes <= PAGE_SIZE ||
	    bytes % PAGE_SIZE)
		bytes = DEFAULT_CHUNK;
	return max(bytes, unit_bytes);
}

/*
 * May a full chunk grow to the longest append while the device is busy? Not if
 * its size is set. Nor on a device without a request queue: the disk of several
 * NVMe paths reports a longer append than the paths take. Nor with encryption,
 * since pages for ciphertext are set aside for each chunk.
 */
static bool chunks_grow(struct block_device *bdev,
			const struct znsage_settings *set)
{
	return !set->chunk && set->encrypt == ZNSAGE_ENCRYPT_OFF &&
	       queue_is_mq(bdev_get_queue(bdev));
}

static int choose_chunk(const char *name, struct block_device *bdev,
			const struct znsage_settings *set,
			struct znsage_geometry *geo)
{
	u32 unit = geo->cfg.write_unit, limit = append_limit(bdev);
	u32 bytes = set->chunk, blocks;

	if (!bytes) {
		bytes = preferred_chunk(bdev, unit * PAGE_SIZE);
		/* In blocks: a zone may have 4 GiB and more. */
		blocks = min3(bytes / (u32)PAGE_SIZE, limit,
			      geo->cfg.zone_blocks);
		bytes = (blocks - blocks % unit) * PAGE_SIZE;
	}
	blocks = bytes / PAGE_SIZE;
	if (!blocks || bytes % PAGE_SIZE || blocks % unit || blocks > limit ||
	    blocks > geo->cfg.zone_blocks) {
		znsage_err(name, "chunk of %u bytes: must be a multiple of %lu, and at most %lu (append limit) and %lu (zone)",
			   bytes, unit * PAGE_SIZE, limit * PAGE_SIZE,
			   geo->cfg.zone_blocks * PAGE_SIZE);
		return -EINVAL;
	}
	geo->cfg.batch_blocks = blocks;
	geo->cfg.chunk_blocks = blocks;
	limit = min(limit, geo->cfg.zone_blocks);
	if (chunks_grow(bdev, set))
		geo->cfg.chunk_blocks = limit - limit % unit;
	return 0;
}

/*
 * Unused zones must not be active, since nobody would ever free their places.
 * Of open zones, the device closes some by itself when it opens others.
 */
static int check_places(const char *name, struct block_device *bdev,
			struct znsage_geometry *geo)
{
	u32 nr = bdev_nr_zones(bdev), limit = bdev_max_active_zones(bdev);
	u32 taken, i;

	for (i = 0; i < geo->cfg.nr_zones; i++)
		__clear_bit(geo->zone_nr[i], geo->active);
	taken = bitmap_weight(geo->active, nr);
	if (!limit || taken + geo->cfg.max_active <= limit)
		return 0;
	znsage_err(name, "%u unused zones are open or closed (the first is %lu) and take places of the %u that can be active",
		   taken, find_first_bit(geo->active, nr), limit);
	return -EUSERS;
}

/* Slots that over-provisioning and GC leave on @nr_zones. */
static u64 slots_of(const struct znsage_geometry *geo, u32 nr_zones,
		    u32 over_provisioning)
{
	struct zse_config cfg = geo->cfg;
	u64 slots = (u64)nr_zones * cfg.zone_blocks;

	slots = div_u64(slots * (100 - over_provisioning), 100);
	cfg.nr_zones = nr_zones;
	return min_t(u64, slots, zse_max_slots(&cfg));
}

/*
 * The fewest zones that hold @slots, or 0. More zones never hold fewer slots.
 */
static u32 zones_for(const struct znsage_geometry *geo, u64 slots,
		     u32 over_provisioning)
{
	u32 low = 1, high = geo->cfg.nr_zones;

	if (slots_of(geo, high, over_provisioning) < slots)
		return 0;
	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (slots_of(geo, mid, over_provisioning) < slots)
			low = mid + 1;
		else
			high = mid;
	}
	return high;
}

static int choose_size(const char *name, const struct znsage_settings *set,
		       struct znsage_geometry *geo)
{
	struct zse_config *cfg = &geo->cfg;
	u64 slots = set->size >> PAGE_SHIFT, most;
	u32 limit = ZSE_MAX_BLOCKS / cfg->zone_blocks, nr;

	if (set->size && !slots) {
		znsage_err(name, "size %llu is less than a page", set->size);
		return -EINVAL;
	}
	if (cfg->nr_zones > limit) {
		if (!slots) {
			znsage_err(name, "the device is larger than %llu GiB: set a size to use part of it",
				   (u64)ZSE_MAX_BLOCKS * PAGE_SIZE >> 30);
			return -EFBIG;
		}
		geo->nr_unused += cfg->nr_zones - limit;
		cfg->nr_zones = limit;
	}
	most = slots_of(geo, cfg->nr_zones, set->over_provisioning);
	if (!most) {
		znsage_err(name, "%u zones are too few for %u streams, GC and a reserve of %u",
			   cfg->nr_zones, zse_max_streams(cfg), cfg->reserve);
		return -ENOSPC;
	}
	if (!slots) {
		cfg->nr_slots = most;
		return 0;
	}
	nr = zones_for(geo, slots, set->over_provisioning);
	if (!nr) {
		znsage_err(name, "size %llu is too large: with %u %% over-provisioning the device holds %llu",
			   set->size, set->over_provisioning,
			   most << PAGE_SHIFT);
		return -ENOSPC;
	}
	geo->nr_unused += cfg->nr_zones - nr;
	cfg->nr_zones = nr;
	cfg->nr_slots = slots;
	return 0;
}

/* Zones that swap-out may write at a time, whatever the policy. */
static u32 max_lanes(const struct zse_config *cfg)
{
	u32 nr, most = 1;

	for (nr = 1; nr <= zse_max_streams(cfg); nr++)
		most = max(most, nr * zse_lanes(cfg, nr));
	return most;
}

static u32 dirty_zones(const struct znsage_geometry *geo)
{
	u32 i, nr = 0;

	for (i = 0; i < geo->cfg.nr_zones; i++)
		nr += test_bit(geo->zone_nr[i], geo->dirty);
	return nr;
}

/**
 * znsage_geometry_read() - decide how to use a device
 * @name: for messages
 * @bdev: zoned device
 * @set:  settings
 * @policy: the policy to start with
 * @geo:  filled in; the caller calls znsage_geometry_free() even after an error
 *
 * Writes nothing. Return: 0, or an errno with a message.
 */
int znsage_geometry_read(const char *name, struct block_device *bdev,
			 const struct znsage_settings *set,
			 const struct znsage_policy *policy,
			 struct znsage_geometry *geo)
{
	struct zse_config *cfg = &geo->cfg;
	int err;

	memset(geo, 0, sizeof(*geo));
	if (!bdev_is_zoned(bdev)) {
		znsage_err(name, "%pg is not a zoned device", bdev);
		return -EOPNOTSUPP;
	}
	if (!bdev_max_zone_append_sectors(bdev)) {
		znsage_err(name, "%pg does not support zone append", bdev);
		return -EOPNOTSUPP;
	}
	if (bdev_logical_block_size(bdev) > PAGE_SIZE) {
		znsage_err(name, "%pg has blocks of %u bytes, more than a page",
			   bdev, bdev_logical_block_size(bdev));
		return -EOPNOTSUPP;
	}
	cfg->write_unit = set->write_unit ? set->write_unit / PAGE_SIZE : 1;
	cfg->reserve = set->reserve;
	cfg->gc_low = set->gc_low;
	cfg->gc_high = set->gc_high;
	cfg->policy = policy;
	cfg->victim = set->victim;
	cfg->nr_cpus = num_possible_cpus();
	cfg->stripe = set->stripe;
	cfg->pace = set->pace;
	cfg->max_active = active_limit(bdev);
	cfg->serial = znsage_append_is_emulated(bdev);

	err = report_zones(name, bdev, geo);
	if (!err)
		err = choose_chunk(name, bdev, set, geo);
	if (!err)
		err = choose_size(name, set, geo);
	if (!err)
		err = check_places(name, bdev, geo);
	if (err)
		return err;
	cfg->nr_chunks = max_t(u32, NR_CHUNKS, 4 * max_lanes(cfg));
	cfg->nr_gc_chunks = zse_gc_chunks(cfg);
	if (cfg->nr_zones == geo->nr_writable)
		geo->whole = bdev_nr_sectors(bdev);
	geo->nr_dirty = dirty_zones(geo);
	if (geo->nr_dirty && !set->force) {
		znsage_err(name, "%u zones are not empty; reset them or set force",
			   geo->nr_dirty);
		return -ENOTEMPTY;
	}
	return 0;
}

void znsage_geometry_free(struct znsage_geometry *geo)
{
	kvfree(geo->zone_nr);
	kvfree(geo->dirty);
	kvfree(geo->active);
}
