// SPDX-License-Identifier: GPL-2.0
/*
 * Garbage collection, and the order in which deferred work is done.
 *
 * GC takes a full zone (the victim), reads its live blocks into GC chunks (see
 * clean.c), appends these to zones of its own, and moves the forward map of
 * each page that is still wanted by compare-and-swap. When the last entry read
 * from the victim is settled and nothing in it is live, the zone waits for
 * swap-in reads under way and is reset. Several chunks are in flight, and the
 * next victim is begun while the last one's copies are still being written.
 *
 * Why it always finishes. GC needs no memory but its chunks. It needs zones:
 * its open ones and the reserve, which swap-out may not open. A victim is only
 * begun when all its live blocks fit the room in these, less what is promised
 * to entries that have no zone yet, or are still to be read from other victims.
 * A victim gains at least one write unit, so after its reset the room is larger
 * than before, and with each round closer to a zone for swap-out.
 * zse_max_slots() is such that some full zone has a dead unit whenever swap-out
 * has to wait. Shares of streams in GC's chunks and its room (share.c) put off
 * only those that have some of it under way.
 *
 * Where the device opens but one zone, swap-out writes GC's (limits_shared()).
 * It takes no block that a victim begun may still need, nor of what the reserve
 * holds (clean_spare()): once GC is done with its victims there is room for any
 * other, in the open zone and the empty ones together. So GC needs no zone of its
 * own, and as each victim leaves more room than it took, swap-out gets what is
 * above the reserve. Both wait for the last appends to a zone, and for its
 * finish, before the next one is opened; these wait for nobody.
 *
 * If zones were lost to errors, that may no longer hold. Then, and only when
 * nothing is under way that could help, GC makes do with fewer lanes and takes
 * what it can get: the place of a zone that failed, the zone of a stream, a
 * victim itself; at last it moves what is in a zone that failed, which is no
 * victim else while swap-out waits (gc_improvise()). If that is no use either,
 * waiting chunks fail (next_failed()).
 *
 * What a bad zone holds is copied out like any victim's, whatever it gains; at
 * once if the zone still holds its place among the active ones.
 */
#include "internal.h"

/**
 * zse_gc_due() - is there cause to call zse_next_op() for GC's sake?
 * @e: engine
 *
 * A hint without the lock, for the swap-out path.
 */
bool zse_gc_due(struct zse_engine *e)
{
	return zp_load(&e->nr_state[ZSE_ZONE_EMPTY]) < zp_load(&e->gc_low) ||
	       zp_load(&e->dead);
}

/* Forget entries @from and up: they stay where they are, or died if carried. */
void gc_drop_entries(struct zse_engine *e, struct zse_chunk *c, u32 from)
{
	u32 i;

	for (i = from; i < c->nr; i++) {
		const struct zse_entry *entry = &c->entries[i];
		u32 zone = zse_block_zone(e, entry->expect);

		if (entry_is_carried(entry))
			continue;
		if (entry->page == ZSE_NONE &&
		    map_is(e, entry->slot, entry->expect))
			zone_put_aside(e, zone, ZSE_UNREAD);
		else if (c->retries > ZSE_MAX_RETRIES)
			zone_put_aside(e, zone, ZSE_UNWRITTEN);
		zone_moved(e, zone, 1);
	}
	e->gc_unplaced -= c->nr - from;
	c->nr = from;
}

/*
 * Drop pages that were freed or written again since GC chose them, and those that
 * could not be read. Done right before the append, so that none is copied that
 * GC could know to be dead.
 */
void gc_drop_dead(struct zse_engine *e, struct zse_chunk *c)
{
	u32 i, kept = c->done;

	for (i = c->done; i < c->nr; i++) {
		struct zse_entry entry = c->entries[i];

		if (entry.page == ZSE_NONE ||
		    !map_is(e, entry.slot, entry.expect))
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
		if (c->retries > ZSE_MAX_RETRIES) {
			carry_or_drop(e, c, false);
			continue;
		}
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
	u64 refused = 0;

	list_for_each_entry(c, &e->stalled, link) {
		u64 stream = 1ULL << c->stream;

		if (refused & stream)
			continue;
		if (chunk_assign(e, c, op)) {
			list_del_init(&c->link);
			return true;
		}
		/* Others only pass who waits for zones of its own. */
		if (!e->isolates || !e->streams[c->stream].over)
			return false;
		refused |= stream;
	}
	return false;
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
	       e->nr_used_gc_chunks > e->nr_parked ||
	       e->nr_state[ZSE_ZONE_VICTIM] ||
	       e->nr_state[ZSE_ZONE_DRAINED] ||
	       e->nr_state[ZSE_ZONE_RESETTING] ||
	       e->nr_state[ZSE_ZONE_FINISH] ||
	       e->nr_state[ZSE_ZONE_FINISHING];
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
	/* For want of room; or is the device away? */
	if (!zp_load(&e->failing))
		e->demand += c->nr - c->done;
	zse_chunk_lose(e, c);
	op->kind = ZSE_OP_FAIL;
	op->chunk = c;
	op->first = c->done;
	op->nr = c->nr - c->done;
	return true;
}

/*
 * GC chunks that wait for a zone though nothing can give them one: only after
 * the reserve was lost to errors. They are carried, or their pages stay in their
 * victims. Returns true if there were any: what that set free may be of use.
 */
static bool gc_give_up(struct zse_engine *e)
{
	struct zse_chunk *c;
	u32 nr = 0;

	if (list_empty(&e->gc_ready) || e->appends ||
	    e->nr_state[ZSE_ZONE_DRAINED] || e->nr_state[ZSE_ZONE_RESETTING] ||
	    e->nr_state[ZSE_ZONE_FINISH] || e->nr_state[ZSE_ZONE_FINISHING])
		return false;
	list_for_each_entry(c, &e->gc_ready, link)
		nr++;
	/* What is still being read may be the rest of a victim. */
	if (nr + e->nr_parked < e->nr_used_gc_chunks)
		return false;
	list_for_each_entry(c, &e->gc_ready, link)
		gc_drop_dead(e, c);
	while (nr--) {
		c = list_first_entry(&e->gc_ready, struct zse_chunk, link);
		list_del_init(&c->link);
		list_add_tail(&c->link, &e->gc_ready);
		carry_or_drop(e, c, true);
	}
	return true;
}

/*
 * Victims that cannot be read, since all of GC's chunks are parked: they are full
 * zones again. Returns true if there were any.
 */
static bool gc_give_back(struct zse_engine *e)
{
	if (!e->nr_victims || !list_empty(&e->free_gc_chunks) ||
	    e->nr_used_gc_chunks > e->nr_parked)
		return false;
	while (e->nr_victims)
		clean_end(e, &e->victims[0]);
	return true;
}

/*
 * Chunks wait, and nothing is under way that could help. Returns true if
 * something was found that may. What failed before is tried again, a few times
 * for each chunk that would fail.
 */
static bool gc_improvise(struct zse_engine *e)
{
	struct zse_chunk *c;

	if (list_empty(&e->stalled) || hope_left(e))
		return false;
	if (share_give_way(e) || stripe_narrow(&e->gc_stripe))
		return true;
	c = list_first_entry(&e->stalled, struct zse_chunk, link);
	if (c->last_tries < ZSE_MAX_RETRIES + 1 && zones_want_try(e)) {
		c->last_tries++;
		zones_try_again(e, true);
		carry_begin(e);
		return true;
	}
	return zone_let_go(e) || zone_swap_for_gc(e) || clean_begin_bad(e);
}

/* What needs no reading by GC. */
static bool next_ready(struct zse_engine *e, struct zse_op *op)
{
	zones_take_dead(e);
	zones_try_again(e, false);
	carry_look(e);
	return next_gc_append(e, op) || next_stalled(e, op) ||
	       next_reset(e, op) || next_finish(e, op);
}

/* Is there something to read after all? Only looked for if chunks would fail. */
static bool gc_could_go_on(struct zse_engine *e)
{
	if (list_empty(&e->free_gc_chunks))
		return false;
	if (clean_can_read(e))
		return !pace_holds(e);
	return !list_empty(&e->stalled) && clean_wants_victim(e) &&
	       victim_by_rule(e, clean_room(e), e->gc_running ||
			      e->gc_for_shares) != ZSE_NONE;
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
	*again = carry_forget(e) || gc_could_go_on(e) || gc_give_up(e) ||
		 gc_give_back(e) || gc_improvise(e);
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
		if (more || clean_fill(e, op))
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
