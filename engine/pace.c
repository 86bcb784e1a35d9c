// SPDX-License-Identifier: GPL-2.0
/*
 * Pace. GC works alongside swap-out instead of stopping it for a while. For
 * each block that swap-out writes, GC may read some, its credit. GC waits when
 * it has none. If there is too little room and GC is far behind, swap-out
 * waits: it goes on as fast as GC makes room, instead of using up all room at
 * full speed and waiting until GC has emptied zones.
 *
 * A victim with L live and S stale blocks gives room for S blocks once GC has
 * read L. So L / S reads for a block keep the room as it is. GC reads more if
 * there is less room than it is to keep, and fewer if there is more.
 */
#include "room.h"

/* Chunks that GC may read ahead, since it reads whole ones. */
#define AHEAD		1
/* Chunks that GC may be behind before swap-out waits. */
#define BEHIND		8
/* How many times as fast GC reads, at most, if there is too little room. */
#define MOST_FASTER	2
/* Part of a zone that is stale at least; else L / S says nothing. */
#define LEAST_STALE	32

/*
 * May GC begin a victim? If the host has switched GC off, only for chunks that
 * wait for a zone, since zse_idle() waits for these.
 */
bool flow_gc_may_begin(const struct zse_engine *e)
{
	return e->flow.gc_on || !list_empty(&e->pool.stalled);
}

/*
 * Swap-out's room when all that GC has read is written and its zones are reset.
 * Unlike flow_room(), it changes with each block that is read or written, not
 * by whole zones.
 */
static u64 room_to_come(const struct zse_engine *e)
{
	u64 zones = e->nr_state[ZSE_ZONE_EMPTY] + e->nr_state[ZSE_ZONE_DRAINED] +
		    e->nr_state[ZSE_ZONE_RESETTING] +
		    e->nr_state[ZSE_ZONE_VICTIM] - e->gc.nr_victims;
	u64 kept = e->cfg.reserve + (e->shared ? 0 : e->gc.lanes), room;
	u32 i;

	room = zones * e->cfg.zone_blocks + e->flow.open_room +
	       stripe_room(e, &e->gc.stripe);
	for (i = 0; i < e->gc.nr_victims; i++)
		room += e->zones[e->gc.victims[i]].cursor;
	kept = kept * e->cfg.zone_blocks + e->gc.unplaced + e->gc.claimed;
	return room > kept ? room - kept : 0;
}

/*
 * The room that GC is to keep: the pace, and half a zone for each lane of the
 * streams and of GC but one, since open zones are half written on average, and
 * victims half read. Of isolated streams, only some may have zones open, and
 * survivors.
 */
static u64 room_to_keep(const struct zse_engine *e)
{
	u32 nr = e->placement.nr_streams, more = e->gc.lanes - 1;

	if (e->share.on)
		more += e->nr_state[ZSE_ZONE_OPEN];
	else if (!e->shared)
		more += nr * zse_lanes(&e->cfg, nr);
	/* Half of it is not 0. */
	return MOST_FASTER + div_u64((u64)e->cfg.zone_blocks *
			(50 * more + READ_ONCE(e->flow.pace)), 100);
}

/* Blocks that GC is to read for @blocks that swap-out writes. */
static u64 reads_for(const struct zse_engine *e, u32 blocks)
{
	u32 live = e->flow.live, stale = e->cfg.zone_blocks - live;
	u64 reads = div_u64((u64)live * blocks, stale);
	u64 keep = room_to_keep(e), room = room_to_come(e);

	if (room < keep / MOST_FASTER)
		room = keep / MOST_FASTER;
	if (room > ZSE_NONE)
		room = ZSE_NONE;
	if (reads > ZSE_NONE)
		reads = ZSE_NONE;
	return div_u64(reads * keep, (u32)room) + 1;
}

/* GC has begun @z: what its reads gain. */
void flow_gc_begun(struct zse_engine *e, const struct zse_zone *z)
{
	u32 blocks = e->cfg.zone_blocks, live = zone_live(z);
	u32 most = blocks - 1 - blocks / LEAST_STALE;

	lockdep_assert_held(&e->lock);
	e->flow.live = live < most ? live : most;
}

/*
 * Must GC wait for swap-out before it reads more? Not if swap-out waits for GC,
 * nor if there is no swap-out.
 */
bool flow_gc_waits(const struct zse_engine *e)
{
	lockdep_assert_held(&e->lock);
	return READ_ONCE(e->flow.pace) && e->flow.credit <= 0 &&
	       e->flow.gc_on && flow_in_flight(e) &&
	       list_empty(&e->pool.stalled) &&
	       flow_room(e) >= batch_blocks(&e->cfg);
}

/* Has GC victims to read, or chunks in flight, whose end it will notice? */
static bool gc_is_at_work(const struct zse_engine *e)
{
	return e->gc.nr_victims || e->pool.gc_used;
}

/* Credit with which GC is so far behind that swap-out may have to wait. */
static s64 most_credit(const struct zse_engine *e)
{
	return (s64)BEHIND * batch_blocks(&e->cfg);
}

/*
 * Must swap-out wait until GC has read more? Isolated streams wait for their
 * own zones instead.
 */
bool flow_swap_out_waits(const struct zse_engine *e)
{
	lockdep_assert_held(&e->lock);
	return READ_ONCE(e->flow.pace) && e->flow.credit > most_credit(e) &&
	       gc_is_at_work(e) && !e->share.on &&
	       room_to_come(e) < room_to_keep(e) / MOST_FASTER;
}

/* Swap-out has sent @blocks: GC is to read some. */
void flow_swapped_out(struct zse_engine *e, u32 blocks)
{
	lockdep_assert_held(&e->lock);
	if (!READ_ONCE(e->flow.pace) || !gc_is_at_work(e))
		return;
	if (e->flow.credit > most_credit(e))
		e->flow.credit = most_credit(e);
	e->flow.credit += reads_for(e, blocks);
	WRITE_ONCE(e->gc.reads_on, !flow_gc_waits(e));
}

/* GC has read @blocks. */
void flow_gc_read(struct zse_engine *e, u32 blocks)
{
	s64 least = -(s64)AHEAD * batch_blocks(&e->cfg);

	lockdep_assert_held(&e->lock);
	e->flow.credit -= blocks;
	if (e->flow.credit < least)
		e->flow.credit = least;
}

/**
 * zse_set_pace() - set how evenly GC works
 * @e:	  engine
 * @pace: percent of a zone that GC keeps as room for swap-out, and half of one
 *	  for each lane but one; 0: GC works as fast as it can, and swap-out
 *	  waits only if there is no zone
 *
 * Return: false, with nothing changed, if @pace is above 100.
 */
bool zse_set_pace(struct zse_engine *e, u32 pace)
{
	if (pace > 100)
		return false;
	WRITE_ONCE(e->flow.pace, pace);
	return true;
}

/* The pace in force. */
u32 zse_get_pace(const struct zse_engine *e)
{
	return READ_ONCE(e->flow.pace);
}

/**
 * zse_set_gc() - switch GC on or off
 * @e:	engine
 * @on: false: GC finishes its victims and begins no others, except for chunks
 *	that wait for a zone. For detach and checks.
 */
void zse_set_gc(struct zse_engine *e, bool on)
{
	unsigned long flags;

	spin_lock_irqsave(&e->lock, flags);
	e->flow.gc_on = on;
	spin_unlock_irqrestore(&e->lock, flags);
}
