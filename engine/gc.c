// SPDX-License-Identifier: GPL-2.0
/*
 * Garbage collection, and the order of deferred work.
 *
 * GC picks a full zone (the victim), reads its live blocks into GC chunks
 * (clean.c) and appends these to zones of its own. For each page that is still
 * valid it changes the forward map by compare-and-swap. The victim is drained
 * when the last entry read from it is settled and it has no live block left.
 * The host resets it once no swap-in reads it any longer. Several chunks are in
 * flight, and GC begins the next victim while the last one's copies are still
 * being written.
 *
 * room.c explains why GC always finishes. The streams' shares of GC's chunks
 * and room (share_gc.c) only delay streams that use some of both.
 *
 * Zones lost to errors can break that. When chunks wait and nothing in flight
 * could give them a zone, the engine tries the last_resorts[] in order. If none
 * helps, the waiting chunks fail: the kernel keeps their pages in memory, and
 * all other pages can still be read. Swap-out works again as soon as a zone can
 * be reset, because its last page was freed or because a command that failed
 * before now works.
 */
#include "gc.h"

/* Resets in flight: of zones that have so many pages together. */
#define RESET_PAGES	4096
#define MIN_RESETS	4
#define MAX_RESETS	32

/**
 * zse_gc_due() - should the host call zse_next_op() for GC?
 * @e: engine
 *
 * A hint for the swap-out path; takes no lock.
 */
bool zse_gc_due(struct zse_engine *e)
{
	u32 empty = READ_ONCE(e->nr_state[ZSE_ZONE_EMPTY]);

	return empty < READ_ONCE(e->flow.low) ||
	       READ_ONCE(e->dead) != ZSE_NONE ||
	       (READ_ONCE(e->gc.reads_on) && READ_ONCE(e->gc.nr_victims));
}

/* Drop the entries of @c from @from on; their pages stay in their victims. */
static void drop_entries(struct zse_engine *e, struct zse_chunk *c, u32 from)
{
	u32 i;

	for (i = from; i < c->nr; i++) {
		const struct zse_entry *entry = &c->entries[i];
		u32 zone = zse_block_zone(e, entry->expect);

		if (entry->page == ZSE_NONE &&
		    map_is(e, entry->slot, entry->expect))
			recover_move_failed(e, zone, true);
		else if (c->retries > ZSE_MAX_RETRIES)
			recover_move_failed(e, zone, false);
		if (map_is(e, entry->slot, entry->expect))
			e->zones[zone].kept = true;
		zone_moved(e, zone, entry_len(e, entry));
	}
	e->gc.unplaced -= entries_len(e, c, from, c->nr - from);
	c->nr = from;
}

/*
 * Drop pages that were freed or written again since GC read them, and those
 * that could not be read. The caller appends the rest right after, so GC copies
 * no page that it could know to be stale. But packed pages lie one after the
 * other since zse_gc_scan(): of those, stale ones in front of others go along.
 */
static void drop_dead_entries(struct zse_engine *e, struct zse_chunk *c)
{
	u32 i, kept = c->done;

	if (e->cfg.pack) {
		for (kept = c->nr; kept > c->done; kept--)
			if (map_is(e, c->entries[kept - 1].slot,
				   c->entries[kept - 1].expect))
				break;
		drop_entries(e, c, kept);
		return;
	}
	for (i = c->done; i < c->nr; i++) {
		struct zse_entry entry = c->entries[i];

		if (entry.page == ZSE_NONE ||
		    !map_is(e, entry.slot, entry.expect))
			continue;
		c->entries[i] = c->entries[kept];
		c->entries[kept++] = entry;
	}
	drop_entries(e, c, kept);
}

/*
 * The append of a chunk of GC. If the zone of the first one's lane is busy,
 * since zones take one append at a time, another chunk may have another lane.
 */
static bool next_gc_append(struct zse_engine *e, struct zse_op *op, u64 now)
{
	struct list_head *at = e->pool.gc_ready.next, *next;

	for (; at != &e->pool.gc_ready; at = next) {
		struct zse_chunk *c = list_entry(at, struct zse_chunk, link);

		next = at->next;
		if (c->retries > ZSE_MAX_RETRIES)
			drop_entries(e, c, c->done);
		else
			drop_dead_entries(e, c);
		if (c->nr == c->done) {
			list_del_init(&c->link);
			chunk_release(e, c);
		} else if (chunk_assign(e, c, op, now)) {
			list_del_init(&c->link);
			return true;
		} else if (!e->cfg.serial) {
			return false;
		}
	}
	return false;
}

/*
 * The append of a chunk of swap-out whose stream has an idle lane by now. A
 * chunk whose stream has none left stalls.
 */
static bool next_queued(struct zse_engine *e, struct zse_op *op, u64 now)
{
	struct list_head *at = e->pool.queued.next, *next;
	u64 passed = 0;

	for (; at != &e->pool.queued; at = next) {
		struct zse_chunk *c = list_entry(at, struct zse_chunk, link);
		u64 stream = 1ULL << c->stream;

		next = at->next;
		if (passed & stream)
			continue;
		if (chunk_assign(e, c, op, now)) {
			list_del_init(&c->link);
			return true;
		}
		if (stripe_is_busy(e, stripe_of(e, c->stream))) {
			passed |= stream;
		} else {
			list_del_init(&c->link);
			chunk_stall(e, c);
		}
	}
	return false;
}

static bool next_stalled(struct zse_engine *e, struct zse_op *op, u64 now)
{
	struct zse_chunk *c;
	u64 passed = 0;

	list_for_each_entry(c, &e->pool.stalled, link) {
		u64 stream = 1ULL << c->stream;

		if (passed & stream)
			continue;
		if (chunk_assign(e, c, op, now)) {
			list_del_init(&c->link);
			return true;
		}
		/* Pass over a stream only if it waits for its own zones. */
		if (!e->share.on || !e->streams[c->stream].over_share)
			return false;
		passed |= stream;
	}
	return false;
}

/*
 * Resets in flight, too few to hurt reads: enough to hide one's latency, and so
 * many that small zones are emptied as fast as large ones.
 */
static u32 most_resets(const struct zse_engine *e)
{
	u32 zones = RESET_PAGES * page_blocks(&e->cfg) / e->cfg.zone_blocks;

	if (zones < MIN_RESETS)
		return MIN_RESETS;
	return zones < MAX_RESETS ? zones : MAX_RESETS;
}

static bool next_reset(struct zse_engine *e, struct zse_op *op)
{
	struct zse_zone *z;

	if (e->nr_state[ZSE_ZONE_RESETTING] >= most_resets(e))
		return false;
	list_for_each_entry(z, &e->drained, link) {
		/* Pairs with zse_read_begin(): live was 0 before this. */
		smp_mb();
		if (atomic_read(&z->readers))
			continue;
		op->kind = ZSE_OP_RESET;
		op->zone = z - e->zones;
		zone_set_state(e, op->zone, ZSE_ZONE_RESETTING);
		return true;
	}
	return false;
}

static bool next_finish(struct zse_engine *e, struct zse_op *op)
{
	if (list_empty(&e->to_finish))
		return false;
	op->kind = ZSE_OP_FINISH;
	op->zone = list_first_entry(&e->to_finish, struct zse_zone, link) -
		   e->zones;
	zone_set_state(e, op->zone, ZSE_ZONE_FINISHING);
	return true;
}

/*
 * Find an operation that needs no new GC read. GC's appends come first, since
 * swap-out may wait for the zones that they free.
 */
static bool next_ready(struct zse_engine *e, struct zse_op *op, u64 now)
{
	zones_take_dead(e);
	recover_retry(e);
	if (next_gc_append(e, op, now))
		return true;
	if (next_queued(e, op, now))
		return true;
	if (next_stalled(e, op, now))
		return true;
	if (next_reset(e, op))
		return true;
	return next_finish(e, op);
}

/* Zones that will become empty or give back a place without GC. */
static u32 zones_in_progress(const struct zse_engine *e)
{
	return e->nr_state[ZSE_ZONE_DRAINED] + e->nr_state[ZSE_ZONE_RESETTING] +
	       e->nr_state[ZSE_ZONE_FINISH] + e->nr_state[ZSE_ZONE_FINISHING];
}

/* Do chunks wait while nothing in flight could give them a zone? */
static bool is_deadlocked(const struct zse_engine *e)
{
	return !list_empty(&e->pool.stalled) && !atomic_read(&e->appends) &&
	       !e->pool.gc_used && !e->nr_state[ZSE_ZONE_VICTIM] &&
	       !zones_in_progress(e);
}

/*
 * Give up GC chunks that wait for a zone that nothing can give them, which
 * happens only if the reserve was lost to errors. Their pages stay in their
 * victims. Returns true if there were any.
 */
static bool drop_stranded_chunks(struct zse_engine *e)
{
	struct zse_chunk *c;
	u32 ready = 0;

	if (list_empty(&e->pool.gc_ready) || atomic_read(&e->appends) ||
	    zones_in_progress(e))
		return false;
	list_for_each_entry(c, &e->pool.gc_ready, link)
		ready++;
	/* A chunk being read may have the last pages of a victim. */
	if (ready < e->pool.gc_used)
		return false;
	while (!list_empty(&e->pool.gc_ready)) {
		c = list_first_entry(&e->pool.gc_ready, struct zse_chunk, link);
		drop_entries(e, c, c->done);
		list_del_init(&c->link);
		chunk_release(e, c);
	}
	return true;
}

/* GC gives up a lane: flow_lane_back(). */
static bool drop_lane(struct zse_engine *e)
{
	if (flow_kept_zones(e) == e->cfg.reserve)
		return false;
	e->gc.lanes--;
	return true;
}

/*
 * What the engine tries before swap-out fails, least harmful first. Each
 * function returns true if it changed something, so that everything else is
 * worth another look. Each can do so only a limited number of times before a
 * command works or a chunk fails.
 */
static bool (*const last_resorts[])(struct zse_engine *e) = {
	share_suspend,		/* isolated streams may exceed their share */
	drop_lane,		/* GC leaves a zone to swap-out */
	recover_last_resort,	/* commands that failed may work now */
	recover_release_place,	/* a failed zone may be inactive */
	zone_swap_for_gc,	/* a stream's zone may have more room for GC */
	clean_begin_failed,	/* the reset of a failed zone may work */
};

static bool try_last_resorts(struct zse_engine *e)
{
	u32 i;

	for (i = 0; i < sizeof(last_resorts) / sizeof(last_resorts[0]); i++)
		if (last_resorts[i](e))
			return true;
	return false;
}

/* Fail @c: swap-out has no zone, or its appends failed too often. */
static void fail_chunk(struct zse_engine *e, struct zse_chunk *c,
		       struct zse_op *op)
{
	list_del_init(&c->link);
	recover_refused(e, entries_len(e, c, c->done, c->nr - c->done));
	zse_chunk_lose(e, c);
	op->kind = ZSE_OP_FAIL;
	op->chunk = c;
	op->first = c->done;
	op->nr = c->nr - c->done;
	op->no_room = c->retries <= ZSE_MAX_RETRIES;
}

/* What zse_next_op() does after a look under the lock. */
enum verdict {
	VERDICT_OP,		/* the operation is filled in */
	VERDICT_AGAIN,		/* something changed: start again */
	VERDICT_IDLE,		/* nothing to do until the next event */
};

/*
 * GC found nothing to read. Look at everything once more, under one hold of the
 * lock: since zse_next_op() looked, a reset or a new full zone may have made
 * room for pages that would otherwise fail here.
 */
static enum verdict next_or_fail(struct zse_engine *e, struct zse_op *op,
				 u64 now)
{
	struct list_head *from = &e->pool.failed;

	if (next_ready(e, op, now))
		return VERDICT_OP;
	recover_fail_waiting(e, now);
	if (list_empty(&e->pool.queued) && list_empty(&e->pool.stalled) &&
	    list_empty(&e->pool.gc_ready))
		WRITE_ONCE(e->pool.waiting, false);
	if (e->dying != ZSE_NONE || clean_can_read(e) || census_waits(e) ||
	    lost_is_due(e))
		return VERDICT_AGAIN;
	if (drop_stranded_chunks(e))
		return VERDICT_AGAIN;
	if (list_empty(from)) {
		if (!is_deadlocked(e))
			return VERDICT_IDLE;
		/*
		 * Looks at every zone: only if nothing else brings a next try.
		 */
		if (clean_find_victim(e) || try_last_resorts(e))
			return VERDICT_AGAIN;
		from = &e->pool.stalled;
	}
	fail_chunk(e, list_first_entry(from, struct zse_chunk, link), op);
	return VERDICT_OP;
}

/**
 * zse_next_op() - get the next operation for the host
 * @e:	engine
 * @op: filled in when true
 * @now: by the clock of zse_append_start()
 *
 * The host calls this when another function has said so, by one caller at a
 * time, until it returns false.
 *
 * Return: false if there is nothing to do until the next event.
 */
bool zse_next_op(struct zse_engine *e, struct zse_op *op, u64 now)
{
	enum verdict verdict;
	unsigned long flags;
	bool ready;

	*op = (struct zse_op){ .kind = ZSE_OP_NONE };
	do {
		lost_work(e);
		spin_lock_irqsave(&e->lock, flags);
		ready = next_ready(e, op, now);
		spin_unlock_irqrestore(&e->lock, flags);
		if (ready || clean_fill(e, op))
			return true;

		spin_lock_irqsave(&e->lock, flags);
		verdict = next_or_fail(e, op, now);
		spin_unlock_irqrestore(&e->lock, flags);
	} while (verdict == VERDICT_AGAIN);
	return verdict == VERDICT_OP;
}
