// SPDX-License-Identifier: GPL-2.0
/*
 * Emptying zones, at attach and detach.
 *
 * A disk may have 78,000 zones, whose resets one after the other take minutes.
 * So neighbours are reset by one call, which has many commands under way. If
 * all zones that can be reset are the engine's, one call is for the whole
 * device: the block layer makes that REQ_OP_ZONE_RESET_ALL.
 *
 * Such a call does not tell which zones failed, and the whole device's passes
 * over zones that have become read-only or offline. So the zones' conditions
 * are read afterwards, and what is not empty is reset alone, for its error.
 */
#include <linux/bitmap.h>
#include <linux/blkdev.h>
#include <linux/sched.h>

#include "znsage.h"

/* Reset zd->to_reset with few calls. Returns false if some may be left. */
static bool reset_many(struct znsage_device *zd)
{
	unsigned long first, end;
	bool ok = true;

	/* If the device has grown, that is not all of it, and goes by zones. */
	if (zd->whole) {
		zd->backend->erase(zd, 0, zd->whole);
		return false;
	}
	for_each_set_bitrange(first, end, zd->to_reset, zd->nr_all)
		ok &= !zd->backend->erase(zd, first * zd->zone_sectors,
					  (end - first) * zd->zone_sectors);
	return ok;
}

static int skip_empty(struct blk_zone *z, unsigned int idx, void *data)
{
	struct znsage_device *zd = data;

	if (idx < zd->nr_all && z->cond == BLK_ZONE_COND_EMPTY)
		__clear_bit(idx, zd->to_reset);
	return 0;
}

/*
 * Empty the zones in zd->to_reset. Returns how many are left, and the error of
 * the first. Unless it is to @go_on, it stops there: a device that is gone has
 * errors for all zones.
 */
static u32 reset_zones(struct znsage_device *zd, bool go_on, int *err)
{
	unsigned long zone;
	u32 failed = 0;

	*err = 0;
	if (bitmap_empty(zd->to_reset, zd->nr_all) || reset_many(zd))
		return 0;
	/* If they cannot be read, all are tried. */
	blkdev_report_zones(zd->backing.bdev, 0, BLK_ALL_ZONES, skip_empty, zd);
	for_each_set_bit(zone, zd->to_reset, zd->nr_all) {
		int error = zd->backend->erase(zd, zone * zd->zone_sectors,
					       zd->zone_sectors);

		cond_resched();
		if (!error || failed++)
			continue;
		znsage_err(zd->name, "reset of zone %lu failed (%d)", zone,
			   error);
		*err = error;
		if (!go_on)
			break;
	}
	return failed;
}

/**
 * znsage_reset_dirty() - empty what the engine gets, at attach
 * @zd:	 device
 * @geo: its zones
 *
 * Context: sleeps. Return: 0, or an errno with a message.
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

/**
 * znsage_reset_written() - leave no memory content behind, at detach
 * @zd: device
 *
 * Context: sleeps.
 */
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
	/* Of a disk that was removed, all zones would fail, each with a message. */
	gone = test_bit(GD_DEAD, &zd->backing.bdev->bd_disk->state);
	failed = reset_zones(zd, !gone, &err);
	if (failed && gone)
		znsage_err(zd->name, "the disk is gone: its zones could not be reset and still hold what was swapped out");
	else if (failed)
		znsage_err(zd->name, "%u zones could not be reset: what was swapped out may still be in them",
			   failed);
}
