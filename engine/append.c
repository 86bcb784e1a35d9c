// SPDX-License-Identifier: GPL-2.0
/*
 * Appends: how a chunk that left its stream goes to a zone, and what the end of
 * an append changes. stream.c says when an end takes the engine lock.
 */
#include "api.h"

/**
 * zse_append_start() - append a chunk that was taken from its stream
 * @e:	engine
 * @c:	chunk, owned by the caller; zse_chunk_fits(), if pages are packed
 * @op: filled in when true
 * @now: ns, by any clock that goes on; not 0
 *
 * Return: true if the caller is to do @op. False if there is no zone now: the
 * engine then owns the chunk, and zse_next_op(), which the host must call,
 * returns it later.
 */
bool zse_append_start(struct zse_engine *e, struct zse_chunk *c,
		      struct zse_op *op, u64 now)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&e->lock, flags);
	ok = share_may_pass(e, c) && chunk_assign(e, c, op, now);
	if (!ok && stripe_is_busy(e, stripe_of(e, c->stream))) {
		chunk_wait(e, c, &e->pool.queued, false);
	} else if (!ok) {
		chunk_stall(e, c);
	}
	spin_unlock_irqrestore(&e->lock, flags);
	return ok;
}

/* The append of @c failed: try another zone, a few times. */
static void chunk_retry(struct zse_engine *e, struct zse_chunk *c, u64 now)
{
	c->retries++;
	if (c->gc) {
		recover_gc_append_failed(e, now);
		e->gc.unplaced += entries_len(e, c, c->done, c->nr_inflight);
		chunk_wait(e, c, &e->pool.gc_ready, true);
	} else if (c->retries > ZSE_MAX_RETRIES) {
		list_add_tail(&c->link, &e->pool.failed);
	} else {
		chunk_wait(e, c, &e->pool.stalled, true);
	}
}

/* An append of swap-out worked. Without a lock. */
static void count_swapped_out(struct zse_engine *e, const struct zse_chunk *c)
{
	struct zse_shard *shard = shard_of(e);

	atomic64_inc(&shard->chunks);
	atomic64_add(c->nr_blocks, &shard->host_blocks);
	atomic64_add(c->nr_inflight, &shard->host_pages);
	atomic64_add(c->nr_blocks, &shard->stream[c->stream].host_blocks);
	if (!c->nr_padding)
		return;
	atomic64_add(c->nr_padding, &shard->padding_blocks);
	atomic64_add(c->nr_padding, &shard->stream[c->stream].padding_blocks);
}

/*
 * An append to @zone is settled. If it was the last one of a zone that closes:
 * full.
 */
static void zone_drop_append(struct zse_engine *e, u32 zone)
{
	struct zse_zone *z = &e->zones[zone];

	atomic_dec_return(&z->appends);
	if (zone_is_failed(z) || z->state == ZSE_ZONE_CLOSING)
		zone_close(e, zone);
}

/*
 * An append to @zone worked; @last: it wrote the last block. With the engine
 * lock.
 */
static void zone_written_to(struct zse_engine *e, u32 zone, bool last)
{
	recover_append_worked(e);
	if (last)
		zone_health_event(e, &e->zones[zone], ZSE_FILLED);
	zone_drop_append(e, zone);
}

/* An append to @zone has ended; @last: it wrote the last block. */
static void zone_append_ended(struct zse_engine *e, u32 zone, bool ok,
			      bool last)
{
	struct zse_zone *z = &e->zones[zone];

	if (ok) {
		zone_written_to(e, zone, last);
		return;
	}
	recover_append_failed(e, z);
	if (zone_is_failed(z))
		zone_leave_stripes(e, zone);
	zone_drop_append(e, zone);
}

/**
 * zone_append_worked() - an append of swap-out worked
 * @e:	  engine
 * @zone: zone
 * @last: it wrote the last block
 *
 * Takes the engine lock only at the end of a zone and after errors. Whoever
 * writes the last block counts among z->appends until it has the lock, so the
 * zone is not closed, reset and written again in between. A zone that closes
 * for another reason is closed by the end of its last append: either
 * zone_close() sees that there is none, or this sees that the zone closes.
 *
 * Return: true if zse_next_op() may have something new.
 */
static bool zone_append_worked(struct zse_engine *e, u32 zone, bool last)
{
	struct zse_zone *z = &e->zones[zone];
	unsigned long flags;

	if (last || recover_after_errors(e)) {
		spin_lock_irqsave(&e->lock, flags);
		zone_written_to(e, zone, last);
		spin_unlock_irqrestore(&e->lock, flags);
		return true;
	}
	if (atomic_dec_return(&z->appends) ||
	    READ_ONCE(z->state) != ZSE_ZONE_CLOSING)
		return false;
	spin_lock_irqsave(&e->lock, flags);
	if (z->state == ZSE_ZONE_CLOSING)
		zone_close(e, zone);
	spin_unlock_irqrestore(&e->lock, flags);
	return true;
}

/*
 * An append of GC has ended, or one that failed. Returns true if @c has ended.
 */
static bool append_settle(struct zse_engine *e, struct zse_chunk *c, bool ok,
			  bool last, u64 now)
{
	unsigned long flags;
	bool finished;

	spin_lock_irqsave(&e->lock, flags);
	zone_append_ended(e, c->zone, ok, last);
	if (ok) {
		c->done += c->nr_inflight;
		gc_moved(e, c);
	}
	finished = c->done == c->nr;
	if (!ok)
		chunk_retry(e, c, now);
	else if (!finished)
		chunk_wait(e, c, &e->pool.gc_ready, true);
	atomic_dec_return(&e->appends);
	spin_unlock_irqrestore(&e->lock, flags);
	return finished;
}

/*
 * An append of swap-out worked. Sets @finished if @c has ended. Returns true if
 * the worker may have something to do.
 */
static bool append_worked(struct zse_engine *e, struct zse_chunk *c, bool last,
			  bool *finished)
{
	bool more = zone_append_worked(e, c->zone, last);
	unsigned long flags;

	count_swapped_out(e, c);
	recover_swapped_out(e);
	c->done += c->nr_inflight;
	*finished = c->done == c->nr;
	if (!*finished) {
		spin_lock_irqsave(&e->lock, flags);
		chunk_wait(e, c, &e->pool.stalled, true);
		spin_unlock_irqrestore(&e->lock, flags);
		more = true;
	}
	/*
	 * Pairs with chunk_wait(). The zone is settled, so is_deadlocked() may
	 * look.
	 */
	atomic_dec_return(&e->appends);
	return more || READ_ONCE(e->pool.waiting) ||
	       READ_ONCE(e->dead) != ZSE_NONE;
}

/**
 * zse_append_done() - an append has ended
 * @e:	      engine
 * @c:	      its chunk
 * @ok:	      the device acknowledged it; set to false if it lies where it
 *	      cannot (lost.c)
 * @offset:   where in the zone its first block is, by what the device says
 * @now:      by the clock of zse_append_start()
 * @finished: set if the chunk has nothing left to append: the caller calls
 *	      zse_chunk_put(). Otherwise the engine owns it again.
 *
 * If @ok on return, the pages of this append (op.first, op.nr) can be read from
 * the device. Otherwise the engine retries them.
 *
 * Return: true if zse_next_op() may have something new.
 */
bool zse_append_done(struct zse_engine *e, struct zse_chunk *c, bool *ok,
		     u32 offset, u64 now, bool *finished)
{
	u32 blocks = c->nr_blocks + c->nr_padding, skip = 0;
	bool last = false;

	*ok = *ok && zone_landed(e, c, offset, blocks, &last);
	if (*ok) {
		if (e->cfg.pack)
			skip = c->entries[c->done].at - packed_from(&e->cfg, c);
		map_publish(e, c, c->done, c->nr_inflight,
			    c->zone * e->cfg.zone_blocks + offset + skip);
		flow_append_ended(e, c, blocks, now);
	}
	if (*ok && !c->gc)
		return append_worked(e, c, last, finished);
	*finished = append_settle(e, c, *ok, last, now);
	return true;
}
