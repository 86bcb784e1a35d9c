// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/znsageN-filler, a swap area that holds nothing. It is there to be counted.
 *
 * Swap-in leaves a page in the swap cache and its slot in use: while the page
 * stays as it is, reclaim can drop it without writing it. But once more than
 * half of the slots of all swap areas are in use (vm_swap_full()), the kernel
 * frees the slot of each page that it has read back, and writes the page again.
 * With a filler beside it, an area may be nearly full before half of all slots
 * are in use: with areas of A and F slots that point is (A + F) / 2 slots, so
 * F = 0.9 A puts it at 95 % of A. The last twentieth is for the kernel to free
 * such slots before A has none left.
 *
 * The filler must have the lowest priority. Then the kernel takes a slot of it
 * only if no other area has any, as if swap were full. It refuses the page, which
 * stays in memory, dirty. So nothing ever has to be read from it but the header
 * that mkswap wrote.
 *
 * A cgroup's own half (memory.swap.max, memory.swap.high) is not changed by it.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/highmem.h>

#include "disk.h"

/* As percent of the slots beside it. */
#define FILLER_PERCENT	90

/* Only the header is kept. */
static blk_status_t filler_write(struct znsage_device *zd, struct bio *bio)
{
	struct bvec_iter iter;
	struct bio_vec bv;
	size_t pos = 0;

	if (bio->bi_iter.bi_sector || bio->bi_iter.bi_size > PAGE_SIZE)
		return BLK_STS_NOSPC;
	bio_for_each_segment(bv, bio, iter) {
		memcpy_from_bvec(page_address(zd->filler_header) + pos, &bv);
		pos += bv.bv_len;
	}
	return BLK_STS_OK;
}

/* All but the header is zeroes, for those who look what is on the disk. */
static void filler_read(struct znsage_device *zd, struct bio *bio)
{
	u64 pos = (u64)bio->bi_iter.bi_sector << SECTOR_SHIFT;
	struct bvec_iter iter;
	struct bio_vec bv;

	bio_for_each_segment(bv, bio, iter) {
		if (pos + bv.bv_len <= PAGE_SIZE)
			memcpy_to_bvec(&bv, page_address(zd->filler_header) +
				       pos);
		else
			memzero_bvec(&bv);
		pos += bv.bv_len;
	}
}

static void filler_submit_bio(struct bio *bio)
{
	struct znsage_device *zd = bio->bi_bdev->bd_disk->private_data;

	switch (bio_op(bio)) {
	case REQ_OP_READ:
		filler_read(zd, bio);
		break;
	case REQ_OP_WRITE:
		bio->bi_status = filler_write(zd, bio);
		break;
	case REQ_OP_DISCARD:
		break;
	default:
		bio->bi_status = BLK_STS_NOTSUPP;
	}
	bio_endio(bio);
}

static int filler_open(ZNSAGE_OPEN_ARGS)
{
	struct znsage_device *zd = ZNSAGE_OPEN_DISK->private_data;

	return zd->filler_claimed ? -EBUSY : 0;
}

static const struct block_device_operations filler_fops = {
	.owner = THIS_MODULE,
	.open = filler_open,
	.submit_bio = filler_submit_bio,
};

static int filler_disk_add(struct znsage_device *zd)
{
	u64 nr = (u64)zd->nr_slots * FILLER_PERCENT / 100;
	struct gendisk *disk = znsage_alloc_disk(false);
	int err;

	if (IS_ERR(disk))
		return PTR_ERR(disk);
	/* Without a major, the block layer chooses the device's number. */
	disk->flags |= GENHD_FL_NO_PART;
	disk->fops = &filler_fops;
	disk->private_data = zd;
	snprintf(disk->disk_name, sizeof(disk->disk_name), "znsage%d-filler",
		 zd->index);
	set_capacity(disk, nr * ZNSAGE_PAGE_SECTORS);
	zd->filler = disk;
	err = add_disk(disk);
	if (err) {
		put_disk(disk);
		zd->filler = NULL;
	}
	return err;
}

/**
 * znsage_filler_add() - add the filler of a device
 * @zd: device, whose nr_slots are known
 *
 * Context: sleeps. Return: 0 or an errno; then there is no filler.
 */
int znsage_filler_add(struct znsage_device *zd)
{
	int err;

	zd->filler_header = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!zd->filler_header)
		return -ENOMEM;
	err = filler_disk_add(zd);
	if (err) {
		__free_page(zd->filler_header);
		zd->filler_header = NULL;
	}
	return err;
}

/**
 * znsage_filler_remove() - remove the filler, if there is one
 * @zd: device; its filler is claimed, or nobody has seen it yet
 *
 * Context: sleeps.
 */
void znsage_filler_remove(struct znsage_device *zd)
{
	if (!zd->filler)
		return;
	del_gendisk(zd->filler);
	put_disk(zd->filler);
	__free_page(zd->filler_header);
	zd->filler = NULL;
}
