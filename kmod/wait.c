// SPDX-License-Identifier: GPL-2.0
/*
 * Swap-out that finds no chunk.
 *
 * When a stream has as many chunks in use as it may, the submitter waits, as it
 * would for a request of any other device: without that, reclaim would put all
 * of memory under writeback before it noticed that the device is slow. Chunks
 * come back as appends end, or when GC, which needs no chunk of these, has made
 * room. Who writes to another stream does not wait.
 *
 * But submit_bio() of a stacked disk must not wait for I/O that the task itself
 * has yet to submit (it is on current->bio_list). In that case, and when the
 * chunks run out in the middle of a bio, the bio is put on the stream's pending
 * list, and the worker, which never waits, goes on with it.
 */
#include <linux/blkdev.h>
#include <linux/wait.h>

#include "znsage.h"

static void pending_add(struct znsage_device *zd, struct bio *bio, u32 stream,
			bool first)
{
	unsigned long flags;

	spin_lock_irqsave(&zd->lock, flags);
	if (first)
		bio_list_add_head(&zd->pending[stream], bio);
	else
		bio_list_add(&zd->pending[stream], bio);
	WRITE_ONCE(zd->starved, zd->starved | BIT_ULL(stream));
	spin_unlock_irqrestore(&zd->lock, flags);
}

static struct bio *pending_pop(struct znsage_device *zd, u32 stream)
{
	unsigned long flags;
	struct bio *bio;

	spin_lock_irqsave(&zd->lock, flags);
	bio = bio_list_pop(&zd->pending[stream]);
	if (!bio)
		WRITE_ONCE(zd->starved, zd->starved & ~BIT_ULL(stream));
	spin_unlock_irqrestore(&zd->lock, flags);
	if (!bio)
		wake_up_all(&zd->fed);
	return bio;
}

/*
 * Go on with the bios of a stream until chunks run out again. The policy may have
 * changed since they came, so they are placed anew. Returns the streams that
 * pages went to.
 */
static u64 pending_go_on(struct znsage_device *zd, u32 stream)
{
	struct bio *bio;
	u64 streams = 0;

	while ((bio = pending_pop(zd, stream))) {
		enum znsage_written written;
		u32 to;

		do {
			to = znsage_place(zd, bio, raw_smp_processor_id());
			streams |= BIT_ULL(to);
			written = znsage_write_head(zd, bio, to);
		} while (written == ZNSAGE_MORE);
		if (written == ZNSAGE_ALL)
			continue;
		pending_add(zd, bio, to, to == stream);
		/* Pairs with append_end_io(): chunk put, then starved read. */
		smp_mb();
		if (!zse_has_chunk(zd->engine, to))
			break;
		if (to != stream)
			znsage_kick(zd);
	}
	return streams;
}

/**
 * znsage_write_pending() - go on with bios that found no chunk
 * @zd: device
 *
 * Context: the worker.
 */
void znsage_write_pending(struct znsage_device *zd)
{
	u64 starved = READ_ONCE(zd->starved), streams = 0;

	for (; starved; starved &= starved - 1)
		streams |= pending_go_on(zd, __ffs64(starved));
	/* The worker, whose this is, flushes next. */
	atomic64_or(streams, &zd->flush);
}

/**
 * znsage_wait_bio() - let a bio wait for a chunk
 * @zd:	    device
 * @bio:    what is left of it
 * @stream: that it goes to
 *
 * Context: any that may submit.
 */
void znsage_wait_bio(struct znsage_device *zd, struct bio *bio, u32 stream)
{
	pending_add(zd, bio, stream, false);
	znsage_kick(zd);
}

/* Is there nothing that this task submitted and that has not gone out? */
static bool may_wait(void)
{
	const struct bio_list *list = current->bio_list;

	return !list || (bio_list_empty(&list[0]) && bio_list_empty(&list[1]));
}

/**
 * znsage_wait_until_fed() - wait until there may be a chunk for a stream
 * @zd:	    device
 * @stream: stream
 *
 * Context: process; sleeps if the task may. Not with a plug of ours in hand:
 * plugs end when their task sleeps.
 * Return: false if there is none and the task may not wait.
 */
bool znsage_wait_until_fed(struct znsage_device *zd, u32 stream)
{
	u64 since;

	if (!znsage_is_starved(zd, stream))
		return true;
	if (!may_wait())
		return false;
	since = znsage_saw_wait(zd);
	wait_event(zd->fed, !znsage_is_starved(zd, stream));
	znsage_saw_wait_end(zd, since);
	return true;
}
