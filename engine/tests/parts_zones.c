// SPDX-License-Identifier: GPL-2.0
/* Many zones: how long the engine lock is held for them, and what streams have of them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "parts_host.h"

/* ---- how long the engine lock is held; built with -Wl,--wrap=pthread_mutex_unlock */

static u32 drained, most_drained;

int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	if (drained > most_drained)
		most_drained = drained;
	drained = 0;
	return __real_pthread_mutex_unlock(lock);
}

static void count_drained(void *host, u32 zone, const char *from, const char *to)
{
	drained += !strcmp(to, "drained");
}

static void host_of_many_zones(struct host *h, u32 nr, const char *policy)
{
	struct zse_config cfg;
	enum zse_refusal why;

	memset(h, 0, sizeof(*h));
	cfg = config(h);
	cfg.nr_zones = nr;
	cfg.policy = zse_builtin_policy(policy);
	cfg.zone_event = count_drained;
	cfg.nr_slots = zse_max_slots(&cfg);
	h->e = zse_create(&cfg, &why);
	if (!h->e)
		abort();
}

/* A discard of the whole device kills all zones: they are taken a few at a time. */
static void test_many_zones_die(void)
{
	static struct host h;
	u32 slot, full;

	host_of_many_zones(&h, 1000, "single");
	for (slot = 0; slot < nr_slots(&h); slot++)
		write_slot(&h, slot);
	flush(&h);
	full = h.e->nr_state[ZSE_ZONE_FULL];
	must(full > 900);
	for (slot = 0; slot < nr_slots(&h); slot++)
		zse_free(h.e, slot);
	most_drained = 0;
	work(&h);
	must(most_drained && most_drained <= ZSE_TAKE_DEAD);
	must(!h.e->nr_state[ZSE_ZONE_FULL]);
	must(h.e->counters.zones_dead == full);
	must(zse_idle(h.e) && !zse_check(h.e, NULL, NULL));
	zse_destroy(h.e);
}

/* A dead zone is found behind many on the list that are not dead any more. */
static void test_dead_behind_others(void)
{
	static struct host h;
	u32 slot, i;

	host_of_many_zones(&h, 1000, "single");
	for (slot = 0; slot < 500 * ZONE_BLOCKS; slot++)
		write_slot(&h, slot);
	flush(&h);
	for (slot = 0; slot < ZONE_BLOCKS; slot++)
		zse_free(h.e, slot);
	for (i = 1; i <= 4 * ZSE_TAKE_DEAD; i++)
		zone_note_dead(h.e, &h.e->zones[i]);
	work(&h);
	must(h.e->zones[0].state == ZSE_ZONE_EMPTY);
	must(h.e->counters.zones_dead == 1);
	zse_destroy(h.e);
}

/* ---- walks of all zones with the engine lock; built with -Wl,--wrap=victim_by_rule */

static u32 walks;

u32 __real_victim_by_rule(struct zse_engine *e, u32 room, bool any);
u32 __wrap_victim_by_rule(struct zse_engine *e, u32 room, bool any);

/* Not called for victim_choose(), which is in the same file. */
u32 __wrap_victim_by_rule(struct zse_engine *e, u32 room, bool any)
{
	walks++;
	return __real_victim_by_rule(e, room, any);
}

/*
 * A chunk waits for a zone, and GC finds no victim: while an append is in flight, whose
 * end brings the next look, no zone is looked at under the lock.
 */
static void test_stalled_walks_no_zones(void)
{
	struct zse_chunk *c, *stalled;
	struct zse_op op, other;
	bool ok = true, finished;
	struct host h;
	u32 slot, i;

	host_init(&h);
	for (slot = 0; slot < nr_slots(&h); slot++)
		write_slot(&h, slot);
	flush(&h);
	for (i = 0; i < NR_ZONES; i++) {
		h.e->zones[i].health = ZSE_DEFERRED;
		h.e->zones[i].retry_at = ~0ull;
	}
	/* Until there is no zone for a chunk; the append before is in flight. */
	for (op.kind = ZSE_OP_NONE, slot = 0;; op = other) {
		c = zse_stream_begin(h.e, 0);
		if (!c)
			abort();
		do
			zse_chunk_add(h.e, c, 7 * slot++ % nr_slots(&h), 0);
		while (c->nr < c->max);
		stalled = zse_stream_end(h.e, 0);
		if (!zse_append_start(h.e, stalled, &other, 1))
			break;
		if (op.kind != ZSE_OP_NONE)
			host_append(&h, &op);
	}
	must(op.kind == ZSE_OP_APPEND);
	walks = 0;
	must(!zse_next_op(h.e, &other, 1));
	must(h.e->flow.gc_running && !walks);
	/* Nothing is in flight any more: now it matters. */
	zse_append_done(h.e, op.chunk, &ok, h.wp[op.zone], 2, &finished);
	must(ok && finished);
	zse_chunk_put(h.e, op.chunk);
	must(zse_next_op(h.e, &other, 1));
	must(walks);
	zse_destroy(h.e);
}

static void ask_share(struct zse_engine *e)
{
	unsigned long flags;

	spin_lock_irqsave(&e->lock, flags);
	share_of_zones(e, 0);
	spin_unlock_irqrestore(&e->lock, flags);
}

/*
 * Zones of a device with many are counted in turn, whenever a stream is to open one, so
 * that its share is right in the end.
 */
static void test_shares_count_in_turn(void)
{
	static struct host h;
	struct zse_zone *last;
	u32 i;

	host_of_many_zones(&h, MOST_ZONES, "cgroup");
	must(h.e->share.on);
	last = &h.e->zones[MOST_ZONES - 1];
	atomic_set(&last->live, 5);
	ask_share(h.e);
	must(!h.e->share.of[ZSE_NOBODY].live);
	for (i = 1; i < MOST_ZONES / ZSE_RECOUNT; i++)
		ask_share(h.e);
	must(h.e->share.of[ZSE_NOBODY].live == 5);
	atomic_set(&last->live, 0);
	for (i = 0; i < MOST_ZONES / ZSE_RECOUNT; i++)
		ask_share(h.e);
	must(!h.e->share.of[ZSE_NOBODY].live);
	zse_destroy(h.e);
}

/* What streams have stays right while their zones are written, cleaned and reset. */
static void test_shares_add_up(void)
{
	static struct host h;

	host_of_many_zones(&h, 1000, "cgroup");
	must(h.e->share.on);
	fill(&h, 6);
	must(h.e->counters.gc_zones && h.e->share.of[0].live);
	zse_set_policy(h.e, zse_builtin_policy("single"), NULL);
	must(!h.e->share.of[0].live && !zse_check(h.e, NULL, NULL));
	zse_destroy(h.e);
}

/*
 * Of very many zones, a walk keeps the best, and the choice is from these until they
 * are used up. A zone that is better by then waits for the next walk.
 */
static void test_victims_of_many_zones(void)
{
	static struct host h;
	struct zse_zone *z;
	static const u32 best[] = { 77, 1077, 2077, 3077, 500, 4077 };
	u32 i, zone, kept = MOST_ZONES / 1024;

	host_of_many_zones(&h, MOST_ZONES, "single");
	z = h.e->zones;
	for (i = 0; i < MOST_ZONES; i++) {
		z[i].state = ZSE_ZONE_FULL;
		atomic_set(&z[i].live, i % 1000 == 77 ? 3 : 8 + i % 16);
	}
	for (i = 0; i < sizeof(best) / sizeof(*best); i++) {
		zone = victim_by_rule(h.e, ZSE_NONE, true);
		must(zone == best[i]);
		must(h.e->gc.nr_best == kept);
		z[zone].state = ZSE_ZONE_VICTIM;
		if (!i)
			atomic_set(&z[500].live, 2);
	}
	/* After a walk in vain, the next one waits for room, or for stale blocks. */
	must(victim_by_rule(h.e, 1, true) == ZSE_NONE);
	atomic_set(&z[5].live, 1);
	must(victim_by_rule(h.e, 1, true) == ZSE_NONE);
	must(victim_by_rule(h.e, 2, true) == 5);
	must(victim_by_rule(h.e, 1, true) == 5);
	z[5].state = ZSE_ZONE_VICTIM;
	must(victim_by_rule(h.e, 1, true) == ZSE_NONE);
	atomic_set(&z[6].live, 1);
	h.e->flow.urgent = true;
	must(victim_by_rule(h.e, 1, true) == 6);
	h.e->flow.urgent = false;
	z[6].state = ZSE_ZONE_VICTIM;
	must(victim_by_rule(h.e, 1, true) == ZSE_NONE);
	atomic_set(&z[7].live, 1);
	h.e->clock += MOST_ZONES / 8;
	must(victim_by_rule(h.e, 1, true) == 7);
	/* A failed zone comes first, wherever it is. */
	z[4000].health = ZSE_FAILED;
	h.e->recovery.nr_failed = 1;
	atomic_set(&z[4000].live, 0);
	must(victim_by_rule(h.e, ZSE_NONE, false) == 4000);
	zse_destroy(h.e);
}

void test_zones(void)
{
	test_victims_of_many_zones();
	test_many_zones_die();
	test_stalled_walks_no_zones();
	test_dead_behind_others();
	test_shares_count_in_turn();
	test_shares_add_up();
}
