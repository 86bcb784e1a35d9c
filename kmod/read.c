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
	struct znsage_swap_in in;
	blk_status_t failed;		/* error of the first try, if any */
	struct work_struct work;	/* reads again, or decrypts */
	struct bio clone;		/* must be last, for the bio_set */
};

/* For bioset_init(): bytes in front of the clones of read_bios. */
const unsigned int znsage_read_pad = offsetof(struct znsage_read, clone);

/**
 * znsage_swap_in_begin() - begin a read of the device
 * @in:	   filled in
 * @zd:	   device
 * @bio:   a reference of it ends with the read
 * @iter:  where the pages are in it
 * @block: first block; the caller is a reader of its zone
 * @nr:	   pages
 *
 * Every read is timed, since people look for the rare slow ones. Where the
 * clock is slow (no TSC), time_reads turns this off.
 *
 * Context: any.
 */
void znsage_swap_in_begin(struct znsage_swap_in *in, struct znsage_device *zd,
			  struct bio *bio, struct bvec_iter iter, u32 block,
			  u32 nr)
{
	percpu_ref_get(&zd->ref);
	*in = (struct znsage_swap_in) {
		.zd = zd,
		.bio = bio,
		.iter = iter,
		.block = block,
		.nr = nr,
		.ticks = znsage_io_start(bio, nr * ZNSAGE_PAGE_SECTORS),
	};
	if (READ_ONCE(zd->time_reads) || trace_znsage_swap_in_end_enabled())
		in->start = ktime_get_ns();
}

static void swap_in_timed(const struct znsage_swap_in *in, blk_status_t status)
{
	struct znsage_device *zd = in->zd;
	u64 ns = ktime_get_ns() - in->start;

	if (READ_ONCE(zd->time_reads))
		znsage_timed(zd, ZNSAGE_SWAP_IN, ns);
	trace_znsage_swap_in_end(zd->index, in->iter.bi_sector /
				 ZNSAGE_PAGE_SECTORS, in->nr,
				 blk_status_to_errno(status),
				 div_u64(ns, NSEC_PER_USEC));
}

/* A read has ended. Context: any. */
void znsage_swap_in_end(const struct znsage_swap_in *in, blk_status_t status)
{
	struct znsage_device *zd = in->zd;
	struct bio *bio = in->bio;

	if (in->start)
		swap_in_timed(in, status);
	if (!status && zse_block_lost(zd->engine, in->block))
		status = BLK_STS_IOERR;
	if (status) {
		bio->bi_status = status;
		zse_read_failed(zd->engine, in->nr);
	} else {
		zse_read_worked(zd->engine);
	}
	if (zse_read_end(zd->engine, in->block))
		znsage_kick(zd);
	znsage_io_end(bio, in->nr * ZNSAGE_PAGE_SECTORS, in->ticks);
	bio_endio(bio);
	percpu_ref_put(&zd->ref);
}

static void run_ended(struct znsage_read *rd, blk_status_t status)
{
	struct znsage_swap_in in = rd->in;

	bio_put(&rd->clone);
	znsage_swap_in_end(&in, status);
}

static void clone_submit(struct znsage_read *rd)
{
	struct bio *clone = &rd->clone;

	clone->bi_iter = rd->in.iter;
	clone->bi_iter.bi_size = rd->in.nr * PAGE_SIZE;
	clone->bi_iter.bi_sector = znsage_block_sector(rd->in.zd,
						       rd->in.block);
	trace_block_bio_remap(clone, disk_devt(rd->in.zd->disk),
			      rd->in.iter.bi_sector);
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

	bio_reset(clone, rd->in.zd->backing.bdev, clone->bi_opf | REQ_NOMERGE);
	bio_set_flag(clone, BIO_CLONED);
	bio_clone_blkg_association(clone, rd->in.bio);
	clone->bi_ioprio = rd->in.bio->bi_ioprio;
	clone->bi_end_io = end_io;
	clone_submit(rd);
}

static void decrypt_work(struct work_struct *work)
{
	struct znsage_read *rd = container_of(work, struct znsage_read, work);

	run_ended(rd, znsage_decrypt(&rd->in));
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
		queue_work(rd->in.zd->read_wq, &rd->work);
	} else if (status || !rd->in.zd->crypt) {
		run_ended(rd, status);
	} else {
		INIT_WORK(&rd->work, decrypt_work);
		queue_work(rd->in.zd->read_wq, &rd->work);
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

	rd->failed = BLK_STS_OK;
	znsage_swap_in_begin(&rd->in, zd, bio, run->iter, run->blocks.block,
			     run->blocks.nr);
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
	if (znsage_packed_read(zd, bio, run->iter, &run->blocks, wait))
		return true;
	*kick |= zse_read_end(zd->engine, run->blocks.block);
	read_later(zd, bio, &run->iter);
	return false;
}

/* Read blocks of the device. Returns false if nothing of @bio is left to do. */
static bool read_blocks(struct znsage_device *zd, struct bio *bio,
			const struct run *run, bool wait, bool *kick)
{
	bool last = run->blocks.nr * PAGE_SIZE == run->iter.bi_size;

	note_pages(zd, bio, run);
	if (zd->compressor)
		return read_packed(zd, bio, run, wait, kick);
	if (!last)
		bio_inc_remaining(bio);
	submit_run(zd, bio, run);
	return !last;
}

/*
 * Read a page that is not on the device, or lost. Returns false if it is to be
 * looked up again.
 */
static bool read_page(struct znsage_device *zd, struct bio *bio,
		      const struct run *run, enum zse_read what)
{
	if (what == ZSE_READ_BUSY && !copy_written(zd, bio, run))
		return false;
	if (what == ZSE_READ_FILLED)
		fill_page_at(bio, run->iter, run->blocks.word);
	if (what == ZSE_READ_LOST)
		bio->bi_status = BLK_STS_IOERR;
	znsage_io_now(bio);
	return true;
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
 * znsage_read_on() - start the rest of a swap-in bio
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
		u32 slot = run.iter.bi_sector / ZNSAGE_PAGE_SECTORS, nr = 1;
		u32 max = zd->compressor ? 1 : run.iter.bi_size / PAGE_SIZE;
		enum zse_read what;

		if (!slot) {
			copy_page_to(bio, run.iter, zd->header);
			znsage_io_now(bio);
			bio_advance_iter(bio, &run.iter, PAGE_SIZE);
			continue;
		}
		what = zse_read_begin(zd->engine, slot, max, &run.blocks,
				      &kick);
		if (what == ZSE_READ_BLOCK) {
			nr = run.blocks.nr;
			if (!read_blocks(zd, bio, &run, wait, &kick))
				goto out;
		} else if (!read_page(zd, bio, &run, what)) {
			continue;
		}
		bio_advance_iter(bio, &run.iter, nr * PAGE_SIZE);
	}
	bio_endio(bio);
out:
	if (kick)
		znsage_kick(zd);
}
