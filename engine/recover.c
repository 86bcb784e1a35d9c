// SPDX-License-Identifier: GPL-2.0
/*
 * Recovery from device errors.
 *
 * A command can fail because of a block, because of its zone, or because of
 * anything between the device and the host. The engine cannot tell which, so it
 * judges by what else works.
 *
 * After four failed appends in a row it assumes an outage. In an outage, an
 * error says nothing about its zone: the zone stays open and takes the next
 * try, so an outage uses up few zones. Otherwise an error changes the zone's
 * health (health.c): GC empties the zone, and the host resets it.
 *
 * A DEFERRED zone keeps its valid pages, since swap-in may still be able to
 * read them. GC leaves it alone until an eighth of the device has been swapped
 * out, and twice as long after each further failure. A block that GC fails to
 * read for the seventh time that way is lost. The wait is counted in blocks
 * swapped out, so a device that is away for hours loses no page: nothing is
 * swapped out meanwhile.
 *
 * Retired zones come back in rounds of retries. A round begins when an append
 * works after errors. While errors last, failed appends and refused chunks
 * begin rounds too: at first each one does, later only every 64th. A round
 * finishes zones that may still be active on the device, and resets retired
 * zones one after the other until four resets have failed. As a last resort,
 * before swap-out fails, a round includes WORN zones, and GC may read DEFERRED
 * ones early.
 *
 * A failed append of GC may cost the rest of a zone, so GC may empty one zone
 * after the other while swap-out waits, and never gain one. Once as many of its
 * appends have failed as there are zones, or some in half a minute, and no
 * append of swap-out has worked meanwhile, GC works in vain: the chunks that
 * wait fail. Later chunks get the same chance.
 *
 * Everything here runs under the engine lock; functions that the host calls
 * take it.
 */
#include "gc.h"

/* At most this many failed appends or refused chunks between two rounds. */
#define MAX_GAP		63
/* Chunks do not wait for longer while appends of GC fail: 30 s. */
#define VAIN_NS		30000000000ULL

/* Has recover_append_worked() anything to do? Context: any, a hint. */
bool recover_after_errors(const struct zse_engine *e)
{
	const struct zse_recovery *r = &e->recovery;

	return READ_ONCE(r->failing) || READ_ONCE(r->errors_in_row) ||
	       READ_ONCE(r->gap);
}

/* Request a round of retries, unless the last one was too recent. */
static bool round_schedule(struct zse_engine *e)
{
	struct zse_recovery *r = &e->recovery;

	if (r->countdown) {
		r->countdown--;
		return false;
	}
	WRITE_ONCE(r->gap, r->gap < MAX_GAP / 2 ? 2 * r->gap + 1 : MAX_GAP);
	r->countdown = r->gap;
	r->wanted = true;
	return true;
}

/* An append of GC failed. */
void recover_gc_append_failed(struct zse_engine *e, u64 now)
{
	struct zse_recovery *r = &e->recovery;

	lockdep_assert_held(&e->lock);
	if (list_empty(&e->pool.stalled))
		return;
	if (!READ_ONCE(r->vain))
		r->vain_since = now;
	WRITE_ONCE(r->vain, r->vain + 1);
}

/*
 * An append of swap-out worked. Without a lock: a failure of GC that is counted
 * at the same time may undo this, which the next one makes good.
 */
void recover_swapped_out(struct zse_engine *e)
{
	if (READ_ONCE(e->recovery.vain))
		WRITE_ONCE(e->recovery.vain, 0);
}

/*
 * If GC has worked in vain, the chunks that wait fail. The count begins anew,
 * so that later ones have the same chance.
 */
void recover_fail_waiting(struct zse_engine *e, u64 now)
{
	struct zse_recovery *r = &e->recovery;
	u32 vain = READ_ONCE(r->vain);
	bool slow = vain > ZSE_MAX_RETRIES && now > r->vain_since + VAIN_NS;

	lockdep_assert_held(&e->lock);
	if (vain < e->cfg.nr_zones && !slow)
		return;
	WRITE_ONCE(r->vain, 0);
	list_splice_tail_init(&e->pool.stalled, &e->pool.failed);
}

/*
 * An append to @z failed. The reason may be zones that are retired or could not
 * be finished: they may still be active on the device, so retry them.
 *
 * In an outage, only one error in each round counts against its zone, so that
 * another zone is tried in case it is no outage. No error counts against the
 * last zone that can be written: without it GC could not make room again.
 */
void recover_append_failed(struct zse_engine *e, struct zse_zone *z)
{
	struct zse_recovery *r = &e->recovery;
	bool outage = r->errors_in_row >= ZSE_MAX_RETRIES, round = false;

	lockdep_assert_held(&e->lock);
	WRITE_ONCE(r->errors_in_row, r->errors_in_row + 1);
	WRITE_ONCE(r->failing, true);
	e->counters.write_errors++;
	if (outage || r->nr_held || !list_empty(&e->retired))
		round = round_schedule(e);
	if ((!outage || round) && e->nr_state[ZSE_ZONE_EMPTY])
		zone_health_event(e, z, ZSE_WRITE_FAILED);
}

/* An append worked. If others failed before it, the device may be back. */
void recover_append_worked(struct zse_engine *e)
{
	struct zse_recovery *r = &e->recovery;

	lockdep_assert_held(&e->lock);
	WRITE_ONCE(r->failing, false);
	WRITE_ONCE(r->errors_in_row, 0);
	if (!r->gap)
		return;
	WRITE_ONCE(r->gap, 0);
	r->countdown = 0;
	r->wanted = true;
}

/*
 * Swap-out of @blocks fails because there is no room. Except in an outage, that
 * counts as demand, or the DEFERRED zones that hold the room would hold it
 * forever.
 */
void recover_refused(struct zse_engine *e, u32 blocks)
{
	struct zse_recovery *r = &e->recovery;

	lockdep_assert_held(&e->lock);
	if (!READ_ONCE(r->failing))
		WRITE_ONCE(r->refused, r->refused + blocks);
}

/*
 * GC could not move a block of @zone: it could not read the block (@unread), or
 * not write the copy. A try before retry_at, as a last resort, does not count:
 * the zone goes on waiting for the same retry_at.
 */
void recover_move_failed(struct zse_engine *e, u32 zone, bool unread)
{
	struct zse_zone *z = &e->zones[zone];
	u64 wait = e->usable_blocks / 8, now = recover_demand(e);

	lockdep_assert_held(&e->lock);
	if (!wait)
		wait = 1;
	if (unread)
		wait <<= z->unread;
	if (z->retry_at <= now) {
		WRITE_ONCE(z->retry_at, now + wait);
		if (!unread)
			z->unread = 0;
		else if (z->unread < ZSE_MAX_UNREAD)
			z->unread++;
	}
	zone_health_event(e, z, ZSE_MOVE_FAILED);
}

/* Is GC to give up what it cannot read of @z? */
bool recover_gives_up(const struct zse_engine *e, const struct zse_zone *z)
{
	return z->unread >= ZSE_MAX_UNREAD && z->retry_at <= recover_demand(e);
}

/**
 * zse_gc_entry_failed() - GC could not read a block
 * @e:	   engine
 * @c:	   chunk of ZSE_OP_READ, not yet reported as read
 * @index: entry
 *
 * The page stays where it is and GC tries again later, see above.
 *
 * Return: true if the page is lost; reads of its slot fail from now on.
 */
bool zse_gc_entry_failed(struct zse_engine *e, struct zse_chunk *c, u32 index)
{
	struct zse_entry *entry = &c->entries[index];
	const struct zse_zone *z = &e->zones[zse_block_zone(e, entry->expect)];
	unsigned long flags;
	bool lost;

	spin_lock_irqsave(&e->lock, flags);
	WRITE_ONCE(e->recovery.failing, true);
	e->counters.read_errors++;
	lost = recover_gives_up(e, z);
	spin_unlock_irqrestore(&e->lock, flags);
	entry->page = ZSE_NONE;
	if (!lost || !map_lose(e, entry))
		return false;
	spin_lock_irqsave(&e->lock, flags);
	e->counters.pages_lost++;
	spin_unlock_irqrestore(&e->lock, flags);
	return true;
}

/* Reset the longest retired zone once more, if the round has any left. */
static void round_next(struct zse_engine *e)
{
	struct zse_recovery *r = &e->recovery;
	struct zse_zone *z;

	list_for_each_entry(z, &e->retired, link) {
		if (!r->left)
			return;
		if (z->health == ZSE_WORN && !r->last_resort)
			continue;
		r->left--;
		/* One failure ends this try. */
		z->tries = ZSE_MAX_RETRIES;
		zone_set_state(e, z - e->zones, ZSE_ZONE_DRAINED);
		zone_health_event(e, z, ZSE_RETRY);
		return;
	}
	r->left = 0;
}

/* Finish zones that may still be active, if there are places for that. */
static void finish_again(struct zse_engine *e)
{
	u32 i;

	for (i = 0; i < e->cfg.nr_zones; i++) {
		struct zse_zone *z = &e->zones[i];

		if (z->place == ZSE_PLACE_NONE || z->state != ZSE_ZONE_FULL)
			continue;
		/* A zone that is being finished counts as active. */
		if (z->place == ZSE_PLACE_RELEASED && e->cfg.max_active &&
		    zones_active(e) >= e->cfg.max_active)
			continue;
		if (z->place == ZSE_PLACE_HELD)
			zone_set_place(e, z, ZSE_PLACE_NONE);
		z->tries = ZSE_MAX_RETRIES;
		zone_set_state(e, i, ZSE_ZONE_FINISH);
	}
}

static void round_begin(struct zse_engine *e, bool last_resort)
{
	struct zse_recovery *r = &e->recovery;

	r->wanted = false;
	r->last_resort = last_resort;
	r->left = e->nr_state[ZSE_ZONE_RETIRED];
	r->failures = 0;
	finish_again(e);
	round_next(e);
}

/*
 * Begin a round of retries if one is wanted. For the caller of zse_next_op().
 */
void recover_retry(struct zse_engine *e)
{
	lockdep_assert_held(&e->lock);
	if (e->recovery.wanted)
		round_begin(e, false);
}

/*
 * Swap-out is about to fail: begin a round of retries that includes worn zones,
 * and let GC read deferred zones at once. Returns false if the last round was
 * too recent.
 */
bool recover_last_resort(struct zse_engine *e)
{
	u32 i;

	lockdep_assert_held(&e->lock);
	if (!round_schedule(e))
		return false;
	round_begin(e, true);
	for (i = 0; i < e->cfg.nr_zones; i++)
		if (e->zones[i].health == ZSE_DEFERRED)
			zone_health_event(e, &e->zones[i], ZSE_RETRY);
	return true;
}

/*
 * Count a finish or reset of @z that has ended. Returns true to retry at once.
 */
static bool command_retry(struct zse_engine *e, struct zse_zone *z, bool ok)
{
	e->counters.write_errors += !ok;
	if (!ok && z->tries < ZSE_MAX_RETRIES) {
		z->tries++;
		return true;
	}
	z->tries = 0;
	return false;
}

/**
 * zse_reset_done() - a reset asked for by ZSE_OP_RESET has ended
 * @e:	  engine
 * @zone: zone
 * @ok:	  false: the device refused it. After some tries the zone is retired; a
 *	  worn zone is retired even if the reset worked
 *
 * Return: true, since chunks may wait for the zone.
 */
bool zse_reset_done(struct zse_engine *e, u32 zone, bool ok)
{
	struct zse_zone *z = &e->zones[zone];
	struct zse_recovery *r = &e->recovery;
	unsigned long flags;

	spin_lock_irqsave(&e->lock, flags);
	e->counters.zone_resets += ok;
	if (command_retry(e, z, ok)) {
		zone_set_state(e, zone, ZSE_ZONE_DRAINED);
		goto out;
	}
	if (ok) {
		zone_set_place(e, z, ZSE_PLACE_NONE);
		z->unread = 0;
		WRITE_ONCE(z->retry_at, 0);
	} else {
		r->failures++;
	}
	zone_health_event(e, z, ok ? ZSE_RESET_DONE : ZSE_RESET_FAILED);
	zone_set_state(e, zone, ok && z->health != ZSE_WORN ?
				ZSE_ZONE_EMPTY : ZSE_ZONE_RETIRED);
	flow_lane_back(e);
	if (r->failures <= ZSE_MAX_RETRIES)
		round_next(e);
out:
	spin_unlock_irqrestore(&e->lock, flags);
	return true;
}

/**
 * zse_finish_done() - a finish asked for by ZSE_OP_FINISH has ended
 * @e:	  engine
 * @zone: zone
 * @ok:	  false: the device refused it. The engine tries again a few times, then
 *	  counts the zone as active until it is reset
 *
 * Return: true, since chunks may wait for a place among active zones.
 */
bool zse_finish_done(struct zse_engine *e, u32 zone, bool ok)
{
	struct zse_zone *z = &e->zones[zone];
	unsigned long flags;

	spin_lock_irqsave(&e->lock, flags);
	if (command_retry(e, z, ok)) {
		zone_set_state(e, zone, ZSE_ZONE_FINISH);
	} else {
		if (!ok)
			zone_health_event(e, z, ZSE_WRITE_FAILED);
		/* A released place may be in use, so it is not held again. */
		if (ok)
			zone_set_place(e, z, ZSE_PLACE_NONE);
		else if (z->place != ZSE_PLACE_RELEASED)
			zone_set_place(e, z, ZSE_PLACE_HELD);
		zone_set_state(e, zone, ZSE_ZONE_FULL);
	}
	spin_unlock_irqrestore(&e->lock, flags);
	return true;
}
