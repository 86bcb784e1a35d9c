// SPDX-License-Identifier: GPL-2.0
/*
 * Pace. GC works alongside swap-out instead of stopping it for a while. For
 * each block that swap-out writes, GC may read a number of blocks. The number
 * is such that GC finishes its victims when swap-out has used up a percentage
 * of its room, the pace. It is computed anew each time, so it rises when GC
 * falls behind. There is no limit while swap-out waits.
 */
#include "room.h"

/* Chunks that GC may be ahead of its pace, so that it reads whole chunks. */
#define AHEAD		2

/*
 * May GC begin a victim? If the host has switched GC off, only for chunks that
 * wait for a zone, since zse_idle() waits for these.
 */
bool flow_gc_may_begin(const struct zse_engine *e)
{
	return e->flow.gc_on || !list_empty(&e->pool.stalled);
}

/* Live blocks of victims that GC has not read yet. */
static u64 left_to_read(const struct zse_engine *e)
{
	u64 left = 0;
	u32 i;

	for (i = 0; i < e->gc.nr_victims; i++) {
		const struct zse_zone *z = &e->zones[e->gc.victims[i]];
		u32 live = zone_live(z);

		left += live > z->moving ? live - z->moving : 0;
	}
	return left;
}

/*
 * Must GC wait for swap-out before it reads more? Not if swap-out waits for GC,
 * nor if there is no swap-out.
 */
bool flow_gc_waits(const struct zse_engine *e)
{
	lockdep_assert_held(&e->lock);
	return READ_ONCE(e->flow.pace) && !e->flow.credit && e->flow.gc_on &&
	       flow_in_flight(e) && list_empty(&e->pool.stalled) &&
	       flow_room(e) >= batch_blocks(&e->cfg);
}

/* Swap-out has sent @blocks: let GC read some. */
void flow_swapped_out(struct zse_engine *e, u32 blocks)
{
	u64 room, more, most = (u64)AHEAD * batch_blocks(&e->cfg);
	u32 pace = READ_ONCE(e->flow.pace);

	lockdep_assert_held(&e->lock);
	if (!e->gc.nr_victims || !pace)
		return;
	room = div_u64(flow_room(e) * pace, 100);
	if (room >= ZSE_NONE)
		room = ZSE_NONE;
	more = most;
	if (room >= blocks)
		more = div_u64(left_to_read(e) * blocks, (u32)room) + 1;
	more += e->flow.credit;
	e->flow.credit = more < most ? more : most;
	WRITE_ONCE(e->gc.reads_on, !flow_gc_waits(e));
}

/* GC has read @blocks. */
void flow_gc_read(struct zse_engine *e, u32 blocks)
{
	u64 *credit = &e->flow.credit;

	lockdep_assert_held(&e->lock);
	*credit = *credit > blocks ? *credit - blocks : 0;
}

/**
 * zse_set_pace() - set how evenly GC works
 * @e:	  engine
 * @pace: percent of swap-out's room within which GC finishes its victims; 0: GC
 *	  works as fast as it can
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
