// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/znsageN-filler, a swap area that holds nothing. It is there to be
 * counted.
 *
 * Swap-in leaves a page in the swap cache and its slot in use: while the page
 * stays as it is, reclaim can drop it without writing it. But once more than
 * half of the slots of all swap areas are in use (vm_swap_full()), the kernel
 * frees the slot of each page that it has read back, and writes the page again.
 * With areas of A and F slots that point is (A + F) / 2 slots: a filler with F
 * = 0.9 A puts it at 95 % of A. The rest is for the kernel to free such slots
 * before A is full.
 *
 * The filler must have the lowest priority, so that the kernel takes a slot of
 * it only if no other area has any. The filler refuses the page, which stays in
 * memory, dirty. So only the header that mkswap wrote is ever read.
 *
 * It does not change a cgroup's own half (memory.swap.max, memory.swap.high).
 */
#include <linux/highmem.h>

#include "disk.h"

/* The filler's slots, in percent of the device's. */
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

/* All but the header reads as zeroes. */
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

/* Sleeps. Returns 0 or an errno; znsage_filler_remove() works in any case. */
int znsage_filler_add(struct znsage_device *zd)
{
	zd->filler_header = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!zd->filler_header)
		return -ENOMEM;
	return znsage_make_disk(zd, &zd->filler, "-filler",
				(u64)zd->nr_slots * FILLER_PERCENT / 100,
				&filler_fops, NULL);
}

/* Remove the filler, if there is one. Nobody has it open, or can. Sleeps. */
void znsage_filler_remove(struct znsage_device *zd)
{
	if (zd->filler) {
		del_gendisk(zd->filler);
		put_disk(zd->filler);
	}
	if (zd->filler_header)
		__free_page(zd->filler_header);
}
