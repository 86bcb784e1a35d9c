// SPDX-License-Identifier: GPL-2.0
/*
 * Flow: how much swap-out and GC may write, and when GC works.
 *
 * Room. It is counted in blocks of open and of empty zones:
 *
 *	promised	what GC may still write for the victims it has begun
 *	GC's room	GC's open zones and the reserve, less what is promised
 *	swap-out's room	its open zones and the empty zones, less those kept:
 *			the reserve, and a zone for each lane of GC without one
 *
 * If the device can open only one zone, swap-out writes GC's zone
 * (limits_shared()). Its room is then that zone and all empty ones, less the
 * reserve and what is promised.
 *
 * Progress. GC begins a victim only if all its live blocks fit GC's room. So GC
 * can always write what is promised, and swap-out cannot take it. A victim has
 * at least one stale write unit, so its reset gives more room than it took.
 * Each victim adds room until swap-out has a zone. zse_max_slots() ensures that
 * some full zone has a stale unit whenever swap-out has to wait. Zones lost to
 * errors can break this; gc.c says what happens then.
 *
 * Watermarks. GC starts when fewer than `low` zones are empty or soon will be,
 * and stops at `high`.
 *
 * Pace. GC works alongside swap-out instead of stopping it for a while. For
 * each block that swap-out writes, GC may read a number of blocks. The number
 * is such that GC finishes its victims when swap-out has used up a percentage
 * of its room, the pace. It is computed anew each time, so it rises when GC
 * falls behind. There is no limit while swap-out waits.
 *
 * Window. Pages in flight hold memory while memory is short, and reads queue
 * behind them. A device gains nothing from more chunks than keep it busy. The
 * window is the number of swap-out chunks in use. It follows the time that a
 * chunk takes, which grows with the number of chunks once the device is busy
 * (Little's law). The window shrinks by at most half, and at most once in the
 * time of a chunk, since chunks sent earlier were timed with the wider window.
 * It grows by one after as many fast chunks as it is wide, if they found it
 * used up. Until it shrinks for the first time, it grows with each such chunk.
 */
#include "internal.h"

/* A chunk that takes longer shrinks the window. 25 ms at 1 GB/s are 25 MB. */
#define WINDOW_NS	25000000ULL
/* The window always leaves this many, besides one filling in each stream. */
#define MIN_IN_FLIGHT	4
/* Chunks that GC may be ahead of its pace, so that it reads whole chunks. */
#define AHEAD		2

/* ---- the window ---- */

static u32 window_min(const struct zse_engine *e)
{
	u32 min = e->max_streams + MIN_IN_FLIGHT;

	return min < e->cfg.nr_chunks ? min : e->cfg.nr_chunks;
}

void flow_init(struct zse_engine *e)
{
	e->flow.gc_on = true;
	e->flow.pace = e->cfg.pace;
	e->flow.low = e->cfg.gc_low;
	e->flow.high = e->cfg.gc_high;
	e->flow.window = window_min(e);
}

/* May swap-out use one more chunk? */
bool flow_window_open(const struct zse_engine *e)
{
	return e->pool.used < e->flow.window;
}

/*
 * A chunk of swap-out, sent at @sent, has ended. @sent is 0 to ignore its time.
 */
void flow_chunk_ended(struct zse_engine *e, u64 sent, u64 now)
{
	struct zse_flow *f = &e->flow;
	u64 took = now - sent;
	u32 min = window_min(e), window;

	if (!sent || now < sent)
		return;
	if (took <= WINDOW_NS) {
		if (flow_window_open(e) || (f->cut && ++f->in_time < f->window))
			return;
		f->in_time = 0;
		if (f->window < e->cfg.nr_chunks)
			f->window++;
		return;
	}
	if (sent < f->cut)
		return;
	window = f->window - f->window / (took < 2 * WINDOW_NS ? 4 : 2);
	f->window = window > min ? window : min;
	f->cut = now;
	f->in_time = 0;
}

/* ---- room ---- */

/*
 * Empty zones kept for GC: the reserve, and one for each of its lanes without.
 */
u32 flow_kept_zones(const struct zse_engine *e)
{
	u32 open = 0, i;

	for (i = 0; i < e->gc.stripe.nr; i++)
		open += e->gc.stripe.zone[i] != ZSE_NONE;
	/* GC's first zone may come from the reserve. */
	if (!open)
		open = 1;
	return e->cfg.reserve +
	       (e->gc.lanes > open ? e->gc.lanes - open : 0);
}

/*
 * Blocks that GC may still write for its victims. Each chunk is padded
 * separately, and may lose entries before. Blocks that GC has read stay live in
 * the victim until they are moved, so a victim counts at most for the blocks
 * that GC has not looked at.
 */
static u32 promised(const struct zse_engine *e)
{
	u32 padding = e->pool.gc_used * (e->cfg.write_unit - 1), i;
	u32 blocks = round_up_unit(e, e->gc.unplaced + padding);

	for (i = 0; i < e->gc.nr_victims; i++) {
		const struct zse_zone *z = &e->zones[e->gc.victims[i]];
		u32 live = zp_load(&z->live);
		u32 left = e->cfg.zone_blocks - z->cursor;

		blocks += round_up_unit(e, live < left ? live : left);
	}
	return blocks;
}

/* Blocks that GC is sure to be able to write for another victim. */
u32 flow_gc_room(const struct zse_engine *e)
{
	u32 zones = e->nr_state[ZSE_ZONE_EMPTY], taken = promised(e), room;

	if (!stripe_is_open(&e->gc.stripe) && !zone_may_open(e, true))
		return 0;
	if (zones > e->cfg.reserve)
		zones = e->cfg.reserve;
	room = stripe_room(e, &e->gc.stripe) + zones * e->cfg.zone_blocks;
	return room > taken ? room - taken : 0;
}

/* Blocks that swap-out can write before it has to wait for GC. */
u64 flow_room(const struct zse_engine *e)
{
	u64 empty = e->nr_state[ZSE_ZONE_EMPTY], room, taken;
	u32 i;

	if (e->shared) {
		room = stripe_room(e, &e->gc.stripe) +
		       empty * e->cfg.zone_blocks;
		taken = promised(e) + (u64)e->cfg.reserve * e->cfg.zone_blocks;
		return room > taken ? room - taken : 0;
	}
	taken = flow_kept_zones(e);
	room = empty > taken ? (empty - taken) * e->cfg.zone_blocks : 0;
	for (i = 0; i < e->placement.nr_streams; i++)
		room += stripe_room(e, &e->streams[i].stripe);
	return room;
}

/* ---- when GC works ---- */

/*
 * May GC begin a victim? If the host has switched GC off, only for chunks that
 * wait for a zone, since zse_idle() waits for these.
 */
bool flow_gc_may_begin(const struct zse_engine *e)
{
	return e->flow.gc_on || !list_empty(&e->pool.stalled);
}

/* Zones whose reset is in flight or can be issued. */
static u32 zones_to_reset(const struct zse_engine *e)
{
	u32 nr = e->nr_state[ZSE_ZONE_RESETTING];
	const struct zse_zone *z;

	list_for_each_entry(z, &e->drained, link)
		nr += !zp_load(&z->readers);
	return nr;
}

/*
 * Does swap-out wait, and will resets give it enough zones for all its lanes
 * and for GC? The survivors of more victims would take these zones. If GC is
 * faster than resets and gains little, swap-out would wait until no stale block
 * is left. The check is repeated when the next reset ends. It does not apply to
 * isolated streams, which may wait for other zones.
 */
static bool resets_suffice(const struct zse_engine *e)
{
	u32 enough = e->cfg.reserve + e->gc.stripe.nr + e->gc.nr_victims +
		     e->placement.nr_streams * e->streams[0].stripe.nr, nr;

	if (list_empty(&e->pool.stalled) || e->share.on)
		return false;
	nr = zones_to_reset(e);
	return nr && e->nr_state[ZSE_ZONE_EMPTY] + nr > enough;
}

/*
 * Update whether GC runs: it does from the low watermark to the high one.
 * Returns true if GC is to begin another victim. Besides the watermarks,
 * isolated streams and the places that failed zones hold are reasons to.
 */
bool flow_gc_wanted(struct zse_engine *e)
{
	struct zse_flow *f = &e->flow;
	u32 soon = e->nr_state[ZSE_ZONE_EMPTY] + e->nr_state[ZSE_ZONE_VICTIM] +
		   e->nr_state[ZSE_ZONE_DRAINED] +
		   e->nr_state[ZSE_ZONE_RESETTING] - share_others_victims(e);

	if (soon < f->low)
		f->gc_running = true;
	else if (soon >= f->high)
		f->gc_running = false;
	zp_store(&f->urgent, !list_empty(&e->pool.stalled));
	zp_store(&e->share.gc_only, !f->gc_running && share_wants_gc(e));
	return flow_gc_may_begin(e) &&
	       ((f->gc_running && !resets_suffice(e)) ||
		e->recovery.nr_held || e->share.gc_only);
}

/* ---- pace ---- */

/* Live blocks of victims that GC has not read yet. */
static u64 left_to_read(const struct zse_engine *e)
{
	u64 left = 0;
	u32 i;

	for (i = 0; i < e->gc.nr_victims; i++) {
		const struct zse_zone *z = &e->zones[e->gc.victims[i]];
		u32 live = zp_load(&z->live);

		left += live > z->moving ? live - z->moving : 0;
	}
	return left;
}

/* Swap-out has sent @blocks: let GC read some. */
void flow_swapped_out(struct zse_engine *e, u32 blocks)
{
	u64 room, more, most = (u64)AHEAD * e->cfg.chunk_blocks;
	u32 pace = zp_load(&e->flow.pace);

	if (!e->gc.nr_victims || !pace)
		return;
	room = zp_div(flow_room(e) * pace, 100);
	if (room >= ZSE_NONE)
		room = ZSE_NONE;
	more = most;
	if (room >= blocks)
		more = zp_div(left_to_read(e) * blocks, (u32)room) + 1;
	more += e->flow.credit;
	e->flow.credit = more < most ? more : most;
}

/* GC has read @blocks. */
void flow_gc_read(struct zse_engine *e, u32 blocks)
{
	u64 *credit = &e->flow.credit;

	*credit = *credit > blocks ? *credit - blocks : 0;
}

/*
 * Must GC wait for swap-out before it reads more? Not if swap-out waits for GC,
 * nor if there is no swap-out.
 */
bool flow_gc_waits(const struct zse_engine *e)
{
	return zp_load(&e->flow.pace) && !e->flow.credit && e->flow.gc_on &&
	       e->pool.used && list_empty(&e->pool.stalled) &&
	       flow_room(e) >= e->cfg.chunk_blocks;
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
	zp_store(&e->flow.pace, pace);
	return true;
}

/* The pace in force. */
u32 zse_get_pace(const struct zse_engine *e)
{
	return zp_load(&e->flow.pace);
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

	zp_lock(&e->lock, flags);
	e->flow.gc_on = on;
	zp_unlock(&e->lock, flags);
}

/* ---- watermarks ---- */

/*
 * Check watermarks, and replace 0 by the default. By default GC starts while
 * one zone beyond those kept for it is empty, so that swap-out does not wait
 * while GC reads the first victim. It stops one zone later. A zone kept empty
 * gathers no stale blocks, and at 90 % utilization a percent of the device
 * costs a fifth of the WAF. Lanes that fill at the same time need a zone each
 * at once. If GC shares swap-out's zone it can start later, since both use the
 * rest of that zone. On a device with very few zones there may be none to
 * spare; zse_max_slots() leaves room for one. Does not need the engine lock.
 */
bool flow_watermarks(const struct zse_engine *e, u32 *low, u32 *high)
{
	u32 nr = zp_load(&e->placement.nr_streams);
	u32 lanes = zse_lanes(&e->cfg, nr);
	u32 min = e->cfg.reserve + zse_gc_lanes(&e->cfg);

	if (!*low) {
		*low = min + !e->shared + nr * (lanes - 1);
		if (*low + 1 >= e->cfg.nr_zones)
			*low = min;
	}
	if (!*high)
		*high = *low + 1;
	return *low >= min && *high > *low && *high < e->cfg.nr_zones;
}

/*
 * Set the watermarks to fit the streams, unless they are configured.
 * zse_gc_due() reads them without the lock and must never see 0, or GC would
 * not start.
 */
void flow_default_watermarks(struct zse_engine *e)
{
	u32 low = 0, high = e->cfg.gc_high;

	if (e->cfg.gc_low)
		return;
	if (!flow_watermarks(e, &low, &high)) {
		high = 0;
		flow_watermarks(e, &low, &high);
	}
	zp_store(&e->flow.low, low);
	zp_store(&e->flow.high, high);
}

/**
 * zse_set_watermarks() - change when GC runs
 * @e:	  engine
 * @low:  GC starts when fewer zones are empty; 0: the default
 * @high: GC stops when this many are; 0: @low + 1
 *
 * Return: false, with nothing changed, unless
 * reserve + GC's lanes <= low < high < zones.
 */
bool zse_set_watermarks(struct zse_engine *e, u32 low, u32 high)
{
	unsigned long flags;

	if (!flow_watermarks(e, &low, &high))
		return false;
	zp_lock(&e->lock, flags);
	zp_store(&e->flow.low, low);
	zp_store(&e->flow.high, high);
	zp_unlock(&e->lock, flags);
	return true;
}

/* The watermarks in force. */
void zse_get_watermarks(struct zse_engine *e, u32 *low, u32 *high)
{
	*low = zp_load(&e->flow.low);
	*high = zp_load(&e->flow.high);
}
