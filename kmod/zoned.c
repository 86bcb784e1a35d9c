// SPDX-License-Identifier: GPL-2.0
/*
 * Zones of a zoned device: only writable sequential ones are used. The device
 * chooses where in a zone an append lands.
 *
 * Emptying zones, also virtual ones, at attach and detach. A disk may have
 * 78,000 zones, whose resets one after the other take minutes. So neighbours
 * are reset by one call, which has many commands in flight, and the whole
 * device by one command (REQ_OP_ZONE_RESET_ALL) if all zones that it resets are
 * the engine's. Such a call does not say which zones failed, and a reset of the
 * whole device silently skips zones that have become read-only or offline. So
 * the zones' conditions are read afterwards, and each zone that is not empty is
 * reset alone, for its error.
 */
#include <linux/bitmap.h>
#include <linux/sort.h>

#include "backend.h"

/* What is read of the device's zones. */
struct report {
	struct znsage_geometry *geo;
	u32 *caps;		/* writable sectors of each; 0: not usable */
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
	rep->geo->nr_writable++;
	/* The last zone may be smaller than the others. */
	if (z->len == rep->geo->zone_sectors)
		rep->caps[idx] = z->capacity ? z->capacity : z->len;
	return 0;
}

static int compare_u32(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/*
 * The engine's zones all have one size: of the capacities of the device's
 * zones, the one that makes most blocks usable. Smaller zones are left alone,
 * larger ones are used up to it.
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

/* The device's limit on open or active zones, 0 for none. */
static u32 active_limit(struct block_device *bdev)
{
	u32 active = bdev_max_active_zones(bdev);
	u32 open = bdev_max_open_zones(bdev);

	if (!open || (active && active < open))
		return active;
	return open;
}

/* Zone append, and no settings for other devices. */
static int check_settings(const char *name, struct block_device *bdev,
			  const struct znsage_settings *set)
{
	if (!bdev_max_zone_append_sectors(bdev)) {
		znsage_err(name, "%pg does not support zone append", bdev);
		return -EOPNOTSUPP;
	}
	if (set->zone_size) {
		znsage_err(name, "%pg has zones of its own: zone_size is for devices without zones",
			   bdev);
		return -EINVAL;
	}
	if (!set->discard) {
		znsage_err(name, "%pg has zones, which must be reset: discard is for devices without zones",
			   bdev);
		return -EINVAL;
	}
	return 0;
}

static int zoned_report(const char *name, const struct znsage_backing *b,
			const struct znsage_settings *set,
			struct znsage_geometry *geo)
{
	struct block_device *bdev = b->bdev;
	u32 nr = bdev_nr_zones(bdev);
	struct report rep = { .geo = geo };
	int err = check_settings(name, bdev, set);

	if (err)
		return err;
	geo->cfg.max_active = active_limit(bdev);
	geo->cfg.serial = znsage_append_is_emulated(bdev);
	geo->zone_sectors = bdev_zone_sectors(bdev);
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
	if (!geo->cfg.nr_zones) {
		znsage_err(name, "no writable sequential zone");
		err = -ENOSPC;
	}
out:
	kvfree(rep.caps);
	return err;
}

/*
 * Unused zones must not be active, since nobody would ever free their places.
 * The device closes open zones by itself when it opens others.
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
	znsage_err(name, "%u unused zones are open or closed (the first is %lu) and count towards the %u that can be active",
		   taken, find_first_bit(geo->active, nr), limit);
	return -EUSERS;
}

static int zoned_check(const char *name, struct block_device *bdev,
		       const struct znsage_settings *set,
		       struct znsage_geometry *geo)
{
	int err = check_places(name, bdev, geo);
	u32 i, dirty = 0;

	if (err)
		return err;
	if (geo->cfg.nr_zones == geo->nr_writable)
		geo->whole = bdev_nr_sectors(bdev);
	for (i = 0; i < geo->cfg.nr_zones; i++)
		dirty += test_bit(geo->zone_nr[i], geo->dirty);
	if (!dirty || set->force)
		return 0;
	znsage_err(name, "%u zones are not empty; reset them or set force",
		   dirty);
	return -ENOTEMPTY;
}

static void zoned_append(struct znsage_chunk *zc, struct bio *bio)
{
	bio->bi_opf = REQ_OP_ZONE_APPEND;
	bio->bi_iter.bi_sector = znsage_zone_start(zc->zd, zc->core->zone);
}

/* Where in its zone an append landed. A sector before the zone wraps. */
static u32 zoned_landed(const struct znsage_chunk *zc, const struct bio *bio)
{
	const struct znsage_device *zd = zc->zd;
	sector_t sectors = bio->bi_iter.bi_sector -
			   znsage_zone_start(zd, zc->core->zone);

	if (sectors % ZNSAGE_PAGE_SECTORS || sectors >= zd->zone_sectors)
		return U32_MAX;
	return sectors / ZNSAGE_PAGE_SECTORS;
}

/* What is written of zones from @zone to @end goes to @pages. */
struct look {
	const struct znsage_device *zd;
	u32 zone, end;
	u32 *pages;
};

static int look_at_zone(struct blk_zone *z, unsigned int idx, void *data)
{
	struct look *look = data;

	/* Zones between these may not be in use. */
	if (look->zone == look->end ||
	    z->start != znsage_zone_start(look->zd, look->zone))
		return 0;
	look->zone++;
	switch (z->cond) {
	case BLK_ZONE_COND_EMPTY:
		*look->pages = 0;
		break;
	case BLK_ZONE_COND_IMP_OPEN:
	case BLK_ZONE_COND_EXP_OPEN:
	case BLK_ZONE_COND_CLOSED:
		*look->pages = (z->wp - z->start) / ZNSAGE_PAGE_SECTORS;
		break;
	default:
		break;
	}
	look->pages++;
	return 0;
}

/*
 * The caller keeps the zone from being reset, so reclaim may wait for it. So
 * the few pages of the report come from the reserves rather than from reclaim.
 */
static bool zoned_written(const struct znsage_device *zd, u32 zone, u32 nr,
			  u32 *pages)
{
	struct look look = {
		.zd = zd, .zone = zone, .end = zone + nr, .pages = pages,
	};
	unsigned int flags = memalloc_noreclaim_save();

	memset32(pages, U32_MAX, nr);
	blkdev_report_zones(zd->backing.bdev, znsage_zone_start(zd, zone),
			    zd->zone_nr[zone + nr - 1] - zd->zone_nr[zone] + 1,
			    look_at_zone, &look);
	memalloc_noreclaim_restore(flags);
	return look.zone == look.end;
}

static int zoned_erase(const struct znsage_device *zd, sector_t sector,
		       sector_t nr)
{
	return znsage_zone_reset(zd->backing.bdev, sector, nr);
}

const struct znsage_backend znsage_zoned = {
	.report = zoned_report,
	.check = zoned_check,
	.append = zoned_append,
	.landed = zoned_landed,
	.written = zoned_written,
	.reset = REQ_OP_ZONE_RESET | REQ_SYNC,
	.finish = REQ_OP_ZONE_FINISH | REQ_SYNC,
	.erase = zoned_erase,
};

static int skip_empty(struct blk_zone *z, unsigned int idx, void *data)
{
	struct znsage_device *zd = data;

	if (idx < zd->nr_all && z->cond == BLK_ZONE_COND_EMPTY)
		__clear_bit(idx, zd->to_reset);
	return 0;
}

/* Empty the zones from @nr to @end. Those of a file need not be neighbours. */
static bool erase_range(const struct znsage_device *zd, u32 nr, u32 end)
{
	bool ok = true;

	while (nr < end) {
		sector_t start = znsage_nr_start(zd, nr), sectors = 0;

		do {
			sectors += zd->zone_sectors;
			nr++;
		} while (nr < end &&
			 znsage_nr_start(zd, nr) == start + sectors);
		ok &= !zd->backend->erase(zd, start, sectors);
	}
	return ok;
}

/*
 * Empty the zones in zd->to_reset. Returns how many are left, and the error of
 * the first. Unless it is to @go_on, it stops there: a device that is gone has
 * errors for all zones.
 */
static u32 reset_zones(struct znsage_device *zd, bool go_on, int *err)
{
	const struct znsage_backend *backend = zd->backend;
	unsigned long first, end;
	bool ok = !zd->whole;
	u32 failed = 0;

	*err = 0;
	if (bitmap_empty(zd->to_reset, zd->nr_all))
		return 0;
	/* If the device has grown, that is not all of it, and goes by zones. */
	if (zd->whole)
		backend->erase(zd, 0, zd->whole);
	else
		for_each_set_bitrange(first, end, zd->to_reset, zd->nr_all)
			ok &= erase_range(zd, first, end);
	if (ok)
		return 0;
	/* If they cannot be read, all are tried. */
	blkdev_report_zones(zd->backing.bdev, 0, BLK_ALL_ZONES, skip_empty, zd);
	for_each_set_bit(first, zd->to_reset, zd->nr_all) {
		int error = backend->erase(zd, znsage_nr_start(zd, first),
					   zd->zone_sectors);

		cond_resched();
		if (!error || failed++)
			continue;
		znsage_err(zd->name, "reset of zone %lu failed (%d)", first,
			   error);
		*err = error;
		if (!go_on)
			break;
	}
	return failed;
}

/*
 * At attach: empty the engine's zones. Returns 0, or an errno with a message.
 */
int znsage_reset_dirty(struct znsage_device *zd,
		       const struct znsage_geometry *geo)
{
	u32 zone;
	int err;

	for (zone = 0; zone < geo->cfg.nr_zones; zone++)
		if (test_bit(zd->zone_nr[zone], geo->dirty))
			__set_bit(zd->zone_nr[zone], zd->to_reset);
	reset_zones(zd, false, &err);
	return err;
}

/* At detach: leave no memory content behind. */
void znsage_reset_written(struct znsage_device *zd)
{
	struct zse_zone_info zi;
	u32 zone, failed;
	bool gone;
	int err;

	bitmap_zero(zd->to_reset, zd->nr_all);
	for (zone = 0; zse_get_zone(zd->engine, zone, &zi); zone++)
		if (zi.room < zi.capacity)
			__set_bit(zd->zone_nr[zone], zd->to_reset);
	/* On a disk that was removed, all zones fail. */
	gone = test_bit(GD_DEAD, &zd->backing.bdev->bd_disk->state);
	failed = reset_zones(zd, !gone, &err);
	if (failed && gone)
		znsage_err(zd->name, "the disk is gone: its zones could not be reset and still hold what was swapped out");
	else if (failed)
		znsage_err(zd->name, "%u zones could not be reset: what was swapped out may still be in them",
			   failed);
}
