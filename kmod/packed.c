// SPDX-License-Identifier: GPL-2.0
/*
 * Packed pages: compressed ones (compress.c) of any length, one after the other
 * in the append of their chunk. engine/packed.c has the rules.
 *
 * Swap-out: the task that takes a chunk from its stream compresses its pages
 * into the chunk's buffer, which was allocated at attach.
 *
 * Swap-in: a record lies in one page of the device, or in two. They are read
 * into two pages of a pool, and a workqueue decompresses the record into the
 * bio's page. A task inside submit_bio() must not wait for the pool: what would
 * free its pages may still be on its current->bio_list. It leaves the bio to a
 * work item, which may.
 *
 * GC: the worker reads a window of the victim, lets the engine find the live
 * records in it, and copies these to the chunk's buffer.
 */
#include <linux/blkdev.h>
#include <linux/highmem.h>
#include <linux/mempool.h>
#include <linux/vmalloc.h>

#include "znsage.h"

/* Reads that can always be in flight. */
#define READS		64
#define READ_PAGES	2

/* ---- chunks ---- */

/* Pages of an append of @nr pages of @pack blocks each that do not shrink. */
u32 znsage_packed_pages(u32 nr, u32 pack)
{
	return DIV_ROUND_UP(nr * (pack + 1), pack);
}

/*
 * Pages of a chunk's buffer. GC's window is as large: it reaches beyond the
 * chunk by the longest record.
 */
u32 znsage_packed_buffer(const struct znsage_chunk *zc)
{
	const struct znsage_device *zd = zc->zd;

	return zc->core->gc ? zd->batch_blocks + READ_PAGES :
			      znsage_packed_pages(zd->chunk_blocks, zd->pack);
}

/**
 * znsage_packed_chunk() - allocate the buffer of a chunk
 * @zc: chunk; if it is one of GC, its pages become its window
 *
 * Context: sleeps. After an error, znsage_packed_chunk_free() frees the rest.
 */
int znsage_packed_chunk(struct znsage_chunk *zc)
{
	u32 nr = znsage_packed_buffer(zc);

	zc->packed = kvcalloc(nr, sizeof(*zc->packed), GFP_KERNEL);
	if (!zc->packed || znsage_pages_alloc(zc->packed, nr))
		return -ENOMEM;
	zc->buffer = vmap(zc->packed, nr, VM_MAP, PAGE_KERNEL);
	if (!zc->buffer)
		return -ENOMEM;
	if (!zc->core->gc)
		return 0;
	zc->window = vmap(zc->pages, nr, VM_MAP, PAGE_KERNEL);
	zc->unread = kvcalloc(BITS_TO_LONGS(nr), sizeof(long), GFP_KERNEL);
	return zc->window && zc->unread ? 0 : -ENOMEM;
}

void znsage_packed_chunk_free(struct znsage_chunk *zc)
{
	vunmap(zc->buffer);
	vunmap(zc->window);
	kvfree(zc->unread);
	znsage_pages_free(zc->packed, znsage_packed_buffer(zc));
}

/*
 * The buffer is filled. What else is in its last page would tell of other
 * pages. CPUs whose caches go by virtual addresses must write back what they
 * have of the mapping.
 */
static void buffer_filled(struct znsage_chunk *zc)
{
	u32 bytes = zc->core->fill * (PAGE_SIZE / zc->zd->pack);
	u32 end = PAGE_ALIGN(bytes);

	memset(zc->buffer + bytes, 0, end - bytes);
	flush_kernel_vmap_range(zc->buffer, end);
}

/**
 * znsage_pack() - compress the pages of a chunk
 * @zc: chunk of swap-out, taken from its stream and not started yet
 *
 * Context: process; may sleep, but not for memory or I/O.
 * Return: BLK_STS_OK, BLK_STS_NOSPC if the device has no room for them, or
 * BLK_STS_IOERR if they cannot be encrypted.
 */
blk_status_t znsage_pack(struct znsage_chunk *zc)
{
	struct znsage_device *zd = zc->zd;
	struct zse_chunk *c = zc->core;
	u32 block = PAGE_SIZE / zd->pack, i;
	int err = 0;

	for (i = 0; i < c->nr; i++) {
		void *to = zc->buffer + c->fill * block;
		u32 blocks;

		err = znsage_compress(zd, zc->pages[i], c->entries[i].slot, to,
				      &blocks) ?: err;
		zse_chunk_pack(zd->engine, c, i, blocks);
	}
	if (err) {
		pr_err_ratelimited("znsage: %s: swap-out of %u pages failed: cannot encrypt them (%d)\n",
				   zd->name, c->nr, err);
		return BLK_STS_IOERR;
	}
	buffer_filled(zc);
	if (zse_chunk_fits(zd->engine, c))
		return BLK_STS_OK;
	WRITE_ONCE(zd->full_since, ktime_get_ns());
	if (__ratelimit(&zd->full_said))
		pr_warn("znsage: %s: swap-out of %u pages refused: device full; pages compress less than size= assumes\n",
			zd->name, c->nr);
	return BLK_STS_NOSPC;
}

/* ---- GC ---- */

static u32 window_slot(void *host, u32 at)
{
	const struct znsage_chunk *zc = host;
	u32 block = PAGE_SIZE / zc->zd->pack;

	return le32_to_cpu(*(const __le32 *)(zc->window + at * block));
}

static bool window_failed(void *host, u32 at)
{
	const struct znsage_chunk *zc = host;

	return test_bit(at / zc->zd->pack, zc->unread);
}

/**
 * znsage_packed_scan() - go on with a window that GC has read
 * @zc: chunk
 *
 * Context: the worker, which calls zse_next_op() next.
 */
void znsage_packed_scan(struct znsage_chunk *zc)
{
	const struct zse_window window = {
		.host = zc,
		.slot = window_slot,
		.failed = window_failed,
	};
	struct znsage_device *zd = zc->zd;
	struct zse_chunk *c = zc->core;
	u32 block = PAGE_SIZE / zd->pack, i;

	invalidate_kernel_vmap_range(zc->window, zc->nr_pages * PAGE_SIZE);
	zse_gc_scan(zd->engine, c, &window);
	for (i = 0; i < c->nr; i++) {
		const struct zse_entry *entry = &c->entries[i];

		memcpy(zc->buffer + entry->at * block,
		       zc->window + entry->page * block, entry->len * block);
	}
	buffer_filled(zc);
	zse_gc_read_done(zd->engine, c);
}

/* ---- swap-in ---- */

/* A read of a record. */
struct packed_read {
	struct znsage_swap_in in;
	u32 len;			/* blocks */
	struct page *pages;		/* two, from the pool */
	bool again;			/* read once more, unmerged */
	struct work_struct work;
	struct bio io;			/* must be last, for the bio_set */
};

/* For bioset_init(): bytes in front of the bios of packed_bios. */
const unsigned int znsage_packed_pad = offsetof(struct packed_read, io);

static void read_ended(struct packed_read *rd, blk_status_t status)
{
	struct znsage_swap_in in = rd->in;

	mempool_free(rd->pages, &in.zd->packed_pages);
	bio_put(&rd->io);
	znsage_swap_in_end(&in, status);
}

static void read_submit(struct packed_read *rd);

/* Decompress the record into the bio's page, which is whole for swap-in. */
static blk_status_t unpack(struct packed_read *rd)
{
	struct bio_vec bv = bio_iter_iovec(rd->in.bio, rd->in.iter);
	u32 slot = rd->in.iter.bi_sector / ZNSAGE_PAGE_SECTORS;
	struct znsage_device *zd = rd->in.zd;
	u32 block = PAGE_SIZE / zd->pack;
	int err;

	if (bv.bv_len < PAGE_SIZE)
		return BLK_STS_NOTSUPP;
	err = znsage_decompress(zd, page_address(rd->pages) +
				rd->in.block % zd->pack * block,
				rd->len * block, slot, bv.bv_page);
	flush_dcache_page(bv.bv_page);
	if (!err)
		return BLK_STS_OK;
	pr_err_ratelimited("znsage: %s: slot %u: bad record (header or checksum)\n",
			   zd->name, slot);
	return BLK_STS_IOERR;
}

static void read_work(struct work_struct *work)
{
	struct packed_read *rd = container_of(work, struct packed_read, work);
	blk_status_t status = rd->io.bi_status;

	if (status && !rd->again) {
		rd->again = true;
		read_submit(rd);
		return;
	}
	read_ended(rd, status ? status : unpack(rd));
}

static void read_end_io(struct bio *io)
{
	struct packed_read *rd = container_of(io, struct packed_read, io);

	INIT_WORK(&rd->work, read_work);
	queue_work(rd->in.zd->read_wq, &rd->work);
}

/* Read the pages of the device in which the record lies. */
static void read_submit(struct packed_read *rd)
{
	struct znsage_device *zd = rd->in.zd;
	u32 first = rd->in.block % zd->pack;
	u32 nr = DIV_ROUND_UP(first + rd->len, zd->pack);
	struct bio *io = &rd->io, *bio = rd->in.bio;

	if (rd->again)
		bio_reset(io, zd->backing.bdev, REQ_OP_READ | REQ_NOMERGE);
	io->bi_opf |= bio->bi_opf & (REQ_SYNC | REQ_RAHEAD | REQ_PRIO);
	bio_clone_blkg_association(io, bio);
	io->bi_ioprio = bio->bi_ioprio;
	io->bi_iter.bi_sector = znsage_block_sector(zd, rd->in.block);
	io->bi_end_io = read_end_io;
	__bio_add_page(io, rd->pages, nr * PAGE_SIZE, 0);
	submit_bio_noacct(io);
}

/**
 * znsage_packed_read() - read the page of a slot
 * @zd:	  device
 * @bio:  a reference of it ends with the read
 * @iter: where the page is in it
 * @run:  from zse_read_begin()
 * @wait: the caller may wait for the pool: it is not inside submit_bio()
 *
 * Context: process. Return: false if there is no memory; nothing was begun.
 */
bool znsage_packed_read(struct znsage_device *zd, struct bio *bio,
			struct bvec_iter iter, const struct zse_run *run,
			bool wait)
{
	gfp_t gfp = wait ? GFP_NOIO : GFP_NOWAIT | __GFP_NOWARN;
	struct bio *io = bio_alloc_bioset(zd->backing.bdev, 1, REQ_OP_READ,
					  gfp, &zd->packed_bios);
	struct packed_read *rd;

	if (!io)
		return false;
	rd = container_of(io, struct packed_read, io);
	rd->pages = mempool_alloc(&zd->packed_pages, gfp);
	if (!rd->pages) {
		bio_put(io);
		return false;
	}
	rd->len = run->len;
	rd->again = false;
	znsage_swap_in_begin(&rd->in, zd, bio, iter, run->block, 1);
	read_submit(rd);
	return true;
}

/* ---- reads that found no memory ---- */

/**
 * znsage_packed_read_later() - leave the rest of a bio to a work item
 * @zd:	 device
 * @bio: bio; its iterator is at the rest
 *
 * Context: any.
 */
void znsage_packed_read_later(struct znsage_device *zd, struct bio *bio)
{
	unsigned long flags;

	spin_lock_irqsave(&zd->lock, flags);
	bio_list_add(&zd->read_later, bio);
	spin_unlock_irqrestore(&zd->lock, flags);
	/* Not on read_wq: it waits for read_work(). */
	queue_work(zd->wait_wq, &zd->read_work);
}

static void later_work(struct work_struct *work)
{
	struct znsage_device *zd = container_of(work, struct znsage_device,
						read_work);
	unsigned long flags;
	struct bio *bio;

	do {
		spin_lock_irqsave(&zd->lock, flags);
		bio = bio_list_pop(&zd->read_later);
		spin_unlock_irqrestore(&zd->lock, flags);
		if (bio) {
			znsage_read_on(zd, bio, true);
			percpu_ref_put(&zd->ref);
		}
	} while (bio);
}

/* ---- attach and detach ---- */

/* Allocate what swap-in needs; znsage_packed_end() frees it in any case. */
int znsage_packed_start(struct znsage_device *zd)
{
	int err;

	INIT_WORK(&zd->read_work, later_work);
	bio_list_init(&zd->read_later);
	ratelimit_state_init(&zd->full_said, 5 * HZ, 1);
	/* Do not log how often it was not logged. */
	ratelimit_set_flags(&zd->full_said, RATELIMIT_MSG_ON_RELEASE);
	if (!zd->compressor)
		return 0;
	err = bioset_init(&zd->packed_bios, READS, znsage_packed_pad,
			  BIOSET_NEED_BVECS);
	if (err)
		return err;
	return mempool_init_page_pool(&zd->packed_pages, READS,
				      ilog2(READ_PAGES));
}

void znsage_packed_end(struct znsage_device *zd)
{
	mempool_exit(&zd->packed_pages);
	bioset_exit(&zd->packed_bios);
}
