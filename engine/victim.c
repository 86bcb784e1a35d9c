// SPDX-License-Identifier: GPL-2.0
/*
 * The choice of GC's next victim, and of the class of its survivors. If the
 * policy does not choose, one of the rules here does; the device has a setting
 * for it.
 *
 * Only the caller of zse_next_op() takes zones out of the state FULL, and the
 * blocks of a full zone can only become stale. So GC can look for a victim
 * without the engine lock: until GC begins it, the victim only gets better.
 */
#include "gc.h"

const char *const zse_victim_names[ZSE_NR_VICTIMS] = {
	[ZSE_VICTIM_GREEDY] = "greedy",
	[ZSE_VICTIM_COST_BENEFIT] = "cost-benefit",
	[ZSE_VICTIM_AGE] = "age",
};

/* From so many zones on, a walk of them keeps more than one victim, */
#define MANY_ZONES	2048
/* one for this many; */
#define WALKED_ZONES	1024
/* and walks that find none look at this many for each page swapped out. */
#define WALKED_A_PAGE	8
/* Lists looked at for a victim, at most. */
#define MOST_LISTS	256

/* Blocks swapped out since @z became full. */
static u64 since_filled(const struct zse_engine *e, const struct zse_zone *z)
{
	u64 now = READ_ONCE(e->clock), filled = READ_ONCE(z->filled);

	return now > filled ? now - filled : 0;
}

/*
 * Score of a zone with @live blocks to move. GC cleans the zone with the
 * highest.
 *
 * greedy: stale blocks.
 *
 * cost-benefit: stale blocks, times how long the zone has been full, over
 * blocks to read and write (M. Rosenblum and J. K. Ousterhout, "The Design and
 * Implementation of a Log-Structured File System", ACM TOCS 10(1), 1992). If
 * many blocks of a zone became stale early, more soon will, so waiting pays.
 * The age of the pages would not serve: pages that GC moved are older than
 * their zone, which has had little time to lose any.
 *
 * age: the same, over live blocks only.
 *
 * While swap-out waits, every rule is greedy. The clock stands still then, and
 * GC would move old zones forever and gain next to nothing.
 */
static u64 score(const struct zse_engine *e, const struct zse_zone *z, u32 live)
{
	u32 cap = e->cfg.zone_blocks;
	u64 dead = cap - live, time = since_filled(e, z) + 1;

	if (READ_ONCE(e->flow.urgent))
		return dead;
	switch (READ_ONCE(e->victim_rule)) {
	case ZSE_VICTIM_COST_BENEFIT:
		return div_u64(dead * time, cap + live);
	case ZSE_VICTIM_AGE:
		return div_u64(dead * time, live + 1);
	default:
		return dead;
	}
}

/* Blocks that GC writes to move @z. */
u32 victim_blocks(const struct zse_engine *e, const struct zse_zone *z)
{
	u32 live = zone_live(z);

	return live ? round_up_unit(e, live) + packed_waste(&e->cfg) : 0;
}

/* Can @zone be a victim if GC can write @room blocks? */
bool victim_will_do(const struct zse_engine *e, u32 zone, u32 room)
{
	const struct zse_zone *z = &e->zones[zone];
	u32 blocks;

	if (zone >= e->cfg.nr_zones || READ_ONCE(z->state) != ZSE_ZONE_FULL ||
	    zone_is_deferred(e, z) || !share_may_clean(e, z))
		return false;
	blocks = victim_blocks(e, z);
	return blocks < e->cfg.zone_blocks &&
	       blocks <= share_of_room(e, z, room);
}

/*
 * Is zone @a, with score @s, better than @b, with @best? Of two that are as
 * good, the first one is.
 */
static bool is_better(u32 a, u64 s, u32 b, u64 best)
{
	return b == ZSE_NONE || s > best || (s == best && a < b);
}

/*
 * A failed zone, to save its pages. That may gain nothing, so GC does it only
 * while swap-out has a zone left, or if the zone has no live block.
 */
static u32 failed_victim(const struct zse_engine *e, u32 room)
{
	bool rescue = READ_ONCE(e->nr_state[ZSE_ZONE_EMPTY]) > e->cfg.reserve;
	u32 i;

	for (i = 0; i < e->cfg.nr_zones; i++) {
		const struct zse_zone *z = &e->zones[i];
		u32 live;

		if (!zone_is_failed(z) || READ_ONCE(z->state) != ZSE_ZONE_FULL ||
		    zone_is_deferred(e, z))
			continue;
		live = victim_blocks(e, z);
		if (live <= share_of_room(e, z, room) && (rescue || !live))
			return i;
	}
	return ZSE_NONE;
}

/*
 * The best zone whose slots GC has on a list; else of those whose list is being
 * written. They were the best of all when GC began their lists.
 */
static u32 listed_victim(struct zse_engine *e, u32 room)
{
	const struct zse_census *cs = &e->census;
	u32 nr = cs->nr < MOST_LISTS ? cs->nr : MOST_LISTS, best = ZSE_NONE, i;
	bool best_has = false;
	u64 best_score = 0;

	for (i = 0; i < nr; i++) {
		u32 zone = READ_ONCE(cs->lists[e->gc.list].zone);
		bool has;
		u64 s;

		e->gc.list = e->gc.list + 1 < cs->nr ? e->gc.list + 1 : 0;
		if (zone == ZSE_NONE || zone_is_failed(&e->zones[zone]) ||
		    !victim_will_do(e, zone, room))
			continue;
		has = census_has(e, zone);
		s = score(e, &e->zones[zone], victim_blocks(e, &e->zones[zone]));
		if (has < best_has ||
		    (has == best_has && !is_better(zone, s, best, best_score)))
			continue;
		best = zone;
		best_has = has;
		best_score = s;
	}
	return best;
}

/* Can @zone, which has no list, be a victim? Sets its @score. */
static bool unlisted_will_do(const struct zse_engine *e, u32 zone, u32 room,
			     u64 *s)
{
	const struct zse_zone *z = &e->zones[zone];

	if (READ_ONCE(z->list) != ZSE_NONE || zone_is_failed(z) ||
	    !victim_will_do(e, zone, room))
		return false;
	*s = score(e, z, victim_blocks(e, z));
	return true;
}

/* The best of the first @nr of @zones, or of all zones if that is NULL. */
static u32 best_of(const struct zse_engine *e, const u32 *zones, u32 nr,
		   u32 room)
{
	u32 best = ZSE_NONE, i;
	u64 best_score = 0, s;

	for (i = 0; i < nr; i++) {
		u32 zone = zones ? zones[i] : i;

		if (!unlisted_will_do(e, zone, room, &s) ||
		    !is_better(zone, s, best, best_score))
			continue;
		best = zone;
		best_score = s;
	}
	return best;
}

/* Keep the @nr best of all zones, whatever room GC has, best first. */
static void keep_best(struct zse_engine *e, u32 nr)
{
	struct zse_gc *gc = &e->gc;
	u32 zone, at;
	u64 s;

	gc->nr_best = 0;
	for (zone = 0; zone < e->cfg.nr_zones; zone++) {
		if (!unlisted_will_do(e, zone, ZSE_NONE, &s) ||
		    (gc->nr_best == nr && s <= gc->best_score[nr - 1]))
			continue;
		at = gc->nr_best < nr ? gc->nr_best++ : nr - 1;
		for (; at && gc->best_score[at - 1] < s; at--) {
			gc->best[at] = gc->best[at - 1];
			gc->best_score[at] = gc->best_score[at - 1];
		}
		gc->best[at] = zone;
		gc->best_score[at] = s;
	}
}

/*
 * Was a walk in vain, and would the next one be, probably? GC has no more room
 * than then, and swap-out has written few pages. While swap-out waits, its
 * clock stands still. GC then walks at one try of @nr; at each if it has no
 * chunk in use, whose end brings the next try.
 */
static bool walk_is_vain(struct zse_engine *e, u32 nr, u32 room)
{
	struct zse_gc *gc = &e->gc;

	if (room > gc->vain_room || READ_ONCE(e->share.gc_only))
		return false;
	if (READ_ONCE(e->flow.urgent))
		return READ_ONCE(e->pool.gc_used) && ++gc->vain_tries < nr;
	return READ_ONCE(e->clock) - gc->vain_clock <
	       e->cfg.nr_zones / WALKED_A_PAGE;
}

/*
 * The best zone without a list. A walk of very many zones takes long, so it
 * keeps more than one; what is kept can only get better.
 */
static u32 unlisted_victim(struct zse_engine *e, u32 room)
{
	struct zse_gc *gc = &e->gc;
	u32 nr = e->cfg.nr_zones / WALKED_ZONES, best;

	if (e->cfg.nr_zones < MANY_ZONES)
		return best_of(e, NULL, e->cfg.nr_zones, room);
	if (nr > ZSE_BEST)
		nr = ZSE_BEST;
	best = best_of(e, gc->best, gc->nr_best, room);
	if (best != ZSE_NONE || walk_is_vain(e, nr, room))
		return best;
	keep_best(e, nr);
	best = best_of(e, gc->best, gc->nr_best, room);
	gc->vain_room = best == ZSE_NONE ? room : 0;
	gc->vain_clock = READ_ONCE(e->clock);
	gc->vain_tries = 0;
	return best;
}

/**
 * victim_by_rule() - choose a victim by the device's rule
 * @e:	  engine
 * @room: blocks that GC can write
 * @any:  false: only failed zones
 *
 * Cleaning a zone without a stale write unit would gain nothing.
 *
 * Context: the caller of zse_next_op(), with the engine lock or without.
 * Return: the zone or ZSE_NONE.
 */
u32 victim_by_rule(struct zse_engine *e, u32 room, bool any)
{
	u32 zone = ZSE_NONE;

	if (READ_ONCE(e->recovery.nr_failed))
		zone = failed_victim(e, room);
	if (zone == ZSE_NONE && any)
		zone = listed_victim(e, room);
	if (zone == ZSE_NONE && any)
		zone = unlisted_victim(e, room);
	return zone;
}

/*
 * The zone that is to have its slots on a list next, or ZSE_NONE: the best that
 * has none.
 */
u32 victim_ahead(struct zse_engine *e)
{
	return unlisted_victim(e, ZSE_NONE);
}

/* The victim that the policy chooses; ZSE_NONE if none, or an invalid one. */
static u32 policy_victim(struct zse_engine *e, u32 room)
{
	const struct znsage_policy *policy;
	u32 zone = ZSE_NONE;

	rcu_read_lock();
	policy = policy_of(e);
	if (policy->victim)
		zone = policy->victim(e, room / page_blocks(&e->cfg));
	rcu_read_unlock();
	if (zone == ZSE_NONE || victim_will_do(e, zone, room))
		return zone;
	policy_refused(e);
	return ZSE_NONE;
}

/* The next victim: the policy's choice, or the rule's. */
u32 victim_choose(struct zse_engine *e, u32 room, bool any)
{
	bool free = any && !READ_ONCE(e->recovery.nr_failed) &&
		    !READ_ONCE(e->flow.urgent);
	u32 zone = free ? policy_victim(e, room) : ZSE_NONE;

	return zone != ZSE_NONE ? zone : victim_by_rule(e, room, any);
}

/*
 * The class of @life, if those of the first class are at most @most, and those
 * of each further one @spread times those of the class before.
 */
u32 life_class(u64 life, u64 most, u32 spread, u32 nr)
{
	u32 class;

	for (class = 0; class < nr - 1 && life > most; class++)
		most *= spread;
	return class;
}

/* In the youngest class, ages are up to 1/YOUNG_SHARE of the device. */
#define YOUNG_SHARE	2
/* Ages of neighbouring classes differ by this factor. */
#define AGE_SPREAD	3

/*
 * The default: classes of survivors by age. Pages that have survived long will
 * survive long: if lives differ, those with long ones are left. The factors
 * hardly matter; these did best, by a few percent, for Zipf's distribution in
 * the simulator.
 */
u32 survivors_by_age(struct zse_engine *e, const struct znsage_zone *z)
{
	return life_class(z->age, usable_pages(e) / YOUNG_SHARE, AGE_SPREAD,
			READ_ONCE(e->placement.nr_survivors));
}

/* Choose the class of the survivors of @zone, a victim. */
u32 policy_survivor(struct zse_engine *e, u32 zone)
{
	const struct znsage_policy *policy;
	u32 nr = READ_ONCE(e->placement.nr_survivors), class = ZNSAGE_NONE;
	struct znsage_zone z;

	zone_look(e, zone, &z);
	rcu_read_lock();
	policy = policy_of(e);
	if (policy->survivor) {
		class = policy->survivor(e, &z);
		/* The answer was valid if the number has just changed. */
		if (class >= nr && nr == READ_ONCE(e->placement.nr_survivors))
			policy_refused(e);
	}
	rcu_read_unlock();
	return class < nr ? class : survivors_by_age(e, &z);
}

/**
 * zse_set_victim() - choose victims by another rule
 * @e:	    engine
 * @victim: rule
 */
void zse_set_victim(struct zse_engine *e, enum zse_victim victim)
{
	WRITE_ONCE(e->victim_rule, victim);
}

/* The rule in force. */
enum zse_victim zse_get_victim(const struct zse_engine *e)
{
	return READ_ONCE(e->victim_rule);
}
