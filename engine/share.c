// SPDX-License-Identifier: GPL-2.0
/*
 * Shares: what each stream may have while the policy isolates them.
 *
 * Zones. A stream needs as many as its live blocks fill; what the device has
 * beyond that for all of them is divided in equal parts among the streams that
 * have any. One that has used up its part waits until GC has cleaned zones of
 * its own, which is then done before others: a heavy writer pays for its GC,
 * and its neighbours find their zones empty. If nothing of its own can be
 * cleaned, the stream may go on: shares are no reason for a page to fail.
 *
 * Chunks. Those under way are divided likewise, so that pages of others find
 * one while a stream waits.
 *
 * GC. What it reads and appends of a stream's zones may be held back for that
 * stream (its cgroup is under io.max, say), for as long as it takes. So a
 * stream has at most as many of GC's chunks as it leaves to all others: one of
 * two, two of four, and of what is left the next one likewise. A chunk is the
 * stream's whose victim was the first read into it, and what is added to fill
 * its write unit is of that stream as well; otherwise it would be held back
 * with it. Zones of an earlier policy, which are nobody's, have one share. A chunk
 * that is parked (carry.c) is no part of it: it may be so for long.
 *
 * While others wait for a zone, a stream that has used up its share is slow, and
 * GC goes past it: its zones are no victims for the time being, and those that
 * are do not count among those that GC reads at a time. Victims of others do not
 * count as soon empty for a stream that waits. And all but the first victim of a
 * stream leave a zone of the reserve to the victims of others; what is left of
 * GC's open zones is soon used up, and does not come back as the reserve does.
 *
 * No share can end it all. One of GC is denied only to a stream with a chunk or
 * a victim under way, whose end brings the next try; a stream without any has
 * whatever is left.
 *
 * Everything here runs under the engine lock, unless it says otherwise.
 */
#include "internal.h"

/* Chunks that a stream may have in use in any case. */
#define MIN_CHUNKS	4

/* Streams among which the chunks are divided: those that have keys. */
static u32 sharers(const struct zse_engine *e)
{
	u32 nr = 0, i;

	for (i = 0; i < e->nr_streams; i++)
		nr += e->streams[i].nr_keys > 0;
	return nr ? nr : 1;
}

/* May @stream have another chunk? */
bool share_of_chunks(const struct zse_engine *e, u32 stream)
{
	u32 most;

	if (!e->isolates)
		return true;
	most = e->window / sharers(e);
	if (most < MIN_CHUNKS)
		most = MIN_CHUNKS;
	return e->streams[stream].nr_chunks < most;
}

/*
 * Zones that live blocks of each stream fill, and of all together, also of those
 * that were written under another policy and are nobody's.
 */
static u32 zones_needed(const struct zse_engine *e, u32 stream, u32 *all,
			u32 *owners)
{
	u64 live[ZSE_MAX_STREAMS] = { 0 }, nobodys = 0;
	u32 i, cap = e->min_cap;

	*owners = 0;
	for (i = 0; i < e->cfg.nr_zones; i++) {
		u32 owner = e->zones[i].owner;

		if (owner != ZSE_NONE)
			live[owner] += zp_load(&e->zones[i].live);
		else
			nobodys += zp_load(&e->zones[i].live);
	}
	*all = (u32)zp_div(nobodys + cap - 1, cap);
	for (i = 0; i < e->max_streams; i++) {
		*all += (u32)zp_div(live[i] + cap - 1, cap);
		*owners += e->streams[i].nr_zones || i == stream;
	}
	return (u32)zp_div(live[stream] + cap - 1, cap);
}

/**
 * share_of_zones() - may @stream open another zone?
 * @e:	    engine
 * @stream: that of the chunk
 *
 * Looks at every zone; it is only asked when one is to be opened.
 */
bool share_of_zones(struct zse_engine *e, u32 stream)
{
	struct zse_stream *st = &e->streams[stream];
	u32 usable = e->cfg.nr_zones - e->nr_state[ZSE_ZONE_RETIRED];
	u32 kept = e->gc_high + e->gc_stripe.nr, needed, all, owners, part;

	if (!e->isolates || e->shares_off)
		return true;
	needed = zones_needed(e, stream, &all, &owners);
	part = usable > all + kept ? (usable - all - kept) / owners : 0;
	zp_store(&st->over, st->nr_zones >= needed + part);
	return !st->over;
}

/*
 * Does a chunk wait whose stream has used up its share of the zones, and none
 * of these will be empty soon?
 */
static bool share_waits(const struct zse_engine *e)
{
	const struct zse_chunk *c;

	list_for_each_entry(c, &e->stalled, link)
		if (e->streams[c->stream].over &&
		    !e->streams[c->stream].nr_coming)
			return true;
	return false;
}

/*
 * Is GC to work for streams that wait for zones of their own? Only if that is
 * what they wait for: not if no zone is empty, but some will be soon.
 */
bool share_wants_gc(const struct zse_engine *e)
{
	return e->isolates && !e->shares_off && zone_may_open(e, false) &&
	       share_waits(e);
}

/*
 * May @c, which is new, go although others wait? Those of other streams that
 * wait for zones of their own are no reason to wait.
 */
bool share_may_pass(const struct zse_engine *e, const struct zse_chunk *c)
{
	const struct zse_chunk *other;

	list_for_each_entry(other, &e->stalled, link)
		if (!e->isolates || other->stream == c->stream ||
		    !e->streams[other->stream].over)
			return false;
	return true;
}

/*
 * While GC works for streams that wait for zones of their own, it cleans only
 * theirs. Context: any, a hint.
 */
bool share_may_clean(const struct zse_engine *e, const struct zse_zone *z)
{
	u32 owner = zp_load(&z->owner);

	return !zp_load(&e->gc_for_shares) ||
	       (owner != ZSE_NONE && zp_load(&e->streams[owner].over) &&
		!zp_load(&e->streams[owner].nr_coming));
}

/* Have several streams zones of their own, or are about to? */
static bool many_own(const struct zse_engine *e)
{
	u32 nr = 0, i;

	for (i = 0; i < e->max_streams && nr < 2; i++)
		nr += e->streams[i].nr_zones || e->streams[i].nr_keys;
	return nr > 1;
}

/* Whose share of GC cleaning @z takes: a stream's, or ZSE_NOBODY's. */
static u32 owner_of(const struct zse_zone *z)
{
	u32 owner = zp_load(&z->owner);

	return owner == ZSE_NONE ? ZSE_NOBODY : owner;
}

/* May a chunk of GC be filled with pages of @owner's zones? */
static bool share_of_gc(const struct zse_engine *e, u32 owner)
{
	u32 nr = e->gc_shares[owner].chunks;

	return !e->isolates || !nr ||
	       nr < e->cfg.nr_gc_chunks - e->nr_used_gc_chunks || !many_own(e);
}

/* May @z be read into @c, a chunk of GC; or if that is NULL, into another? */
bool share_may_read(const struct zse_engine *e, const struct zse_zone *z,
		    const struct zse_chunk *c)
{
	if (!c)
		return share_of_gc(e, owner_of(z));
	return !e->isolates || c->owner == owner_of(z);
}

/* @c, a chunk of GC, is that of @z's owner until it goes back to the pool. */
void share_gc_taken(struct zse_engine *e, struct zse_chunk *c,
		    const struct zse_zone *z)
{
	c->owner = owner_of(z);
	share_gc_again(e, c);
}

/* @c counts, which did not while it was parked. */
void share_gc_again(struct zse_engine *e, const struct zse_chunk *c)
{
	e->gc_shares[c->owner].chunks++;
}

void share_gc_ended(struct zse_engine *e, const struct zse_chunk *c)
{
	e->gc_shares[c->owner].chunks--;
}

/* Does a chunk wait for a zone whose stream may have more of GC? */
static bool others_wait(const struct zse_engine *e)
{
	const struct zse_chunk *c;

	list_for_each_entry(c, &e->stalled, link)
		if (share_of_gc(e, c->stream))
			return true;
	return false;
}

/* See which streams GC goes past. Before a victim is looked for. */
void share_see_slow(struct zse_engine *e)
{
	bool wait;
	u32 i;

	if (!e->isolates)
		return;
	zp_store(&e->gc_left, many_own(e) ? e->min_cap +
		 stripe_room(e, &e->gc_stripe) : 0);
	wait = others_wait(e);
	for (i = 0; i <= ZSE_NOBODY; i++)
		zp_store(&e->gc_shares[i].slow, wait && !share_of_gc(e, i));
}

/*
 * Victims that are no help to some stream that waits: those of others, since
 * they may be held back.
 */
u32 share_stuck(const struct zse_engine *e)
{
	const struct zse_chunk *c;
	u32 first = ZSE_NONE, nr = e->nr_state[ZSE_ZONE_VICTIM];

	if (!e->isolates || list_empty(&e->stalled))
		return 0;
	list_for_each_entry(c, &e->stalled, link) {
		if (first == ZSE_NONE)
			first = c->stream;
		if (c->stream != first)
			return nr;
	}
	return nr - e->gc_shares[first].victims;
}

/* Does GC go past @z, a full zone or a victim? Context: any, a hint. */
bool share_is_slow(const struct zse_engine *e, const struct zse_zone *z)
{
	return zp_load(&e->gc_shares[owner_of(z)].slow);
}

/* Of the @room that GC has, what @z may take. Context: any, a hint. */
u32 share_of_room(const struct zse_engine *e, const struct zse_zone *z,
		  u32 room)
{
	u32 left = zp_load(&e->gc_left);

	if (!zp_load(&e->gc_shares[owner_of(z)].victims))
		return room;
	return room > left ? room - left : 0;
}

/*
 * GC found nothing to clean for those that wait: they may go on. If it was for
 * want of room, not before it is known that none will come.
 */
void share_yield(struct zse_engine *e)
{
	if (victim_by_rule(e, ZSE_NONE, true) == ZSE_NONE ||
	    (e->nr_state[ZSE_ZONE_VICTIM] == share_stuck(e) &&
	     !e->nr_state[ZSE_ZONE_DRAINED] &&
	     !e->nr_state[ZSE_ZONE_RESETTING]))
		e->shares_off = true;
}

static bool is_coming(u32 state)
{
	return state == ZSE_ZONE_VICTIM || state == ZSE_ZONE_DRAINED ||
	       state == ZSE_ZONE_RESETTING;
}

/* Nothing else helps those that wait. Returns true if that may. */
bool share_give_way(struct zse_engine *e)
{
	if (!e->isolates || e->shares_off)
		return false;
	e->shares_off = true;
	return true;
}

static void count_victims(struct zse_engine *e, u32 owner, int more)
{
	u32 *nr = &e->gc_shares[owner].victims;

	zp_store(nr, *nr + more);
}

/* @z is about to go to another state. */
void share_moves(struct zse_engine *e, const struct zse_zone *z,
		 enum zse_zone_state to)
{
	struct zse_stream *st;

	count_victims(e, owner_of(z), (to == ZSE_ZONE_VICTIM) -
				      (z->state == ZSE_ZONE_VICTIM));
	if (z->owner == ZSE_NONE)
		return;
	st = &e->streams[z->owner];
	zp_store(&st->nr_coming, st->nr_coming + is_coming(to) -
				 is_coming(z->state));
}

/* @z is @stream's from now on, or nobody's. */
void share_own(struct zse_engine *e, struct zse_zone *z, u32 stream)
{
	if (z->owner != ZSE_NONE)
		e->streams[z->owner].nr_zones--;
	if (z->state == ZSE_ZONE_VICTIM)
		count_victims(e, owner_of(z), -1);
	zp_store(&z->owner, stream);
	if (z->state == ZSE_ZONE_VICTIM)
		count_victims(e, owner_of(z), 1);
	if (stream != ZSE_NONE)
		e->streams[stream].nr_zones++;
}

/* @z is opened for @c. What is nobody's stays that when GC moves it. */
void share_open(struct zse_engine *e, struct zse_zone *z,
		const struct zse_chunk *c)
{
	u32 owner = c->gc ? c->owner : c->stream;

	share_own(e, z, owner == ZSE_NOBODY ? ZSE_NONE : owner);
}

/* The streams are another policy's: zones are nobody's. */
void share_clear(struct zse_engine *e)
{
	u32 i;

	for (i = 0; i < e->cfg.nr_zones; i++)
		share_own(e, &e->zones[i], ZSE_NONE);
	for (i = 0; i < e->max_streams; i++) {
		zp_store(&e->streams[i].over, 0);
		zp_store(&e->streams[i].nr_coming, 0);
	}
	for (i = 0; i < e->cfg.nr_gc_chunks; i++)
		e->chunks[e->cfg.nr_chunks + i].owner = ZSE_NOBODY;
	for (i = 0; i <= ZSE_NOBODY; i++) {
		e->gc_shares[i].chunks = 0;
		zp_store(&e->gc_shares[i].slow, 0);
	}
	e->gc_shares[ZSE_NOBODY].chunks = e->nr_used_gc_chunks - e->nr_parked;
	e->shares_off = false;
	zp_store(&e->gc_for_shares, 0);
	zp_store(&e->gc_left, 0);
}
