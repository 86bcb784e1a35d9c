// SPDX-License-Identifier: GPL-2.0
/*
 * Swap-in. Each run of slots whose blocks follow one another on the device is
 * one clone of the bio. The zone of a block that is being read is not reset:
 * the engine counts readers.
 *
 * A slot that is being written has no block yet. The kernel does not read
 * one (it has the page), but other users of the disk may; such a bio waits
 * until a chunk has ended.
 */
#include <linux/blkdev.h>
#include <linux/highmem.h>

#include "znsage.h"

/**
 * struct znsage_read - a clone that reads a run of blocks
 * @zd:	    device, held
 * @parent: bio to end
 * @block:  first of the run
 * @nr:	    how many; the engine counts each as a reader
 * @clone:  last, as bio_set wants it
 */
struct znsage_read {
	struct znsage_device *zd;
	struct bio *parent;
	u32 block;
	u32 nr;
	struct bio clone;
};

/* For bioset_init(): what the clones of read_bios have in front of them. */
const unsigned int znsage_read_pad = offsetof(struct znsage_read, clone);

static void read_end_io(struct bio *clone)
{
	struct znsage_read *rd = container_of(clone, struct znsage_read, clone);
	struct znsage_device *zd = rd->zd;
	struct bio *parent = rd->parent;
	bool more = false;
	u32 i;

	if (clone->bi_status) {
		parent->bi_status = clone->bi_status;
		zse_read_failed(zd->engine);
	}
	for (i = 0; i < rd->nr; i++)
		more |= zse_read_end(zd->engine, rd->block + i);
	bio_put(clone);
	bio_endio(parent);
	if (more)
		znsage_kick(zd);
	percpu_ref_put(&zd->ref);
}

/* A run of blocks, and where in the bio its pages are. */
struct run {
	struct bvec_iter iter;
	u32 block;
	u32 nr;
};

/* Read a run; it takes over a reference of @bio. */
static void submit_run(struct znsage_device *zd, struct bio *bio,
		       const struct run *run)
{
	struct bio *clone = bio_alloc_clone(zd->backing.bdev, bio, GFP_NOIO,
					    &zd->read_bios);
	struct znsage_read *rd = container_of(clone, struct znsage_read, clone);

	percpu_ref_get(&zd->ref);
	rd->zd = zd;
	rd->parent = bio;
	rd->block = run->block;
	rd->nr = run->nr;
	clone->bi_iter = run->iter;
	clone->bi_iter.bi_size = run->nr * PAGE_SIZE;
	clone->bi_iter.bi_sector = znsage_block_sector(zd, run->block);
	clone->bi_end_io = read_end_io;
	submit_bio_noacct(clone);
}

/* Can @block be read in one go with @run? */
static bool extends_run(struct znsage_device *zd, const struct run *run,
			u32 block)
{
	return run->nr && block == run->block + run->nr &&
	       zse_block_zone(zd->engine, block) ==
	       zse_block_zone(zd->engine, run->block);
}

/*
 * Queue @bio until a chunk has ended. That may have happened since @slot was
 * found busy: the slot is looked at again after the bio is on the list, as
 * append_end_io() looks at the list after it changed the map.
 */
static void wait_for_write(struct znsage_device *zd, struct bio *bio, u32 slot)
{
	unsigned long flags;

	spin_lock_irqsave(&zd->lock, flags);
	bio_list_add(&zd->busy_reads, bio);
	spin_unlock_irqrestore(&zd->lock, flags);
	/* Pairs with the map's compare-and-swap before append_end_io() looks. */
	smp_mb();
	if (!zse_is_busy(zd->engine, slot))
		znsage_kick(zd);
}

/* Zero @left bytes of @bio from @iter on that belong to one page. */
static void zero_page_at(struct bio *bio, struct bvec_iter iter)
{
	u32 left = PAGE_SIZE;

	while (left) {
		struct bio_vec bv = bio_iter_iovec(bio, iter);
		u32 len = min(bv.bv_len, left);

		bv.bv_len = len;
		memzero_bvec(&bv);
		bio_advance_iter_single(bio, &iter, len);
		left -= len;
	}
}

/*
 * Read the slots of @bio; @run is what was not yet submitted at the end.
 * Returns false if the bio has to wait: it may be gone then.
 */
static bool read_slots(struct znsage_device *zd, struct bio *bio,
		       struct run *run, bool *kick)
{
	struct bvec_iter iter = bio->bi_iter;

	while (iter.bi_size) {
		u32 slot = iter.bi_sector / ZNSAGE_PAGE_SECTORS, block;
		enum zse_read r = zse_read_begin(zd->engine, slot, &block,
						 kick);

		if (run->nr && !(r == ZSE_READ_BLOCK &&
				 extends_run(zd, run, block))) {
			bio_inc_remaining(bio);
			submit_run(zd, bio, run);
			run->nr = 0;
		}
		if (r == ZSE_READ_BUSY) {
			bio->bi_iter = iter;
			wait_for_write(zd, bio, slot);
			return false;
		}
		if (r == ZSE_READ_ZERO)
			zero_page_at(bio, iter);
		else if (r == ZSE_READ_LOST)
			bio->bi_status = BLK_STS_IOERR;
		else if (!run->nr++) {
			run->iter = iter;
			run->block = block;
		}
		bio_advance_iter(bio, &iter, PAGE_SIZE);
	}
	return true;
}

/**
 * znsage_read() - a swap-in bio
 * @zd:	 device; held by the caller
 * @bio: whole slots
 *
 * Context: process; may sleep for a clone, which comes back by itself.
 */
void znsage_read(struct znsage_device *zd, struct bio *bio)
{
	struct run run = { .nr = 0 };
	bool kick = false;

	if (read_slots(zd, bio, &run, &kick)) {
		if (run.nr)
			submit_run(zd, bio, &run);
		else
			bio_endio(bio);
	}
	if (kick)
		znsage_kick(zd);
}

/**
 * znsage_read_busy() - try again what waited for a write
 * @zd: device
 *
 * Context: the worker.
 */
void znsage_read_busy(struct znsage_device *zd)
{
	struct bio_list list = BIO_EMPTY_LIST;
	unsigned long flags;
	struct bio *bio;

	if (bio_list_empty(&zd->busy_reads))
		return;
	spin_lock_irqsave(&zd->lock, flags);
	bio_list_merge(&list, &zd->busy_reads);
	bio_list_init(&zd->busy_reads);
	spin_unlock_irqrestore(&zd->lock, flags);
	while ((bio = bio_list_pop(&list)))
		znsage_read(zd, bio);
}
