// SPDX-License-Identifier: GPL-2.0
/*
 * How GC reads packed pages. It reads a span of a victim, and finds the live
 * pages in it. packed.c says why it finds them all.
 */
#include "gc.h"

/*
 * Let GC read the next span of @zone, a victim, into @c. Returns false if it
 * has nothing to read: then @c is in the pool again. With the engine lock.
 */
bool packed_span(struct zse_engine *e, u32 zone, struct zse_chunk *c,
		   struct zse_op *op)
{
	struct zse_zone *z = &e->zones[zone];
	u32 written = READ_ONCE(z->end), from = z->cursor, left;

	lockdep_assert_held(&e->lock);
	if (from >= written || !zone_live(z)) {
		clean_read_out(e, zone);
		chunk_release(e, c);
		return false;
	}
	left = written - from;
	c->low = zone * e->cfg.zone_blocks + from;
	c->nr_claimed = packed_span_blocks(&e->cfg);
	op->blocks = c->nr_claimed + 2 * e->cfg.pack;
	if (c->nr_claimed > left)
		c->nr_claimed = left;
	if (op->blocks > left)
		op->blocks = left;
	c->high = op->blocks;
	e->gc.claimed += c->nr_claimed;
	z->spans++;
	z->cursor += c->nr_claimed;
	if (z->cursor == written)
		clean_read_out(e, zone);
	op->kind = ZSE_OP_READ;
	op->chunk = c;
	op->zone = zone;
	op->from = from;
	return true;
}

static bool any_failed(const struct zse_span *w, u32 at, u32 len)
{
	while (len--)
		if (w->failed(w->host, at + len))
			return true;
	return false;
}

/*
 * Take the page at @at of the span into @c if it is live and can be read.
 * Returns the number of blocks to go on by.
 */
static u32 take(struct zse_engine *e, struct zse_chunk *c,
		const struct zse_span *w, u32 at)
{
	struct zse_entry *entry = &c->entries[c->nr];
	u64 ref;

	if (w->failed(w->host, at))
		return 1;
	entry->slot = w->slot(w->host, at);
	if (entry->slot >= e->cfg.nr_slots)
		return 1;
	ref = map_get(e, entry->slot);
	if (ref_block(ref) != c->low + at)
		return 1;
	entry->expect = ref_block(ref);
	entry->page = at;
	entry->at = c->fill;
	entry->len = ref_len(e, ref);
	if (!any_failed(w, at, entry->len)) {
		c->fill += entry->len;
		c->nr++;
	}
	return entry->len;
}

/**
 * zse_gc_scan() - find the live pages of what GC has read
 * @e: engine
 * @c: chunk of ZSE_OP_READ; on return its entries are the pages to copy: each
 *     from block entry->page of the span to block entry->at of what the
 *     chunk appends
 * @w: the span
 *
 * The caller copies them, and calls zse_gc_read_done().
 *
 * Context: may sleep; looks at each block of the span.
 */
void zse_gc_scan(struct zse_engine *e, struct zse_chunk *c,
		 const struct zse_span *w)
{
	u32 zone = zse_block_zone(e, c->low), at;
	struct zse_zone *z = &e->zones[zone];
	bool failed = any_failed(w, 0, c->high);
	unsigned long flags;

	for (at = 0; at < c->nr_claimed;)
		at += take(e, c, w, at);

	spin_lock_irqsave(&e->lock, flags);
	if (failed) {
		WRITE_ONCE(e->recovery.failing, true);
		e->counters.read_errors++;
	}
	e->gc.claimed -= c->nr_claimed;
	e->gc.unplaced += c->fill;
	z->moving += c->fill;
	z->spans--;
	e->counters.gc_read_blocks += c->nr;
	flow_gc_read(e, c->fill);
	zone_check_drained(e, zone);
	spin_unlock_irqrestore(&e->lock, flags);
}
