// SPDX-License-Identifier: GPL-2.0
/*
 * Streams and chunks. Pages gather in the chunk of their stream. The host
 * appends the chunk to a zone of the stream. When the append ends, the engine
 * enters its pages in the maps.
 *
 *	pool -> filling in a stream -> [stalled] -> append in flight -> pool
 *
 * A chunk takes no more pages than the zone of its lane has room for, so that
 * it is one append. A chunk that finds no zone waits in a FIFO queue, and may
 * then need two appends. A chunk whose append failed tries another zone. If
 * nothing in flight can give it a zone, it fails (gc.c).
 */
#include "internal.h"

static bool may_have_chunk(const struct zse_engine *e, u32 stream)
{
	return !list_empty(&e->pool.free) && flow_window_open(e) &&
	       share_of_chunks(e, stream);
}

static struct zse_chunk *chunk_take_free(struct zse_engine *e, u32 stream)
{
	struct zse_stripe *stripe = stripe_of(e, stream);
	struct zse_stream *st = &e->streams[stream];
	struct zse_chunk *c = NULL;
	unsigned long flags;
	u32 room;

	zp_lock(&e->lock, flags);
	if (may_have_chunk(e, stream)) {
		c = list_first_entry(&e->pool.free, struct zse_chunk, link);
		list_del_init(&c->link);
		e->pool.used++;
		st->nr_chunks++;
		c->stream = stream;
		c->key = st->key;
		c->mixed = st->mixed;
		c->moves = 0;
		c->lane = stripe_turn(stripe);
		room = zone_room(e, stripe->zone[c->lane]);
		c->max = room && room < e->cfg.chunk_blocks ?
				 room : e->cfg.chunk_blocks;
	}
	zp_unlock(&e->lock, flags);
	return c;
}

/*
 * Give @c back to the pool. If swap-ins copy from it, the last of them does so.
 * With the engine lock.
 */
void chunk_release(struct zse_engine *e, struct zse_chunk *c)
{
	c->loaded = false;
	if (c->readers)
		return;
	c->nr = 0;
	c->done = 0;
	c->sent = 0;
	c->retries = 0;
	c->zone = ZSE_NONE;
	c->nr_inflight = 0;
	c->nr_padding = 0;
	if (c->gc) {
		e->pool.gc_used--;
		share_gc_ended(e, c);
		list_add(&c->link, &e->pool.gc_free);
	} else {
		e->pool.used--;
		e->streams[c->stream].nr_chunks--;
		list_add(&c->link, &e->pool.free);
	}
}

/*
 * A swap-in has copied a page from @c, a GC chunk. Returns true if that gave
 * the chunk back to the pool. With the engine lock.
 */
bool chunk_copied(struct zse_engine *e, struct zse_chunk *c)
{
	if (--c->readers || c->loaded)
		return false;
	chunk_release(e, c);
	return true;
}

/**
 * zse_stream_begin() - lock a stream to add pages
 * @e:	    engine
 * @stream: from zse_place()
 * @flags:  for zse_stream_end(), which the caller must call in any case
 *
 * Return: the chunk, with room for a page; or NULL if there is none. Then the
 * caller tries again after a zse_chunk_put().
 */
struct zse_chunk *zse_stream_begin(struct zse_engine *e, u32 stream,
				   unsigned long *flags)
	zp_acquires(&e->streams[stream].lock)
{
	struct zse_stream *st = &e->streams[stream];

	zp_lock(&st->lock, *flags);
	if (!st->chunk)
		st->chunk = chunk_take_free(e, stream);
	return st->chunk;
}

/**
 * zse_chunk_add() - add a page to the chunk of a stream
 * @e:	  engine
 * @c:	  from zse_stream_begin(), not full
 * @slot: below nr_slots; its old block becomes stale now
 *
 * Context: between zse_stream_begin() and zse_stream_end().
 * Return: index of the entry and of the host's buffer for the page.
 */
u32 zse_chunk_add(struct zse_engine *e, struct zse_chunk *c, u32 slot)
{
	struct zse_entry *entry = &c->entries[c->nr];

	entry->slot = slot;
	entry->page = c->nr;
	entry->expect = map_tag(e, c, c->nr);
	map_begin_write(e, slot, entry->expect);
	return c->nr++;
}

/**
 * zse_stream_end() - unlock a stream
 * @e:	    engine
 * @stream: stream
 * @flags:  from zse_stream_begin()
 *
 * Return: the chunk if it is full; the caller owns and appends it.
 */
struct zse_chunk *zse_stream_end(struct zse_engine *e, u32 stream,
				 unsigned long *flags)
	zp_releases(&e->streams[stream].lock)
{
	struct zse_stream *st = &e->streams[stream];
	struct zse_chunk *c = st->chunk;

	if (c && c->nr < c->max)
		c = NULL;
	else
		st->chunk = NULL;
	zp_unlock(&st->lock, *flags);
	return c;
}

/**
 * zse_stream_take() - take the unfilled chunk of a stream
 * @e:		 engine
 * @stream:	 stream
 * @units:	 take it only if it needs no padding
 * @born_before: take it only if its first page was added before; ~0: any time
 *
 * Return: the chunk, which the caller owns and appends; or NULL.
 */
struct zse_chunk *zse_stream_take(struct zse_engine *e, u32 stream,
				  bool units, u64 born_before)
{
	struct zse_stream *st = &e->streams[stream];
	struct zse_chunk *c;
	unsigned long flags;

	zp_lock(&st->lock, flags);
	c = st->chunk;
	if (!c || !c->nr || c->born >= born_before ||
	    (units && c->nr % e->cfg.write_unit))
		c = NULL;
	else
		st->chunk = NULL;
	zp_unlock(&st->lock, flags);
	return c;
}

/* When the stream's unfilled chunk got its first page; 0 if there is none. */
u64 zse_stream_born(struct zse_engine *e, u32 stream)
{
	struct zse_stream *st = &e->streams[stream];
	unsigned long flags;
	u64 born = 0;

	zp_lock(&st->lock, flags);
	if (st->chunk && st->chunk->nr)
		born = st->chunk->born;
	zp_unlock(&st->lock, flags);
	return born;
}

/* Would zse_stream_begin() find a chunk if @stream has none? A hint. */
bool zse_has_chunk(struct zse_engine *e, u32 stream)
{
	unsigned long flags;
	bool has;

	zp_lock(&e->lock, flags);
	has = may_have_chunk(e, stream);
	zp_unlock(&e->lock, flags);
	return has;
}

/* Give @c a zone and fill in @op, or return false. With the engine lock. */
bool chunk_assign(struct zse_engine *e, struct zse_chunk *c,
		  struct zse_op *op)
{
	const struct zse_stream *st = &e->streams[c->stream];

	if (!c->gc) {
		/* The stream's key may have changed while the chunk filled. */
		c->mixed |= st->mixed || c->key != st->key;
		c->written_at = e->clock;
	}
	if (zone_for_append(e, c) == ZSE_NONE)
		return false;
	if (c->gc) {
		e->gc.unplaced -= c->nr_inflight;
	} else {
		zp_store64(&e->clock, e->clock + c->nr_inflight);
		flow_swapped_out(e, c->nr_inflight);
		keys_count(e, c->stream, c->nr_inflight);
	}
	op->kind = ZSE_OP_APPEND;
	op->chunk = c;
	op->zone = c->zone;
	op->first = c->done;
	op->nr = c->nr_inflight;
	op->padding = c->nr_padding;
	return true;
}

/**
 * zse_append_start() - append a chunk that was taken from its stream
 * @e:	engine
 * @c:	chunk, owned by the caller
 * @op: filled in when true
 *
 * Return: true if the caller is to do @op. False if there is no zone now: the
 * engine then owns the chunk, and zse_next_op(), which the host must call,
 * returns it later.
 */
bool zse_append_start(struct zse_engine *e, struct zse_chunk *c,
		      struct zse_op *op)
{
	unsigned long flags;
	bool ok;

	zp_lock(&e->lock, flags);
	ok = share_may_pass(e, c) && chunk_assign(e, c, op);
	if (!ok) {
		e->counters.stalls++;
		e->streams[c->stream].count.stalls++;
		/* From now on its time says nothing about the device. */
		if (e->streams[c->stream].over_share)
			c->sent = 0;
		list_add_tail(&c->link, &e->pool.stalled);
	}
	zp_unlock(&e->lock, flags);
	return ok;
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
		map_lose(e, c->entries[i].slot, c->entries[i].expect);
}

/* The append of @c failed: try another zone, a few times. */
static void chunk_retry(struct zse_engine *e, struct zse_chunk *c)
{
	c->retries++;
	if (c->gc) {
		e->gc.unplaced += c->nr_inflight;
		list_add(&c->link, &e->pool.gc_ready);
	} else if (c->retries > ZSE_MAX_RETRIES) {
		list_add_tail(&c->link, &e->pool.failed);
	} else {
		list_add(&c->link, &e->pool.stalled);
	}
}

static void count_append(struct zse_engine *e, const struct zse_chunk *c)
{
	struct zse_stream_info *count = &e->streams[c->stream].count;

	e->counters.chunks++;
	e->counters.padding_blocks += c->nr_padding;
	count->padding_blocks += c->nr_padding;
	if (c->gc) {
		e->counters.gc_blocks += c->nr_inflight;
		count->gc_blocks += c->nr_inflight;
	} else {
		zp_store64(&e->recovery.demand,
			   e->recovery.demand + c->nr_inflight);
		e->counters.host_blocks += c->nr_inflight;
		count->host_blocks += c->nr_inflight;
	}
}

/**
 * zse_append_done() - an append has ended
 * @e:	      engine
 * @c:	      its chunk
 * @ok:	      the device acknowledged it
 * @offset:   offset of its first block in the zone
 * @finished: set to true if the chunk has nothing left to append; the caller
 *	      then calls zse_chunk_put(). Otherwise the engine owns it again.
 *
 * If @ok, the pages of this append (op.first, op.nr) can be read from the
 * device on return. Otherwise the engine retries them.
 *
 * Return: true if zse_next_op() may have something new.
 */
bool zse_append_done(struct zse_engine *e, struct zse_chunk *c, bool ok,
		     u32 offset, bool *finished)
{
	u32 zone = c->zone, nr = c->nr_inflight, first = c->done;
	const struct zse_entry *entry = c->entries;
	u32 blocks = nr + c->nr_padding, i;
	unsigned long flags;
	bool more;

	if (zp_warn(ok && offset > e->cfg.zone_blocks - blocks))
		ok = false;
	if (ok)
		map_publish(e, c, first, nr,
			    zone * e->cfg.zone_blocks + offset);

	zp_lock(&e->lock, flags);
	zone_append_ended(e, zone, blocks, ok);
	if (ok) {
		count_append(e, c);
		c->done += nr;
		for (i = first; c->gc && i < c->done; i++)
			zone_moved(e, zse_block_zone(e, entry[i].expect), 1);
	}
	*finished = c->done == c->nr;
	if (!ok)
		chunk_retry(e, c);
	else if (!*finished)
		list_add(&c->link, c->gc ? &e->pool.gc_ready :
					   &e->pool.stalled);
	more = !*finished || c->gc || !list_empty(&e->pool.stalled) ||
	       !list_empty(&e->to_finish) || !list_empty(&e->pool.gc_ready) ||
	       e->recovery.wanted || zp_load(&e->dead) != ZSE_NONE;
	zp_unlock(&e->lock, flags);
	return more;
}

/**
 * zse_chunk_put() - give back a chunk that has ended
 * @e:	 engine
 * @c:	 chunk, after zse_append_done() set finished, after ZSE_OP_FAIL or after
 *	 zse_chunk_lose()
 * @now: by the clock of @c->sent, for the write window; ignored if that is 0
 *
 * Return: true if zse_next_op() may have something new.
 */
bool zse_chunk_put(struct zse_engine *e, struct zse_chunk *c, u64 now)
{
	unsigned long flags;
	bool gc = c->gc, more;

	zp_lock(&e->lock, flags);
	if (!gc)
		flow_chunk_ended(e, c->sent, now);
	chunk_release(e, c);
	more = gc || (e->gc.nr_victims && !flow_gc_waits(e));
	zp_unlock(&e->lock, flags);
	return more;
}
