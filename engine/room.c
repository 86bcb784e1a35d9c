// SPDX-License-Identifier: GPL-2.0
/*
 * Room: how much swap-out and GC may write. It is counted in blocks of open and
 * of empty zones:
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
 */
#include "room.h"

/*
 * Empty zones kept for GC: the reserve, and one for each of its lanes without.
 */
u32 flow_kept_zones(const struct zse_engine *e)
{
	u32 open = 0, i;

	lockdep_assert_held(&e->lock);
	for (i = 0; i < e->gc.stripe.nr; i++)
		open += e->gc.stripe.zone[i] != ZSE_NONE;
	/* GC's first zone may come from the reserve. */
	if (!open)
		open = 1;
	return e->cfg.reserve +
	       (e->gc.lanes > open ? e->gc.lanes - open : 0);
}

/* Are there an empty zone for swap-out (or @gc) and a place to open it? */
bool zone_may_open(const struct zse_engine *e, bool gc)
{
	u32 kept_active = !gc && !e->shared && !stripe_is_open(&e->gc.stripe);

	lockdep_assert_held(&e->lock);
	if (e->nr_state[ZSE_ZONE_EMPTY] <= (gc ? 0 : flow_kept_zones(e)))
		return false;
	return !e->cfg.max_active ||
	       zones_active(e) + kept_active < e->cfg.max_active;
}

/*
 * A zone was reset. If GC has given up a lane and swap-out can do without this
 * zone, GC has the lane back.
 */
void flow_lane_back(struct zse_engine *e)
{
	lockdep_assert_held(&e->lock);
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
		u32 live = zone_live(z);
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

	lockdep_assert_held(&e->lock);
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

	lockdep_assert_held(&e->lock);
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
	u32 nr = READ_ONCE(e->placement.nr_streams);
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

	lockdep_assert_held(&e->lock);
	if (!flow_watermarks(e, &low, &high)) {
		high = 0;
		flow_watermarks(e, &low, &high);
	}
	WRITE_ONCE(e->flow.low, low);
	WRITE_ONCE(e->flow.high, high);
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
	spin_lock_irqsave(&e->lock, flags);
	e->flow.wanted_low = wanted_low;
	e->flow.wanted_high = wanted_high;
	WRITE_ONCE(e->flow.low, low);
	WRITE_ONCE(e->flow.high, high);
	spin_unlock_irqrestore(&e->lock, flags);
	return true;
}

/* The watermarks in force. */
void zse_get_watermarks(struct zse_engine *e, u32 *low, u32 *high)
{
	*low = READ_ONCE(e->flow.low);
	*high = READ_ONCE(e->flow.high);
}
