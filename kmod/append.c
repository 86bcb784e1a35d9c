// SPDX-License-Identifier: GPL-2.0
/*
 * Appends: a chunk, or the part of it that a zone has room for, on its way to
 * the backing device, and what happens at its end. Chunks of swap-out (write.c)
 * and of GC (worker.c) are appended in the same way. An append that the device
 * refused for now is submitted again (retry.c).
 *
 * The append carries the very pages of the chunk, or their ciphertext, or what
 * they were packed into.
 */
#include <linux/blkdev.h>
#include <linux/ktime.h>

#include "trace.h"
#include "znsage.h"

/**
 * znsage_end_pages() - end the pages [first, first + nr) of a swap-out chunk
 * @zc:	    chunk; the map has no tag of these pages any more
 * @first:  entry
 * @nr:	    number of entries
 * @status: for their bios
 *
 * Context: any. A reader that copies one of the pages holds the chunk's lock,
 * and found the tag: wait for it. A later one finds no tag.
 */
void znsage_end_pages(struct znsage_chunk *zc, u32 first, u32 nr,
		      blk_status_t status)
{
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&zc->lock, flags);
	spin_unlock_irqrestore(&zc->lock, flags);
	for (i = first; i < first + nr; i++) {
		struct bio *bio = zc->parents[i];

		if (status)
			bio->bi_status = status;
		znsage_io_end(bio, ZNSAGE_PAGE_SECTORS, zc->ticks);
		bio_endio(bio);
	}
}

/**
 * znsage_chunk_put() - give a chunk back to the engine
 * @zc: chunk, without an append in flight
 *
 * Context: any. Return: true if the worker has something to do.
 */
bool znsage_chunk_put(struct znsage_chunk *zc)
{
	struct znsage_device *zd = zc->zd;
	bool more = zse_chunk_put(zd->engine, zc->core);

	znsage_write_room(zd);
	return more || READ_ONCE(zd->starved);
}

/**
 * znsage_chunk_release() - drop holds of a swap-out chunk
 * @zc:	   chunk
 * @holds: how many; the last one gives the chunk back to the engine
 *
 * Context: any. Return: true if the worker has something to do.
 */
bool znsage_chunk_release(struct znsage_chunk *zc, int holds)
{
	return atomic_sub_and_test(holds, &zc->holds) && znsage_chunk_put(zc);
}

/* A chunk of GC may hold pages of several victims, one after the other. */
static void trace_moves(struct znsage_chunk *zc)
{
	struct znsage_device *zd = zc->zd;
	const struct zse_entry *entry = zc->core->entries;
	u32 i = zc->first, end = zc->first + zc->nr;

	while (i < end) {
		u32 zone = zse_block_zone(zd->engine, entry[i].expect);
		u32 nr = 1;

		while (i + nr < end &&
		       zse_block_zone(zd->engine, entry[i + nr].expect) == zone)
			nr++;
		trace_znsage_gc_move(zd->index, zd->zone_nr[zone],
				     zd->zone_nr[zc->core->zone], nr);
		i += nr;
	}
}

/* Time and trace an append, before the engine is told of its end. */
static void trace_append_end(struct znsage_chunk *zc, bool ok, u64 now)
{
	struct znsage_device *zd = zc->zd;
	const struct zse_chunk *c = zc->core;
	u64 ns = now - (c->gc ? zc->since : c->born);

	if (ok)
		znsage_timed(zd, c->gc ? ZNSAGE_GC_APPEND : ZNSAGE_SWAP_OUT,
			     ns);
	if (trace_znsage_chunk_complete_enabled())
		trace_znsage_chunk_complete(zd->index, c->id, c->gc,
					    zd->zone_nr[c->zone], zc->nr,
					    c->nr_padding, ok ? 0 : -EIO,
					    div_u64(ns, NSEC_PER_USEC));
	if (ok && c->gc && trace_znsage_gc_move_enabled())
		trace_moves(zc);
	/* If entries are left to append, they wait for a zone from now on. */
	zc->since = now;
}

static void append_end_io(struct bio *bio)
{
	struct znsage_chunk *zc = bio->bi_private;
	struct znsage_device *zd = zc->zd;
	struct zse_chunk *c = zc->core;
	u32 first = zc->first, nr = zc->nr, at = U32_MAX;
	bool gc = c->gc, ok = !bio->bi_status, more, finished;
	u64 now = ktime_get_ns();

	if (znsage_is_transient(bio->bi_status) && znsage_retry(zc))
		return;
	if (bio->bi_status)
		pr_warn_ratelimited("znsage: %s: append to zone %u failed (%d)\n",
				    zd->name, zd->zone_nr[c->zone],
				    blk_status_to_errno(bio->bi_status));
	if (ok)
		at = zd->backend->landed(zc, bio);
	/* The engine says what is wrong with such a place. */
	if (at < zse_get_config(zd->engine)->zone_blocks / zd->pack)
		at *= zd->pack;
	bio_uninit(bio);
	trace_append_end(zc, ok, now);
	/*
	 * If the chunk is not finished, the engine owns it again, and the
	 * worker may append the rest before the bios of this append are ended.
	 * The hold keeps the parents until then. A chunk of GC has no parents.
	 */
	if (!gc)
		atomic_inc(&zc->holds);
	more = zse_append_done(zd->engine, c, &ok, at, now, &finished);
	if (ok && !gc)
		znsage_end_pages(zc, first, nr, BLK_STS_OK);
	if (!gc)
		more |= znsage_chunk_release(zc, finished ? 2 : 1);
	else if (finished)
		more |= znsage_chunk_put(zc);
	if (more)
		znsage_kick(zd);
	znsage_retry_now(zd);
	percpu_ref_put(&zd->ref);
}

/**
 * znsage_append_limit() - tell the engine how long an append may be now
 * @zd: device
 *
 * Context: any, before the engine is asked for an append.
 */
void znsage_append_limit(struct znsage_device *zd)
{
	struct block_device *bdev = zd->backing.bdev;
	u32 sectors;
	bool fits;

	if (!bdev_is_zoned(bdev))
		return;
	sectors = znsage_append_sectors(bdev);
	if (likely(sectors == READ_ONCE(zd->append_sectors)))
		return;
	WRITE_ONCE(zd->append_sectors, sectors);
	fits = zse_limit_append(zd->engine,
				sectors / ZNSAGE_PAGE_SECTORS * zd->pack);
	WRITE_ONCE(zd->append_fits, fits);
	if (!fits)
		znsage_err(zd->name, "max_sectors_kb of %pg is too low for an append: swap-out waits, and fails after 10 s; raise it",
			   bdev);
}

/*
 * Is @bio longer than the block layer takes now? The limit has dropped since the
 * engine was told of it: once @bio has failed, the engine makes shorter ones. If
 * none is short enough, @bio waits for the limit to rise, see retry.c.
 */
static bool append_too_long(struct znsage_device *zd, struct bio *bio)
{
	if (bio_op(bio) != REQ_OP_ZONE_APPEND ||
	    bio_sectors(bio) <= znsage_append_sectors(zd->backing.bdev))
		return false;
	znsage_append_limit(zd);
	bio->bi_status = READ_ONCE(zd->append_fits) ? BLK_STS_IOERR :
						      BLK_STS_AGAIN;
	return true;
}

/**
 * znsage_append_submit() - submit an append, for the first time or again
 * @zc: chunk, with the part to append in it; its bio is not in use
 *
 * Context: as znsage_append().
 */
void znsage_append_submit(struct znsage_chunk *zc)
{
	struct page **pages = zc->encrypted ? zc->encrypted : zc->pages;
	struct znsage_device *zd = zc->zd;
	const struct zse_chunk *c = zc->core;
	struct bio *bio = &zc->bio;
	u32 i;

	bio_init(bio, zd->backing.bdev, zc->vecs, zc->nr_vecs, REQ_OP_WRITE);
	zd->backend->append(zc, bio);
	bio->bi_private = zc;
	bio->bi_end_io = append_end_io;
	for (i = zc->first; !zc->packed && i < zc->first + zc->nr; i++)
		__bio_add_page(bio, pages[c->entries[i].page], PAGE_SIZE, 0);
	for (i = zc->from; zc->packed && i < zc->from + zc->nr_pages; i++)
		__bio_add_page(bio, zc->packed[i], PAGE_SIZE, 0);
	for (i = 0; i < c->nr_padding / zd->pack; i++)
		__bio_add_page(bio, ZERO_PAGE(0), PAGE_SIZE, 0);
	znsage_charge(zc, bio);
	if (unlikely(append_too_long(zd, bio)))
		bio_endio(bio);
	else
		submit_bio_noacct(bio);
}

/**
 * znsage_append() - do a ZSE_OP_APPEND
 * @zd: device
 * @op: what to append where
 *
 * Context: process; may sleep for a request of the backing device, but not
 * under submit_bio().
 */
void znsage_append(struct znsage_device *zd, const struct zse_op *op)
{
	struct znsage_chunk *zc = op->chunk->priv;

	percpu_ref_get(&zd->ref);
	zc->first = op->first;
	zc->nr = op->nr;
	zc->from = op->from / zd->pack;
	zc->nr_pages = op->blocks / zd->pack;
	zc->refused = 0;
	if (zc->core->gc)
		zc->since = ktime_get_ns();
	trace_znsage_chunk_submit(zd->index, zc->core->id, zc->core->gc,
				  zd->zone_nr[op->zone], op->nr, op->padding);
	znsage_append_submit(zc);
}
