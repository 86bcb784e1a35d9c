// SPDX-License-Identifier: GPL-2.0
/*
 * Victims, from their beginning until they are drained. A zone is a victim
 * while GC reads it (then it is one of e->gc.victims) or has not settled what
 * it read.
 *
 * Everything here runs under the engine lock.
 */
#include "gc.h"

/* Does GC still read from @zone, a victim? */
bool clean_is_reading(const struct zse_engine *e, u32 zone)
{
	u32 i;

	for (i = 0; i < e->gc.nr_victims; i++)
		if (e->gc.victims[i] == zone)
			return true;
	return false;
}

/* Tell the policy that GC begins or ends cleaning @zone. */
static void policy_cleaning(struct zse_engine *e, u32 zone, bool begins)
{
	const struct znsage_policy *policy;

	rcu_read_lock();
	policy = policy_of(e);
	if (policy->cleaning)
		policy->cleaning(e, zone, begins);
	rcu_read_unlock();
}

/*
 * GC has read all of @z, a victim, and moved what it found. If a page is left
 * although none was kept back, it could not be read, or other data is in its
 * place. With the engine lock.
 */
static void packed_judge(struct zse_engine *e, struct zse_zone *z)
{
	if (!e->cfg.pack || z->kept || !zone_live(z))
		return;
	if (recover_gives_up(e, z))
		zone_health_event(e, z, ZSE_PAGES_LOST);
	else
		recover_move_failed(e, z - e->zones, true);
}

/*
 * If GC is done with @zone, a victim, it is drained, or full if a block stayed.
 */
void zone_check_drained(struct zse_engine *e, u32 zone)
{
	struct zse_zone *z = &e->zones[zone];

	lockdep_assert_held(&e->lock);
	if (z->state != ZSE_ZONE_VICTIM || z->moving || z->spans ||
	    clean_is_reading(e, zone))
		return;
	packed_judge(e, z);
	policy_cleaning(e, zone, false);
	if (zone_live(z)) {
		zone_set_state(e, zone, ZSE_ZONE_FULL);
		return;
	}
	e->counters.gc_zones++;
	zone_set_state(e, zone, ZSE_ZONE_DRAINED);
}

/* GC has moved or dropped pages of @blocks that it had read from @zone. */
void zone_moved(struct zse_engine *e, u32 zone, u32 blocks)
{
	struct zse_zone *z = &e->zones[zone];

	lockdep_assert_held(&e->lock);
	WARN_ON_ONCE(z->moving < blocks);
	z->moving -= blocks;
	zone_check_drained(e, zone);
}

/* Make @zone a victim, with survivors of @class. */
void victim_begin(struct zse_engine *e, u32 zone, u32 class)
{
	struct zse_zone *z = &e->zones[zone];

	lockdep_assert_held(&e->lock);
	zone_set_state(e, zone, ZSE_ZONE_VICTIM);
	z->cursor = 0;
	z->kept = false;
	z->class = class;
	e->gc.victims[e->gc.nr_victims] = zone;
	WRITE_ONCE(e->gc.nr_victims, e->gc.nr_victims + 1);
	flow_gc_begun(e, z);
	policy_cleaning(e, zone, true);
}

/* GC has read all of @zone, or begun to. */
void clean_read_out(struct zse_engine *e, u32 zone)
{
	u32 i = 0;

	lockdep_assert_held(&e->lock);
	while (e->gc.victims[i] != zone)
		i++;
	WRITE_ONCE(e->gc.nr_victims, e->gc.nr_victims - 1);
	e->gc.victims[i] = e->gc.victims[e->gc.nr_victims];
	census_drop(e, &e->zones[zone]);
	zone_check_drained(e, zone);
}

/* An append of GC worked. With the engine lock. */
void gc_moved(struct zse_engine *e, struct zse_chunk *c)
{
	struct zse_stream *st = &e->streams[c->stream];
	u32 i;

	lockdep_assert_held(&e->lock);
	e->counters.chunks++;
	e->counters.gc_blocks += c->nr_blocks;
	e->counters.padding_blocks += c->nr_padding;
	st->gc_blocks += c->nr_blocks;
	st->gc_padding += c->nr_padding;
	for (i = c->done - c->nr_inflight; i < c->done; i++)
		zone_moved(e, zse_block_zone(e, c->entries[i].expect),
			   entry_len(e, &c->entries[i]));
}
