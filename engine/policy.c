// SPDX-License-Identifier: GPL-2.0
/*
 * Placement: the stream of a page. This file has the built-in policies, asks
 * the policy in force for a stream, and changes it. victim.c, drain.c and map.c
 * call its other functions.
 *
 * Anybody may write a policy, so the engine checks its answers.
 */
#include "api.h"

static u32 single_place(struct zse_engine *e, const struct znsage_page *page)
{
	return 0;
}

static u32 cpu_place(struct zse_engine *e, const struct znsage_page *page)
{
	return page->cpu % READ_ONCE(e->placement.nr_streams);
}

/* The key of a page without a known cgroup. */
#define NOBODY	1

static u32 cgroup_place(struct zse_engine *e, const struct znsage_page *page)
{
	return znsage_stream_of(e, page->cgroup ? page->cgroup : NOBODY);
}

/* Survivors stay with their stream. */
static u32 stream_survivor(struct zse_engine *e, const struct znsage_zone *z)
{
	return z->stream % READ_ONCE(e->placement.nr_survivors);
}

static const struct znsage_policy policy_single = {
	.name = "single",
	.streams = 1,
	.place = single_place,
};

static const struct znsage_policy policy_cpu = {
	.name = "cpu",
	.place = cpu_place,
};

static const struct znsage_policy policy_cgroup = {
	.name = "cgroup",
	.streams = ZNSAGE_NONE,
	.isolates = true,
	.place = cgroup_place,
	.survivor = stream_survivor,
};

/*
 * Policy heat: place a page by how long it usually stays on the device. The
 * usual life of a class is SPREAD times that of the one before it.
 *
 * What GC moves is placed by the same: the usual life of its zone's stream, and
 * the time that it has survived, which says that it lives longer than that. The
 * factors hardly matter; these did best for Zipf's distribution in the
 * simulator.
 */
#define SPREAD		2
/* In the first class of survivors. */
#define SURVIVOR_SHARE	4

/*
 * The longest life of the first of @nr classes. Those of the last class but one
 * are as long as the device has pages: fewer classes have fewer short ones.
 */
static u64 first_life(const struct zse_engine *e, u32 nr)
{
	u64 life = usable_pages(e);

	for (; nr > 2; nr--)
		life /= SPREAD;
	return life;
}

static u32 heat_place(struct zse_engine *e, const struct znsage_page *page)
{
	u32 nr = READ_ONCE(e->placement.nr_streams);

	if (page->usual != ZNSAGE_NONE)
		return life_class(page->usual, first_life(e, nr), SPREAD, nr);
	return page->workingset || page->active ? nr / 2 : nr - 1;
}

static u32 heat_survivor(struct zse_engine *e, const struct znsage_zone *z)
{
	u32 nr = READ_ONCE(e->placement.nr_streams);
	u64 life = first_life(e, nr);
	u32 i;

	if (nr == 1)
		return survivors_by_age(e, z);
	/* A zone of the policy before may have any stream. */
	for (i = 0; i < z->stream && i < nr - 1; i++)
		life *= SPREAD;
	return life_class(life + z->age, usable_pages(e) / SURVIVOR_SHARE,
			SPREAD, READ_ONCE(e->placement.nr_survivors));
}

static const struct znsage_policy policy_heat = {
	.name = "heat",
	.streams = ZNSAGE_LIVES,
	.place = heat_place,
	.survivor = heat_survivor,
};

/* NULL after the last one. */
const struct znsage_policy *const zse_builtin_policies[] = {
	&policy_single,
	&policy_cpu,
	&policy_cgroup,
	&policy_heat,
	NULL
};

static bool same_name(const char *a, const char *b)
{
	u32 i;

	for (i = 0; i < ZNSAGE_POLICY_NAME && a[i] == b[i]; i++)
		if (!a[i])
			return true;
	return false;
}

/* Find a built-in policy by name; or NULL. */
const struct znsage_policy *zse_builtin_policy(const char *name)
{
	u32 i;

	for (i = 0; zse_builtin_policies[i]; i++)
		if (same_name(zse_builtin_policies[i]->name, name))
			return zse_builtin_policies[i];
	return NULL;
}

/**
 * zse_place() - choose the stream of a page that is swapped out
 * @e:	  engine
 * @page: description of the page
 *
 * Return: below the number of streams.
 */
u32 zse_place(struct zse_engine *e, const struct znsage_page *page)
{
	u32 nr = READ_ONCE(e->placement.nr_streams), stream;

	rcu_read_lock();
	stream = policy_of(e)->place(e, page);
	rcu_read_unlock();
	if (stream < nr)
		return stream;
	/* The answer was valid if the number of streams has just dropped. */
	if (nr == READ_ONCE(e->placement.nr_streams))
		policy_refused(e);
	return page->cpu % nr;
}

/**
 * zse_get_policy() - the policy in force
 * @e: engine
 */
const struct znsage_policy *zse_get_policy(const struct zse_engine *e)
{
	return policy_of(e);
}

/* Streams that @policy gets for now: one for lives that are not told apart. */
u32 policy_streams(const struct zse_engine *e,
		   const struct znsage_policy *policy)
{
	if (policy->streams == ZNSAGE_LIVES && !READ_ONCE(e->told.apart))
		return 1;
	return zse_nr_streams(&e->cfg, policy);
}

/* From now on there are @nr streams. With the engine lock. */
static void streams_begin(struct zse_engine *e, u32 nr)
{
	u32 lanes = e->shared ? 0 : zse_lanes(&e->cfg, nr), i;

	WRITE_ONCE(e->placement.nr_streams, nr);
	for (i = 0; i < e->max_streams; i++)
		stripe_set_lanes(e, &e->streams[i].stripe, i < nr ? lanes : 0);
	flow_default_watermarks(e);
}

/**
 * zse_lives_apart() - do the pasts of pages tell how long these live?
 * @e:	   engine
 * @apart: from now on they do, or no longer do
 *
 * past.c finds out; tests may know better. A policy for lives has its streams
 * then, or one for all pages.
 *
 * Context: any, without a lock.
 */
void zse_lives_apart(struct zse_engine *e, bool apart)
{
	unsigned long flags;
	u32 nr;

	rcu_read_lock();
	spin_lock_irqsave(&e->lock, flags);
	WRITE_ONCE(e->told.apart, apart);
	nr = policy_streams(e, policy_of(e));
	if (nr != e->placement.nr_streams)
		streams_begin(e, nr);
	spin_unlock_irqrestore(&e->lock, flags);
	rcu_read_unlock();
}

/* GC's lanes for the classes of survivors. With the engine lock. */
static void gc_set_lanes(struct zse_engine *e)
{
	u32 nr = limits_gc_zones(&e->cfg, e->share.on), i;

	e->gc.nr_classed = nr;
	/* GC counts on the room in zones that are open, so no lane goes. */
	if (nr > e->gc.stripe.nr)
		WRITE_ONCE(e->gc.stripe.nr, nr);
	for (i = 0; i < nr; i++)
		e->gc.class[i] = i % e->placement.nr_survivors;
}

/**
 * zse_set_policy() - change the policy
 * @e:		  engine
 * @policy:	  must stay valid until another one is set
 * @private_data: what znsage_private() returns from now on
 *
 * Calls of the old policy may still run when this returns. They are inside
 * rcu_read_lock(), so the host can wait for them. They may see the new private
 * data. So if either policy has any, the host first sets a policy that uses
 * none, with the old data, and waits.
 *
 * The host has called zse_prepare() for @policy.
 *
 * Lanes that the new streams do not have are gone, and their zones closed. All
 * keys are forgotten. Pages on the device stay where they are.
 */
void zse_set_policy(struct zse_engine *e, const struct znsage_policy *policy,
		    void *private_data)
{
	unsigned long flags;
	u32 nr;

	spin_lock_irqsave(&e->lock, flags);
	nr = policy_streams(e, policy);
	smp_store_release(&e->placement.policy_private, private_data);
	smp_mb();
	smp_store_release(&e->placement.policy, policy);
	streams_begin(e, nr);
	keys_clear(e);
	share_clear(e);
	WRITE_ONCE(e->share.on, policy->isolates && nr > 1);
	WRITE_ONCE(e->placement.nr_survivors,
		   e->share.on ? nr : limits_survivors(&e->cfg));
	gc_set_lanes(e);
	spin_unlock_irqrestore(&e->lock, flags);
}

void *znsage_private(struct zse_engine *e)
{
	return smp_load_acquire(&e->placement.policy_private);
}

void znsage_get_levels(struct zse_engine *e, struct znsage_levels *levels)
{
	*levels = (struct znsage_levels){
		.zones = e->cfg.nr_zones,
		.empty = READ_ONCE(e->nr_state[ZSE_ZONE_EMPTY]),
		.reserve = e->cfg.reserve,
		.gc_low = READ_ONCE(e->flow.low),
		.gc_high = READ_ONCE(e->flow.high),
		.streams = READ_ONCE(e->placement.nr_streams),
		.survivors = READ_ONCE(e->placement.nr_survivors),
		.clock = READ_ONCE(e->clock),
	};
}

bool znsage_get_zone(struct zse_engine *e, u32 zone, struct znsage_zone *z)
{
	if (zone >= e->cfg.nr_zones ||
	    READ_ONCE(e->zones[zone].state) != ZSE_ZONE_FULL)
		return false;
	zone_look(e, zone, z);
	return true;
}
