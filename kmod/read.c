// SPDX-License-Identifier: GPL-2.0
/*
 * Swap-in. A clone of the bio, sent to the backing device, reads each run of
 * slots whose blocks are consecutive. The engine counts the readers of a zone,
 * so the zone is not reset while reads are in flight.
 *
 * A slot that is being written has no block yet. The kernel has its page and
 * does not read it, but other users of the disk may: they get a copy of the
 * page in the chunk.
 *
 * The block layer merges neighbouring reads, such as those of read-ahead, and a
 * bad block fails the whole request. So a read that failed is repeated once,
 * unmerged.
 *
 * A work item decrypts pages in place. A compressed page is a record in one
 * page of the device, or in two; these are read into two pages of a pool, and
 * the work item decompresses the record into the bio's page. What needs no task
 * is done when the read ends: lz4, and pages that did not shrink. A task inside
 * submit_bio() must not wait for the pool: the bios that would give its pages
 * back may still be on its current->bio_list. It leaves the bio to another work
 * item, which may.
 */
#include <linux/highmem.h>
#include <linux/slab.h>
#include <trace/events/block.h>

#include "trace.h"
#include "io.h"

/* Reads that can always be in flight. */
#define READS		64
/* Pages of the device that a record lies in, at most. */
#define RECORD_PAGES	2

static struct kmem_cache *record_cache;

/* A read of the device: a run of blocks, or a record. */
struct swap_in {
	struct znsage_device *zd;	/* with a ref */
	struct bio *bio;		/* the read holds a reference of it */
	struct bvec_iter iter;		/* the pages and slots in @bio */
	u32 block;			/* the first; its zone has a reader */
	u32 nr;				/* pages */
	u32 len;			/* blocks of the record */
	void *record;			/* RECORD_PAGES, or NULL */
	u64 start;			/* ns; 0: not timed */
	unsigned long ticks;		/* from znsage_io_start() */
	bool again;			/* the first try failed */
	struct work_struct work;
	struct bio io;			/* must be last, for the bio_set */
};

static void swap_in_timed(const struct swap_in *in, blk_status_t status)
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

/* Context: any. Frees @in. */
static void swap_in_end(struct swap_in *in, blk_status_t status)
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
	if (in->record)
		mempool_free(in->record, &zd->records);
	bio_put(&in->io);
	bio_endio(bio);
	percpu_ref_put(&zd->ref);
}

static const void *record_of(const struct swap_in *in)
{
	u32 page_blocks = in->zd->page_blocks;

	return in->record + in->block % page_blocks * (PAGE_SIZE / page_blocks);
}

/* Decompress the record into the bio's page, which is whole for swap-in. */
static blk_status_t unpack(struct swap_in *in)
{
	struct bio_vec bv = bio_iter_iovec(in->bio, in->iter);
	u32 slot = in->iter.bi_sector / ZNSAGE_PAGE_SECTORS;
	struct znsage_device *zd = in->zd;
	int err;

	if (bv.bv_len < PAGE_SIZE)
		return BLK_STS_NOTSUPP;
	err = znsage_decompress(zd, record_of(in),
				in->len * (PAGE_SIZE / zd->page_blocks), slot,
				bv.bv_page);
	flush_dcache_page(bv.bv_page);
	if (!err)
		return BLK_STS_OK;
	pr_err_ratelimited("znsage: %s: slot %u: bad record (header or checksum)\n",
			   zd->name, slot);
	return BLK_STS_IOERR;
}

/* Must a task decrypt or decompress what was read? */
static bool needs_task(const struct swap_in *in)
{
	if (!in->record)
		return in->zd->crypt;
	return znsage_decompress_needs_task(in->zd, record_of(in));
}

static void content_work(struct work_struct *work)
{
	struct swap_in *in = container_of(work, struct swap_in, work);

	swap_in_end(in, in->record ? unpack(in) :
		    znsage_decrypt(in->zd, in->bio, in->iter, in->nr));
}

static void io_ended(struct bio *io);

static void io_submit(struct swap_in *in)
{
	struct znsage_device *zd = in->zd;
	u32 first = in->block % zd->page_blocks;
	struct bio *io = &in->io;

	if (in->record) {
		__bio_add_page(io, virt_to_page(in->record), PAGE_SIZE *
			       DIV_ROUND_UP(first + in->len, zd->page_blocks),
			       0);
	} else {
		io->bi_iter = in->iter;
		io->bi_iter.bi_size = in->nr * PAGE_SIZE;
	}
	io->bi_iter.bi_sector = znsage_block_sector(zd, in->block);
	io->bi_end_io = io_ended;
	trace_block_bio_remap(io, disk_devt(zd->disk), in->iter.bi_sector);
	znsage_submit(zd, io);
}

/* Repeat a read with the same bio, so that it waits only for the device. */
static void again_work(struct work_struct *work)
{
	struct swap_in *in = container_of(work, struct swap_in, work);
	struct bio *io = &in->io;

	bio_reset(io, in->zd->backing.bdev, io->bi_opf | REQ_NOMERGE);
	if (!in->record)
		bio_set_flag(io, BIO_CLONED);
	bio_clone_blkg_association(io, in->bio);
	io->bi_ioprio = in->bio->bi_ioprio;
	io_submit(in);
}

/* May another read in the same merged request have caused this error? */
static bool may_be_neighbour(blk_status_t status)
{
	return status == BLK_STS_IOERR || status == BLK_STS_MEDIUM ||
	       status == BLK_STS_PROTECTION;
}

static void io_ended(struct bio *io)
{
	struct swap_in *in = container_of(io, struct swap_in, io);
	blk_status_t status = io->bi_status;
	bool again = !in->again && may_be_neighbour(status);

	if (!again && (status || !needs_task(in))) {
		if (!status && in->record)
			status = unpack(in);
		swap_in_end(in, status);
		return;
	}
	in->again |= again;
	INIT_WORK(&in->work, again ? again_work : content_work);
	queue_work(in->zd->read_wq, &in->work);
}

/* Blocks to read, and the position of their pages in the bio. */
struct run {
	struct zse_run blocks;
	struct bvec_iter iter;
};

/* Remember the frames that the kernel's swap-in reads a run into. */
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

/* A bio, and pages for a record. NULL: there is no memory for a record. */
static struct swap_in *swap_in_alloc(struct znsage_device *zd, struct bio *bio,
				     bool wait)
{
	blk_opf_t op = REQ_OP_READ |
		       (bio->bi_opf & (REQ_SYNC | REQ_RAHEAD | REQ_PRIO));
	gfp_t gfp = wait ? GFP_NOIO : GFP_NOWAIT | __GFP_NOWARN;
	struct block_device *bdev = zd->backing.bdev;
	struct swap_in *in;
	void *record = NULL;
	struct bio *io;

	if (zd->compressor) {
		io = bio_alloc_bioset(bdev, 1, op, gfp, &zd->read_bios);
		if (!io)
			return NULL;
		record = mempool_alloc(&zd->records, gfp);
		if (!record) {
			bio_put(io);
			return NULL;
		}
		bio_clone_blkg_association(io, bio);
		io->bi_ioprio = bio->bi_ioprio;
	} else {
		io = bio_alloc_clone(bdev, bio, GFP_NOIO, &zd->read_bios);
	}
	in = container_of(io, struct swap_in, io);
	in->record = record;
	return in;
}

/*
 * Read a run; takes over one of the bio's references. Every read is timed,
 * since people look for the rare slow ones. Where the clock is slow (no TSC),
 * time_reads turns this off.
 */
static void swap_in_begin(struct swap_in *in, struct znsage_device *zd,
			  struct bio *bio, const struct run *run)
{
	percpu_ref_get(&zd->ref);
	in->zd = zd;
	in->bio = bio;
	in->iter = run->iter;
	in->block = run->blocks.block;
	in->nr = run->blocks.nr;
	in->len = run->blocks.len;
	in->again = false;
	in->ticks = znsage_io_start(bio, in->nr * ZNSAGE_PAGE_SECTORS);
	in->start = 0;
	if (READ_ONCE(zd->time_reads) || trace_znsage_swap_in_end_enabled())
		in->start = ktime_get_ns();
	io_submit(in);
}

/*
 * Copy @page to @bio at @iter, where it may be in pieces of whole sectors; or
 * fill it with @word if @page is NULL.
 */
static void put_page_at(struct bio *bio, struct bvec_iter iter,
			struct page *page, u64 word)
{
	u32 done = 0;

	while (done < PAGE_SIZE) {
		struct bio_vec bv = bio_iter_iovec(bio, iter);
		u32 len = min_t(u32, bv.bv_len, PAGE_SIZE - done);
		void *to = bvec_kmap_local(&bv);

		if (page)
			memcpy_from_page(to, page, done, len);
		else
			memset64(to, word, len / sizeof(word));
		kunmap_local(to);
		flush_dcache_page(bv.bv_page);
		done += len;
		bio_advance_iter_single(bio, &iter, len);
	}
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
		put_page_at(bio, run->iter, zc->pages[page], 0);
	spin_unlock_irqrestore(&zc->lock, flags);
	return same;
}

/* Read blocks of the device. Returns false if nothing of @bio is left to do. */
static bool read_blocks(struct znsage_device *zd, struct bio *bio,
			const struct run *run, bool wait, bool *kick)
{
	bool last = run->blocks.nr * PAGE_SIZE == run->iter.bi_size;
	struct swap_in *in = swap_in_alloc(zd, bio, wait);
	unsigned long flags;

	if (in) {
		note_pages(zd, bio, run);
		if (!last)
			bio_inc_remaining(bio);
		swap_in_begin(in, zd, bio, run);
		return !last;
	}
	*kick |= zse_read_end(zd->engine, run->blocks.block);
	bio->bi_iter = run->iter;
	percpu_ref_get(&zd->ref);
	spin_lock_irqsave(&zd->lock, flags);
	bio_list_add(&zd->read_later, bio);
	spin_unlock_irqrestore(&zd->lock, flags);
	/* Not on read_wq: this waits for content_work(). */
	queue_work(zd->wait_wq, &zd->read_work);
	return false;
}

/*
 * Read a page that is not on the device, or lost. Returns false if its slot
 * must be looked up again.
 */
static bool read_page(struct znsage_device *zd, struct bio *bio,
		      const struct run *run, enum zse_read what)
{
	if (what == ZSE_READ_BUSY && !copy_written(zd, bio, run))
		return false;
	if (what == ZSE_READ_FILLED)
		put_page_at(bio, run->iter, NULL, run->blocks.word);
	if (what == ZSE_READ_LOST)
		bio->bi_status = BLK_STS_IOERR;
	znsage_io_now(bio);
	return true;
}

/* Start what is left of a bio. If @wait is set, the task may wait for pages. */
static void read_on(struct znsage_device *zd, struct bio *bio, bool wait)
{
	struct run run = { .iter = bio->bi_iter };
	bool kick = false;

	while (run.iter.bi_size) {
		u32 slot = run.iter.bi_sector / ZNSAGE_PAGE_SECTORS, nr = 1;
		u32 max = zd->compressor ? 1 : run.iter.bi_size / PAGE_SIZE;
		enum zse_read what;

		if (!slot) {
			put_page_at(bio, run.iter, zd->header, 0);
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

/*
 * Start a swap-in bio of whole slots. Context: process; may sleep for a clone.
 * Clones in flight come back without the caller's help.
 */
void znsage_read(struct znsage_device *zd, struct bio *bio)
{
	zse_prefetch(zd->engine, bio->bi_iter.bi_sector / ZNSAGE_PAGE_SECTORS,
		     bio->bi_iter.bi_size / PAGE_SIZE);
	read_on(zd, bio, false);
}

/* Go on with the bios that found no memory. */
static void later_work(struct work_struct *work)
{
	struct znsage_device *zd = container_of(work, struct znsage_device,
						read_work);
	struct bio *bio;

	do {
		spin_lock_irq(&zd->lock);
		bio = bio_list_pop(&zd->read_later);
		spin_unlock_irq(&zd->lock);
		if (bio) {
			read_on(zd, bio, true);
			percpu_ref_put(&zd->ref);
		}
	} while (bio);
}

static void record_new(void *record)
{
}

/*
 * With a constructor, even an empty one, init_on_alloc does not clear pages
 * that a read fills.
 */
int __init znsage_read_init(void)
{
	record_cache = kmem_cache_create("znsage_record",
					 RECORD_PAGES * PAGE_SIZE, PAGE_SIZE,
					 0, record_new);
	return record_cache ? 0 : -ENOMEM;
}

void znsage_read_exit(void)
{
	kmem_cache_destroy(record_cache);
}

/* Allocate what swap-in needs; znsage_read_end() frees it in any case. */
int znsage_read_start(struct znsage_device *zd)
{
	int err;

	INIT_WORK(&zd->read_work, later_work);
	bio_list_init(&zd->read_later);
	err = bioset_init(&zd->read_bios, READS, offsetof(struct swap_in, io),
			  zd->compressor ? BIOSET_NEED_BVECS :
					   BIOSET_NEED_RESCUER);
	if (err || !zd->compressor)
		return err;
	return mempool_init_slab_pool(&zd->records, READS, record_cache);
}

void znsage_read_end(struct znsage_device *zd)
{
	mempool_exit(&zd->records);
	bioset_exit(&zd->read_bios);
}
