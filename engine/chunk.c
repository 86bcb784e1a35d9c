// SPDX-License-Identifier: GPL-2.0
/*
 * Chunks that left their stream: a chunk gets a zone, or waits for one, or is
 * lost. stream.c says how chunks come about.
 */
#include "chunk.h"

/* Count @nr pages of @stream that an append takes: keys.c. */
static void count_recent(struct zse_engine *e, u32 stream, u32 nr)
{
	struct zse_stream *st = &e->streams[stream];
	u32 i;

	st->recent += nr;
	if (st->recent < e->cfg.zone_blocks / page_blocks(&e->cfg))
		return;
	for (i = 0; i < e->max_streams; i++)
		e->streams[i].recent /= 2;
}

/* Give @c a zone and fill in @op, or return false. With the engine lock. */
bool chunk_assign(struct zse_engine *e, struct zse_chunk *c,
		  struct zse_op *op, u64 now)
{
	const struct zse_stream *st = &e->streams[c->stream];

	lockdep_assert_held(&e->lock);
	if (!c->gc) {
		/* The stream's key may have changed while the chunk filled. */
		c->mixed |= st->mixed || c->key != st->key;
		c->written_at = e->clock;
		if (c->lane == ZSE_NONE)
			c->lane = stripe_turn(stripe_of(e, c->stream));
	}
	if (!c->gc && flow_swap_out_waits(e))
		return false;
	if (zone_for_append(e, c) == ZSE_NONE)
		return false;
	flow_append_sent(e, c, now);
	if (c->gc) {
		e->gc.unplaced -= entries_len(e, c, c->done, c->nr_inflight);
	} else {
		WRITE_ONCE(e->clock, e->clock + c->nr_inflight);
		flow_swapped_out(e, c->nr_blocks);
		count_recent(e, c->stream, c->nr_inflight);
	}
	op->kind = ZSE_OP_APPEND;
	op->chunk = c;
	op->zone = c->zone;
	op->first = c->done;
	op->nr = c->nr_inflight;
	op->from = e->cfg.pack ? packed_from(&e->cfg, c) : c->done;
	op->blocks = c->nr_blocks;
	op->padding = c->nr_padding;
	return true;
}

/*
 * @c waits for a zone or a lane, at the head or the tail of @list. Pairs with
 * append_worked(): an append that ends tells the worker, or the worker, which
 * looks next, sees that it has ended. With the engine lock.
 */
void chunk_wait(struct zse_engine *e, struct zse_chunk *c,
		struct list_head *list, bool head)
{
	lockdep_assert_held(&e->lock);
	if (head)
		list_add(&c->link, list);
	else
		list_add_tail(&c->link, list);
	WRITE_ONCE(e->pool.waiting, true);
	smp_mb();
}

/*
 * @c, of swap-out, waits for a zone. That counts if GC has to empty one, or is
 * behind: not if the device has all open zones that it allows, or if chunks
 * before @c wait only for the worker. With the engine lock.
 */
void chunk_stall(struct zse_engine *e, struct zse_chunk *c)
{
	lockdep_assert_held(&e->lock);
	if (zone_has_no_room(e, c) || flow_swap_out_waits(e)) {
		e->counters.stalls++;
		e->streams[c->stream].stalls++;
	}
	chunk_wait(e, c, &e->pool.stalled, false);
}

/**
 * zse_chunk_lose() - the rest of a chunk will not be appended
 * @e: engine
 * @c: chunk, taken from its stream and owned by the caller, which ends its
 *     pages with an error and calls zse_chunk_put()
 *
 * Reads of the slots fail from now on.
 */
void zse_chunk_lose(struct zse_engine *e, struct zse_chunk *c)
{
	u32 i;

	for (i = c->done; i < c->nr; i++)
		map_lose(e, &c->entries[i]);
}
