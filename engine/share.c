// SPDX-License-Identifier: GPL-2.0
/*
 * Shares: what each stream may have while the policy isolates them.
 *
 * Zones. A stream may have as many as its live blocks fill. The zones that all
 * streams leave are divided equally among the streams that have zones. A stream that
 * has used up its part waits until GC has cleaned zones of its own, and GC does that
 * before other work: a heavy writer pays for its GC, and its neighbours find empty
 * zones. If GC can clean none of its zones, the stream goes on: shares never make a
 * page fail.
 *
 * Chunks. The write window is divided likewise, so that other streams find a chunk
 * while one stream waits.
 *
 * GC. GC's I/O for a stream's zones may be held back for any time, because the
 * stream's cgroup is under io.max, for example. So a stream has at most as many of
 * GC's chunks as it leaves to all others: one of two, two of four. A chunk belongs to
 * the stream of the first victim read into it, and takes no survivors of other
 * streams, which would be held back with it. Zones of an earlier policy have no
 * owner, and one share together.
 *
 * While others wait for a zone, a stream that has used up its share of GC is slow,
 * and GC passes over it: GC begins no victims of that stream, and those it has begun
 * do not count among the victims that it reads at a time. For a stream that waits,
 * victims of other streams do not count as soon empty. All but the first victim of a
 * stream leave a zone of the reserve to victims of others: room in GC's open zones is
 * soon used up, and does not come back as the reserve does.
 *
 * No share can stop everything. A share of GC is denied only to a stream with a chunk
 * or a victim in flight, whose end brings the next try. A stream without any may use
 * all that is left.
 *
 * Everything here runs under the engine lock, unless its comment says otherwise.
 */
#include "internal.h"

/* Chunks that a stream may have in use in any case. */
#define MIN_CHUNKS	4

/* Streams that share the chunks: those with keys. */
static u32 sharers(const struct zse_engine *e)
{
	u32 nr = 0, i;

	for (i = 0; i < zp_load(&e->placement.nr_streams); i++)
		nr += zp_load(&e->streams[i].nr_keys) > 0;
	return nr ? nr : 1;
}

/* May @stream have another chunk? Context: any, a hint. */
bool share_of_chunks(const struct zse_engine *e, u32 stream)
{
	u32 most;

	most = zp_load(&e->flow.window) / e->cfg.chunk_blocks / sharers(e);
	if (most < MIN_CHUNKS)
		most = MIN_CHUNKS;
	return zp_load(&e->streams[stream].sent) < most;
}

/*
 * Zones that the live blocks of @stream fill. @all: the same for all streams, and for
 * zones without an owner. @owners: streams that have zones, or are @stream.
 */
static u32 zones_needed(const struct zse_engine *e, u32 stream, u32 *all,
			u32 *owners)
{
	u64 live[ZSE_MAX_STREAMS] = { 0 }, nobodys = 0;
	u32 i, cap = e->cfg.zone_blocks;

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
 * Looks at every zone, so only called to open one.
 */
bool share_of_zones(struct zse_engine *e, u32 stream)
{
	struct zse_stream *st = &e->streams[stream];
	u32 usable = e->cfg.nr_zones - e->nr_state[ZSE_ZONE_RETIRED];
	u32 kept = e->flow.high + e->gc.stripe.nr, needed, all, owners, part;

	if (!e->share.on || e->share.suspended)
		return true;
	needed = zones_needed(e, stream, &all, &owners);
	part = usable > all + kept ? (usable - all - kept) / owners : 0;
	zp_store(&st->over, st->nr_zones >= needed + part);
	return !st->over;
}

/*
 * Does a chunk wait whose stream has used up its share of the zones, with none of
 * its zones soon empty?
 */
static bool share_waits(const struct zse_engine *e)
{
	const struct zse_chunk *c;

	list_for_each_entry(c, &e->pool.stalled, link)
		if (e->streams[c->stream].over &&
		    !e->streams[c->stream].nr_coming)
			return true;
	return false;
}

/*
 * Should GC work for streams that wait for zones of their own? Not if they wait
 * because no zone is empty.
 */
bool share_wants_gc(const struct zse_engine *e)
{
	return e->share.on && !e->share.suspended && zone_may_open(e, false) &&
	       share_waits(e);
}

/*
 * May @c, a new chunk, go although others wait? It need not wait behind chunks of
 * other streams that wait for zones of their own.
 */
bool share_may_pass(const struct zse_engine *e, const struct zse_chunk *c)
{
	const struct zse_chunk *other;

	list_for_each_entry(other, &e->pool.stalled, link)
		if (!e->share.on || other->stream == c->stream ||
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

	return !zp_load(&e->share.gc_only) ||
	       (owner != ZSE_NONE && zp_load(&e->streams[owner].over) &&
		!zp_load(&e->streams[owner].nr_coming));
}

/* Do several streams have zones of their own, or will soon? */
static bool many_own(const struct zse_engine *e)
{
	u32 nr = 0, i;

	for (i = 0; i < e->max_streams && nr < 2; i++)
		nr += e->streams[i].nr_zones || e->streams[i].nr_keys;
	return nr > 1;
}

/* Whose share of GC is used to clean @z: a stream's, or ZSE_NOBODY's. */
static u32 owner_of(const struct zse_zone *z)
{
	u32 owner = zp_load(&z->owner);

	return owner == ZSE_NONE ? ZSE_NOBODY : owner;
}

/* May another chunk of GC take pages of @owner's zones? */
static bool share_of_gc(const struct zse_engine *e, u32 owner)
{
	u32 nr = e->share.of[owner].chunks;

	return !e->share.on || !nr ||
	       nr < e->cfg.nr_gc_chunks - e->pool.gc_used || !many_own(e);
}

/* May GC read @z into @c, or if that is NULL, into another chunk? */
bool share_may_read(const struct zse_engine *e, const struct zse_zone *z,
		    const struct zse_chunk *c)
{
	if (!c)
		return share_of_gc(e, owner_of(z));
	return !e->share.on || c->owner == owner_of(z);
}

/* @c, a chunk of GC, counts for @z's owner until it goes back to the pool. */
void share_gc_taken(struct zse_engine *e, struct zse_chunk *c,
		    const struct zse_zone *z)
{
	c->owner = owner_of(z);
	e->share.of[c->owner].chunks++;
}

void share_gc_ended(struct zse_engine *e, const struct zse_chunk *c)
{
	e->share.of[c->owner].chunks--;
}

/* Does a chunk wait for a zone whose stream may have more of GC? */
static bool others_wait(const struct zse_engine *e)
{
	const struct zse_chunk *c;

	list_for_each_entry(c, &e->pool.stalled, link)
		if (share_of_gc(e, c->stream))
			return true;
	return false;
}

/* Update which streams GC passes over. Called before GC looks for a victim. */
void share_see_slow(struct zse_engine *e)
{
	bool wait;
	u32 i;

	if (!e->share.on)
		return;
	zp_store(&e->share.gc_left, many_own(e) ?
		 e->cfg.zone_blocks + stripe_room(e, &e->gc.stripe) : 0);
	wait = others_wait(e);
	for (i = 0; i <= ZSE_NOBODY; i++)
		zp_store(&e->share.of[i].slow, wait && !share_of_gc(e, i));
}

/*
 * Victims that do not count as soon empty for some stream that waits: those of other
 * streams, since they may be held back.
 */
u32 share_others_victims(const struct zse_engine *e)
{
	const struct zse_chunk *c;
	u32 first = ZSE_NONE, nr = e->nr_state[ZSE_ZONE_VICTIM];

	if (!e->share.on || list_empty(&e->pool.stalled))
		return 0;
	list_for_each_entry(c, &e->pool.stalled, link) {
		if (first == ZSE_NONE)
			first = c->stream;
		if (c->stream != first)
			return nr;
	}
	return nr - e->share.of[first].victims;
}

/* Does GC pass over @z, a full zone or a victim? Context: any, a hint. */
bool share_is_slow(const struct zse_engine *e, const struct zse_zone *z)
{
	return zp_load(&e->share.of[owner_of(z)].slow);
}

/* The part of GC's @room that @z may take. Context: any, a hint. */
u32 share_of_room(const struct zse_engine *e, const struct zse_zone *z,
		  u32 room)
{
	u32 left = zp_load(&e->share.gc_left);

	if (share_is_slow(e, z))
		return 0;
	if (!zp_load(&e->share.of[owner_of(z)].victims))
		return room;
	return room > left ? room - left : 0;
}

/*
 * GC found no victim. Streams for which it looked, since they wait for zones of their
 * own, may go on. If GC only lacked room, they go on once no more room can come.
 */
void share_no_victim(struct zse_engine *e)
{
	if (!e->share.gc_only)
		return;
	if (victim_by_rule(e, ZSE_NONE, true) == ZSE_NONE ||
	    (e->nr_state[ZSE_ZONE_VICTIM] == share_others_victims(e) &&
	     !e->nr_state[ZSE_ZONE_DRAINED] &&
	     !e->nr_state[ZSE_ZONE_RESETTING]))
		e->share.suspended = true;
}

static bool is_coming(u32 state)
{
	return state == ZSE_ZONE_VICTIM || state == ZSE_ZONE_DRAINED ||
	       state == ZSE_ZONE_RESETTING;
}

/* A last resort: let streams open zones beyond their share. */
bool share_suspend(struct zse_engine *e)
{
	if (!e->share.on || e->share.suspended)
		return false;
	e->share.suspended = true;
	return true;
}

static void count_victims(struct zse_engine *e, u32 owner, int more)
{
	u32 *nr = &e->share.of[owner].victims;

	zp_store(nr, *nr + more);
}

/* @stream owns @z from now on; ZSE_NONE: no stream does. */
static void share_own(struct zse_engine *e, struct zse_zone *z, u32 stream)
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

/* @z is about to go to another state. An empty or retired zone has no owner. */
void share_moves(struct zse_engine *e, struct zse_zone *z,
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
	if (to == ZSE_ZONE_EMPTY || to == ZSE_ZONE_RETIRED)
		share_own(e, z, ZSE_NONE);
}

/* @z is opened for @c. Survivors of zones without an owner stay without one. */
void share_open(struct zse_engine *e, struct zse_zone *z,
		const struct zse_chunk *c)
{
	u32 owner = c->gc ? c->owner : c->stream;

	if (!e->share.on)
		return;
	if (!c->gc)
		e->share.suspended = false;
	share_own(e, z, owner == ZSE_NOBODY ? ZSE_NONE : owner);
}

/* The policy changes: no stream owns any zone. */
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
		e->share.of[i].chunks = 0;
		zp_store(&e->share.of[i].slow, 0);
	}
	e->share.of[ZSE_NOBODY].chunks = e->pool.gc_used;
	e->share.suspended = false;
	zp_store(&e->share.gc_only, 0);
	zp_store(&e->share.gc_left, 0);
}
