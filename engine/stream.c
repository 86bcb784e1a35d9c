// SPDX-License-Identifier: GPL-2.0
/*
 * Streams and chunks. Pages gather in the chunk of their stream. The host
 * appends the chunk to a zone of the stream. When the append ends, the engine
 * enters its pages in the maps.
 *
 *	pool -> filling in a stream -> [queued, stalled] -> in flight -> pool
 *
 * Group commit. A chunk goes out when it is full, or at the end of a batch, if
 * fewer than depth() of its stream are in flight; otherwise it goes on
 * filling until one of them ends, up to the longest append. So the size of
 * appends follows from the device's latency, and a slow device gets few and
 * large ones. The host's deadline sends what waits for longer, also with
 * padding.
 *
 * A chunk ends where the zone of its lane does, so that it is one append. A
 * chunk that finds no zone waits in a queue, first come first served, and may
 * then need two appends; a chunk whose lanes are all busy, where a zone takes
 * one append at a time, waits in another. A chunk whose append failed tries
 * another zone. If nothing in flight can give it a zone, it fails (gc.c).
 *
 * An append takes the engine lock once, when it begins. Its end takes it only
 * if the zone is full, or after errors: free chunks are bits of an atomic word,
 * and the counts that an end lowers are atomic. Two rules keep a sleeping
 * worker from missing it, with a full barrier between the steps of both sides:
 *
 *	the end					the other side
 *	lowers stream.sent, looks at due	sets due, looks at sent
 *	lowers appends, looks at waiting	sets waiting, looks at appends
 */
#include "chunk.h"

/* ---- the pool ---- */

/* Words of the pool's bits. */
u32 pool_words(const struct zse_config *cfg)
{
	return (cfg->nr_chunks + 31) / 32;
}

/* Chunks of swap-out in use. */
u32 pool_used(const struct zse_engine *e)
{
	u32 used = e->cfg.nr_chunks, i;

	for (i = 0; i < pool_words(&e->cfg); i++) {
		u32 bits = READ_ONCE(e->pool.free[i]);

		for (; bits; bits &= bits - 1)
			used--;
	}
	return used;
}

static struct zse_chunk *pool_take(struct zse_engine *e)
{
	u32 i, bits;

	for (i = 0; i < pool_words(&e->cfg); i++) {
		u32 *word = &e->pool.free[i];

		while ((bits = READ_ONCE(*word)))
			if (cmpxchg(word, bits, bits & (bits - 1)) == bits)
				return &e->chunks[32 * i + __ffs(bits)];
	}
	return NULL;
}

static void pool_put(struct zse_engine *e, const struct zse_chunk *c)
{
	u32 *word = &e->pool.free[c->id / 32], bits;

	do {
		bits = READ_ONCE(*word);
	} while (cmpxchg(word, bits, bits | 1u << c->id % 32) != bits);
}

static bool pool_is_empty(const struct zse_engine *e)
{
	u32 i;

	for (i = 0; i < pool_words(&e->cfg); i++)
		if (READ_ONCE(e->pool.free[i]))
			return false;
	return true;
}

static void chunk_reset(struct zse_chunk *c)
{
	c->nr = 0;
	c->done = 0;
	c->fill = 0;
	c->retries = 0;
	c->zone = ZSE_NONE;
	c->nr_inflight = 0;
	c->nr_blocks = 0;
	c->nr_padding = 0;
}

/* Give @c, a chunk of GC, back to the pool. With the engine lock. */
void chunk_release(struct zse_engine *e, struct zse_chunk *c)
{
	lockdep_assert_held(&e->lock);
	chunk_reset(c);
	e->pool.gc_used--;
	share_gc_ended(e, c);
	list_add(&c->link, &e->pool.gc_free);
}

/* ---- filling ---- */

/*
 * Isolated streams have parts of the window: what others have in flight does
 * not count.
 */
static bool may_have_chunk(const struct zse_engine *e, u32 stream)
{
	if (READ_ONCE(e->share.on))
		return share_of_chunks(e, stream);
	return flow_window_open(e);
}

/*
 * At most @most entries for a chunk of @stream: what its next lane has room
 * for. A hint, since the chunk gets its lane later. How long packed pages are
 * is not known before they have left their stream.
 */
static u32 entries_for(struct zse_engine *e, u32 stream, u32 most)
{
	const struct zse_stripe *s = stripe_of(e, stream);
	u32 zone = READ_ONCE(s->zone[READ_ONCE(s->next)]), room = 0;

	if (zone != ZSE_NONE && !e->cfg.pack)
		room = e->cfg.zone_blocks - READ_ONCE(e->zones[zone].alloc);
	return room && room < most ? room : most;
}

static struct zse_chunk *chunk_begin(struct zse_engine *e, u32 stream)
{
	const struct zse_stream *st = &e->streams[stream];
	struct zse_chunk *c = NULL;

	if (may_have_chunk(e, stream))
		c = pool_take(e);
	if (!c)
		return NULL;
	c->stream = stream;
	c->key = READ_ONCE(st->key);
	c->mixed = READ_ONCE(st->mixed);
	c->moves = 0;
	c->lane = ZSE_NONE;
	c->max = entries_for(e, stream, batch_pages(&e->cfg));
	return c;
}

/**
 * zse_stream_begin() - lock a stream to add pages
 * @e:	    engine
 * @stream: from zse_place()
 *
 * The caller must call zse_stream_end() in any case.
 *
 * Return: the chunk, with room for a page; or NULL if there is none. Then the
 * caller tries again after a zse_chunk_put().
 */
struct zse_chunk *zse_stream_begin(struct zse_engine *e, u32 stream)
	__acquires(&e->streams[stream].lock)
{
	struct zse_stream *st = &e->streams[stream];
	unsigned long flags;

	spin_lock_irqsave(&st->lock, flags);
	st->flags = flags;
	if (!st->chunk)
		st->chunk = chunk_begin(e, stream);
	return st->chunk;
}

/**
 * zse_chunk_add() - add a page to the chunk of a stream
 * @e:	  engine
 * @c:	  from zse_stream_begin(), not full; entry c->nr gets the page, so the
 *	  host has its buffer ready
 * @slot: below nr_slots; its old block becomes stale now
 * @past: of the page, as zse_past() said when it was read; 0: unknown
 *
 * Context: between zse_stream_begin() and zse_stream_end().
 * Return: index of the entry and of the host's buffer for the page.
 */
u32 zse_chunk_add(struct zse_engine *e, struct zse_chunk *c, u32 slot, u8 past)
{
	struct zse_entry *entry = &c->entries[c->nr];

	entry->slot = slot;
	entry->page = c->nr;
	entry->expect = map_tag(e, c, c->nr);
	past_keep(e, slot, past);
	map_write(e, slot, entry->expect);
	return c->nr++;
}

/* Take the chunk out of @st, whose lock the caller holds. */
static struct zse_chunk *chunk_leave(struct zse_engine *e,
				     struct zse_stream *st)
{
	struct zse_chunk *c = st->chunk;

	st->chunk = NULL;
	WRITE_ONCE(st->born, 0);
	WRITE_ONCE(st->due, false);
	atomic_inc_return(&st->sent);
	flow_chunk_left(e, c);
	return c;
}

/*
 * Appends of @st in flight that hold its chunk back. Where a zone takes one at
 * a time, one more than it has lanes: the next begins as soon as one ends, and
 * further ones would only wait, where they cannot grow.
 */
static u32 depth(const struct zse_engine *e, const struct zse_stream *st)
{
	const struct zse_stripe *s = e->shared ? &e->gc.stripe : &st->stripe;

	return e->cfg.serial ? READ_ONCE(s->nr) + 1 : ZSE_DEPTH;
}

/*
 * The chunk of @st is full. May it take more, as many appends of the stream are
 * in flight? Not if it ends where a zone does, nor beyond the window, which
 * would not open for another chunk, nor if isolated streams share the chunks.
 * With the stream's lock.
 */
static bool chunk_grow(struct zse_engine *e, struct zse_stream *st)
{
	struct zse_chunk *c = st->chunk;
	u32 batch = batch_pages(&e->cfg), most = c->max + batch;

	if (most > e->cfg.chunk_pages)
		most = e->cfg.chunk_pages;
	if (most == c->max || c->max % batch || READ_ONCE(e->share.on) ||
	    flow_in_flight(e) + c->nr * page_blocks(&e->cfg) >=
	    READ_ONCE(e->flow.window))
		return false;
	most = entries_for(e, st - e->streams, most);
	if (most <= c->max)
		return false;
	WRITE_ONCE(st->due, true);
	/* Pairs with zse_chunk_put(). */
	smp_mb();
	if (stream_sent(st) < depth(e, st))
		return false;
	c->max = most;
	return true;
}

/**
 * zse_stream_end() - unlock a stream
 * @e:	    engine
 * @stream: stream
 *
 * If depth() appends of the stream are in flight, a full chunk goes on
 * filling until one ends, within what one append takes: zse_stream_due().
 *
 * Return: the chunk if it is full; the caller owns and appends it.
 */
struct zse_chunk *zse_stream_end(struct zse_engine *e, u32 stream)
	__releases(&e->streams[stream].lock)
{
	struct zse_stream *st = &e->streams[stream];
	struct zse_chunk *c = st->chunk, *full = NULL;
	unsigned long flags = st->flags;

	if (c && c->nr == c->max && !chunk_grow(e, st))
		full = chunk_leave(e, st);
	else if (c && c->nr)
		WRITE_ONCE(st->born, c->born);
	spin_unlock_irqrestore(&st->lock, flags);
	return full;
}

/* Packed appends of so many write units lose little to padding, a 16th. */
#define PACKED_UNITS	8

/*
 * Would the append of @c, the chunk of @st, lose much to the end of its write
 * unit? Packed pages end anywhere, on average in the middle; they are expected
 * to be as long as the last ones of the stream.
 */
static bool needs_padding(const struct zse_engine *e,
			  const struct zse_stream *st,
			  const struct zse_chunk *c)
{
	if (!e->cfg.pack)
		return c->nr % e->cfg.write_unit;
	return c->nr * READ_ONCE(st->packed_len) <
	       PACKED_UNITS * e->cfg.write_unit;
}

/**
 * zse_stream_flush() - a batch of pages ends, no more follow for now
 * @e:	    engine
 * @stream: stream that some of them went to
 *
 * If the partial chunk needs padding, it waits for more pages or the deadline.
 * If depth() appends of the stream are in flight, it waits for one to end:
 * zse_stream_due().
 *
 * Return: the chunk if it is to go now; the caller owns and appends it; or
 * NULL.
 */
struct zse_chunk *zse_stream_flush(struct zse_engine *e, u32 stream)
{
	struct zse_stream *st = &e->streams[stream];
	struct zse_chunk *c = NULL;
	unsigned long flags;

	if (!READ_ONCE(st->born))
		return NULL;
	spin_lock_irqsave(&st->lock, flags);
	if (st->chunk && st->chunk->nr) {
		/* If it was due, what came since may need padding. */
		bool due = !needs_padding(e, st, st->chunk);

		WRITE_ONCE(st->due, due);
		/* Pairs with zse_chunk_put(). */
		smp_mb();
		if (due && stream_sent(st) < depth(e, st))
			c = chunk_leave(e, st);
	}
	spin_unlock_irqrestore(&st->lock, flags);
	return c;
}

/**
 * zse_stream_due() - did a partial chunk wait for an append that has ended?
 * @e:	    engine
 * @stream: stream
 *
 * Return: true: zse_stream_flush() has a chunk. A hint, without a lock.
 */
bool zse_stream_due(const struct zse_engine *e, u32 stream)
{
	const struct zse_stream *st = &e->streams[stream];

	return READ_ONCE(st->due) && stream_sent(st) < depth(e, st);
}

/**
 * zse_stream_take() - take the partial chunk of a stream, whatever is in flight
 * @e:		 engine
 * @stream:	 stream
 * @born_before: only if its first page came before; ~0: any
 *
 * Return: the chunk, which the caller owns and appends, with padding; or NULL.
 */
struct zse_chunk *zse_stream_take(struct zse_engine *e, u32 stream,
				  u64 born_before)
{
	struct zse_stream *st = &e->streams[stream];
	struct zse_chunk *c = NULL;
	unsigned long flags;

	if (!READ_ONCE(st->born))
		return NULL;
	spin_lock_irqsave(&st->lock, flags);
	if (st->chunk && st->chunk->nr && st->chunk->born < born_before)
		c = chunk_leave(e, st);
	spin_unlock_irqrestore(&st->lock, flags);
	return c;
}

/*
 * When the first page of the stream's partial chunk came; 0 if there is none.
 */
u64 zse_stream_born(const struct zse_engine *e, u32 stream)
{
	return READ_ONCE(e->streams[stream].born);
}

/* Would zse_stream_begin() find a chunk if @stream has none? A hint. */
bool zse_has_chunk(struct zse_engine *e, u32 stream)
{
	return may_have_chunk(e, stream) && !pool_is_empty(e);
}

/**
 * zse_chunk_put() - the host is done with a chunk that has ended
 * @e: engine
 * @c: chunk, after zse_append_done() set finished, after ZSE_OP_FAIL or after
 *     zse_chunk_lose()
 *
 * Return: true if zse_next_op() may have something new, or zse_stream_due()
 * answers true for the chunk's stream.
 */
bool zse_chunk_put(struct zse_engine *e, struct zse_chunk *c)
{
	struct zse_stream *st = &e->streams[c->stream];
	u32 blocks = c->nr_charged, left, sent;
	unsigned long flags;
	bool due;

	if (c->gc) {
		spin_lock_irqsave(&e->lock, flags);
		chunk_release(e, c);
		spin_unlock_irqrestore(&e->lock, flags);
		return true;
	}
	chunk_reset(c);
	pool_put(e, c);
	left = atomic_sub_return(blocks, &e->flow.in_flight);
	sent = atomic_dec_return(&st->sent);
	due = sent < depth(e, st) && READ_ONCE(st->due);
	/* Without swap-out, nothing holds GC back: flow_gc_waits(). */
	return due || (!left && READ_ONCE(e->gc.nr_victims));
}
