// SPDX-License-Identifier: GPL-2.0
/*
 * What is worth timing or tracing, as it happens. Nothing here waits or
 * allocates. A tracepoint that is off costs a jump that is not taken; what it
 * takes to tell more is done when it is on.
 */
#include <linux/atomic.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/string.h>

#include "trace.h"
#include "znsage.h"

static void timed(struct znsage_device *zd, enum znsage_time what, u64 ns)
{
	znsage_latency_add(&zd->latency, what, ns);
}

static u64 to_us(u64 ns)
{
	return div_u64(ns, NSEC_PER_USEC);
}

/*
 * Pages of @bio go to @stream, from where its iterator is. The key is the last
 * that the stream was given to: this one's, unless keys share it.
 */
void znsage_saw_place(struct znsage_device *zd, const struct bio *bio,
		      u32 stream)
{
	struct zse_stream_info si;

	if (trace_znsage_place_enabled() &&
	    zse_get_stream(zd->engine, stream, &si))
		trace_znsage_place(zd->index, bio->bi_iter.bi_sector /
				   ZNSAGE_PAGE_SECTORS, stream, si.key);
}

/* An append is about to be submitted. */
void znsage_saw_append(struct znsage_chunk *zc, const struct zse_op *op)
{
	struct znsage_device *zd = zc->zd;

	if (zc->core->gc)
		zc->since = ktime_get_ns();
	trace_znsage_chunk_submit(zd->index, zc->core->id, zc->core->gc,
				  zd->zone_nr[op->zone], op->nr, op->padding);
}

/* A chunk may have been filled from several victims, one after the other. */
static void trace_moves(struct znsage_chunk *zc)
{
	struct znsage_device *zd = zc->zd;
	const struct zse_entry *entry = zc->core->entries;
	u32 i = zc->first, end = zc->first + zc->nr;

	while (i < end) {
		u32 zone = zse_block_zone(zd->engine, entry[i].expect);
		u32 nr = 1;

		/* From memory: the zone may have been anything since. */
		if (entry[i].expect >= ZSE_TAG_BASE) {
			i++;
			continue;
		}
		while (i + nr < end &&
		       zse_block_zone(zd->engine, entry[i + nr].expect) == zone)
			nr++;
		trace_znsage_gc_move(zd->index, zd->zone_nr[zone],
				     zd->zone_nr[zc->core->zone], nr);
		i += nr;
	}
}

/*
 * It has ended, and the engine does not know yet. A chunk of swap-out that is
 * still not done waits for a zone from now on. Not every page is timed: a
 * clock read for each would be felt, and those of a chunk end together.
 */
void znsage_saw_append_end(struct znsage_chunk *zc, bool ok, u64 now)
{
	struct znsage_device *zd = zc->zd;
	const struct zse_chunk *c = zc->core;
	u64 ns = now - (c->gc ? zc->since : c->born);

	if (ok)
		timed(zd, c->gc ? ZNSAGE_GC_APPEND : ZNSAGE_SWAP_OUT, ns);
	if (trace_znsage_chunk_complete_enabled())
		trace_znsage_chunk_complete(zd->index, c->id, c->gc,
					    zd->zone_nr[c->zone], zc->nr,
					    c->nr_padding, ok ? 0 : -EIO,
					    to_us(ns));
	if (ok && c->gc && trace_znsage_gc_move_enabled())
		trace_moves(zc);
	zc->since = now;
}

/* A chunk found no zone; it is the engine's already. */
void znsage_saw_stall(struct znsage_chunk *zc)
{
	trace_znsage_stall(zc->zd->index, zc->core->id, true, 0);
}

/* The engine comes back with a chunk: if it is of swap-out, it had no zone. */
void znsage_saw_stall_end(struct znsage_chunk *zc)
{
	u64 ns;

	if (zc->core->gc)
		return;
	ns = ktime_get_ns() - zc->since;
	timed(zc->zd, ZNSAGE_CHUNK_WAIT, ns);
	atomic64_add(ns, &zc->zd->stall_ns[zc->core->stream]);
	trace_znsage_stall(zc->zd->index, zc->core->id, false, ns);
}

/* A task is going to wait for a chunk. Returns when. */
u64 znsage_saw_wait(struct znsage_device *zd)
{
	trace_znsage_wait(zd->index, true, 0);
	return ktime_get_ns();
}

void znsage_saw_wait_end(struct znsage_device *zd, u64 since)
{
	u64 ns = ktime_get_ns() - since;

	timed(zd, ZNSAGE_SUBMIT_WAIT, ns);
	trace_znsage_wait(zd->index, false, ns);
}

/*
 * A read for swap-in is about to be submitted. Returns when, or 0 if nobody
 * wants to know.
 *
 * Two looks at the clock are a small part of what a swap-in costs, and to time
 * one read in many would not do: it is the rare slow ones that people look
 * for. Where the clock is slow (no TSC), time_reads turns this off.
 */
u64 znsage_saw_read(struct znsage_device *zd)
{
	if (READ_ONCE(zd->time_reads) || trace_znsage_swap_in_end_enabled())
		return ktime_get_ns();
	return 0;
}

void znsage_saw_read_end(struct znsage_device *zd, u32 slot, u32 nr,
			 blk_status_t status, u64 since)
{
	u64 ns;

	if (!since)
		return;
	ns = ktime_get_ns() - since;
	if (READ_ONCE(zd->time_reads))
		timed(zd, ZNSAGE_SWAP_IN, ns);
	if (trace_znsage_swap_in_end_enabled())
		trace_znsage_swap_in_end(zd->index, slot, nr,
					 blk_status_to_errno(status),
					 to_us(ns));
}

/* GC reads blocks of @zone, for the first time or again. The worker's. */
void znsage_saw_gc(struct znsage_device *zd, u32 zone)
{
	struct zse_zone_info zi;

	if (zd->gc_since[zone])
		return;
	zd->gc_since[zone] = ktime_get_ns();
	if (trace_znsage_gc_start_enabled() &&
	    zse_get_zone(zd->engine, zone, &zi))
		trace_znsage_gc_start(zd->index, zd->zone_nr[zone], zi.live,
				      zi.capacity);
}

void znsage_saw_gc_read_end(struct znsage_chunk *zc)
{
	timed(zc->zd, ZNSAGE_GC_READ, ktime_get_ns() - zc->since);
}

/* @zone was reset; the engine does not know yet. */
void znsage_saw_gc_end(struct znsage_device *zd, u32 zone)
{
	u64 ns;

	if (!zd->gc_since[zone])
		return;
	ns = ktime_get_ns() - zd->gc_since[zone];
	zd->gc_since[zone] = 0;
	timed(zd, ZNSAGE_GC, ns);
	if (trace_znsage_gc_finish_enabled())
		trace_znsage_gc_finish(zd->index, zd->zone_nr[zone], to_us(ns));
}

/* The engine's zone_event. Context: any, under the engine lock. */
void znsage_saw_zone_state(void *host, u32 zone, const char *from,
			   const char *to)
{
	struct znsage_device *zd = host;

	trace_znsage_zone_state(zd->index, zd->zone_nr[zone], from, to);
	/* A victim in which something had to stay. */
	if (zd->gc_since[zone] && !strcmp(to, "full"))
		zd->gc_since[zone] = 0;
}
