// SPDX-License-Identifier: GPL-2.0
/*
 * Shares: what each stream may use while the policy isolates streams.
 *
 * Zones. A stream may have as many zones as its live blocks fill. Of the zones
 * left over, half are divided equally among the streams that have zones, and
 * half by live blocks: among 64 streams, one with half of the pages needs more
 * room for stale blocks than the others. A stream that has used up its share
 * waits until GC has cleaned some of its zones, which GC does before other work.
 * So a heavy writer pays for its own GC, and its neighbours find empty zones. If
 * GC can clean none of its zones, the stream may exceed its share: shares never
 * make a page fail.
 *
 * Chunks. The write window is divided in the same way, so that other streams
 * find a chunk while one stream waits.
 *
 * share_gc.c shares GC.
 *
 * Everything here runs under the engine lock, unless its comment says
 * otherwise.
 */
#include "alloc.h"

/* A stream may always have this many chunks in use. */
#define MIN_CHUNKS	4

/* Number of streams that share the chunks: those with keys. */
static u32 sharers(const struct zse_engine *e)
{
	u32 nr = 0, i;

	for (i = 0; i < READ_ONCE(e->placement.nr_streams); i++)
		nr += READ_ONCE(e->streams[i].nr_keys) > 0;
	return nr ? nr : 1;
}

/* May @stream have another chunk? Context: any, a hint. */
bool share_of_chunks(const struct zse_engine *e, u32 stream)
{
	u32 most;

	most = READ_ONCE(e->flow.window) / batch_blocks(&e->cfg) / sharers(e);
	if (most < MIN_CHUNKS)
		most = MIN_CHUNKS;
	return stream_sent(&e->streams[stream]) < most;
}

/*
 * Count the live blocks of zones anew: of all zones, or of the next ones in
 * turn if the device has more than can be looked at under the lock. A zone is
 * also counted when its state changes.
 */
static void count_zones(struct zse_engine *e)
{
	u32 nr = e->cfg.nr_zones < ZSE_RECOUNT ? e->cfg.nr_zones : ZSE_RECOUNT;

	while (nr--) {
		share_count_live(e, &e->zones[e->share.next++]);
		if (e->share.next == e->cfg.nr_zones)
			e->share.next = 0;
	}
}

/* Zones that the live blocks of @owner fill. */
static u32 zones_filled(const struct zse_engine *e, u32 owner)
{
	u32 cap = e->cfg.zone_blocks;

	return (u32)div_u64(e->share.of[owner].live + cap - 1, cap);
}

/*
 * Number of zones that the live blocks of @stream fill. Sets @all to that of
 * all streams and of zones without an owner, and @owners to the number of
 * streams that have zones, counting @stream.
 */
static u32 zones_needed(struct zse_engine *e, u32 stream, u32 *all,
			u32 *owners)
{
	u32 i;

	count_zones(e);
	*owners = 0;
	*all = zones_filled(e, ZSE_NOBODY);
	for (i = 0; i < e->max_streams; i++) {
		*all += zones_filled(e, i);
		*owners += e->streams[i].nr_zones || i == stream;
	}
	return zones_filled(e, stream);
}

/**
 * share_of_zones() - may @stream open another zone?
 * @e:	    engine
 * @stream: stream of the chunk
 *
 * Looks at many zones, so it is called only to open one.
 */
bool share_of_zones(struct zse_engine *e, u32 stream)
{
	struct zse_stream *st = &e->streams[stream];
	u32 usable = e->cfg.nr_zones - e->nr_state[ZSE_ZONE_RETIRED];
	u32 kept = e->flow.high + e->gc.stripe.nr, needed, all, owners, left;

	lockdep_assert_held(&e->lock);
	if (!e->share.on || e->share.suspended)
		return true;
	needed = zones_needed(e, stream, &all, &owners);
	left = usable > all + kept ? usable - all - kept : 0;
	WRITE_ONCE(st->over_share, st->nr_zones >= needed + (left / owners +
		   div_u64((u64)left * needed, all ? all : 1)) / 2);
	return !st->over_share;
}

/*
 * May a new chunk @c be sent before those that wait? It may overtake chunks of
 * other streams that wait for their own zones.
 */
bool share_may_pass(const struct zse_engine *e, const struct zse_chunk *c)
{
	const struct zse_chunk *other;

	lockdep_assert_held(&e->lock);
	list_for_each_entry(other, &e->pool.stalled, link)
		if (!e->share.on || other->stream == c->stream ||
		    !e->streams[other->stream].over_share)
			return false;
	return true;
}
