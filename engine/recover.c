// SPDX-License-Identifier: GPL-2.0
/*
 * Errors of the device, and what becomes of zones that had some.
 *
 * An error may be of a block, of a zone, or of all that is between it and us; the
 * last passes. The engine cannot tell one from another by itself, so it goes by
 * what comes after.
 *
 * - An append or a finish that failed: the zone is bad. GC moves what it holds, and
 *   it is reset. If that works it is written again; if it fails again before it was
 *   written to its end, while others work, it is worn, and retired.
 * - A finish or a reset is tried again some times at once. A zone that is not
 *   reset then is retired.
 * - A block that GC cannot read, or write elsewhere, stays where it is. Its zone is
 *   put aside.
 *
 * So a device that is away for a while, with every command failing at once, loses
 * the zones that were to be written meanwhile, which hold nothing, and no page.
 * When there is nowhere left to write, retired zones are tried again. No page is given
 * up for that: rather, swap-out fails, as long as it may be an outage.
 *
 * Everything here runs under the engine lock, but zse_read_worked(); what the host calls
 * takes it.
 */
#include "internal.h"

/* Chunks that fail before it is tried again whether the device is there. */
#define MAX_TRY_GAP	63

/*
 * Is it time to try again what failed before? More and more rarely, until an
 * append works.
 */
bool zones_want_try(struct zse_engine *e)
{
	if (e->try_in) {
		e->try_in--;
		return false;
	}
	e->try_gap = e->try_gap < MAX_TRY_GAP / 2 ? 2 * e->try_gap + 1 :
						    MAX_TRY_GAP;
	e->try_in = e->try_gap;
	e->wants_try = true;
	return true;
}

/* An append or the finish failed. What it holds is to be moved. */
static void zone_failed(struct zse_engine *e, struct zse_zone *z)
{
	if (z->bad)
		return;
	zp_store(&e->nr_bad, e->nr_bad + 1);
	zp_store(&z->bad, true);
	/* If nothing works anywhere, it is not the zone. */
	if (e->errors_in_row <= ZSE_MAX_RETRIES)
		z->failures++;
}

/*
 * An append to @z failed. One reason is that zones which are retired, or were not
 * finished, are still active on the device; if none works, perhaps one that was let
 * go.
 */
void zone_append_failed(struct zse_engine *e, struct zse_zone *z)
{
	zp_store(&e->failing, true);
	e->errors_in_row++;
	zone_failed(e, z);
	e->counters.write_errors++;
	if (e->nr_held || !list_empty(&e->retired) ||
	    e->errors_in_row > ZSE_MAX_RETRIES)
		zones_want_try(e);
}

/* If appends have failed, it may have been the device, which is back then. */
void zone_append_worked(struct zse_engine *e)
{
	zp_store(&e->failing, false);
	e->errors_in_row = 0;
	if (!e->try_gap)
		return;
	e->try_gap = 0;
	e->try_in = 0;
	e->wants_try = true;
	/* What was lost may come back; if not, GC makes do with fewer once more. */
	e->gc_stripe.kept = zse_gc_lanes(&e->cfg);
}

/**
 * zse_read_failed() - blocks could not be read
 * @e:	engine
 * @nr: of them
 */
void zse_read_failed(struct zse_engine *e, u32 nr)
{
	unsigned long flags;

	zp_lock(&e->lock, flags);
	zp_store(&e->failing, true);
	e->counters.read_errors += nr;
	zp_unlock(&e->lock, flags);
}

/**
 * zse_read_worked() - a swap-in read has ended well
 * @e: engine
 *
 * It tells that the device is there, which matters after an error only. Takes no lock.
 */
void zse_read_worked(struct zse_engine *e)
{
	if (zp_load(&e->failing))
		zp_store(&e->failing, false);
}

/* The device counts @z as active, for all we know, though it takes no appends. */
static void zone_hold(struct zse_engine *e, struct zse_zone *z, bool on)
{
	e->nr_held += on - z->held;
	z->held = on;
	z->active = on;
	z->let_go &= on;
}

/*
 * @z was reset, so it can be written: it was no more than the command that
 * failed, which a lost interrupt or a path that was down for a moment can do,
 * or the block, which the next error will tell.
 */
static void zone_trust_again(struct zse_engine *e, struct zse_zone *z)
{
	zp_store(&e->nr_bad, e->nr_bad - z->bad);
	zp_store(&z->bad, false);
	zp_store(&z->unread, 0);
	z->aside_until = 0;
	zone_hold(e, z, false);
}

/*
 * Take a zone that the device did not finish for inactive. Returns false if
 * there is none.
 */
bool zone_let_go(struct zse_engine *e)
{
	u32 i;

	for (i = 0; e->nr_held && i < e->cfg.nr_zones; i++) {
		if (!e->zones[i].held)
			continue;
		e->zones[i].held = false;
		e->zones[i].let_go = true;
		e->nr_held--;
		return true;
	}
	return false;
}

/*
 * Not all that GC was to move out of @zone could be read, or written. It is left
 * alone until an eighth of the device was swapped out, and twice as long each time:
 * the error may pass, and whoever wants these pages may be able to read them. So
 * nothing is given up by a device that is away for a moment, which writes nothing
 * either, nor by one a part of which is away now and then. What had to be refused
 * since such zones hold the room counts, too, or they would hold it for ever; but only
 * if something could be read or written since the last error.
 */
void zone_put_aside(struct zse_engine *e, u32 zone, enum zse_aside why)
{
	struct zse_zone *z = &e->zones[zone];
	u64 wait = (u64)(e->usable_blocks / 8) << z->unread;

	/* Tried before its time, see zones_try_again(): that was no try. */
	if (z->aside_until <= e->demand)
		z->aside_until = e->demand + wait;
	if (!e->nr_aside || z->aside_until < e->aside_until)
		e->aside_until = z->aside_until;
	e->nr_aside += z->aside == ZSE_NOT_ASIDE;
	if (z->aside != ZSE_UNREAD)
		zp_store(&z->aside, why);
}

/* @zone is a zone like others again. */
void zone_take_back(struct zse_engine *e, struct zse_zone *z)
{
	e->nr_aside -= z->aside != ZSE_NOT_ASIDE;
	zp_store(&z->aside, ZSE_NOT_ASIDE);
}

/* What could be read of @z, though not written, was not in vain. */
static void zone_was_read(struct zse_zone *z)
{
	if (z->aside == ZSE_UNWRITTEN)
		zp_store(&z->unread, 0);
}

/* Let GC read those that were put aside. */
static void zones_take_back(struct zse_engine *e)
{
	u32 i;

	for (i = 0; e->nr_aside && i < e->cfg.nr_zones; i++) {
		zone_was_read(&e->zones[i]);
		zone_take_back(e, &e->zones[i]);
	}
}

/*
 * The same with those whose time has come. The device took so much meanwhile that it
 * counts against them: what could not be read some times in a row is lost.
 */
void zones_look_again(struct zse_engine *e)
{
	u64 next = 0;
	u32 i;

	if (!e->nr_aside || e->demand < e->aside_until)
		return;
	for (i = 0; i < e->cfg.nr_zones; i++) {
		struct zse_zone *z = &e->zones[i];

		if (z->aside == ZSE_NOT_ASIDE)
			continue;
		if (e->demand < z->aside_until) {
			if (!next || z->aside_until < next)
				next = z->aside_until;
			continue;
		}
		if (z->aside == ZSE_UNREAD && z->unread < ZSE_MAX_UNREAD)
			zp_store(&z->unread, z->unread + 1);
		zone_was_read(z);
		zone_take_back(e, z);
	}
	e->aside_until = next;
}

/* A finish or reset of @z has ended. Is it to be tried again? */
static bool zone_try_again(struct zse_engine *e, struct zse_zone *z, bool ok)
{
	if (!ok)
		e->counters.write_errors++;
	if (!ok && z->tries++ < ZSE_MAX_RETRIES)
		return true;
	z->tries = 0;
	return false;
}

/*
 * Try once more to reset the zone that is retired longest. A device that was away
 * for long (a path that was cut, say) may have lost all zones that were to be
 * reset then. The others follow, until some have failed. Worn ones, which can be
 * reset but not written to their end, if that is better than nothing.
 */
static void zone_revive(struct zse_engine *e)
{
	struct list_head *from = &e->retired;
	struct zse_zone *z;

	if (e->revives_worn && !list_empty(&e->worn))
		from = &e->worn;
	if (!e->revives || list_empty(from))
		return;
	e->revives--;
	z = list_first_entry(from, struct zse_zone, link);
	zp_store(&e->nr_bad, e->nr_bad + z->bad);
	e->usable_blocks += z->cap;
	/* The next error of an append ends it. */
	z->failures = ZSE_MAX_FAILURES;
	z->revived = true;
	z->tries = ZSE_MAX_RETRIES;
	zone_set_state(e, z - e->zones, ZSE_ZONE_DRAINED);
}

/* That failed: it is the zone, or the device. */
static void zone_not_revived(struct zse_engine *e)
{
	if (++e->not_revived > ZSE_MAX_RETRIES)
		e->revives = 0;
	zone_revive(e);
}

/*
 * Finish zones once more that may be active still. If there is no place for any
 * and no append works, this is wanted again: one of them may have the place.
 */
static void zones_finish_again(struct zse_engine *e)
{
	bool some = false, no_place = false;
	u32 i;

	for (i = 0; i < e->cfg.nr_zones; i++) {
		struct zse_zone *z = &e->zones[i];

		if (!z->active || z->state != ZSE_ZONE_FULL)
			continue;
		/* While it is finished it counts as active anyway. */
		if (!z->held && e->cfg.max_active &&
		    zones_active(e) >= e->cfg.max_active) {
			no_place = true;
			continue;
		}
		some = true;
		e->nr_held -= z->held;
		z->held = false;
		z->tries = ZSE_MAX_RETRIES;
		zone_set_state(e, i, ZSE_ZONE_FINISH);
	}
	e->wants_finish = no_place && !some && e->errors_in_row;
}

/*
 * Try what failed before, if that is wanted: to finish zones that may be active
 * still, and to reset retired ones. If swap-out fails otherwise (@last), also to
 * write worn ones, and to move what was put aside. For the caller of zse_next_op().
 */
void zones_try_again(struct zse_engine *e, bool last)
{
	if (e->wants_try || (e->wants_finish && clean_may_begin(e)))
		zones_finish_again(e);
	if (!e->wants_try)
		return;
	e->wants_try = false;
	carry_resume(e);
	e->revives = e->nr_state[ZSE_ZONE_RETIRED];
	e->not_revived = 0;
	e->revives_worn = last;
	zone_revive(e);
	if (last)
		zones_take_back(e);
}

/**
 * zse_reset_done() - a reset asked for by ZSE_OP_RESET has ended
 * @e:	  engine
 * @zone: zone
 * @ok:	  false: the device refused; after some tries the zone is retired, as is
 *	  one that failed again before it was written to its end
 *
 * Return: true, chunks may have waited for it.
 */
bool zse_reset_done(struct zse_engine *e, u32 zone, bool ok)
{
	struct zse_zone *z = &e->zones[zone];
	unsigned long flags;

	zp_lock(&e->lock, flags);
	e->counters.zone_resets += ok;
	if (zone_try_again(e, z, ok)) {
		zone_set_state(e, zone, ZSE_ZONE_DRAINED);
	} else if (!ok || z->failures > ZSE_MAX_FAILURES) {
		bool revived = z->revived;

		z->revived = false;
		/* Not worn, for all we know. */
		if (!ok)
			z->failures = 0;
		zone_set_state(e, zone, ZSE_ZONE_RETIRED);
		if (revived)
			zone_not_revived(e);
	} else {
		zone_trust_again(e, z);
		zone_set_state(e, zone, ZSE_ZONE_EMPTY);
		/* Else zones_try_again() does, more and more rarely. */
		if (e->errors_in_row <= ZSE_MAX_RETRIES)
			carry_resume(e);
		if (z->revived)
			zone_revive(e);
		z->revived = false;
	}
	zp_unlock(&e->lock, flags);
	return true;
}

/**
 * zse_finish_done() - a finish asked for by ZSE_OP_FINISH has ended
 * @e:	  engine
 * @zone: zone
 * @ok:	  false: the device refused, which is tried again; the zone takes no
 *	  more appends either way
 *
 * Return: true, chunks may have waited for the place among active zones.
 */
bool zse_finish_done(struct zse_engine *e, u32 zone, bool ok)
{
	struct zse_zone *z = &e->zones[zone];
	unsigned long flags;

	zp_lock(&e->lock, flags);
	if (zone_try_again(e, z, ok)) {
		zone_set_state(e, zone, ZSE_ZONE_FINISH);
	} else {
		if (!ok)
			zone_failed(e, z);
		/* What was let go does not take a place from others again. */
		if (ok || !z->let_go)
			zone_hold(e, z, !ok);
		zone_set_state(e, zone, ZSE_ZONE_FULL);
	}
	zp_unlock(&e->lock, flags);
	return true;
}
