// SPDX-License-Identifier: GPL-2.0
/*
 * Swap-out.
 *
 * Pages of the bios that come in gather in the chunk of a stream; the append
 * carries these very pages, or what they were encrypted to. A chunk goes out
 * when it is full, when the plug of its submitter ends (reclaim works under
 * one), at once if there is no plug, or when the deadline has passed. On a
 * device with a write unit, a chunk that would need padding waits for the
 * deadline even then: the next batch of reclaim usually fills it.
 *
 * A bio may have pages of several owners, which go to streams of their own.
 *
 * When the stream may have no more chunks, the submitter waits; see wait.c.
 *
 * Nothing is allocated but the plug's callback, without which the chunk goes
 * out at once.
 */
#include <linux/blkdev.h>
#include <linux/highmem.h>
#include <linux/ktime.h>

#include "znsage.h"

/**
 * struct znsage_plug - our part in a task's plug
 * @cb:	     the block layer's part; its data is the device, which is held
 * @begun:   @cpu is set
 * @cpu:     where the plug began; its pages are taken to come from there if the
 *	     task moves on
 * @streams: bitmap of those that pages went to, which wait for the plug's end
 */
struct znsage_plug {
	struct blk_plug_cb cb;
	bool begun;
	u32 cpu;
	u64 streams;
};

/* End the pages [first, first + nr) of a swap-out chunk. */
void znsage_end_pages(struct znsage_chunk *zc, u32 first, u32 nr,
		      blk_status_t status)
{
	u32 i;

	for (i = first; i < first + nr; i++) {
		struct bio *bio = zc->parents[i];

		if (status)
			bio->bi_status = status;
		bio_endio(bio);
	}
}

static bool chunk_put(struct znsage_chunk *zc, u64 now)
{
	bool more = zse_chunk_put(zc->zd->engine, zc->core, now);

	/* Pairs with the barrier in pending_go_on(). */
	smp_mb();
	return more;
}

/**
 * znsage_chunk_let_go() - end @holds of a chunk
 * @zc:	   chunk for swap-out
 * @holds: how many; the chunk goes back to the engine with the last one
 * @now:   as for zse_chunk_put()
 *
 * Context: any. Return: true if the worker is to run.
 */
bool znsage_chunk_let_go(struct znsage_chunk *zc, int holds, u64 now)
{
	return atomic_sub_and_test(holds, &zc->holds) && chunk_put(zc, now);
}

static void append_end_io(struct bio *bio)
{
	struct znsage_chunk *zc = bio->bi_private;
	struct znsage_device *zd = zc->zd;
	struct zse_chunk *c = zc->core;
	/* By the device, which may be wrong; before the zone it is huge. */
	sector_t sectors = bio->bi_iter.bi_sector -
			   znsage_zone_start(zd, c->zone);
	bool ok = !bio->bi_status && !(sectors % ZNSAGE_PAGE_SECTORS) &&
		  sectors / ZNSAGE_PAGE_SECTORS <
		  zse_get_config(zd->engine)->zone_blocks;
	u32 first = zc->first, nr = zc->nr;
	u64 now = ktime_get_ns();
	bool more, finished;

	if (bio->bi_status)
		pr_warn_ratelimited("znsage: %s: append to zone %u failed (%d)\n",
				    zd->name, zd->zone_nr[c->zone],
				    blk_status_to_errno(bio->bi_status));
	bio_uninit(bio);

	znsage_saw_append_end(zc, ok, now);
	/*
	 * If not finished, the chunk is not ours any more, and what is left of
	 * it may have been appended, too, before our pages have been ended:
	 * their parents stay because we hold the chunk. One of GC has none.
	 */
	if (!c->gc)
		atomic_inc(&zc->holds);
	more = zse_append_done(zd->engine, c, ok,
			       sectors / ZNSAGE_PAGE_SECTORS, &finished);
	if (ok && !c->gc)
		znsage_end_pages(zc, first, nr, BLK_STS_OK);
	if (!c->gc)
		more |= znsage_chunk_let_go(zc, finished ? 2 : 1, now);
	else if (finished)
		more |= chunk_put(zc, now);
	if (more || READ_ONCE(zd->starved) ||
	    !bio_list_empty(&zd->busy_reads))
		znsage_kick(zd);
	percpu_ref_put(&zd->ref);
}

/**
 * znsage_append() - do a ZSE_OP_APPEND
 * @zd: device
 * @op: what to append where
 *
 * Context: process; does not sleep under submit_bio(), else it may, for a
 * request of the backing device.
 */
void znsage_append(struct znsage_device *zd, const struct zse_op *op)
{
	struct znsage_chunk *zc = op->chunk->priv;
	struct page **pages = zc->encrypted ? zc->encrypted : zc->pages;
	struct bio *bio = &zc->bio;
	u32 i;

	percpu_ref_get(&zd->ref);
	zc->first = op->first;
	zc->nr = op->nr;
	bio_init(bio, zd->backing.bdev, zc->vecs, zd->chunk_blocks,
		 REQ_OP_ZONE_APPEND);
	bio->bi_iter.bi_sector = znsage_zone_start(zd, op->zone);
	bio->bi_private = zc;
	bio->bi_end_io = append_end_io;
	for (i = op->first; i < op->first + op->nr; i++)
		__bio_add_page(bio, pages[op->chunk->entries[i].page],
			       PAGE_SIZE, 0);
	for (i = 0; i < op->padding; i++)
		__bio_add_page(bio, ZERO_PAGE(0), PAGE_SIZE, 0);
	znsage_charge(zc, bio);
	znsage_saw_append(zc, op);
	submit_bio_noacct(bio);
}

/* Fail a chunk that was taken from its stream, before it was to be appended. */
static void chunk_fail(struct znsage_device *zd, struct zse_chunk *c)
{
	zse_chunk_lose(zd->engine, c);
	znsage_end_pages(c->priv, 0, c->nr, BLK_STS_IOERR);
	zse_chunk_put(zd->engine, c, 0);
	/* Others may wait for it, as in append_end_io(). */
	znsage_kick(zd);
}

/* Append a chunk that was taken from its stream; or the worker will. */
static void chunk_go(struct znsage_device *zd, struct zse_chunk *c)
{
	struct znsage_chunk *zc = c->priv;
	struct zse_op op;

	if (zc->encrypted && znsage_encrypt(zc)) {
		chunk_fail(zd, c);
		return;
	}
	c->sent = ktime_get_ns();
	zc->since = c->sent;
	atomic_set(&zc->holds, 1);
	if (zse_append_start(zd->engine, c, &op)) {
		znsage_append(zd, &op);
	} else {
		znsage_saw_stall(zc);
		znsage_kick(zd);
	}
	if (zse_gc_due(zd->engine))
		znsage_kick(zd);
}

static void flush_stream(struct znsage_device *zd, u32 stream)
{
	struct zse_chunk *c = zse_stream_take(zd->engine, stream,
					      zd->write_unit > 1, ~0ULL);

	if (c)
		chunk_go(zd, c);
}

static void flush_streams(struct znsage_device *zd, u64 streams)
{
	for (; streams; streams &= streams - 1)
		flush_stream(zd, __ffs64(streams));
}

static u64 deadline_ns(const struct znsage_device *zd)
{
	return (u64)READ_ONCE(zd->deadline_us) * NSEC_PER_USEC;
}

/*
 * The deadline timer. It stays off while no chunk is filling. timer_on is
 * cleared before the streams are looked at and set after a page was added, so
 * one of the two sides always sees the other.
 */
enum hrtimer_restart znsage_deadline(struct hrtimer *timer)
{
	struct znsage_device *zd = container_of(timer, struct znsage_device,
						timer);
	u64 limit = ktime_get_ns() - deadline_ns(zd);
	bool filling = false, late = false;
	u32 i;

	atomic_set(&zd->timer_on, 0);
	/* Pairs with the exchange in deadline_arm(). */
	smp_mb();
	for (i = 0; i < zd->nr_streams; i++) {
		u64 born = zse_stream_born(zd->engine, i);

		filling |= born != 0;
		late |= born && born <= limit;
	}
	if (late)
		znsage_kick(zd);
	if (!filling || atomic_xchg(&zd->timer_on, 1))
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, ns_to_ktime(deadline_ns(zd)));
	return HRTIMER_RESTART;
}

static void deadline_arm(struct znsage_device *zd)
{
	if (!atomic_xchg(&zd->timer_on, 1))
		hrtimer_start(&zd->timer, ns_to_ktime(deadline_ns(zd)),
			      HRTIMER_MODE_REL);
}

/*
 * Append the chunks that a task left to the worker, and those whose deadline has
 * passed. Only these are padded to the write unit; all, where znsage_quiesce()
 * waits for them.
 */
void znsage_write_flush(struct znsage_device *zd)
{
	u64 before = ktime_get_ns() - deadline_ns(zd) + 1;
	u32 i;

	flush_streams(zd, atomic64_xchg(&zd->flush, 0));
	if (READ_ONCE(zd->quiescing))
		before = ~0ULL;
	for (i = 0; i < zd->nr_streams; i++) {
		struct zse_chunk *c = zse_stream_take(zd->engine, i, false,
						      before);

		if (c)
			chunk_go(zd, c);
	}
}

/*
 * Add pages of @bio from @iter on to the stream's chunk, until @rest bytes of
 * the bio are left or the chunk is full. The bio's last page takes over the
 * reference that it came with, so it may be gone when the stream is unlocked.
 */
static void chunk_add_pages(struct znsage_device *zd, struct zse_chunk *c,
			    struct bio *bio, struct bvec_iter *iter, u32 rest)
{
	struct znsage_chunk *zc = c->priv;

	if (!c->nr)
		c->born = ktime_get_ns();
	/* Of an owner's pages, the first one was placed. */
	znsage_frames_forget(zd, bio_iter_page(bio, *iter));
	while (iter->bi_size > rest && c->nr < c->max) {
		struct bio_vec bv = bio_iter_iovec(bio, *iter);
		u32 slot = iter->bi_sector / ZNSAGE_PAGE_SECTORS;
		u32 i = zse_chunk_add(zd->engine, c, slot);

		bio_advance_iter_single(bio, iter, PAGE_SIZE);
		if (iter->bi_size)
			bio_inc_remaining(bio);
		zc->pages[i] = bv.bv_page;
		zc->parents[i] = bio;
	}
}

/*
 * How much of what is left of a bio goes to one stream, in bytes. Since 7.3
 * swap-out puts pages that follow one another on the disk into one bio, whoever
 * they are of; before, a bio had one folio. A folio has one owner.
 */
static u32 one_owner(struct znsage_device *zd, struct bio *bio)
{
	struct bio_vec bv = bio_iter_iovec(bio, bio->bi_iter);
	struct folio *folio;
	size_t left;

	if (!(bio->bi_opf & REQ_SWAP) || !READ_ONCE(zd->wants_owners))
		return bio->bi_iter.bi_size;
	folio = page_folio(bv.bv_page);
	left = folio_size(folio) - folio_page_idx(folio, bv.bv_page) * PAGE_SIZE;
	return min_t(size_t, left,
		     mp_bvec_iter_len(bio->bi_io_vec, bio->bi_iter));
}

/* Stream for the pages at the head of what is left of a bio. */
u32 znsage_place(struct znsage_device *zd, struct bio *bio, u32 cpu)
{
	struct bio_vec bv = bio_iter_iovec(bio, bio->bi_iter);
	struct znsage_page owner;

	BUILD_BUG_ON(ZSE_MAX_STREAMS > 64);	/* bits in a plug */
	znsage_page_owner(zd, bv.bv_page, cpu, &owner);
	return zse_place(zd->engine, &owner);
}

/**
 * znsage_write_head() - give the head of a bio to a stream
 * @zd:	    device
 * @bio:    what is left of it, by its iterator
 * @stream: where its first page was placed
 *
 * Context: any that may submit. Return: what became of it.
 */
enum znsage_written znsage_write_head(struct znsage_device *zd,
				      struct bio *bio, u32 stream)
{
	struct bvec_iter iter = bio->bi_iter;
	u32 rest = iter.bi_size - one_owner(zd, bio);

	znsage_saw_place(zd, bio, stream);
	while (iter.bi_size > rest) {
		unsigned long flags;
		struct zse_chunk *c = zse_stream_begin(zd->engine, stream,
						       &flags);
		bool first;

		if (!c) {
			zse_stream_end(zd->engine, stream, &flags);
			bio->bi_iter = iter;
			return ZNSAGE_NO_CHUNK;
		}
		first = !c->nr;
		chunk_add_pages(zd, c, bio, &iter, rest);
		c = zse_stream_end(zd->engine, stream, &flags);
		if (c)
			chunk_go(zd, c);
		else if (first)
			deadline_arm(zd);
	}
	if (!rest)
		return ZNSAGE_ALL;
	bio->bi_iter = iter;
	return ZNSAGE_MORE;
}

static void unplug(struct blk_plug_cb *cb, bool from_schedule)
{
	struct znsage_plug *plug = container_of(cb, struct znsage_plug, cb);
	struct znsage_device *zd = cb->data;

	if (from_schedule || current->bio_list) {
		/* The task is going to sleep, or is inside submit_bio(). */
		atomic64_or(plug->streams, &zd->flush);
		znsage_kick(zd);
	} else {
		flush_streams(zd, plug->streams);
	}
	kfree(plug);
	percpu_ref_put(&zd->ref);
}

/* Whole pages only: the pages themselves go into the chunk. */
static bool pages_are_whole(struct bio *bio)
{
	struct bvec_iter iter;
	struct bio_vec bv;

	bio_for_each_segment(bv, bio, iter)
		if (bv.bv_offset || bv.bv_len != PAGE_SIZE)
			return false;
	return true;
}

/* Our part in the task's plug; NULL if it has none, or there is no memory. */
static struct znsage_plug *plug_of(struct znsage_device *zd, u32 cpu)
{
	struct blk_plug_cb *cb = blk_check_plugged(unplug, zd,
						   sizeof(struct znsage_plug));
	struct znsage_plug *plug;

	if (!cb)
		return NULL;
	plug = container_of(cb, struct znsage_plug, cb);
	if (!plug->begun) {
		percpu_ref_get(&zd->ref);
		plug->begun = true;
		plug->cpu = cpu;
	}
	return plug;
}

/**
 * znsage_write() - a swap-out bio
 * @zd:	 device; its queue is held by the caller
 * @bio: whole slots; ended when all its pages are on the device
 *
 * Context: process; may sleep until a chunk is free.
 */
void znsage_write(struct znsage_device *zd, struct bio *bio)
{
	u32 cpu = raw_smp_processor_id(), stream;
	enum znsage_written written;
	u64 unplugged = 0;

	if (!pages_are_whole(bio)) {
		pr_warn_ratelimited("znsage: %s: write of a part of a page refused\n",
				    zd->name);
		bio->bi_status = BLK_STS_NOTSUPP;
		bio_endio(bio);
		return;
	}
	do {
		struct znsage_plug *plug;

		stream = znsage_place(zd, bio, cpu);
		if (znsage_is_starved(zd, stream)) {
			/* What it waits for may be among these. */
			flush_streams(zd, unplugged);
			unplugged = 0;
			if (!znsage_wait_until_fed(zd, stream)) {
				znsage_wait_bio(zd, bio, stream);
				return;
			}
		}
		plug = plug_of(zd, cpu);
		if (plug && plug->cpu != cpu) {
			cpu = plug->cpu;
			stream = znsage_place(zd, bio, cpu);
		}
		*(plug ? &plug->streams : &unplugged) |= BIT_ULL(stream);
		written = znsage_write_head(zd, bio, stream);
	} while (written == ZNSAGE_MORE);
	if (written == ZNSAGE_NO_CHUNK)
		znsage_wait_bio(zd, bio, stream);
	flush_streams(zd, unplugged);
}
