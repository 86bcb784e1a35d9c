// SPDX-License-Identifier: GPL-2.0
/*
 * Swap-in. A clone of the bio, sent to the backing device, reads each run of
 * slots whose blocks are consecutive. The engine counts readers of a zone, so
 * that it is not reset while they are in flight.
 *
 * A slot that is being written has no block yet. The kernel does not read such
 * a slot (it has the page), but other users of the disk may: they get a copy of
 * the page that is in the chunk.
 *
 * The block layer merges neighbouring reads, such as those of read-ahead, and a
 * bad block fails the whole request. So a run that failed is read once more,
 * unmerged.
 *
 * Encrypted pages are decrypted in place before their bio ends: by a workqueue
 * if they come from the device, at once if they are copied from a chunk of GC.
 */
#include <linux/blkdev.h>
#include <linux/highmem.h>
#include <trace/events/block.h>

#include "trace.h"
#include "znsage.h"

/* A read of a run of blocks. */
struct znsage_read {
	struct znsage_device *zd;	/* with a ref */
	struct bio *bio;		/* ended when the read is */
	u32 block;			/* the first */
	u32 nr;
	u64 start;			/* ns; 0: not timed */
	unsigned long ticks;		/* from znsage_io_start() */
	struct bvec_iter iter;		/* the run's pages and slots in @bio */
	blk_status_t failed;		/* error of the first try, if any */
	struct work_struct work;	/* reads again, or decrypts */
	struct bio clone;		/* must be last, for the bio_set */
};

/* For bioset_init(): bytes in front of the clones of read_bios. */
const unsigned int znsage_read_pad = offsetof(struct znsage_read, clone);

/*
 * Every read is timed, since people look for the rare slow ones. Where the
 * clock is slow (no TSC), time_reads turns this off.
 */
static u64 time_begin(struct znsage_device *zd)
{
	if (READ_ONCE(zd->time_reads) || trace_znsage_swap_in_end_enabled())
		return ktime_get_ns();
	return 0;
}

static void time_end(const struct znsage_read *rd, blk_status_t status)
{
	struct znsage_device *zd = rd->zd;
	u64 ns;

	if (!rd->start)
		return;
	ns = ktime_get_ns() - rd->start;
	if (READ_ONCE(zd->time_reads))
		znsage_timed(zd, ZNSAGE_SWAP_IN, ns);
	if (trace_znsage_swap_in_end_enabled())
		trace_znsage_swap_in_end(zd->index, rd->iter.bi_sector /
					 ZNSAGE_PAGE_SECTORS, rd->nr,
					 blk_status_to_errno(status),
					 div_u64(ns, NSEC_PER_USEC));
}

static void run_ended(struct znsage_read *rd, blk_status_t status)
{
	struct znsage_device *zd = rd->zd;
	struct bio *bio = rd->bio;

	time_end(rd, status);
	if (!status && zse_block_lost(zd->engine, rd->block))
		status = BLK_STS_IOERR;
	if (status) {
		bio->bi_status = status;
		zse_read_failed(zd->engine, rd->nr);
	} else {
		zse_read_worked(zd->engine);
	}
	if (zse_read_end(zd->engine, rd->block))
		znsage_kick(zd);
	znsage_io_end(bio, rd->nr * ZNSAGE_PAGE_SECTORS, rd->ticks);
	bio_put(&rd->clone);
	bio_endio(bio);
	percpu_ref_put(&zd->ref);
}

static void clone_submit(struct znsage_read *rd)
{
	struct bio *clone = &rd->clone;

	clone->bi_iter = rd->iter;
	clone->bi_iter.bi_size = rd->nr * PAGE_SIZE;
	clone->bi_iter.bi_sector = znsage_block_sector(rd->zd, rd->block);
	trace_block_bio_remap(clone, disk_devt(rd->zd->disk),
			      rd->iter.bi_sector);
	submit_bio_noacct(clone);
}

/*
 * Repeat a failed read with the same clone. No clone is allocated here, so that
 * a task waiting for a clone only waits for the device.
 */
static void retry_work(struct work_struct *work)
{
	struct znsage_read *rd = container_of(work, struct znsage_read, work);
	struct bio *clone = &rd->clone;
	bio_end_io_t *end_io = clone->bi_end_io;

	bio_reset(clone, rd->zd->backing.bdev, clone->bi_opf | REQ_NOMERGE);
	bio_set_flag(clone, BIO_CLONED);
	bio_clone_blkg_association(clone, rd->bio);
	clone->bi_ioprio = rd->bio->bi_ioprio;
	clone->bi_end_io = end_io;
	clone_submit(rd);
}

static void decrypt_work(struct work_struct *work)
{
	struct znsage_read *rd = container_of(work, struct znsage_read, work);

	run_ended(rd, znsage_decrypt(rd->zd, rd->bio, rd->iter, rd->nr));
}

/* May another read in the same merged request have caused this error? */
static bool may_be_neighbour(blk_status_t status)
{
	return status == BLK_STS_IOERR || status == BLK_STS_MEDIUM ||
	       status == BLK_STS_PROTECTION;
}

static void clone_end_io(struct bio *clone)
{
	struct znsage_read *rd = container_of(clone, struct znsage_read, clone);
	blk_status_t status = clone->bi_status;

	if (!rd->failed && may_be_neighbour(status)) {
		rd->failed = status;
		INIT_WORK(&rd->work, retry_work);
		queue_work(rd->zd->read_wq, &rd->work);
	} else if (status || !rd->zd->crypt) {
		run_ended(rd, status);
	} else {
		INIT_WORK(&rd->work, decrypt_work);
		queue_work(rd->zd->read_wq, &rd->work);
	}
}

/* Blocks to read, and the position of their pages in the bio. */
struct run {
	struct zse_run blocks;
	struct bvec_iter iter;
};

/*
 * Remember the frames that a run is read into, if it is the kernel's swap-in.
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

		if (bv.bv_len != PAGE_SIZE)
			return;
		znsage_frames_note(zd, bv.bv_page, slot, run->blocks.block + i);
		bio_advance_iter_single(bio, &iter, PAGE_SIZE);
	}
}

/* Read a run; takes over one of the bio's references. */
static void submit_run(struct znsage_device *zd, struct bio *bio,
		       const struct run *run)
{
	struct bio *clone = bio_alloc_clone(zd->backing.bdev, bio, GFP_NOIO,
					    &zd->read_bios);
	struct znsage_read *rd = container_of(clone, struct znsage_read, clone);

	note_pages(zd, bio, run);
	percpu_ref_get(&zd->ref);
	rd->zd = zd;
	rd->bio = bio;
	rd->block = run->blocks.block;
	rd->nr = run->blocks.nr;
	rd->iter = run->iter;
	rd->failed = BLK_STS_OK;
	rd->start = time_begin(zd);
	rd->ticks = znsage_io_start(bio, rd->nr * ZNSAGE_PAGE_SECTORS);
	clone->bi_end_io = clone_end_io;
	clone_submit(rd);
}

/*
 * Fill the page of @bio at @iter with @word. It may span several segments, each
 * of whole sectors.
 */
static void fill_page_at(struct bio *bio, struct bvec_iter iter, u64 word)
{
	u32 left = PAGE_SIZE;

	while (left) {
		struct bio_vec bv = bio_iter_iovec(bio, iter);
		u32 len = min(bv.bv_len, left);
		void *to = bvec_kmap_local(&bv);

		memset64(to, word, len / sizeof(word));
		kunmap_local(to);
		bio_advance_iter_single(bio, &iter, len);
		left -= len;
	}
}

/* Copy @page to @bio from @iter on; it may be in pieces there. */
static void copy_page_to(struct bio *bio, struct bvec_iter iter,
			 struct page *page)
{
	const char *from = kmap_local_page(page);
	u32 done = 0;

	while (done < PAGE_SIZE) {
		struct bio_vec bv = bio_iter_iovec(bio, iter);

		bv.bv_len = min_t(u32, bv.bv_len, PAGE_SIZE - done);
		memcpy_to_bvec(&bv, from + done);
		done += bv.bv_len;
		bio_advance_iter_single(bio, &iter, bv.bv_len);
	}
	kunmap_local(from);
}

/*
 * Copy the page of a slot that is being written. Under the chunk's lock, a tag
 * in the map says that the page's bio has not ended: who ends it changes the
 * map, then takes the lock (znsage_end_pages()). A chunk that was given back
 * and filled again meanwhile has the same tag only for the same slot, and then
 * its newer page.
 *
 * Returns false if the slot is not being written any more.
 */
static bool copy_written(struct znsage_device *zd, struct bio *bio,
			 const struct run *run)
{
	u32 slot = run->iter.bi_sector / ZNSAGE_PAGE_SECTORS, page;
	struct zse_chunk *c = zse_write_of(zd->engine, slot, &page);
	struct znsage_chunk *zc;
	unsigned long flags;
	bool same;
	u32 now;

	if (!c)
		return false;
	zc = c->priv;
	spin_lock_irqsave(&zc->lock, flags);
	same = zse_write_of(zd->engine, slot, &now) == c && now == page;
	if (same)
		copy_page_to(bio, run->iter, zc->pages[page]);
	spin_unlock_irqrestore(&zc->lock, flags);
	return same;
}

/* There is no memory for @bio from @iter on: a work item goes on with it. */
static void read_later(struct znsage_device *zd, struct bio *bio,
		       const struct bvec_iter *iter)
{
	bio->bi_iter = *iter;
	percpu_ref_get(&zd->ref);
	znsage_packed_read_later(zd, bio);
	/* The reference of the read that was not begun. */
	bio_endio(bio);
}

/* Read a packed page. Returns false if a work item goes on with @bio. */
static bool read_packed(struct znsage_device *zd, struct bio *bio,
			const struct run *run, bool wait, bool *kick)
{
	bio_inc_remaining(bio);
	note_pages(zd, bio, run);
	if (znsage_packed_read(zd, bio, run->iter, &run->blocks, wait))
		return true;
	*kick |= zse_read_end(zd->engine, run->blocks.block);
	read_later(zd, bio, &run->iter);
	return false;
}

/**
 * znsage_read() - start a swap-in bio
 * @zd:	 device
 * @bio: whole slots; keeps a reference of its own until all runs are submitted
 *
 * Context: process; may sleep for a clone. Clones in flight come back without
 * the caller's help.
 */
void znsage_read(struct znsage_device *zd, struct bio *bio)
{
	znsage_read_on(zd, bio, false);
}

/**
 * znsage_read_on() - the same, or the rest of one
 * @zd:	  device
 * @bio:  bio; its iterator is at the rest
 * @wait: the task is not inside submit_bio(), and may wait for pages
 *
 * Context: as znsage_read().
 */
void znsage_read_on(struct znsage_device *zd, struct bio *bio, bool wait)
{
	struct run run = { .iter = bio->bi_iter };
	bool kick = false;

	while (run.iter.bi_size) {
		u32 slot = run.iter.bi_sector / ZNSAGE_PAGE_SECTORS;
		u32 max = run.iter.bi_size / PAGE_SIZE, nr = 1;
		enum zse_read what;

		if (!slot) {
			copy_page_to(bio, run.iter, zd->header);
			znsage_io_now(bio);
			bio_advance_iter(bio, &run.iter, PAGE_SIZE);
			continue;
		}
		if (zd->compressor)
			max = 1;
		what = zse_read_begin(zd->engine, slot, max, &run.blocks,
				      &kick);
		switch (what) {
		case ZSE_READ_BLOCK:
			nr = run.blocks.nr;
			if (zd->compressor) {
				if (read_packed(zd, bio, &run, wait, &kick))
					break;
				goto out;
			}
			if (nr == max) {
				submit_run(zd, bio, &run);
				goto out;
			}
			bio_inc_remaining(bio);
			submit_run(zd, bio, &run);
			break;
		case ZSE_READ_FILLED:
			fill_page_at(bio, run.iter, run.blocks.word);
			break;
		case ZSE_READ_LOST:
			bio->bi_status = BLK_STS_IOERR;
			break;
		case ZSE_READ_BUSY:
			if (!copy_written(zd, bio, &run))
				continue;
			break;
		}
		if (what != ZSE_READ_BLOCK)
			znsage_io_now(bio);
		bio_advance_iter(bio, &run.iter, nr * PAGE_SIZE);
	}
	bio_endio(bio);
out:
	if (kick)
		znsage_kick(zd);
}
