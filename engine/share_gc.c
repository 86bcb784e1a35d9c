// SPDX-License-Identifier: GPL-2.0
/*
 * Each stream's share of GC while the policy isolates streams; share.c has the
 * rest.
 *
 * GC's I/O for a stream's zones may be held up for any time, for example
 * because the stream's cgroup is under io.max. So a stream uses at most as many
 * GC chunks as it leaves free: one of two, two of four. A chunk belongs to the
 * stream of the first victim read into it. It takes no survivors of other
 * streams, which would be held up with it. Zones of an earlier policy have no
 * owner and count as one more stream.
 *
 * While others wait for a zone, a stream that has used up its share of GC is
 * slow, and GC passes over it. GC begins no victims of that stream, and its
 * victims do not count towards those that GC reads at a time. For a stream that
 * waits, victims of other streams do not count as soon empty. All but the first
 * victim of a stream leave a zone of the reserve to victims of others, since
 * room in GC's open zones is soon used up and does not come back as the reserve
 * does.
 *
 * Shares cannot stop progress. GC is denied only to a stream with a chunk or a
 * victim in flight, and the end of that brings the next try. A stream without
 * any may use all that is left.
 *
 * Everything here runs under the engine lock, unless its comment says
 * otherwise.
 */
#include "gc.h"

/*
 * Does a chunk wait whose stream has used up its share of zones and has no zone
 * that will soon be empty?
 */
static bool share_waits(const struct zse_engine *e)
{
	const struct zse_chunk *c;

	list_for_each_entry(c, &e->pool.stalled, link)
		if (e->streams[c->stream].over_share &&
		    !e->streams[c->stream].nr_emptying)
			return true;
	return false;
}

/*
 * Should GC work for streams that wait for their own zones? Not if they wait
 * because no zone is empty.
 */
bool share_wants_gc(const struct zse_engine *e)
{
	lockdep_assert_held(&e->lock);
	return e->share.on && !e->share.suspended && zone_may_open(e, false) &&
	       share_waits(e);
}

/*
 * May GC clean @z? While it works for streams that wait for their own zones, it
 * cleans only those. Context: any, a hint.
 */
bool share_may_clean(const struct zse_engine *e, const struct zse_zone *z)
{
	u32 owner = READ_ONCE(z->owner);

	return !READ_ONCE(e->share.gc_only) ||
	       (owner != ZSE_NONE && READ_ONCE(e->streams[owner].over_share) &&
		!READ_ONCE(e->streams[owner].nr_emptying));
}

/* Do several streams own zones, or will they soon? */
static bool several_owners(const struct zse_engine *e)
{
	u32 nr = 0, i;

	for (i = 0; i < e->max_streams && nr < 2; i++)
		nr += e->streams[i].nr_zones || e->streams[i].nr_keys;
	return nr > 1;
}

/* May another GC chunk take pages of @owner's zones? */
static bool share_of_gc(const struct zse_engine *e, u32 owner)
{
	u32 nr = e->share.of[owner].chunks;

	return !e->share.on || !nr ||
	       nr < e->cfg.nr_gc_chunks - e->pool.gc_used || !several_owners(e);
}

/* May GC read @z into @c, or into a new chunk if @c is NULL? */
bool share_may_read(const struct zse_engine *e, const struct zse_zone *z,
		    const struct zse_chunk *c)
{
	lockdep_assert_held(&e->lock);
	if (!c)
		return share_of_gc(e, share_owner(z));
	return !e->share.on || c->owner == share_owner(z);
}

/* Count @c, a GC chunk, for @z's owner until it goes back to the pool. */
void share_gc_taken(struct zse_engine *e, struct zse_chunk *c,
		    const struct zse_zone *z)
{
	lockdep_assert_held(&e->lock);
	c->owner = share_owner(z);
	e->share.of[c->owner].chunks++;
}

/* Does a chunk wait for a zone and its stream has a share of GC left? */
static bool others_wait(const struct zse_engine *e)
{
	const struct zse_chunk *c;

	list_for_each_entry(c, &e->pool.stalled, link)
		if (share_of_gc(e, c->stream))
			return true;
	return false;
}

/* Update which streams are slow. Called before GC looks for a victim. */
void share_update_slow(struct zse_engine *e)
{
	bool wait;
	u32 i;

	lockdep_assert_held(&e->lock);
	if (!e->share.on)
		return;
	WRITE_ONCE(e->share.gc_left, several_owners(e) ?
		 e->cfg.zone_blocks + stripe_room(e, &e->gc.stripe) : 0);
	wait = others_wait(e);
	for (i = 0; i <= ZSE_NOBODY; i++)
		WRITE_ONCE(e->share.of[i].slow, wait && !share_of_gc(e, i));
}

/*
 * Number of victims that do not count as soon empty for some stream that waits:
 * those of other streams, since their I/O may be held up.
 */
u32 share_others_victims(const struct zse_engine *e)
{
	const struct zse_chunk *c;
	u32 first = ZSE_NONE, nr = e->nr_state[ZSE_ZONE_VICTIM];

	lockdep_assert_held(&e->lock);
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
	return READ_ONCE(e->share.of[share_owner(z)].slow);
}

/* The part of GC's @room that survivors of @z may use. Context: any, a hint. */
u32 share_of_room(const struct zse_engine *e, const struct zse_zone *z,
		  u32 room)
{
	u32 left = READ_ONCE(e->share.gc_left);

	if (share_is_slow(e, z))
		return 0;
	if (!READ_ONCE(e->share.of[share_owner(z)].victims))
		return room;
	return room > left ? room - left : 0;
}

/*
 * GC found no victim for streams that wait for their own zones. Let these
 * exceed their share if there is none (@none), whatever room GC had. If GC only
 * lacked room, do so once nothing in flight can give it more.
 */
void share_no_victim(struct zse_engine *e, bool none)
{
	lockdep_assert_held(&e->lock);
	if (!e->share.gc_only)
		return;
	if (none ||
	    (e->nr_state[ZSE_ZONE_VICTIM] == share_others_victims(e) &&
	     !e->nr_state[ZSE_ZONE_DRAINED] &&
	     !e->nr_state[ZSE_ZONE_RESETTING]))
		e->share.suspended = true;
}

/* A last resort: let streams open zones beyond their share. */
bool share_suspend(struct zse_engine *e)
{
	lockdep_assert_held(&e->lock);
	if (!e->share.on || e->share.suspended)
		return false;
	e->share.suspended = true;
	return true;
}

/* The policy changes: from now on no stream owns a zone. */
void share_clear(struct zse_engine *e)
{
	u32 i;

	lockdep_assert_held(&e->lock);
	for (i = 0; i < e->cfg.nr_zones; i++)
		share_own(e, &e->zones[i], ZSE_NONE);
	for (i = 0; i < e->max_streams; i++) {
		WRITE_ONCE(e->streams[i].over_share, 0);
		WRITE_ONCE(e->streams[i].nr_emptying, 0);
	}
	for (i = 0; i < e->cfg.nr_gc_chunks; i++)
		e->chunks[e->cfg.nr_chunks + i].owner = ZSE_NOBODY;
	for (i = 0; i <= ZSE_NOBODY; i++) {
		e->share.of[i].chunks = 0;
		WRITE_ONCE(e->share.of[i].slow, 0);
	}
	e->share.of[ZSE_NOBODY].chunks = e->pool.gc_used;
	e->share.suspended = false;
	WRITE_ONCE(e->share.gc_only, 0);
	WRITE_ONCE(e->share.gc_left, 0);
}
