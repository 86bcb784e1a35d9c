// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of a policy in BPF. Its answers are checked, and the time that it takes
 * has a budget; a policy that gives many wrong answers, or takes too long, is
 * ejected (bpf.c).
 */

#include "policy.h"

#ifndef NO_BPF

/*
 * A policy is ejected after this many wrong answers. One is forgotten each
 * second, because the number of streams may change while the program runs, and
 * then a right answer looks wrong.
 */
#define MAX_WRONG	100

/*
 * What calls may take on average on a CPU: CALL_NS each, for victim() ZONE_NS
 * more for each zone of the device, and all together 1 / 2^SHARE_SHIFT of the
 * CPU's time on top. A policy whose calls have taken MAX_DEBT more than that is
 * ejected.
 *
 * CALL_NS is ten times what a call should take, and far more than interrupts,
 * page faults of the hypervisor and the like add to it on average.
 */
#define CALL_NS		(20 * NSEC_PER_USEC)
#define ZONE_NS		(1 * NSEC_PER_USEC)
#define SHARE_SHIFT	7
#define MAX_DEBT	NSEC_PER_SEC

static __printf(2, 3)
void eject_for(struct bpf_policy *bp, const char *why, ...)
{
	va_list args;

	if (atomic_xchg(&bp->ejected, 1))
		return;
	va_start(args, why);
	vsnprintf(bp->why, sizeof(bp->why), why, args);
	va_end(args);
	schedule_work(&bp->eject);
}

/* Count a wrong answer. Returns true if there are too many. */
static bool too_many(struct bpf_policy *bp)
{
	u64 now = ktime_get_mono_fast_ns(), then;
	s64 old = atomic64_read(&bp->forgotten);

	do {
		then = max_t(u64, old, now) + NSEC_PER_SEC;
	} while (!atomic64_try_cmpxchg(&bp->forgotten, &old, then));
	return then > now + MAX_WRONG * NSEC_PER_SEC;
}

/* Check an answer, and have the policy ejected when too many are wrong. */
static u32 checked(struct bpf_policy *bp, const char *function, u32 answer,
		   u32 limit)
{
	if (likely(answer < limit))
		return answer;
	if (too_many(bp))
		eject_for(bp, "%u wrong answers, the last %u of %s(), which must be below %u",
			  MAX_WRONG, answer, function, limit);
	return ZNSAGE_NONE;
}

/* The device and the time when a call begins. */
struct began {
	struct znsage_levels levels;
	u64 now;
	u64 used;			/* CPU time of the task */
	unsigned long preempted;	/* how often it was */
};

static void begin(struct began *began, struct zse_engine *dev)
{
	znsage_get_levels(dev, &began->levels);
	began->now = ktime_get_mono_fast_ns();
	began->used = READ_ONCE(current->se.sum_exec_runtime);
	began->preempted = current->nivcsw;
}

/*
 * What a call has taken: the time until @now, without that for which the task
 * was preempted or the hypervisor had the CPU. sum_exec_runtime leaves these
 * out. It is updated at ticks and context switches, so up to a tick of it is
 * from before the call, and it says nothing of a short call without a switch.
 */
static u64 call_ns(const struct began *began, u64 now)
{
	u64 took = now - began->now, used;

	if (likely(took < TICK_NSEC && current->nivcsw == began->preempted))
		return took;
	used = READ_ONCE(current->se.sum_exec_runtime) - began->used;
	return min(took, max_t(u64, used, TICK_NSEC) - TICK_NSEC);
}

/*
 * Charge a call that may take @ns to the budget of the CPU, and have the policy
 * ejected if that is overdrawn.
 */
static void charge(struct bpf_policy *bp, const char *function,
		   const struct began *began, u64 ns)
{
	struct budget *b = get_cpu_ptr(bp->budget);
	u64 now = ktime_get_mono_fast_ns(), debt;
	u64 took = call_ns(began, now);

	/* The clock may go back a little. */
	ns += now > b->at ? (now - b->at) >> SHARE_SHIFT : 0;
	b->at = now;
	debt = b->debt + took;
	debt -= min(debt, ns);
	b->debt = debt;
	put_cpu_ptr(bp->budget);
	if (unlikely(debt > MAX_DEBT))
		eject_for(bp, "calls that take too long, the last a %s() of %llu us",
			  function, div_u64(took, NSEC_PER_USEC));
}

u32 znsage_bpf_place(struct zse_engine *dev, const struct znsage_page *page)
{
	struct bpf_policy *bp = to_bpf(znsage_private(dev));
	struct began began;
	u32 stream;

	begin(&began, dev);
	stream = bp->ops->place(dev, page);
	charge(bp, "place", &began, CALL_NS);
	return checked(bp, "place", stream, began.levels.streams);
}

u32 znsage_bpf_survivor(struct zse_engine *dev, const struct znsage_zone *z)
{
	struct bpf_policy *bp = to_bpf(znsage_private(dev));
	struct began began;
	u32 class;

	begin(&began, dev);
	class = bp->ops->survivor(dev, z);
	charge(bp, "survivor", &began, CALL_NS);
	return checked(bp, "survivor", class, began.levels.survivors);
}

/*
 * Wrong is a zone that does not exist or has more live blocks than @room. The
 * engine also checks what a program cannot know, and does not count that.
 */
u32 znsage_bpf_victim(struct zse_engine *dev, u32 room)
{
	struct bpf_policy *bp = to_bpf(znsage_private(dev));
	struct znsage_zone z;
	struct began began;
	u32 zone;

	begin(&began, dev);
	zone = bp->ops->victim(dev, room);
	charge(bp, "victim", &began, CALL_NS + began.levels.zones * ZONE_NS);
	if (zone == ZNSAGE_NONE ||
	    (znsage_get_zone(dev, zone, &z) && z.live <= room))
		return zone;
	if (too_many(bp))
		eject_for(bp, "%u wrong answers, the last zone %u of victim(), which cannot be one",
			  MAX_WRONG, zone);
	return ZNSAGE_NONE;
}

#endif
