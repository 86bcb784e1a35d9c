// SPDX-License-Identifier: GPL-2.0
/*
 * Garbage collection, and the order in which deferred work is done.
 *
 * GC takes a full zone (the victim), reads its live blocks into GC chunks,
 * appends these to its own open zone, and moves the forward map of each page
 * that is still wanted by compare-and-swap. When the last entry read from the
 * victim is settled and nothing in it is live, the zone waits for swap-in
 * reads under way and is reset. Several chunks are in flight, and the next
 * victim is begun while the last one's copies are still being written.
 *
 * Why it always finishes. GC needs no memory but its chunks. It needs zones:
 * its open one and the reserve, which swap-out may not open. A victim is only
 * begun when all its live blocks fit the room in these two, less what is
 * promised to entries that have no zone yet, or are still to be read from other
 * victims. A victim gains at least one
 * write unit, so after its reset the room is larger than before, and with
 * each round closer to a zone for swap-out. zse_max_slots() is such that
 * some full zone has a dead unit whenever swap-out has to wait.
 *
 * If zones were lost to errors, that may no longer hold. Then, and only when
 * nothing is under way that could help, GC makes do with fewer lanes and takes
 * what it can get: the place of a zone that failed, the zone of a stream
 * (gc_improvise()). If that is no use
 * either, waiting chunks fail (next_failed()).
 *
 * What a bad zone holds is copied out like any victim's, whatever it gains; at
 * once if the zone still holds its place among the active ones.
 *
 * Reading out a victim looks at many entries of the maps. That is done
 * without the engine lock; a zone cannot leave the state VICTIM while it is one
 * of e->victims. Of these there are as many as GC has lanes, and chunks are
 * filled from one after the other: what is read in parallel is not all on the
 * same dies.
 */
#include "internal.h"

/* Is GC to read on? Between the watermarks it goes on if it has begun. */
static void gc_update_running(struct zse_engine *e)
{
	u32 soon = zones_soon_empty(e);

	if (soon < e->gc_low)
		e->gc_running = true;
	else if (soon >= e->gc_high)
		e->gc_running = false;
}

/**
 * zse_gc_due() - is there cause to call zse_next_op() for GC's sake?
 * @e: engine
 *
 * A hint without the lock, for the swap-out path.
 */
bool zse_gc_due(struct zse_engine *e)
{
	return zp_load(&e->nr_state[ZSE_ZONE_EMPTY]) < zp_load(&e->gc_low);
}

/*
 * Blocks that GC can surely write: the rest of its zone and the reserve,
 * without what its unplaced entries will take. Each chunk is padded for
 * itself, and may lose entries before that.
 */
static u32 gc_room(const struct zse_engine *e)
{
	u32 zones = e->nr_state[ZSE_ZONE_EMPTY];
	u32 room = stripe_room(e, &e->gc_stripe), taken, i;
	u32 padding = e->nr_used_gc_chunks * (e->cfg.write_unit - 1);

	if (!stripe_is_open(&e->gc_stripe) && !zone_may_open(e, true))
		return 0;
	if (zones > e->cfg.reserve)
		zones = e->cfg.reserve;
	room += zones * e->min_cap;
	taken = round_up_unit(e, e->gc_unplaced + padding);
	for (i = 0; i < e->nr_victims; i++)
		taken += round_up_unit(e, zp_load(&e->zones[e->victims[i].zone].live));
	return room > taken ? room - taken : 0;
}

/*
 * May GC begin a victim? Switched off it rests, unless chunks wait for a zone:
 * who waits until the engine is idle waits for them as well.
 */
static bool gc_allowed(const struct zse_engine *e)
{
	return e->gc_on || !list_empty(&e->stalled);
}

/* Is there more to read from @zone, a victim? */
bool gc_is_reading(const struct zse_engine *e, u32 zone)
{
	u32 i;

	for (i = 0; i < e->nr_victims; i++)
		if (e->victims[i].zone == zone)
			return true;
	return false;
}

/*
 * Is there a victim to read? Another one is begun if GC is to go on, and the
 * survivors have room. Wants the engine lock.
 */
static bool gc_has_victim(struct zse_engine *e)
{
	u32 zone;

	gc_update_running(e);
	if (e->nr_victims >= e->gc_stripe.nr || !gc_allowed(e) ||
	    (!e->gc_running && !e->nr_held))
		return e->nr_victims;
	zone = policy_victim(e, gc_room(e), e->gc_running);
	if (zone == ZSE_NONE)
		return e->nr_victims;
	zone_set_state(e, zone, ZSE_ZONE_VICTIM);
	e->victims[e->nr_victims++] = (struct zse_victim){ .zone = zone };
	return true;
}

/* Is there a victim to read and a chunk to read it into? Likewise. */
static bool gc_prepare(struct zse_engine *e, struct zse_chunk **c)
{
	if (!*c && list_empty(&e->free_gc_chunks))
		return false;
	if (!gc_has_victim(e))
		return false;
	if (!*c) {
		*c = list_first_entry(&e->free_gc_chunks, struct zse_chunk,
				      link);
		list_del_init(&(*c)->link);
		e->nr_used_gc_chunks++;
		(*c)->lane = stripe_turn(&e->gc_stripe);
	}
	return true;
}

/*
 * Add live blocks of the victim to the chunk, from the cursor on. Blocks that
 * were never written (a zone that failed early) are not in the forward map.
 * Without the lock. Returns how many were added.
 */
static u32 gc_read_out(struct zse_engine *e, struct zse_victim *v,
		       struct zse_chunk *c)
{
	const struct zse_zone *z = &e->zones[v->zone];
	u32 base = v->zone * e->cfg.zone_blocks, nr = c->nr;

	while (c->nr < e->cfg.chunk_blocks && v->cursor < z->cap &&
	       zp_load(&z->live)) {
		u32 block = base + v->cursor++;
		u32 slot = zp_load(&e->rev[block]);
		struct zse_entry *entry = &c->entries[c->nr];

		if (slot == ZSE_NONE || !map_is(e, slot, block))
			continue;
		entry->slot = slot;
		entry->expect = block;
		entry->page = c->nr++;
	}
	return c->nr - nr;
}

/*
 * Account for @nr entries just read out. Returns true if that was the last of
 * this victim. Wants the engine lock.
 */
static bool gc_read_settle(struct zse_engine *e, struct zse_victim *v, u32 nr)
{
	u32 zone = v->zone;
	struct zse_zone *z = &e->zones[zone];

	z->moving += nr;
	e->gc_unplaced += nr;
	e->counters.gc_read_blocks += nr;
	if (v->cursor != z->cap && zp_load(&z->live))
		return false;
	*v = e->victims[--e->nr_victims];
	zone_check_drained(e, zone);
	return true;
}

/*
 * Fill a GC chunk. On a device with a write unit, survivors of the next
 * victim are added where padding would be; otherwise the chunk ends with its
 * victim.
 */
static bool gc_fill(struct zse_engine *e, struct zse_op *op)
{
	struct zse_chunk *c = NULL;
	unsigned long flags;

	for (;;) {
		struct zse_victim *v;
		bool last;
		u32 nr;

		zp_lock(&e->lock, flags);
		if (!gc_prepare(e, &c))
			break;
		v = &e->victims[e->turn % e->nr_victims];
		zp_unlock(&e->lock, flags);

		nr = gc_read_out(e, v, c);

		zp_lock(&e->lock, flags);
		last = gc_read_settle(e, v, nr);
		if (c->nr == e->cfg.chunk_blocks ||
		    (last && c->nr && c->nr % e->cfg.write_unit == 0))
			break;
		zp_unlock(&e->lock, flags);
	}
	e->turn++;
	if (c && !c->nr) {
		chunk_release(e, c);
		c = NULL;
	}
	zp_unlock(&e->lock, flags);
	if (!c)
		return false;

	op->kind = ZSE_OP_READ;
	op->chunk = c;
	op->first = 0;
	op->nr = c->nr;
	return true;
}

/* Forget entries @from and up: they stay where they are. */
static void gc_drop_entries(struct zse_engine *e, struct zse_chunk *c, u32 from)
{
	u32 i;

	for (i = from; i < c->nr; i++)
		zone_moved(e, zse_block_zone(e, c->entries[i].expect), 1);
	e->gc_unplaced -= c->nr - from;
	c->nr = from;
}

/**
 * zse_gc_entry_lost() - a block could not be read
 * @e:	   engine
 * @c:	   chunk of ZSE_OP_READ, not yet reported as read
 * @index: entry
 *
 * Return: true if the page was still wanted; its slot reads as an error now.
 */
bool zse_gc_entry_lost(struct zse_engine *e, struct zse_chunk *c, u32 index)
{
	zse_read_failed(e);
	return map_lose(e, c->entries[index].slot, c->entries[index].expect);
}

/**
 * zse_gc_read_done() - the blocks of a GC chunk are in memory
 * @e: engine
 * @c: chunk of ZSE_OP_READ
 *
 * Return: true, zse_next_op() has its append.
 */
bool zse_gc_read_done(struct zse_engine *e, struct zse_chunk *c)
{
	unsigned long flags;

	zp_lock(&e->lock, flags);
	list_add_tail(&c->link, &e->gc_ready);
	zp_unlock(&e->lock, flags);
	return true;
}

/*
 * Drop pages that were freed or written again since GC chose them. Done right
 * before the append, so that none is copied that GC could know to be dead.
 */
static void gc_drop_dead(struct zse_engine *e, struct zse_chunk *c)
{
	u32 i, kept = c->done;

	for (i = c->done; i < c->nr; i++) {
		struct zse_entry entry = c->entries[i];

		if (!map_is(e, entry.slot, entry.expect))
			continue;
		c->entries[i] = c->entries[kept];
		c->entries[kept++] = entry;
	}
	gc_drop_entries(e, c, kept);
}

static bool next_gc_append(struct zse_engine *e, struct zse_op *op)
{
	struct zse_chunk *c;

	while (!list_empty(&e->gc_ready)) {
		c = list_first_entry(&e->gc_ready, struct zse_chunk, link);
		if (c->retries > ZSE_MAX_RETRIES)
			gc_drop_entries(e, c, c->done);
		else
			gc_drop_dead(e, c);
		if (c->nr > c->done && !chunk_assign(e, c, op))
			return false;
		list_del_init(&c->link);
		if (op->kind == ZSE_OP_APPEND)
			return true;
		chunk_release(e, c);
	}
	return false;
}

static bool next_stalled(struct zse_engine *e, struct zse_op *op)
{
	struct zse_chunk *c;

	if (list_empty(&e->stalled))
		return false;
	c = list_first_entry(&e->stalled, struct zse_chunk, link);
	if (!chunk_assign(e, c, op))
		return false;
	list_del_init(&c->link);
	return true;
}

static bool next_reset(struct zse_engine *e, struct zse_op *op)
{
	struct zse_zone *z;

	if (e->nr_state[ZSE_ZONE_RESETTING] >= ZSE_MAX_RESETTING)
		return false;
	list_for_each_entry(z, &e->drained, link) {
		/* Pairs with zse_read_begin(): live was seen 0 before. */
		zp_mb();
		if (zp_load(&z->readers))
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

/* Is anything under way whose end could give a waiting chunk its zone? */
static bool hope_left(struct zse_engine *e)
{
	return e->appends || e->nr_victims ||
	       e->nr_used_gc_chunks ||
	       e->nr_state[ZSE_ZONE_VICTIM] ||
	       e->nr_state[ZSE_ZONE_DRAINED] ||
	       e->nr_state[ZSE_ZONE_RESETTING] ||
	       e->nr_state[ZSE_ZONE_FINISH] ||
	       e->nr_state[ZSE_ZONE_FINISHING];
}

static void lose_entries(struct zse_engine *e, struct zse_chunk *c)
{
	u32 i;

	for (i = c->done; i < c->nr; i++)
		map_lose(e, c->entries[i].slot, c->entries[i].expect);
}

static bool next_failed(struct zse_engine *e, struct zse_op *op)
{
	struct list_head *from = &e->failed;
	struct zse_chunk *c;

	if (list_empty(from)) {
		if (list_empty(&e->stalled) || hope_left(e))
			return false;
		from = &e->stalled;
	}
	c = list_first_entry(from, struct zse_chunk, link);
	list_del_init(&c->link);
	lose_entries(e, c);
	op->kind = ZSE_OP_FAIL;
	op->chunk = c;
	op->first = c->done;
	op->nr = c->nr - c->done;
	return true;
}

/*
 * GC chunks that wait for a zone though nothing can give them one: only after
 * the reserve was lost to errors. Their pages stay in their victims. Returns
 * true if there were any: what that set free may be of use.
 */
static bool gc_give_up(struct zse_engine *e)
{
	struct zse_chunk *c;

	if (list_empty(&e->gc_ready) || e->appends ||
	    e->nr_state[ZSE_ZONE_DRAINED] || e->nr_state[ZSE_ZONE_RESETTING] ||
	    e->nr_state[ZSE_ZONE_FINISH] || e->nr_state[ZSE_ZONE_FINISHING])
		return false;
	while (!list_empty(&e->gc_ready)) {
		c = list_first_entry(&e->gc_ready, struct zse_chunk, link);
		list_del_init(&c->link);
		gc_drop_entries(e, c, c->done);
		chunk_release(e, c);
	}
	return true;
}

/*
 * Chunks wait, and nothing is under way that could help. Returns true if
 * something was found that may.
 */
static bool gc_improvise(struct zse_engine *e)
{
	if (list_empty(&e->stalled) || hope_left(e))
		return false;
	return stripe_narrow(&e->gc_stripe) || zone_let_go(e) ||
	       zone_swap_for_gc(e);
}

/* What needs no reading by GC. */
static bool next_ready(struct zse_engine *e, struct zse_op *op)
{
	return next_gc_append(e, op) || next_stalled(e, op) ||
	       next_reset(e, op) || next_finish(e, op);
}

/*
 * GC had nothing to read. If that is still so, and nothing else can be done,
 * see what must fail. Others did not stand still since zse_next_op() looked:
 * everything is looked at once more, at one moment, before a page is failed
 * that a zone just reset or a victim just filled could have saved. Sets @again
 * if GC has something to do after all. Wants the engine lock.
 */
static bool next_or_fail(struct zse_engine *e, struct zse_op *op, bool *again)
{
	*again = false;
	if (next_ready(e, op))
		return true;
	*again = (!list_empty(&e->free_gc_chunks) && gc_has_victim(e)) ||
		 gc_give_up(e) || gc_improvise(e);
	return !*again && next_failed(e, op);
}

/**
 * zse_next_op() - what is to be done next
 * @e:	engine
 * @op: filled in when true
 *
 * To be called, by one caller at a time and until it answers false, after
 * anything that said so. GC's appends come first, since swap-out may wait for
 * the zones they free; then chunks that wait, resets, and new reads of GC.
 *
 * Return: false if there is nothing to do until the next event.
 */
bool zse_next_op(struct zse_engine *e, struct zse_op *op)
{
	unsigned long flags;
	bool more, again;

	*op = (struct zse_op){ .kind = ZSE_OP_NONE };
	do {
		zp_lock(&e->lock, flags);
		more = next_ready(e, op);
		zp_unlock(&e->lock, flags);
		if (more || gc_fill(e, op))
			return true;

		zp_lock(&e->lock, flags);
		more = next_or_fail(e, op, &again);
		zp_unlock(&e->lock, flags);
	} while (again);
	return more;
}

/**
 * zse_set_gc() - let GC begin victims, or not
 * @e:	engine
 * @on: false: finish what was begun, then rest; for detach and checks. Chunks
 *	that wait for a zone still get one.
 */
void zse_set_gc(struct zse_engine *e, bool on)
{
	unsigned long flags;

	zp_lock(&e->lock, flags);
	e->gc_on = on;
	zp_unlock(&e->lock, flags);
}
