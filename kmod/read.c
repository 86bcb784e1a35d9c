// SPDX-License-Identifier: GPL-2.0
/*
 * Swap-in. A bio whose slots are in blocks that follow one another is sent to
 * the backing device itself, with another end; that is how nearly all of swap's
 * come, one page each. Of others each such run is read by a clone. The zone of
 * blocks that are being read is not reset: the engine counts readers.
 *
 * A slot that is being written has no block yet. The kernel does not read
 * one (it has the page), but other users of the disk may; such a bio waits
 * until a chunk has ended, and what comes before that slot is read meanwhile.
 *
 * The block layer merges reads of neighbours, as read-ahead's are, and for one
 * block that cannot be read all of such a request fails. So a run that failed
 * is read once more, by a clone that is not merged.
 *
 * If pages are encrypted, they are decrypted in place before their bio ends: by
 * a workqueue where they come from the device, at once where they are copied
 * from GC, which has them as they are on the device.
 */
#include <linux/blkdev.h>
#include <linux/highmem.h>
#include <linux/slab.h>

#include "znsage.h"

/**
 * struct znsage_read - a run of blocks that is being read
 * @zd:	   device, held
 * @bio:   to end
 * @block: first of the run
 * @slot:  it is of
 * @nr:	   blocks
 * @start: when it was submitted, in ns; 0: not timed
 * @bdev:  the bio's own, if it went to the backing device, as the next two; else
 *	   NULL
 * @end_io: of the bio
 * @private: of the bio
 * @work:  decrypts, or reads again
 * @iter:  where the pages are in @bio
 * @failed: how it ended the first time; if it did, it is read alone now
 * @clone: if not. Last, as bio_set wants it; a bio that went itself has none
 */
struct znsage_read {
	struct znsage_device *zd;
	struct bio *bio;
	u32 block;
	u32 slot;
	u64 start;
	u32 nr;
	struct block_device *bdev;
	bio_end_io_t *end_io;
	void *private;
	struct work_struct work;
	struct bvec_iter iter;
	blk_status_t failed;
	struct bio clone;
};

/* For bioset_init(): what the clones of read_bios have in front of them. */
const unsigned int znsage_read_pad = offsetof(struct znsage_read, clone);

static void read_free(struct znsage_read *rd)
{
	struct bio *bio = rd->bio;

	if (!rd->bdev) {
		bio_put(&rd->clone);
		return;
	}
	bio->bi_bdev = rd->bdev;
	bio->bi_status = BLK_STS_OK;
	bio->bi_end_io = rd->end_io;
	bio->bi_private = rd->private;
	kfree(rd);
}

static void run_ended(struct znsage_read *rd, blk_status_t status)
{
	struct znsage_device *zd = rd->zd;
	struct bio *bio = rd->bio;
	u32 block = rd->block, nr = rd->nr;

	znsage_saw_read_end(zd, rd->slot, rd->nr, status, rd->start);
	read_free(rd);
	if (status) {
		bio->bi_status = status;
		zse_read_failed(zd->engine, nr);
	} else {
		zse_read_worked(zd->engine);
	}
	if (zse_read_end(zd->engine, block))
		znsage_kick(zd);
	bio_endio(bio);
	percpu_ref_put(&zd->ref);
}

static void run_was_read(struct znsage_read *rd, blk_status_t status);

static void clone_end_io(struct bio *clone)
{
	run_was_read(container_of(clone, struct znsage_read, clone),
		     clone->bi_status);
}

static void remapped_end_io(struct bio *bio)
{
	run_was_read(bio->bi_private, bio->bi_status);
}

/* Blocks to read, and where in the bio their pages are. */
struct run {
	struct zse_run blocks;
	struct bvec_iter iter;
};

static void read_begins(struct znsage_read *rd, struct znsage_device *zd,
			struct bio *bio, const struct run *run)
{
	percpu_ref_get(&zd->ref);
	rd->zd = zd;
	rd->bio = bio;
	rd->block = run->blocks.block;
	rd->slot = run->iter.bi_sector / ZNSAGE_PAGE_SECTORS;
	rd->nr = run->blocks.nr;
	rd->iter = run->iter;
}

/* NULL only if @gfp does not allow to wait. */
static struct znsage_read *clone_alloc(struct znsage_device *zd,
				       struct bio *bio, const struct run *run,
				       gfp_t gfp)
{
	struct bio *clone = bio_alloc_clone(zd->backing.bdev, bio, gfp,
					    &zd->read_bios);
	struct znsage_read *rd;

	if (!clone)
		return NULL;
	rd = container_of(clone, struct znsage_read, clone);
	read_begins(rd, zd, bio, run);
	rd->bdev = NULL;
	rd->failed = BLK_STS_OK;
	clone->bi_iter = run->iter;
	clone->bi_iter.bi_size = run->blocks.nr * PAGE_SIZE;
	clone->bi_iter.bi_sector = znsage_block_sector(zd, rd->block);
	clone->bi_end_io = clone_end_io;
	return rd;
}

static void submit_clone(struct znsage_device *zd, struct bio *bio,
			 const struct run *run)
{
	struct znsage_read *rd = clone_alloc(zd, bio, run, GFP_NOIO);

	rd->start = znsage_saw_read(zd);
	submit_bio_noacct(&rd->clone);
}

/*
 * Read again what failed. Only if there is memory at once, or in the bio_set's
 * reserve: it does not wait for clones of others while it may hold one. Clones
 * so come back with nothing but the device.
 */
static void alone_work(struct work_struct *work)
{
	struct znsage_read *rd = container_of(work, struct znsage_read, work);
	struct run run = {
		.blocks = { .block = rd->block, .nr = rd->nr },
		.iter = rd->iter,
	};
	struct znsage_device *zd = rd->zd;
	struct znsage_read *alone;

	alone = clone_alloc(zd, rd->bio, &run, GFP_NOWAIT | __GFP_NOWARN);
	if (!alone) {
		run_ended(rd, rd->failed);
		return;
	}
	alone->start = rd->start;
	alone->failed = rd->failed;
	alone->clone.bi_opf |= REQ_NOMERGE;
	read_free(rd);
	submit_bio_noacct(&alone->clone);
	percpu_ref_put(&zd->ref);
}

static void decrypt_work(struct work_struct *work)
{
	struct znsage_read *rd = container_of(work, struct znsage_read, work);

	run_ended(rd, znsage_decrypt(rd->zd, rd->bio, rd->iter, rd->nr));
}

/* May what ended so be the error of a neighbour? */
static bool may_be_a_neighbours(blk_status_t status)
{
	return status == BLK_STS_IOERR || status == BLK_STS_MEDIUM ||
	       status == BLK_STS_PROTECTION;
}

/* The device has read it, or failed to. Any context. */
static void run_was_read(struct znsage_read *rd, blk_status_t status)
{
	if (!rd->failed && may_be_a_neighbours(status)) {
		rd->failed = status;
		INIT_WORK(&rd->work, alone_work);
		queue_work(rd->zd->read_wq, &rd->work);
	} else if (status || !rd->zd->crypt) {
		run_ended(rd, status);
	} else {
		INIT_WORK(&rd->work, decrypt_work);
		queue_work(rd->zd->read_wq, &rd->work);
	}
}

/*
 * Send @bio itself, all of which is @run. Only if there is memory at once:
 * waiting for it is what the clones' bio_set is made for.
 */
static bool submit_remapped(struct znsage_device *zd, struct bio *bio,
			    const struct run *run)
{
	struct znsage_read *rd = kmalloc(offsetof(struct znsage_read, clone),
					 GFP_NOWAIT | __GFP_NOWARN);

	if (!rd)
		return false;
	read_begins(rd, zd, bio, run);
	rd->start = znsage_saw_read(zd);
	rd->failed = BLK_STS_OK;
	rd->bdev = bio->bi_bdev;
	rd->end_io = bio->bi_end_io;
	rd->private = bio->bi_private;
	bio_set_dev(bio, zd->backing.bdev);
	bio->bi_iter.bi_sector = znsage_block_sector(zd, rd->block);
	bio->bi_end_io = remapped_end_io;
	bio->bi_private = rd;
	submit_bio_noacct(bio);
	return true;
}

/*
 * Remember which pages a run is read into. Those of a bio that another driver
 * made of its own are none of the kernel's swap-in.
 */
static void note_pages(struct znsage_device *zd, struct bio *bio,
		       const struct run *run)
{
	struct bvec_iter iter = run->iter;
	u32 i;

	if (!zd->frames || bio_flagged(bio, BIO_CLONED))
		return;
	for (i = 0; i < run->blocks.nr; i++) {
		struct bio_vec bv = bio_iter_iovec(bio, iter);
		u32 slot = iter.bi_sector / ZNSAGE_PAGE_SECTORS;

		/* Parts of pages come from elsewhere, too. */
		if (bv.bv_len != PAGE_SIZE)
			return;
		znsage_frames_note(zd, bv.bv_page, slot, run->blocks.block + i);
		bio_advance_iter_single(bio, &iter, PAGE_SIZE);
	}
}

/*
 * Is @run all of @bio? What is left of one that has waited for a write is not: its
 * status may tell of an error of what came before, or will when a clone has ended.
 */
static bool is_whole(struct bio *bio, const struct run *run)
{
	return run->blocks.nr * PAGE_SIZE == bio->bi_iter.bi_size &&
	       !bio->bi_status && !bio_flagged(bio, BIO_CHAIN);
}

/* Read a run; it takes over a reference of @bio. */
static void submit_run(struct znsage_device *zd, struct bio *bio,
		       const struct run *run)
{
	note_pages(zd, bio, run);
	if (!is_whole(bio, run) || !submit_remapped(zd, bio, run))
		submit_clone(zd, bio, run);
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

/* Copy a page that GC has in memory. */
static void copy_buffer(struct znsage_device *zd, struct bio *bio,
			const struct run *run)
{
	const struct znsage_chunk *zc = run->blocks.chunk->priv;
	const char *from = page_address(zc->pages[run->blocks.page]);
	struct bvec_iter iter = run->iter;
	u32 left = PAGE_SIZE;

	while (left) {
		struct bio_vec bv = bio_iter_iovec(bio, iter);

		bv.bv_len = min(bv.bv_len, left);
		memcpy_to_bvec(&bv, from);
		from += bv.bv_len;
		left -= bv.bv_len;
		bio_advance_iter_single(bio, &iter, bv.bv_len);
	}
	if (zse_buffer_end(zd->engine, &run->blocks))
		znsage_kick(zd);
	if (zd->crypt && znsage_decrypt(zd, bio, run->iter, 1)) {
		bio->bi_status = BLK_STS_IOERR;
		zse_read_failed(zd->engine, 1);
	}
}

/**
 * znsage_read() - a swap-in bio
 * @zd:	 device
 * @bio: whole slots
 *
 * The reference that @bio came with is held until all of it is under way.
 *
 * Context: process; may sleep for a clone, which comes back by itself.
 */
void znsage_read(struct znsage_device *zd, struct bio *bio)
{
	struct run run = { .iter = bio->bi_iter };
	bool kick = false;

	while (run.iter.bi_size) {
		u32 slot = run.iter.bi_sector / ZNSAGE_PAGE_SECTORS;
		u32 max = run.iter.bi_size / PAGE_SIZE, nr = 1;

		switch (zse_read_begin(zd->engine, slot, max, &run.blocks,
				       &kick)) {
		case ZSE_READ_BLOCK:
			nr = run.blocks.nr;
			if (nr == max) {
				submit_run(zd, bio, &run);
				goto out;
			}
			bio_inc_remaining(bio);
			submit_run(zd, bio, &run);
			break;
		case ZSE_READ_BUFFER:
			copy_buffer(zd, bio, &run);
			break;
		case ZSE_READ_ZERO:
			zero_page_at(bio, run.iter);
			break;
		case ZSE_READ_LOST:
			bio->bi_status = BLK_STS_IOERR;
			break;
		case ZSE_READ_BUSY:
			bio->bi_iter = run.iter;
			wait_for_write(zd, bio, slot);
			goto out;
		}
		bio_advance_iter(bio, &run.iter, nr * PAGE_SIZE);
	}
	bio_endio(bio);
out:
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
