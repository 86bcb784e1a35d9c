// SPDX-License-Identifier: GPL-2.0
/*
 * Which zones of the backing device the engine gets, and how it writes them.
 * Zones that the requested size does not need are left alone, since every block
 * costs memory for the maps.
 */
#include <linux/sizes.h>

#include "backend.h"

/*
 * A chunk holds a batch of reclaim: under one plug the classic LRU writes 32
 * pages (SWAP_CLUSTER_MAX), the multi-generational one 45 on average.
 */
#define DEFAULT_CHUNK		SZ_256K
/*
 * Chunks for swap-out, enough that it rarely waits for one. With 40 pages each,
 * 10 MiB are in flight; on a ZN540, at 1.2 GB/s, reads queue behind them for 9
 * ms.
 */
#define NR_CHUNKS		64
/* Most blocks of a page, 64 bytes each. */
#define MOST_BLOCKS		64

/*
 * Longest append, in pages, that the block layer does not split now;
 * znsage_append_limit() watches it. Writes to a virtual zone may be split.
 */
static u32 append_limit(struct block_device *bdev)
{
	struct request_queue *q = bdev_get_queue(bdev);
	u32 sectors = queue_max_sectors(q);

	if (bdev_is_zoned(bdev))
		sectors = min(sectors, znsage_append_sectors(bdev));
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
 * its size is set, nor on a device without a request queue: the disk of several
 * NVMe paths reports a longer append than the paths take. Nor with encryption,
 * since pages for ciphertext are set aside for each chunk.
 */
static bool chunks_grow(struct block_device *bdev,
			const struct znsage_settings *set)
{
	return !set->chunk && set->encrypt == ZNSAGE_ENCRYPT_OFF &&
	       queue_is_mq(bdev_get_queue(bdev));
}

/*
 * Pages of a chunk that an append of @limit pages has room for if none shrinks.
 * What GC reads at once reaches beyond its chunk by two pages, and the append
 * may end a zone with another one, and is padded to @unit pages.
 */
static u32 packed_limit(u32 limit, u32 unit, u32 pack)
{
	u32 more = 2 + unit, most;

	limit = min_t(u32, limit, BIO_MAX_VECS);
	most = limit > more ? (limit - more) * pack / (pack + 1) : 0;
	return most - most % unit;
}

/*
 * From here on, blocks are parts of pages, as small as 32-bit block numbers
 * allow: with 64 in a page, a device may have 256 GiB; with 16, 1 TiB.
 */
static void pack_pages(struct zse_config *cfg)
{
	u64 pages = (u64)cfg->nr_zones * cfg->zone_blocks;

	cfg->pack = MOST_BLOCKS;
	while (cfg->pack > ZSE_LEAST_PART && pages * cfg->pack > ZSE_MAX_BLOCKS)
		cfg->pack /= 2;
	cfg->zone_blocks *= cfg->pack;
	cfg->write_unit *= cfg->pack;
}

static int choose_chunk(const char *name, struct block_device *bdev,
			const struct znsage_settings *set,
			struct znsage_geometry *geo)
{
	u32 unit = geo->cfg.write_unit, limit = append_limit(bdev);
	u32 bytes = set->chunk, blocks;

	if (set->compress != ZNSAGE_COMPRESS_OFF)
		limit = packed_limit(min(limit, geo->cfg.zone_blocks), unit,
				     ZSE_LEAST_PART);
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
	geo->cfg.batch_pages = blocks;
	geo->cfg.chunk_pages = blocks;
	limit = min(limit, geo->cfg.zone_blocks);
	if (chunks_grow(bdev, set))
		geo->cfg.chunk_pages = limit - limit % unit;
	return 0;
}

/* Slots that over-provisioning and GC leave on @nr_zones. */
static u64 slots_of(const struct znsage_geometry *geo, u32 nr_zones,
		    u32 over_provisioning)
{
	struct zse_config cfg = geo->cfg;
	u64 slots = (u64)nr_zones * cfg.zone_blocks;

	if (cfg.pack)
		slots = div_u64(slots, cfg.pack);
	slots = div_u64(slots * (100 - over_provisioning), 100);
	cfg.nr_zones = nr_zones;
	return min_t(u64, slots, zse_max_slots(&cfg));
}

/* The fewest zones that hold @slots, or 0. More zones never hold fewer. */
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
	cfg->nr_slots = slots ? slots : most;
	/* If pages shrink less than that, zse_chunk_fits() refuses some. */
	if (!slots || (cfg->pack && slots > most &&
		       slots <= most * ZSE_LEAST_PART))
		return 0;
	nr = zones_for(geo, slots, set->over_provisioning);
	if (!nr) {
		znsage_err(name, "size %llu is too large: with %u %% over-provisioning the device holds %llu",
			   set->size, set->over_provisioning,
			   most << PAGE_SHIFT);
		return -ENOSPC;
	}
	geo->nr_unused += cfg->nr_zones - nr;
	cfg->nr_zones = nr;
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

/*
 * A drive without write streams puts what is written to zones that are open
 * together into the same erase blocks, and copies what outlives its neighbours.
 * So swap-out and GC share one zone, unless the policy keeps pages apart or the
 * settings ask for more zones.
 */
static bool one_zone_at_a_time(const struct znsage_geometry *geo,
			       struct block_device *bdev)
{
	const struct zse_config *cfg = &geo->cfg;

	return cfg->wide && cfg->stripe < 2 && znsage_write_streams(bdev) < 2 &&
	       zse_nr_streams(cfg, cfg->policy) == 1;
}

/**
 * znsage_geometry_read() - decide how to use a device
 * @name: for messages
 * @b:    device, with zones or without, or file
 * @set:  settings
 * @policy: the policy to start with
 * @geo:  filled in; the caller calls znsage_geometry_free() even after an error
 *
 * Context: sleeps; writes nothing. Return: 0, or an errno with a message.
 */
int znsage_geometry_read(const char *name, const struct znsage_backing *b,
			 const struct znsage_settings *set,
			 const struct znsage_policy *policy,
			 struct znsage_geometry *geo)
{
	struct block_device *bdev = b->bdev;
	struct zse_config *cfg = &geo->cfg;
	int err;

	memset(geo, 0, sizeof(*geo));
	geo->backend = bdev_is_zoned(bdev) ? &znsage_zoned : &znsage_virtual;
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

	err = geo->backend->report(name, b, set, geo);
	if (!err && one_zone_at_a_time(geo, bdev))
		cfg->max_active = 1;
	if (!err)
		err = choose_chunk(name, bdev, set, geo);
	if (!err && set->compress != ZNSAGE_COMPRESS_OFF)
		pack_pages(cfg);
	if (!err)
		err = choose_size(name, set, geo);
	if (!err)
		err = geo->backend->check(name, bdev, set, geo);
	if (err)
		return err;
	cfg->nr_chunks = max_t(u32, NR_CHUNKS, 4 * max_lanes(cfg));
	cfg->nr_gc_chunks = zse_gc_chunks(cfg);
	return 0;
}

void znsage_geometry_free(struct znsage_geometry *geo)
{
	kvfree(geo->zone_nr);
	kvfree(geo->starts);
	kvfree(geo->dirty);
	kvfree(geo->active);
}
