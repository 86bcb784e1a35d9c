// SPDX-License-Identifier: GPL-2.0
/*
 * Swap-out.
 *
 * Pages of incoming bios gather in the chunk of a stream. A full chunk is
 * appended at once (append.c), a partial one when the plug of its submitter
 * ends (reclaim works under one), or at once without a plug. But while a few
 * appends of the stream are in flight, a partial chunk goes on filling
 * (engine/stream.c), and one that needs padding to the write unit waits, since
 * the next batch of reclaim usually fills it. The deadline sends what has
 * waited for longer.
 *
 * If there is no chunk, the submitter waits (wait.c). A task inside
 * submit_bio() of a stacked disk must not wait: the chunk may need I/O that is
 * still on its current->bio_list. Its bio goes to the stream's pending list,
 * and the worker, which never waits, goes on with it.
 */
#include <linux/highmem.h>

#include "trace.h"
#include "io.h"

/* Our callback of a task's plug. */
struct znsage_plug {
	struct blk_plug_cb cb;	/* its data is the device, with a ref */
	bool begun;		/* cpu is set */
	u32 cpu;		/* where it began; all its pages count for it */
	u64 streams;		/* streams to flush at its end */
};

/* Fail a chunk that was taken from its stream and not appended yet. */
static void chunk_fail(struct znsage_device *zd, struct zse_chunk *c, int err)
{
	if (err != -ENOSPC)
		pr_err_ratelimited("znsage: %s: swap-out of %u pages failed: cannot encrypt them (%d)\n",
				   zd->name, c->nr, err);
	zse_chunk_lose(zd->engine, c);
	znsage_end_pages(c->priv, 0, c->nr,
			 err == -ENOSPC ? BLK_STS_NOSPC : BLK_STS_IOERR);
	if (znsage_chunk_put(c->priv))
		znsage_kick(zd);
}

/* Append a chunk that was taken from its stream, or leave it to the worker. */
static void chunk_go(struct znsage_device *zd, struct zse_chunk *c)
{
	struct znsage_chunk *zc = c->priv;
	struct zse_op op;
	int err = 0;

	if (zc->encrypted)
		err = znsage_encrypt(zc);
	else if (zc->packed)
		err = znsage_pack(zc);
	if (err) {
		chunk_fail(zd, c, err);
		return;
	}
	zc->since = ktime_get_ns();
	atomic_set(&zc->holds, 1);
	znsage_append_limit(zd);
	if (!zse_append_start(zd->engine, c, &op, zc->since)) {
		znsage_kick(zd);
		return;
	}
	znsage_append(zd, &op);
	if (zse_gc_due(zd->engine))
		znsage_kick(zd);
}

/* A batch of pages of these streams has ended. */
static void flush_streams(struct znsage_device *zd, u64 streams)
{
	for (; streams; streams &= streams - 1) {
		struct zse_chunk *c = zse_stream_flush(zd->engine,
						       __ffs64(streams));

		if (c)
			chunk_go(zd, c);
	}
}

static u64 deadline_ns(const struct znsage_device *zd)
{
	return (u64)READ_ONCE(zd->deadline_us) * NSEC_PER_USEC;
}

/*
 * The deadline timer, which is off while no chunk is filling. It clears
 * timer_on before it looks at the streams; deadline_arm() sets timer_on after a
 * page was added. So one of the two sees what the other did.
 */
static enum hrtimer_restart deadline(struct hrtimer *timer)
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

void znsage_write_start(struct znsage_device *zd)
{
	znsage_hrtimer_setup(&zd->timer, deadline);
}

static void deadline_arm(struct znsage_device *zd)
{
	if (!atomic_xchg(&zd->timer_on, 1))
		hrtimer_start(&zd->timer, ns_to_ktime(deadline_ns(zd)),
			      HRTIMER_MODE_REL);
}

/*
 * Append the chunks that a task left to the worker, those that waited for
 * appends of their stream, and those whose deadline has passed. Only the last
 * are padded, or all while znsage_quiesce() waits. Context: the worker.
 */
void znsage_write_flush(struct znsage_device *zd)
{
	u64 before = ktime_get_ns() - deadline_ns(zd) + 1;
	u64 streams = atomic64_xchg(&zd->flush, 0);
	u32 i;

	if (READ_ONCE(zd->quiescing))
		before = ~0ULL;
	for (i = 0; i < zd->nr_streams; i++)
		if (zse_stream_due(zd->engine, i))
			streams |= BIT_ULL(i);
	flush_streams(zd, streams);
	for (i = 0; i < zd->nr_streams; i++) {
		struct zse_chunk *c = zse_stream_take(zd->engine, i, before);

		if (c)
			chunk_go(zd, c);
	}
}

/*
 * Does the page of @bio at @iter repeat one @word? Most pages show that they do
 * not by their first two words, or the last.
 */
static bool repeats(struct bio *bio, struct bvec_iter iter, u64 *word)
{
	struct bio_vec bv = bio_iter_iovec(bio, iter);
	const u64 *page = bvec_kmap_local(&bv);
	u32 last = PAGE_SIZE / sizeof(*page) - 1;
	bool same;

	*word = page[0];
	/* The last word is on another line, which the CPU may have to fetch. */
	same = *word == page[1] && *word == page[last] &&
	       !memcmp(page, page + 1, last * sizeof(*page));
	kunmap_local(page);
	return same;
}

/*
 * If the page of @bio at @iter repeats a word, it takes no space: the map has
 * the word. (Since 6.12 the kernel keeps pages of zeros off swap, but no
 * others.) Returns false if the page is to be written.
 */
static bool fill(struct znsage_device *zd, struct bio *bio,
		 struct bvec_iter *iter)
{
	u32 slot = iter->bi_sector / ZNSAGE_PAGE_SECTORS;
	struct page *page = bio_iter_page(bio, *iter);
	bool kick = false;
	u64 word;

	if (!repeats(bio, *iter, &word) ||
	    !zse_fill(zd->engine, slot, word, &kick))
		return false;
	znsage_frames_forget(zd, page);
	znsage_io_now(bio);
	bio_advance_iter_single(bio, iter, PAGE_SIZE);
	if (kick)
		znsage_kick(zd);
	/* Pages that were added hold the bio for themselves, but the last. */
	if (!iter->bi_size)
		bio_endio(bio);
	return true;
}

/* Does the next page go to @stream, too? */
static bool goes_to(const struct znsage_placed *p, u32 stream)
{
	return p->at < p->nr && p->stream[p->at] == stream;
}

/*
 * Add pages of @bio from @iter on to the stream's chunk, until one goes to
 * another stream, the chunk is full, or a page repeats a word. The bio's last
 * page takes over the bio's own reference, so the bio may be gone once the
 * stream is unlocked.
 */
static void chunk_add_pages(struct znsage_device *zd, struct zse_chunk *c,
			    struct bio *bio, struct bvec_iter *iter,
			    struct znsage_placed *p)
{
	struct znsage_chunk *zc = c->priv;
	u64 word;

	if (!c->nr) {
		c->born = ktime_get_ns();
		zc->ticks = jiffies;
	}
	do {
		struct bio_vec bv = bio_iter_iovec(bio, *iter);
		u32 slot = iter->bi_sector / ZNSAGE_PAGE_SECTORS;

		znsage_frames_forget(zd, bv.bv_page);
		/* The slot's tag names the page: copy_written(). */
		zc->pages[c->nr] = bv.bv_page;
		zc->parents[c->nr] = bio;
		znsage_io_start(bio, ZNSAGE_PAGE_SECTORS);
		bio_advance_iter_single(bio, iter, PAGE_SIZE);
		if (iter->bi_size)
			bio_inc_remaining(bio);
		zse_chunk_add(zd->engine, c, slot, p->past[p->at++]);
	} while (goes_to(p, c->stream) && c->nr < c->max &&
		 !repeats(bio, *iter, &word));
}

/* How much of a bio was written. */
enum written {
	ALL,		/* all; the bio may have been freed */
	MORE,		/* pages of another stream are left */
	NO_CHUNK,	/* chunks ran out; pages are left */
};

/* Give the next pages of a bio to their stream and advance the bio past them. */
static enum written write_head(struct znsage_device *zd, struct bio *bio,
			       struct znsage_placed *p)
{
	u32 stream = p->stream[p->at];
	struct bvec_iter iter = bio->bi_iter;

	while (goes_to(p, stream)) {
		struct zse_chunk *c;
		bool first;

		if (fill(zd, bio, &iter)) {
			p->at++;
			continue;
		}
		c = zse_stream_begin(zd->engine, stream);
		if (!c) {
			zse_stream_end(zd->engine, stream);
			bio->bi_iter = iter;
			return NO_CHUNK;
		}
		first = !c->nr;
		chunk_add_pages(zd, c, bio, &iter, p);
		c = zse_stream_end(zd->engine, stream);
		if (c)
			chunk_go(zd, c);
		else if (first)
			deadline_arm(zd);
		znsage_feed(zd, stream);
	}
	if (!iter.bi_size)
		return ALL;
	bio->bi_iter = iter;
	return MORE;
}

static void pending_add(struct znsage_device *zd, struct bio *bio, u32 stream,
			bool first)
{
	spin_lock_irq(&zd->lock);
	if (first)
		bio_list_add_head(&zd->pending[stream], bio);
	else
		bio_list_add(&zd->pending[stream], bio);
	WRITE_ONCE(zd->starved, zd->starved | BIT_ULL(stream));
	spin_unlock_irq(&zd->lock);
}

static struct bio *pending_pop(struct znsage_device *zd, u32 stream)
{
	struct bio *bio;

	spin_lock_irq(&zd->lock);
	bio = bio_list_pop(&zd->pending[stream]);
	if (!bio)
		WRITE_ONCE(zd->starved, zd->starved & ~BIT_ULL(stream));
	spin_unlock_irq(&zd->lock);
	if (!bio)
		wake_up(&zd->chunk_wait[stream]);
	return bio;
}

/*
 * Continue with the pending bios of a stream until chunks run out again. They
 * are placed anew, since the policy may have changed. Returns the streams that
 * pages went to.
 */
static u64 pending_resume(struct znsage_device *zd, u32 stream)
{
	struct znsage_placed placed = {};
	struct bio *bio;
	u64 streams = 0;

	while ((bio = pending_pop(zd, stream))) {
		enum written written;
		u32 to;

		do {
			if (placed.at == placed.nr)
				znsage_place(zd, bio, raw_smp_processor_id(),
					     &placed);
			to = placed.stream[placed.at];
			streams |= BIT_ULL(to);
			written = write_head(zd, bio, &placed);
		} while (written == MORE);
		placed.nr = placed.at;
		if (written == ALL)
			continue;
		pending_add(zd, bio, to, to == stream);
		/*
		 * Pairs with znsage_write_room() and the read of starved in
		 * znsage_chunk_put().
		 */
		smp_mb();
		if (!zse_has_chunk(zd->engine, to))
			break;
		if (to != stream)
			znsage_kick(zd);
	}
	return streams;
}

/*
 * Continue with bios that found no chunk. Context: the worker, which calls
 * znsage_write_flush() next.
 */
void znsage_write_pending(struct znsage_device *zd)
{
	u64 starved = READ_ONCE(zd->starved), streams = 0;

	for (; starved; starved &= starved - 1)
		streams |= pending_resume(zd, __ffs64(starved));
	atomic64_or(streams, &zd->flush);
}

static void unplug(struct blk_plug_cb *cb, bool from_schedule)
{
	struct znsage_plug *plug = container_of(cb, struct znsage_plug, cb);
	struct znsage_device *zd = cb->data;

	if (from_schedule || current->bio_list) {
		/* The task is about to sleep, or is inside submit_bio(). */
		atomic64_or(plug->streams, &zd->flush);
		znsage_kick(zd);
	} else {
		flush_streams(zd, plug->streams);
	}
	kfree(plug);
	percpu_ref_put(&zd->ref);
}

/*
 * Add @stream to those that the task's plug flushes at its end, or to
 * @unplugged if there is no plug or no memory for our callback. Returns the CPU
 * that the plug's pages count for: the one where it began, or @cpu.
 */
static u32 plug_stream(struct znsage_device *zd, u32 cpu, u64 streams,
		       u64 *unplugged)
{
	struct blk_plug_cb *cb = blk_check_plugged(unplug, zd,
						   sizeof(struct znsage_plug));
	struct znsage_plug *plug = container_of(cb, struct znsage_plug, cb);

	if (!cb) {
		*unplugged |= streams;
		return cpu;
	}
	if (!plug->begun) {
		percpu_ref_get(&zd->ref);
		plug->begun = true;
		plug->cpu = cpu;
	}
	plug->streams |= streams;
	return plug->cpu;
}

/* A chunk takes the pages themselves, so it cannot take parts of pages. */
static bool pages_are_whole(struct bio *bio)
{
	struct bvec_iter iter;
	struct bio_vec bv;

	bio_for_each_segment(bv, bio, iter)
		if (bv.bv_offset || bv.bv_len != PAGE_SIZE)
			return false;
	return true;
}

/* Keep the header of the swap area. Returns true if @bio has ended with it. */
static bool header_write(struct znsage_device *zd, struct bio *bio)
{
	copy_highpage(zd->header, bio_page(bio));
	znsage_io_now(bio);
	bio_advance_iter_single(bio, &bio->bi_iter, PAGE_SIZE);
	if (bio->bi_iter.bi_size)
		return false;
	bio_endio(bio);
	return true;
}

/*
 * Start a swap-out bio of whole slots, which ends when all its pages are on the
 * device. Context: process; may sleep until a chunk is free.
 */
void znsage_write(struct znsage_device *zd, struct bio *bio)
{
	u32 cpu = raw_smp_processor_id(), stream;
	struct znsage_placed placed = {};
	enum written written;
	u64 unplugged = 0;
	bool waited = false;

	if (!pages_are_whole(bio)) {
		pr_warn_ratelimited("znsage: %s: write of a part of a page refused\n",
				    zd->name);
		bio->bi_status = BLK_STS_NOTSUPP;
		bio_endio(bio);
		return;
	}
	if (znsage_refuse(zd, bio))
		return;
	if (!bio->bi_iter.bi_sector && header_write(zd, bio))
		return;
	zse_prefetch(zd->engine, bio->bi_iter.bi_sector / ZNSAGE_PAGE_SECTORS,
		     bio->bi_iter.bi_size / PAGE_SIZE);
	znsage_slow_down(zd);
	do {
		if (placed.at == placed.nr) {
			cpu = plug_stream(zd, cpu, 0, &unplugged);
			znsage_place(zd, bio, cpu, &placed);
		}
		stream = placed.stream[placed.at];
		plug_stream(zd, cpu, BIT_ULL(stream), &unplugged);
		written = NO_CHUNK;
		if (!znsage_is_starved(zd, stream))
			written = write_head(zd, bio, &placed);
		/* If that slept, the plug has ended before the last pages. */
		if (zd->compressor || zd->crypt)
			plug_stream(zd, cpu, BIT_ULL(stream), &unplugged);
		if (written != NO_CHUNK) {
			waited = false;
			continue;
		}
		/* The chunks that it waits for may be among these. */
		flush_streams(zd, unplugged);
		unplugged = 0;
		if (!znsage_wait_for_room(zd, stream, waited && !placed.at)) {
			pending_add(zd, bio, stream, false);
			znsage_kick(zd);
			break;
		}
		waited = true;
		/* The policy may have changed meanwhile. */
		placed.at = 0;
		placed.nr = 0;
		if (znsage_refuse(zd, bio))
			break;
	} while (written != ALL);
	flush_streams(zd, unplugged);
}
