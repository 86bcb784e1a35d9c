// SPDX-License-Identifier: GPL-2.0
#include <sched.h>

#include "meter.h"

/* Looks at a lock before its owner, who may have lost its CPU, gets this one. */
#define SPINS	1000
#define EMPTY_HOLDS	100000
/* A hold that takes longer lost its CPU meanwhile, which it cannot in the kernel. */
#define LONGEST_NS	20000

__thread struct meter meter;
const spinlock_t *meter_engine_lock;

static bool time_holds;
static __thread u64 since;

u64 meter_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

void meter_add(struct meter *to, const struct meter *m)
{
	to->takes += m->takes;
	to->contended += m->contended;
	to->stream_takes += m->stream_takes;
	to->holds += m->holds;
	to->held_ns += m->held_ns;
	to->appends += m->appends;
}

static bool try_lock(spinlock_t *l)
{
	return !__atomic_load_n(&l->held, __ATOMIC_RELAXED) &&
	       !__atomic_exchange_n(&l->held, 1, __ATOMIC_ACQUIRE);
}

static void spin(spinlock_t *l)
{
	u32 spins = 0;

	while (!try_lock(l)) {
		if (++spins < SPINS)
			continue;
		spins = 0;
		sched_yield();
	}
}

void meter_lock(spinlock_t *l)
{
	bool waits = !try_lock(l);

	if (waits)
		spin(l);
	if (l != meter_engine_lock) {
		meter.stream_takes++;
		return;
	}
	meter.takes++;
	meter.contended += waits;
	lines_hold(true);
	if (time_holds)
		since = meter_now(CLOCK_MONOTONIC);
}

static void end_hold(void)
{
	u64 ns = meter_now(CLOCK_MONOTONIC) - since;

	if (ns > LONGEST_NS)
		return;
	meter.held_ns += ns;
	meter.holds++;
}

void meter_unlock(spinlock_t *l)
{
	if (l == meter_engine_lock) {
		if (time_holds)
			end_hold();
		lines_hold(false);
	}
	__atomic_store_n(&l->held, 0, __ATOMIC_RELEASE);
}

/* Time how long the engine lock is held, or stop it; it slows down everything. */
void meter_time_holds(bool on)
{
	time_holds = on;
}

static double hold_ns(const struct meter *m)
{
	return m->holds ? (double)m->held_ns / (double)m->holds : 0;
}

/* How long an empty hold seems to take. */
static double empty_hold_ns(void)
{
	const spinlock_t *engine_lock = meter_engine_lock;
	struct meter before = meter;
	spinlock_t empty;
	double ns;
	u32 i;

	spin_lock_init(&empty);
	meter_engine_lock = &empty;
	meter = (struct meter){ 0 };
	for (i = 0; i < EMPTY_HOLDS; i++) {
		meter_lock(&empty);
		meter_unlock(&empty);
	}
	ns = hold_ns(&meter);
	meter_engine_lock = engine_lock;
	meter = before;
	return ns;
}

/* How long a hold of those in @m takes; while holds are timed. */
double meter_hold_ns(const struct meter *m)
{
	return hold_ns(m) - empty_hold_ns();
}
