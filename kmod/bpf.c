// SPDX-License-Identifier: GPL-2.0
/*
 * Policies in BPF. A program fills in a struct znsage_bpf_policy
 * (include/znsage.bpf.h has its half). Once it is attached, it is a policy like
 * those of modules, and it is one until its link is gone. Devices that use it
 * then go back to the default. So do they when it gives many wrong answers: it
 * is ejected.
 *
 * BPF decides place(), survivor() and victim(). GC calls the last two without a
 * lock, one at a time. freed() and cleaning() stay in C: they run under locks
 * of mm and the engine, where a program that calls back or traces would
 * deadlock.
 *
 * The verifier proves that a program ends, but not soon. It follows a million
 * instructions, but a call of bpf_loop(), an iterator or may_goto repeats some
 * of them eight million times, and one in another more often. The module cannot
 * refuse iterators and may_goto, which are the kernel's own. So the time of
 * each call counts.
 *
 * This needs kernel 6.12, and the type information (BTF) of the kernel and of
 * this module. Without these the module works, but has no policies in BPF.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "znsage.h"

#if !ZNSAGE_HAS_STRUCT_OPS
#define NO_BPF	"this kernel is older than 6.12"
#elif !IS_ENABLED(CONFIG_DEBUG_INFO_BTF_MODULES) || !IS_ENABLED(CONFIG_BPF_JIT)
#define NO_BPF	"this kernel is built without BTF of modules, or without BPF's JIT"
#endif

#ifdef NO_BPF

const char *znsage_bpf_missing(void)
{
	return NO_BPF;
}

void znsage_bpf_init(void)
{
}

bool znsage_bpf_get(const struct znsage_policy *policy)
{
	return false;
}

bool znsage_bpf_put(const struct znsage_policy *policy)
{
	return false;
}

int znsage_bpf_private(const struct znsage_policy *policy, void **private)
{
	return 0;
}

void znsage_bpf_attach(const struct znsage_policy *policy,
		       struct znsage_device *zd)
{
}

void znsage_bpf_detach(const struct znsage_policy *policy,
		       struct znsage_device *zd)
{
}

#else

#include <linux/bpf.h>
#include <linux/bpf_verifier.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/sched.h>

/* Newer kernels trust no other arguments anyway. */
#ifndef KF_TRUSTED_ARGS
#define KF_TRUSTED_ARGS	0
#endif

/*
 * Wrong answers until a policy is ejected. Some may be the device's: the number
 * of streams changes while the program runs.
 */
#define MAX_WRONG	100

/*
 * Each time that a call takes this long it is as bad as a wrong answer. victim()
 * has a reason to loop: a look at a zone is a fraction of a microsecond, and a
 * disk has up to some 50,000.
 */
#define MAX_CALL_NS	(50 * NSEC_PER_MSEC)

/* What a program fills in; the members mean the same as in znsage_policy. */
struct znsage_bpf_policy {
	u32 (*place)(struct zse_engine *dev, const struct znsage_page *page);
	u32 (*survivor)(struct zse_engine *dev, const struct znsage_zone *zone);
	u32 (*victim)(struct zse_engine *dev, u32 room);
	char name[ZNSAGE_POLICY_NAME];
	u32 streams;
	u32 isolates;
};

/* One that is attached. */
struct bpf_policy {
	struct znsage_policy policy;
	const struct znsage_bpf_policy *ops;	/* valid while attached */
	refcount_t refs;
	struct list_head link;		/* on attached */
	struct list_head users;		/* devices; under the policy lock */
	bool dead;			/* ejected or gone; likewise */
	atomic_t wrong;
	char last[64];			/* what was wrong with the last */
	struct work_struct eject;
};

static LIST_HEAD(attached);		/* under the policy lock */
static const char *missing = "the module is not initialized";

static u32 bpf_place(struct zse_engine *dev, const struct znsage_page *page);

static struct bpf_policy *to_bpf(const struct znsage_policy *policy)
{
	if (!policy || policy->place != bpf_place)
		return NULL;
	return container_of(policy, struct bpf_policy, policy);
}

/* @nr wrong answers more. When these are too many, the policy is ejected. */
static __printf(3, 4)
void wrong(struct bpf_policy *bp, u32 nr, const char *what, ...)
{
	u32 now = atomic_add_return(nr, &bp->wrong);
	va_list args;

	if (now < MAX_WRONG || now - nr >= MAX_WRONG)
		return;
	va_start(args, what);
	vsnprintf(bp->last, sizeof(bp->last), what, args);
	va_end(args);
	queue_work(system_wq, &bp->eject);
}

/* Check an answer, and have the policy ejected when too many are wrong. */
static u32 checked(struct bpf_policy *bp, const char *function, u32 answer,
		   u32 limit)
{
	if (likely(answer < limit))
		return answer;
	wrong(bp, 1, "%u of %s(), which must be below %u", answer, function,
	      limit);
	return ZNSAGE_NONE;
}

/* When a call began: @used is CPU time of the task. */
struct began {
	u64 used;
	u64 now;
};

/*
 * The CPU time is that of the task's last tick or switch. It does not count the
 * time for which the task was preempted, but where ticks are a second apart
 * (nohz_full) it moves by as much at once. A call took no more than the clock
 * says, either.
 */
static struct began begin(void)
{
	return (struct began) {
		.used = READ_ONCE(current->se.sum_exec_runtime),
		.now = ktime_get_mono_fast_ns(),
	};
}

/* Count the time of a call that has ended. Returns true if it was too long. */
static bool too_slow(struct bpf_policy *bp, const char *function,
		     struct began began)
{
	struct began end = begin();
	u64 took = min(end.used - began.used, end.now - began.now);

	if (likely(took < MAX_CALL_NS))
		return false;
	wrong(bp, min_t(u64, div_u64(took, MAX_CALL_NS), MAX_WRONG),
	      "a %s() of more than %u ms", function,
	      (u32)(MAX_CALL_NS / NSEC_PER_MSEC));
	return true;
}

static u32 bpf_place(struct zse_engine *dev, const struct znsage_page *page)
{
	struct bpf_policy *bp = znsage_private(dev);
	struct znsage_levels levels;
	struct began began;
	u32 stream;

	znsage_get_levels(dev, &levels);
	began = begin();
	stream = bp->ops->place(dev, page);
	too_slow(bp, "place", began);
	return checked(bp, "place", stream, levels.streams);
}

static u32 bpf_survivor(struct zse_engine *dev, const struct znsage_zone *z)
{
	struct bpf_policy *bp = znsage_private(dev);
	struct znsage_levels levels;
	struct began began;
	u32 class;

	znsage_get_levels(dev, &levels);
	began = begin();
	class = bp->ops->survivor(dev, z);
	too_slow(bp, "survivor", began);
	return checked(bp, "survivor", class, levels.survivors);
}

/*
 * The engine checks the victim again, and by rules that a program cannot know:
 * another zone that the engine refuses is no wrong answer.
 */
static u32 bpf_victim(struct zse_engine *dev, u32 room)
{
	struct bpf_policy *bp = znsage_private(dev);
	struct began began = begin();
	u32 zone = bp->ops->victim(dev, room);
	struct znsage_zone z;

	if (too_slow(bp, "victim", began))
		return ZNSAGE_NONE;
	if (zone == ZNSAGE_NONE ||
	    (znsage_get_zone(dev, zone, &z) && z.live <= room))
		return zone;
	wrong(bp, 1, "zone %u of victim(), which cannot be one", zone);
	return ZNSAGE_NONE;
}

/*
 * A policy that was found by name is kept in memory until it is put, but may be
 * gone by then. Returns false if it is not in BPF. Context: registry_lock.
 */
bool znsage_bpf_get(const struct znsage_policy *policy)
{
	struct bpf_policy *bp = to_bpf(policy);

	if (bp)
		refcount_inc(&bp->refs);
	return bp;
}

bool znsage_bpf_put(const struct znsage_policy *policy)
{
	struct bpf_policy *bp = to_bpf(policy);

	if (bp && refcount_dec_and_test(&bp->refs))
		kfree(bp);
	return bp;
}

/*
 * The private data of a device with @policy. Returns -ENOENT if the policy was
 * found by name, and has gone since. Context: znsage_policy_lock.
 */
int znsage_bpf_private(const struct znsage_policy *policy, void **private)
{
	struct bpf_policy *bp = to_bpf(policy);

	if (!bp)
		return 0;
	if (bp->dead)
		return -ENOENT;
	*private = bp;
	return 0;
}

/* @zd uses @policy. Likewise. */
void znsage_bpf_attach(const struct znsage_policy *policy,
		       struct znsage_device *zd)
{
	struct bpf_policy *bp = to_bpf(policy);

	if (bp)
		list_add(&zd->bpf_user, &bp->users);
}

/* @zd has ended to use @policy: none of its functions runs. Likewise. */
void znsage_bpf_detach(const struct znsage_policy *policy,
		       struct znsage_device *zd)
{
	if (to_bpf(policy))
		list_del(&zd->bpf_user);
}

/* Give all devices that use @bp the default. Under the policy lock. */
static void end(struct bpf_policy *bp, const char *why)
{
	struct znsage_device *zd, *next;

	if (bp->dead)
		return;
	bp->dead = true;
	znsage_unregister_policy(&bp->policy);
	list_for_each_entry_safe(zd, next, &bp->users, bpf_user) {
		znsage_policy_default(zd);
		snprintf(zd->ejected, sizeof(zd->ejected), "%s: %s",
			 bp->policy.name, why);
	}
}

static void eject(struct work_struct *work)
{
	struct bpf_policy *bp = container_of(work, struct bpf_policy, eject);
	char why[108];

	snprintf(why, sizeof(why),
		 "ejected after %u wrong answers, the last %s", MAX_WRONG,
		 bp->last);
	znsage_err(bp->policy.name, "BPF policy %s", why);
	mutex_lock(&znsage_policy_lock);
	end(bp, why);
	mutex_unlock(&znsage_policy_lock);
}

static int ops_reg(void *kdata, struct bpf_link *link)
{
	const struct znsage_bpf_policy *ops = kdata;
	struct bpf_policy *bp = kzalloc(sizeof(*bp), GFP_KERNEL);
	int err;

	if (!bp)
		return -ENOMEM;
	strscpy(bp->policy.name, ops->name, sizeof(bp->policy.name));
	bp->policy.owner = THIS_MODULE;
	bp->policy.streams = ops->streams;
	bp->policy.isolates = ops->isolates;
	bp->policy.place = bpf_place;
	if (ops->survivor)
		bp->policy.survivor = bpf_survivor;
	if (ops->victim)
		bp->policy.victim = bpf_victim;
	bp->ops = ops;
	refcount_set(&bp->refs, 1);
	INIT_LIST_HEAD(&bp->users);
	INIT_WORK(&bp->eject, eject);
	mutex_lock(&znsage_policy_lock);
	err = znsage_register_policy(&bp->policy);
	if (!err)
		list_add(&bp->link, &attached);
	mutex_unlock(&znsage_policy_lock);
	if (err)
		kfree(bp);
	return err;
}

/* No function of the program runs once this returns. */
static void ops_unreg(void *kdata, struct bpf_link *link)
{
	struct bpf_policy *bp, *found = NULL;

	mutex_lock(&znsage_policy_lock);
	list_for_each_entry(bp, &attached, link)
		if (bp->ops == kdata)
			found = bp;
	if (found) {
		list_del(&found->link);
		end(found, "unloaded");
	}
	mutex_unlock(&znsage_policy_lock);
	if (WARN_ON_ONCE(!found))
		return;
	cancel_work_sync(&found->eject);
	znsage_bpf_put(&found->policy);
}

static int ops_init(struct btf *btf)
{
	return 0;
}

/* Functions are the kernel's to copy (0), data is ours (1). */
static int ops_init_member(const struct btf_type *t,
			   const struct btf_member *member, void *kdata,
			   const void *udata)
{
	u32 at = __btf_member_bit_offset(t, member) / BITS_PER_BYTE;
	const struct znsage_bpf_policy *from = udata;
	struct znsage_bpf_policy *to = kdata;

	switch (at) {
	case offsetof(struct znsage_bpf_policy, name):
		memcpy(to->name, from->name, sizeof(to->name));
		return 1;
	case offsetof(struct znsage_bpf_policy, streams):
		to->streams = from->streams;
		return 1;
	case offsetof(struct znsage_bpf_policy, isolates):
		to->isolates = from->isolates;
		return 1;
	}
	return 0;
}

static int ops_validate(void *kdata)
{
	const struct znsage_bpf_policy *ops = kdata;

	return ops->place ? 0 : -EINVAL;
}

/* For the verifier and for CFI: the types of the functions; never called. */
static u32 stub_place(struct zse_engine *dev, const struct znsage_page *page)
{
	return 0;
}

static u32 stub_survivor(struct zse_engine *dev, const struct znsage_zone *zone)
{
	return 0;
}

static u32 stub_victim(struct zse_engine *dev, u32 room)
{
	return ZNSAGE_NONE;
}

static struct znsage_bpf_policy stubs = {
	.place = stub_place,
	.survivor = stub_survivor,
	.victim = stub_victim,
};

static const struct bpf_verifier_ops verifier_ops = {
	.is_valid_access = bpf_tracing_btf_ctx_access,
	.get_func_proto = bpf_base_func_proto,
};

static struct bpf_struct_ops bpf_znsage_bpf_policy = {
	.verifier_ops = &verifier_ops,
	.init = ops_init,
	.init_member = ops_init_member,
	.validate = ops_validate,
	.reg = ops_reg,
	.unreg = ops_unreg,
	.cfi_stubs = &stubs,
	.name = "znsage_bpf_policy",
	.owner = THIS_MODULE,
};

/* What a program may call: the same as a policy of a module. */
BTF_KFUNCS_START(znsage_kfuncs)
BTF_ID_FLAGS(func, znsage_stream_of, KF_TRUSTED_ARGS)
BTF_ID_FLAGS(func, znsage_get_levels, KF_TRUSTED_ARGS)
BTF_ID_FLAGS(func, znsage_get_zone, KF_TRUSTED_ARGS)
BTF_KFUNCS_END(znsage_kfuncs)

static const struct btf_kfunc_id_set kfunc_set = {
	.owner = THIS_MODULE,
	.set = &znsage_kfuncs,
};

/* Why there are no policies in BPF; NULL if there can be. */
const char *znsage_bpf_missing(void)
{
	return missing;
}

/* Without BTF, or if the kernel refuses, there are just no such policies. */
void znsage_bpf_init(void)
{
	int err;

	if (!THIS_MODULE->btf_data_size) {
		missing = "the module is built without BTF (package dwarves, and vmlinux in the kernel's headers)";
		znsage_info("bpf", "no policies in BPF: %s", missing);
		return;
	}
	err = register_btf_kfunc_id_set(BPF_PROG_TYPE_STRUCT_OPS, &kfunc_set);
	if (!err)
		err = register_bpf_struct_ops(&bpf_znsage_bpf_policy,
					      znsage_bpf_policy);
	missing = err ? "the kernel refuses the module's BTF" : NULL;
	if (err)
		znsage_info("bpf", "no policies in BPF: %s (%d)", missing, err);
}

#endif
