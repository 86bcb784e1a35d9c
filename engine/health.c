// SPDX-License-Identifier: GPL-2.0
/*
 * What errors say of a zone, and whether the device counts it as active.
 *
 * recover.c has the events; the diagram is here:
 *
 *	       write failed               reset
 *	GOOD --------------> FAILED -----------------> PROBATION
 *	  ^                                              |   |
 *	  +------------- written to its end -------------+   | write failed,
 *	                                                     | others work
 *	         retired <------- reset --------- WORN <-----+
 *
 *	any --- GC could not move a block ---> DEFERRED
 *	DEFERRED --- retry, reset ---> PROBATION
 *	any --- reset failed ---> FAILED, and retired
 *	any --- its pages are lost ---> GONE --- reset ---> PROBATION
 *
 * GC empties a FAILED or WORN zone before others, and the host resets it. A
 * zone whose reset fails, or that is WORN, is retired: it holds nothing and is
 * not used.
 *
 * Under the engine lock, but for zone_is_failed() and zone_is_deferred().
 */
#include "zone.h"

static const u8 next_health[ZSE_NR_HEALTHS][ZSE_NR_HEALTH_EVENTS] = {
	/*
	 * WRITE_FAILED, MOVE_FAILED, RETRY, RESET_DONE, RESET_FAILED, FILLED,
	 * PAGES_LOST
	 */
	[ZSE_GOOD] = { ZSE_FAILED, ZSE_DEFERRED, ZSE_GOOD,
		       ZSE_GOOD, ZSE_FAILED, ZSE_GOOD, ZSE_GONE },
	[ZSE_PROBATION] = { ZSE_WORN, ZSE_DEFERRED, ZSE_PROBATION,
			    ZSE_PROBATION, ZSE_FAILED, ZSE_GOOD, ZSE_GONE },
	[ZSE_FAILED] = { ZSE_FAILED, ZSE_DEFERRED, ZSE_FAILED,
			 ZSE_PROBATION, ZSE_FAILED, ZSE_FAILED, ZSE_GONE },
	[ZSE_WORN] = { ZSE_WORN, ZSE_DEFERRED, ZSE_FAILED,
		       ZSE_WORN, ZSE_FAILED, ZSE_WORN, ZSE_GONE },
	[ZSE_DEFERRED] = { ZSE_DEFERRED, ZSE_DEFERRED, ZSE_PROBATION,
			   ZSE_PROBATION, ZSE_FAILED, ZSE_DEFERRED, ZSE_GONE },
	[ZSE_GONE] = { ZSE_GONE, ZSE_GONE, ZSE_GONE,
		       ZSE_PROBATION, ZSE_FAILED, ZSE_GONE, ZSE_GONE },
};

/*
 * Must @z be emptied because it takes no more appends? Context: any, a hint.
 */
bool zone_is_failed(const struct zse_zone *z)
{
	u32 health = READ_ONCE(z->health);

	return health == ZSE_FAILED || health == ZSE_WORN || health == ZSE_GONE;
}

/* Does GC leave @z alone for now? Context: any, a hint. */
bool zone_is_deferred(const struct zse_engine *e, const struct zse_zone *z)
{
	return READ_ONCE(z->health) == ZSE_DEFERRED &&
	       recover_demand(e) < READ_ONCE(z->retry_at);
}

/*
 * The time that deferred zones wait: blocks swapped out, and those refused
 * although the device works. Context: any.
 */
u64 recover_demand(const struct zse_engine *e)
{
	u64 demand = READ_ONCE(e->recovery.refused);
	u32 i;

	for (i = 0; i < e->nr_shards; i++)
		demand += atomic64_read(&e->shards[i].host_blocks);
	return demand;
}

/* The only place that changes a zone's health. */
void zone_health_event(struct zse_engine *e, struct zse_zone *z,
		       enum zse_health_event what)
{
	u32 *nr = &e->recovery.nr_failed, *gone = &e->recovery.nr_gone;
	bool failed = zone_is_failed(z), was_gone = zone_is_gone(z);

	lockdep_assert_held(&e->lock);
	WRITE_ONCE(z->health, next_health[z->health][what]);
	WRITE_ONCE(*gone, *gone + zone_is_gone(z) - was_gone);
	if (z->state != ZSE_ZONE_RETIRED)
		WRITE_ONCE(*nr, *nr + zone_is_failed(z) - failed);
}

/*
 * Record whether the device counts @z as active although it takes no appends.
 */
void zone_set_place(struct zse_engine *e, struct zse_zone *z,
		    enum zse_place place)
{
	lockdep_assert_held(&e->lock);
	e->recovery.nr_held += (place == ZSE_PLACE_HELD) -
			       (z->place == ZSE_PLACE_HELD);
	z->place = place;
}

/* @z is retired, so swap-out must not wait for its place. */
void recover_release_held(struct zse_engine *e, struct zse_zone *z)
{
	if (z->place == ZSE_PLACE_HELD)
		zone_set_place(e, z, ZSE_PLACE_RELEASED);
}

/*
 * Assume that a zone which the device did not finish is inactive, so that
 * another one may be opened. Returns false if there is none.
 */
bool recover_release_place(struct zse_engine *e)
{
	u32 i;

	for (i = 0; e->recovery.nr_held && i < e->cfg.nr_zones; i++) {
		if (e->zones[i].place != ZSE_PLACE_HELD)
			continue;
		zone_set_place(e, &e->zones[i], ZSE_PLACE_RELEASED);
		return true;
	}
	return false;
}
