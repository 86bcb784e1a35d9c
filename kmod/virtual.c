// SPDX-License-Identifier: GPL-2.0
/*
 * Virtual zones, on a device without zones: an SSD, an eMMC, a disk of a cloud.
 * The engine keeps the write pointer, and an append is a write at it; several
 * can be in flight in a zone. A reset discards the zone, unless the settings
 * say no, so that the device need not copy what was in it. There is nothing to
 * finish.
 *
 * A zone is meant to be what the device erases or cleans as a whole. Even where
 * that is wrong, to write and discard large pieces in order is what such
 * devices do best. A device with Flexible Data Placement (FDP) keeps what is
 * written to each of its write streams apart (zse_write_stream()).
 */
#include <linux/bitmap.h>
#include <linux/sizes.h>

#include "backend.h"

/* A zone's default size; of a small device, a zone is this part. */
#define ZONE_SECTORS		(SZ_256M >> SECTOR_SHIFT)
#define ZONES_OF_A_DEVICE	256
/* The smallest zone by default: several chunks. */
#define SMALL_ZONE_SECTORS	(SZ_1M >> SECTOR_SHIFT)
/* Smaller zones and more of them cost memory. A zone has room for a chunk. */
#define MIN_ZONE_SECTORS	(SZ_256K >> SECTOR_SHIFT)
#define MAX_ZONES		(1U << 20)
/* A discard has its length in 32 bits. */
#define MAX_ZONE_SECTORS	(SZ_2G >> SECTOR_SHIFT)
#define MIN_DEVICE_SECTORS	(SZ_16M >> SECTOR_SHIFT)
/* The part of a file that default zones may leave over. */
#define MAX_LEFT_OVER		32

/*
 * The device is best written and discarded in multiples of this many sectors,
 * at least a page.
 */
static u32 device_unit(struct block_device *bdev)
{
	u32 unit = max3((u32)bdev_io_opt(bdev), bdev_discard_granularity(bdev),
			znsage_write_stream_granularity(bdev));

	unit >>= SECTOR_SHIFT;
	if (unit < ZNSAGE_PAGE_SECTORS || unit % ZNSAGE_PAGE_SECTORS)
		unit = ZNSAGE_PAGE_SECTORS;
	return min_t(u32, unit, MAX_ZONE_SECTORS);
}

/* What zones are cut from: a device, or the extents of a file. */
struct source {
	const struct znsage_extent *extents;
	u32 nr_extents;
	u64 sectors;		/* of the device, or of the file's size */
	u32 unit;		/* see device_unit() */
};

static u32 default_zone(const struct source *s)
{
	sector_t share = div_u64(s->sectors, ZONES_OF_A_DEVICE);
	u32 sectors = clamp_t(sector_t, share, SMALL_ZONE_SECTORS,
			      ZONE_SECTORS);

	return max(sectors - sectors % s->unit, s->unit);
}

/*
 * How many zones of @sectors the extents hold; their places go to @starts,
 * unless it is NULL. Zones begin at multiples of the unit if @sectors is one.
 */
static u64 cut_zones(const struct source *s, u32 sectors, sector_t *starts)
{
	u32 unit = sectors % s->unit ? 1 : s->unit, i;
	u64 nr = 0, zones;

	for (i = 0; i < s->nr_extents; i++) {
		const struct znsage_extent *e = &s->extents[i];
		sector_t at = div_u64(e->start + unit - 1, unit) * unit;
		sector_t end = e->start + e->nr;

		zones = at < end ? div_u64(end - at, sectors) : 0;
		nr += zones;
		for (; starts && zones; zones--, at += sectors)
			*starts++ = at;
	}
	return nr;
}

/* Sectors that belong to no zone. */
static u64 left_over(const struct source *s, u32 sectors)
{
	return s->sectors - cut_zones(s, sectors, NULL) * sectors;
}

/*
 * Halve the default zone, if need be below the unit, until most of a file in
 * pieces can be used.
 */
static u32 small_zone(const struct source *s, u32 sectors, u32 unit)
{
	while (left_over(s, sectors) > s->sectors / MAX_LEFT_OVER) {
		u32 half = sectors / 2;

		if (half >= s->unit)
			half -= half % s->unit;
		half -= half % unit;
		if (half < SMALL_ZONE_SECTORS)
			break;
		sectors = half;
	}
	return sectors;
}

/* @nr zones of @sectors each, in order. */
static int lay_out(const struct source *s, u64 sectors, u32 nr,
		   struct znsage_geometry *geo)
{
	u32 i;

	geo->zone_nr = kvcalloc(nr, sizeof(*geo->zone_nr), GFP_KERNEL);
	geo->dirty = kvcalloc(BITS_TO_LONGS(nr), sizeof(long), GFP_KERNEL);
	geo->starts = kvcalloc(nr, sizeof(*geo->starts), GFP_KERNEL);
	if (!geo->zone_nr || !geo->dirty || !geo->starts)
		return -ENOMEM;
	cut_zones(s, sectors, geo->starts);
	for (i = 0; i < nr; i++)
		geo->zone_nr[i] = i;
	/* All is discarded at attach. */
	bitmap_fill(geo->dirty, nr);
	geo->nr_all = nr;
	geo->zone_sectors = sectors;
	geo->cfg.wide = true;
	geo->cfg.nr_zones = nr;
	geo->cfg.zone_blocks = (u32)sectors / ZNSAGE_PAGE_SECTORS;
	return 0;
}

static int virtual_report(const char *name, const struct znsage_backing *b,
			  const struct znsage_settings *set,
			  struct znsage_geometry *geo)
{
	u32 unit = geo->cfg.write_unit * ZNSAGE_PAGE_SECTORS;
	struct znsage_extent all = { .nr = bdev_nr_sectors(b->bdev) };
	struct source s = { &all, 1, all.nr, device_unit(b->bdev) };
	u64 sectors = set->zone_size >> SECTOR_SHIFT, nr;

	if (b->swap_file) {
		s.extents = b->extents;
		s.nr_extents = b->nr_extents;
		s.sectors = i_size_read(file_inode(b->swap_file)) >>
			    SECTOR_SHIFT;
	}
	if (s.sectors < MIN_DEVICE_SECTORS) {
		znsage_err(name, "%s has %llu KiB: at least 16 MiB are needed",
			   set->backing, s.sectors / 2);
		return -ENOSPC;
	}
	if (!sectors)
		sectors = rounddown(default_zone(&s), unit);
	if (!set->zone_size && b->swap_file)
		sectors = small_zone(&s, sectors, unit);
	if (sectors < MIN_ZONE_SECTORS || sectors > MAX_ZONE_SECTORS ||
	    (u32)sectors % unit || sectors > s.sectors) {
		znsage_err(name, "zones of %llu bytes: must be a multiple of %lu, at least %u, and at most %u and the device",
			   sectors << SECTOR_SHIFT,
			   geo->cfg.write_unit * PAGE_SIZE, SZ_256K, SZ_2G);
		return -EINVAL;
	}
	nr = cut_zones(&s, sectors, NULL);
	if (b->swap_file)
		znsage_info(name, "%s: %llu zones of %llu KiB fit into its %u extents, %llu KiB of %llu KiB are left over",
			    set->backing, nr, sectors / 2, s.nr_extents,
			    left_over(&s, sectors) / 2, s.sectors / 2);
	if (!nr) {
		znsage_err(name, "%s has no extent that holds a zone: free space in the file system and make the file anew",
			   set->backing);
		return -ENOSPC;
	}
	if (nr > MAX_ZONES) {
		znsage_err(name, "%llu zones are too many: set a larger zone_size, so that there are %u at most",
			   nr, MAX_ZONES);
		return -EINVAL;
	}
	return lay_out(&s, sectors, nr, geo);
}

/* A zoned device shows which zones are empty; this one does not. */
static int virtual_check(const char *name, struct block_device *bdev,
			 const struct znsage_settings *set,
			 struct znsage_geometry *geo)
{
	if (set->force)
		return 0;
	znsage_err(name, "%s has no zones, so znsage cannot tell whether it is in use: write 1 to force to discard its contents",
		   set->backing);
	return -ENOTEMPTY;
}

/* Marked as direct I/O, because limits on writeback are not meant for swap. */
static void virtual_append(struct znsage_chunk *zc, struct bio *bio)
{
	const struct zse_chunk *c = zc->core;
	u32 streams = zc->zd->nr_write_streams;

	bio->bi_opf = REQ_OP_WRITE | REQ_SYNC | REQ_IDLE;
	bio->bi_iter.bi_sector = znsage_zone_start(zc->zd, c->zone) +
				 c->offset / zc->zd->page_blocks *
				 ZNSAGE_PAGE_SECTORS;
	if (streams)
		znsage_set_write_stream(bio, zse_write_stream(c, streams));
}

static u32 virtual_landed(const struct znsage_chunk *zc, const struct bio *bio)
{
	return zc->core->offset / zc->zd->page_blocks;
}

/* Discards may wait: the block layer throttles them as writeback (wbt). */
static int virtual_erase(const struct znsage_device *zd, sector_t sector,
			 sector_t nr)
{
	struct block_device *bdev = zd->backing.bdev;

	return zd->discard && bdev_max_discard_sectors(bdev) ?
	       blkdev_issue_discard(bdev, sector, nr, GFP_NOIO) : 0;
}

const struct znsage_backend znsage_virtual = {
	.report = virtual_report,
	.check = virtual_check,
	.append = virtual_append,
	.landed = virtual_landed,
	.erase = virtual_erase,
};
