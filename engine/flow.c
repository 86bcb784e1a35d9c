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
 * Window. Pages in flight hold memory while memory is short, and they queue in
 * front of reads. A device gains nothing from more than keeps it busy: its
 * rate, times the time that an append takes which finds no queue (N. Cardwell
 * et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016).
 * The window is twice that, so that it finds out whether more in flight raises
 * the rate; three times where a zone takes one append at a time and the next
 * waits. Above it, swap-out gets no new chunk.
 *
 * An append measures both when it ends: what the device wrote since it was
 * sent, over the time since; and that time. The window holds for a round, in
 * which the device writes as much as the window. Once in a cycle of rounds the
 * window is at its least, so that the device's queue empties and the time can
 * be measured. The rate is the best of two cycles: a lull does not shrink the
 * window.
 */
#include "internal.h"

/* Chunks in flight, at least. */
#define MIN_IN_FLIGHT	4
/* Rounds of a cycle, of which the first one empties the queue. */
#define CYCLE		16
/* Rates are in blocks a 2^RATE_SHIFT ns (17 ms): 1 GB/s is 4,096. */
#define RATE_SHIFT	24
/* An append that takes longer says nothing of the device: 4 s. */
#define MAX_NS		4000000000ULL
/* Chunks that GC may be ahead of its pace, so that it reads whole chunks. */
#define AHEAD		2

/* ---- the window ---- */

static u32 window_min(const struct zse_engine *e)
{
	u32 chunks = e->cfg.nr_chunks;

	return (chunks < MIN_IN_FLIGHT ? chunks : MIN_IN_FLIGHT) *
	       batch_blocks(&e->cfg);
}

/* Before anything else runs. */
void flow_init(struct zse_engine *e)
{
	e->flow.gc_on = true;
	e->flow.pace = e->cfg.pace;
	e->flow.low = e->flow.wanted_low = e->cfg.gc_low;
	e->flow.high = e->flow.wanted_high = e->cfg.gc_high;
	e->flow.window = window_min(e);
	e->flow.round_end = e->flow.window;
	e->flow.shortest = ZSE_NONE;
}

/* May swap-out have one more chunk? Context: any, a hint. */
bool flow_window_open(const struct zse_engine *e)
{
	return zp_load(&e->flow.in_flight) < zp_load(&e->flow.window);
}

/**
 * flow_append_ended() - an append worked: measure the device
 * @e:	    engine
 * @c:	    its chunk
 * @blocks: written
 * @now:    ns
 *
 * Context: any, without a lock. An update that another CPU overwrites is
 * missed, which the next append makes good.
 */
void flow_append_ended(struct zse_engine *e, const struct zse_chunk *c,
		       u32 blocks, u64 now)
{
	struct zse_flow *f = &e->flow;
	u32 took, rate;

	zp_add(&f->delivered, blocks);
	if (now <= c->sent || now - c->sent > MAX_NS)
		return;
	took = now - c->sent;
	blocks = zp_load(&f->delivered) - c->delivered;
	rate = zp_div((u64)blocks << RATE_SHIFT, took);
	if (rate > zp_load(&f->rate))
		zp_store(&f->rate, rate);
	if (took < zp_load(&f->shortest))
		zp_store(&f->shortest, took);
}

/*
 * What keeps the device busy, and as much again, within what there are chunks
 * for. Where a zone takes one append at a time, as much waits for its end.
 */
static u32 window_for(const struct zse_engine *e, u32 rate, u32 shortest)
{
	u32 least = window_min(e);
	u64 most = (u64)e->cfg.nr_chunks * batch_blocks(&e->cfg);
	u64 busy = (u64)rate * shortest >> RATE_SHIFT;
	u64 window = (e->cfg.serial ? 3 : 2) * busy;

	if (window > most)
		window = most;
	return window > least ? (u32)window : least;
}

/* A round has ended: set the window for the next. */
static void round_begin(struct zse_engine *e)
{
	struct zse_flow *f = &e->flow;
	u32 rate = zp_load(&f->rate), shortest = zp_load(&f->shortest);
	u32 window = f->window;

	f->round = (f->round + 1) % CYCLE;
	if (rate < f->last_rate)
		rate = f->last_rate;
	if (f->round) {
		window = window_for(e, rate, shortest);
		f->round_end = zp_load(&f->delivered) + window;
	} else {
		/*
		 * What is in flight has to end before anything can be measured.
		 */
		f->round_end = zp_load(&f->delivered) + window + window_min(e);
		window = window_min(e);
		f->last_rate = zp_load(&f->rate);
		zp_store(&f->rate, 0);
		zp_store(&f->shortest, ZSE_NONE);
	}
	zp_store(&f->window, window);
}

/* @c goes to the device. */
void flow_append_sent(struct zse_engine *e, struct zse_chunk *c, u64 now)
{
	struct zse_flow *f = &e->flow;

	c->sent = now;
	c->delivered = zp_load(&f->delivered);
	if ((s32)(c->delivered - f->round_end) >= 0 &&
	    zp_load(&f->shortest) != ZSE_NONE)
		round_begin(e);
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
 * A zone was reset. If GC has given up a lane and swap-out can do without this
 * zone, GC has the lane back.
 */
void flow_lane_back(struct zse_engine *e)
{
	if (e->gc.lanes < zse_gc_lanes(&e->cfg) &&
	    e->nr_state[ZSE_ZONE_EMPTY] > flow_kept_zones(e) + 1)
		e->gc.lanes++;
}

/*
 * Blocks that GC may still write for its victims. Each chunk is padded
 * separately, and may lose entries before. Blocks that GC has read stay live in
 * the victim until they are moved, so a victim counts at most for the blocks
 * that GC has not looked at. Packed pages that are being read may all be live.
 */
static u32 promised(const struct zse_engine *e)
{
	u32 padding = e->pool.gc_used * (e->cfg.write_unit - 1), i;
	u32 blocks = round_up_unit(e, e->gc.unplaced + e->gc.claimed + padding);

	for (i = 0; i < e->gc.nr_victims; i++) {
		const struct zse_zone *z = &e->zones[e->gc.victims[i]];
		u32 live = zp_load(&z->live);
		u32 left = e->cfg.zone_blocks - z->cursor;

		blocks += round_up_unit(e, live < left ? live : left) +
			  packed_waste(&e->cfg);
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

	if (e->shared) {
		room = stripe_room(e, &e->gc.stripe) +
		       empty * e->cfg.zone_blocks;
		taken = promised(e) + (u64)e->cfg.reserve * e->cfg.zone_blocks;
		return room > taken ? room - taken : 0;
	}
	taken = flow_kept_zones(e);
	room = empty > taken ? (empty - taken) * e->cfg.zone_blocks : 0;
	return room + e->flow.open_room;
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
bool flow_gc_update(struct zse_engine *e)
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

/*
 * Must GC wait for swap-out before it reads more? Not if swap-out waits for GC,
 * nor if there is no swap-out.
 */
bool flow_gc_waits(const struct zse_engine *e)
{
	return zp_load(&e->flow.pace) && !e->flow.credit && e->flow.gc_on &&
	       zp_load(&e->flow.in_flight) && list_empty(&e->pool.stalled) &&
	       flow_room(e) >= batch_blocks(&e->cfg);
}

/* Swap-out has sent @blocks: let GC read some. */
void flow_swapped_out(struct zse_engine *e, u32 blocks)
{
	u64 room, more, most = (u64)AHEAD * batch_blocks(&e->cfg);
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
	zp_store(&e->gc.due, !flow_gc_waits(e));
}

/* GC has read @blocks. */
void flow_gc_read(struct zse_engine *e, u32 blocks)
{
	u64 *credit = &e->flow.credit;

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
 * Set the watermarks to fit the streams, unless somebody wants others.
 * zse_gc_due() reads them without the lock and must never see 0, or GC would
 * not start.
 */
void flow_default_watermarks(struct zse_engine *e)
{
	u32 low = e->flow.wanted_low, high = e->flow.wanted_high;

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
 * What is not 0 stays when the policy changes.
 *
 * Return: false, with nothing changed, unless
 * reserve + GC's lanes <= low < high < zones.
 */
bool zse_set_watermarks(struct zse_engine *e, u32 low, u32 high)
{
	u32 wanted_low = low, wanted_high = high;
	unsigned long flags;

	if (!flow_watermarks(e, &low, &high))
		return false;
	zp_lock(&e->lock, flags);
	e->flow.wanted_low = wanted_low;
	e->flow.wanted_high = wanted_high;
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
