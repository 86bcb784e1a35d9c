// SPDX-License-Identifier: GPL-2.0
/* The disk /dev/znsageN. Bios and notifications of freed slots arrive here. */
#include <linux/highmem.h>

#include "trace.h"
#include "disk.h"

/* Free the slots that lie entirely in the bio. */
static void discard(struct znsage_device *zd, struct bio *bio)
{
	sector_t sector = bio->bi_iter.bi_sector;
	u32 slot = DIV_ROUND_UP_SECTOR_T(sector, ZNSAGE_PAGE_SECTORS);
	u32 end = bio_end_sector(bio) / ZNSAGE_PAGE_SECTORS;
	unsigned long start = znsage_io_start(bio, bio_sectors(bio));
	bool kick = false;

	if (slot < end)
		trace_znsage_slot_free(zd->index, slot, end - slot);
	if (!slot && end)
		clear_highpage(zd->header);
	for (; slot < end; slot++) {
		kick |= zse_free(zd->engine, slot);
		if (!(slot % 4096))
			cond_resched();
	}
	if (kick)
		znsage_kick(zd);
	znsage_io_end(bio, bio_sectors(bio), start);
	bio_endio(bio);
}

/*
 * Does the bio cover whole slots, the disk's logical blocks? The kernel does
 * not check what drivers submit: md reads a superblock of 4 KiB whatever the
 * page size.
 */
static bool is_aligned(const struct bio *bio)
{
	return !((bio->bi_iter.bi_sector | bio_sectors(bio)) %
		 ZNSAGE_PAGE_SECTORS);
}

/* The block layer holds the queue for the call, so del_gendisk() waits. */
static void znsage_submit_bio(struct bio *bio)
{
	struct znsage_device *zd = bio->bi_bdev->bd_disk->private_data;
	u32 slot = bio->bi_iter.bi_sector / ZNSAGE_PAGE_SECTORS;
	u32 nr = bio_sectors(bio) / ZNSAGE_PAGE_SECTORS;

	/* A discard may skip parts of slots; a write of zeroes may not. */
	if (bio_op(bio) != REQ_OP_DISCARD && !is_aligned(bio)) {
		bio_io_error(bio);
		return;
	}
	switch (bio_op(bio)) {
	case REQ_OP_WRITE:
		trace_znsage_swap_out(zd->index, slot, nr);
		znsage_write(zd, bio);
		break;
	case REQ_OP_READ:
		trace_znsage_swap_in(zd->index, slot, nr);
		znsage_read(zd, bio);
		break;
	case REQ_OP_DISCARD:
	case REQ_OP_WRITE_ZEROES:
		discard(zd, bio);
		break;
	default:
		bio->bi_status = BLK_STS_NOTSUPP;
		bio_endio(bio);
	}
}

static int znsage_open(ZNSAGE_OPEN_ARGS)
{
	struct znsage_device *zd = ZNSAGE_OPEN_DISK->private_data;

	return zd->claimed ? -EBUSY : 0;
}

/* Called under mm spinlocks: takes no lock, but may queue work, as mm does. */
static void znsage_slot_free_notify(struct block_device *bdev,
				    unsigned long slot)
{
	struct znsage_device *zd = bdev->bd_disk->private_data;

	if (slot >= zd->nr_slots)
		return;
	trace_znsage_slot_free(zd->index, slot, 1);
	if (zse_free(zd->engine, slot))
		znsage_kick(zd);
}

static const struct block_device_operations znsage_fops = {
	.owner = THIS_MODULE,
	.open = znsage_open,
	.submit_bio = znsage_submit_bio,
	.swap_slot_free_notify = znsage_slot_free_notify,
};

/*
 * Add the disk /dev/znsageN@suffix as *@disk, which is NULL after an error.
 * Sleeps.
 */
int znsage_make_disk(struct znsage_device *zd, struct gendisk **disk,
		     const char *suffix, u64 slots,
		     const struct block_device_operations *fops,
		     const struct attribute_group **groups)
{
	struct gendisk *d;
	int err;

	d = znsage_alloc_disk(bdev_stable_writes(zd->backing.bdev));
	if (IS_ERR(d))
		return PTR_ERR(d);
	/* Without a major, the block layer chooses the device's number. */
	d->flags |= GENHD_FL_NO_PART;
	d->fops = fops;
	d->private_data = zd;
	snprintf(d->disk_name, sizeof(d->disk_name), "znsage%d%s", zd->index,
		 suffix);
	set_capacity(d, slots * ZNSAGE_PAGE_SECTORS);
	*disk = d;
	if (fops == &znsage_fops)
		znsage_hibernation_watch(zd, d);
	err = device_add_disk(NULL, d, groups);
	if (err) {
		put_disk(d);
		*disk = NULL;
	}
	return err;
}

/* Add the disk of a device that is ready for I/O. */
int znsage_disk_add(struct znsage_device *zd)
{
	return znsage_make_disk(zd, &zd->disk, "", zd->nr_slots, &znsage_fops,
				znsage_disk_groups);
}

static int claim(struct gendisk *disk, bool *claimed)
{
	int err = 0;

	mutex_lock(&disk->open_mutex);
	if (*claimed || disk_openers(disk))
		err = -EBUSY;
	else
		*claimed = true;
	mutex_unlock(&disk->open_mutex);
	return err;
}

/*
 * Prevent the disk and its filler from being opened again. The lock of the
 * configfs directory keeps a second detach out. Returns 0, or -EBUSY if one of
 * them is open; then both can still be opened. Sleeps.
 */
int znsage_disk_claim(struct znsage_device *zd)
{
	int err = claim(zd->disk, &zd->claimed);

	if (err || !zd->filler)
		return err;
	err = claim(zd->filler, &zd->filler_claimed);
	if (err) {
		mutex_lock(&zd->disk->open_mutex);
		zd->claimed = false;
		mutex_unlock(&zd->disk->open_mutex);
	}
	return err;
}
