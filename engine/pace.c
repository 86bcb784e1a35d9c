// SPDX-License-Identifier: GPL-2.0
/*
 * The pace of GC: it works beside swap-out all the time that it has, instead of
 * stopping everything for a while.
 *
 * When GC begins a victim there is room that swap-out can still fill before it
 * has to wait. GC is given leave to move blocks as swap-out writes them, so
 * many for each that its victims are done when a share of that room (the pace,
 * in percent) is used up. Both numbers are looked at again each time: if GC
 * falls behind, or what was to die in the victims did not, the rate rises, and
 * with no room left there is no limit.
 *
 * Everything here runs under the engine lock.
 */
#include "internal.h"

/* Chunks that GC may be ahead of its leave, so that it works in whole ones. */
#define AHEAD	2

/* Blocks that swap-out can write before it has to wait for GC. */
static u64 room_left(const struct zse_engine *e)
{
	u32 kept = e->cfg.reserve + stripe_missing(&e->gc_stripe);
	u32 empty = e->nr_state[ZSE_ZONE_EMPTY];
	u64 room = empty > kept ? (u64)(empty - kept) * e->min_cap : 0;
	u32 i;

	if (e->shared)
		return clean_spare(e);
	for (i = 0; i < e->nr_streams; i++)
		room += stripe_room(e, &e->streams[i].stripe);
	return room;
}

/* Live blocks in victims that GC has not read yet. */
static u64 left_to_move(const struct zse_engine *e)
{
	u64 left = 0;
	u32 i;

	for (i = 0; i < e->nr_victims; i++) {
		const struct zse_zone *z = &e->zones[e->victims[i].zone];
		u32 live = zp_load(&z->live);

		left += live > z->moving ? live - z->moving : 0;
	}
	return left;
}

/* Swap-out has written @blocks: GC may move some. */
void pace_written(struct zse_engine *e, u32 blocks)
{
	u64 room, leave, most = (u64)AHEAD * e->cfg.chunk_blocks;
	u32 pace = zp_load(&e->pace);

	if (!e->nr_victims || !pace)
		return;
	room = zp_div(room_left(e) * pace, 100);
	leave = left_to_move(e) * blocks;
	if (room >= ZSE_NONE)
		room = ZSE_NONE;
	leave = room >= blocks ? zp_div(leave, (u32)room) + 1 : most;
	e->gc_leave = e->gc_leave + leave < most ? e->gc_leave + leave : most;
}

/*
 * Is GC to wait before it reads on? Not if somebody waits for GC, and not if
 * there is no swap-out to go beside.
 */
bool pace_holds(const struct zse_engine *e)
{
	return zp_load(&e->pace) && !e->gc_leave && e->gc_on && e->nr_used_chunks &&
	       list_empty(&e->stalled) && room_left(e) >= e->cfg.chunk_blocks;
}

/* GC has read @blocks. */
void pace_moved(struct zse_engine *e, u32 blocks)
{
	e->gc_leave = e->gc_leave > blocks ? e->gc_leave - blocks : 0;
}

/**
 * zse_set_pace() - how evenly GC works
 * @e:	  engine
 * @pace: percent of the room left for swap-out by the end of which GC is to be
 *	  done with a victim; 0: as fast as it can
 *
 * Return: false, and nothing changed, if it is above 100.
 */
bool zse_set_pace(struct zse_engine *e, u32 pace)
{
	if (pace > 100)
		return false;
	zp_store(&e->pace, pace);
	return true;
}

/* The pace in force. */
u32 zse_get_pace(const struct zse_engine *e)
{
	return zp_load(&e->pace);
}
