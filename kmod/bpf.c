// SPDX-License-Identifier: GPL-2.0
/*
 * Policies in BPF. A program fills in a struct znsage_bpf_policy
 * (include/znsage.bpf.h has its half). Once it is attached, it is a policy like
 * the built-in ones, until its link is gone. Devices that use it
 * then go back to the default. So do they when it gives many wrong answers: it
 * is ejected.
 *
 * BPF decides place(), survivor() and victim(). GC calls the last two without a
 * lock, one at a time. freed() and cleaning() stay in C: they run under locks
 * of mm and the engine, where a program that calls back or traces would
 * deadlock.
 *
 * The verifier proves that a program ends, but not soon: it follows a million
 * instructions, and bpf_loop(), iterators and the like repeat a part of these as
 * often as they want. Reclaim waits for place(), and GC for survivor(), so these
 * may have none of it (check_member() and get_func_proto()). victim() has a
 * reason to loop. No function may sleep, since all run in an RCU section. The
 * time of all calls has a budget.
 *
 * This needs kernel 6.12, and the type information (BTF) of the kernel and of
 * this module. Without these the module works, but has no policies in BPF.
 */
#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "bpf.h"

#ifdef NO_BPF

const char *znsage_bpf_missing(void)
{
	return NO_BPF;
}

void znsage_bpf_init(void)
{
}

const struct znsage_policy *znsage_bpf_get(const char *name)
{
	return NULL;
}

void znsage_bpf_put(const struct znsage_policy *policy)
{
}

ssize_t znsage_bpf_names(char *buf, ssize_t len)
{
	return len;
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
#include <linux/delay.h>
#include <linux/percpu.h>

/* Newer kernels trust no other arguments anyway. */
#ifndef KF_TRUSTED_ARGS
#define KF_TRUSTED_ARGS	0
#endif

#ifdef ZNSAGE_DEBUG
static bool hold_end;
module_param(hold_end, bool, 0600);
MODULE_PARM_DESC(hold_end, "a BPF policy that ends waits while this is set");

static void test_hold(void)
{
	while (READ_ONCE(hold_end))
		msleep(20);
}
#else
static void test_hold(void)
{
}
#endif

/* Policies whose links are there. The lock comes after znsage_policy_lock. */
static LIST_HEAD(attached);
static DEFINE_MUTEX(attached_lock);
static const char *missing = "the module is not initialized";

static struct bpf_policy *to_bpf(const struct znsage_policy *policy)
{
	if (!policy || policy->place != znsage_bpf_place)
		return NULL;
	return container_of(policy, struct bpf_policy, policy);
}

static void bpf_policy_free(struct bpf_policy *bp)
{
	free_percpu(bp->budget);
	kfree(bp);
}

/* One that is not dead, by name; or NULL. Under attached_lock. */
static struct bpf_policy *find(const char *name)
{
	struct bpf_policy *bp;

	list_for_each_entry(bp, &attached, link)
		if (!bp->dead && !strcmp(bp->policy.name, name))
			return bp;
	return NULL;
}

/*
 * Find a policy by name, or return NULL. It is kept in memory until it is put,
 * but may be dead by then. Context: sleeps.
 */
const struct znsage_policy *znsage_bpf_get(const char *name)
{
	struct bpf_policy *bp;

	mutex_lock(&attached_lock);
	bp = find(name);
	if (bp)
		refcount_inc(&bp->refs);
	mutex_unlock(&attached_lock);
	return bp ? &bp->policy : NULL;
}

/* @policy may be NULL, or not in BPF. */
void znsage_bpf_put(const struct znsage_policy *policy)
{
	struct bpf_policy *bp = to_bpf(policy);

	if (bp && refcount_dec_and_test(&bp->refs))
		bpf_policy_free(bp);
}

/* Append the names to @buf, a line each. Returns the new length. */
ssize_t znsage_bpf_names(char *buf, ssize_t len)
{
	const struct bpf_policy *bp;

	mutex_lock(&attached_lock);
	list_for_each_entry(bp, &attached, link)
		if (!bp->dead)
			len += sysfs_emit_at(buf, len, "%s\n", bp->policy.name);
	mutex_unlock(&attached_lock);
	return len;
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

/* @zd uses @policy. Context: znsage_policy_lock. */
void znsage_bpf_attach(const struct znsage_policy *policy,
		       struct znsage_device *zd)
{
	struct bpf_policy *bp = to_bpf(policy);

	if (bp)
		list_add(&zd->bpf_user, &bp->users);
}

/*
 * @zd no longer uses @policy, and none of its functions is running. Context:
 * znsage_policy_lock.
 */
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
	mutex_lock(&attached_lock);
	bp->dead = true;
	mutex_unlock(&attached_lock);
	list_for_each_entry_safe(zd, next, &bp->users, bpf_user) {
		test_hold();
		znsage_policy_default(zd);
		snprintf(zd->ejected, sizeof(zd->ejected), "%s: %s",
			 bp->policy.name, why);
	}
}

static void eject(struct work_struct *work)
{
	struct bpf_policy *bp = container_of(work, struct bpf_policy, eject);
	char why[96];

	snprintf(why, sizeof(why), "ejected for %s", bp->why);
	znsage_err(bp->policy.name, "BPF policy %s", why);
	mutex_lock(&znsage_policy_lock);
	end(bp, why);
	mutex_unlock(&znsage_policy_lock);
}

static bool name_is_good(const char *name)
{
	size_t len = strnlen(name, ZNSAGE_POLICY_NAME), i;

	for (i = 0; i < len; i++)
		if (!isalnum(name[i]) && name[i] != '-' && name[i] != '_')
			return false;
	return len && len < ZNSAGE_POLICY_NAME;
}

static int ops_reg(void *kdata, struct bpf_link *link)
{
	const struct znsage_bpf_policy *ops = kdata;
	struct bpf_policy *bp;
	int err = 0;

	if (!name_is_good(ops->name))
		return -EINVAL;
	bp = kzalloc(sizeof(*bp), GFP_KERNEL);
	if (!bp)
		return -ENOMEM;
	bp->budget = alloc_percpu(struct budget);
	if (!bp->budget) {
		kfree(bp);
		return -ENOMEM;
	}
	strscpy(bp->policy.name, ops->name, sizeof(bp->policy.name));
	bp->policy.streams = ops->streams;
	bp->policy.isolates = ops->isolates;
	bp->policy.place = znsage_bpf_place;
	if (ops->survivor)
		bp->policy.survivor = znsage_bpf_survivor;
	if (ops->victim)
		bp->policy.victim = znsage_bpf_victim;
	bp->ops = ops;
	refcount_set(&bp->refs, 1);
	INIT_LIST_HEAD(&bp->users);
	INIT_WORK(&bp->eject, eject);
	mutex_lock(&attached_lock);
	if (zse_builtin_policy(ops->name) || find(ops->name))
		err = -EEXIST;
	else
		list_add_tail(&bp->link, &attached);
	mutex_unlock(&attached_lock);
	if (err)
		bpf_policy_free(bp);
	return err;
}

/* No function of the program runs once this returns. */
static void ops_unreg(void *kdata, struct bpf_link *link)
{
	struct bpf_policy *bp, *found = NULL;

	mutex_lock(&znsage_policy_lock);
	mutex_lock(&attached_lock);
	list_for_each_entry(bp, &attached, link)
		if (bp->ops == kdata)
			found = bp;
	if (found)
		list_del(&found->link);
	mutex_unlock(&attached_lock);
	if (found)
		end(found, "unloaded");
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

/* Return 1 for members copied here, 0 for those that the BPF core sets. */
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

/*
 * Does @prog end after a million instructions at most? The verifier walks all of
 * its paths, but for what may_goto and iterators repeat, and for global
 * functions, which it looks at once, however often they are called. Iterators
 * are functions of the kernel's, and no other of these is needed.
 */
static bool ends_soon(const struct bpf_prog *prog)
{
	const struct bpf_prog_aux *aux = prog->aux;
	const struct bpf_insn *insn = prog->insnsi;
	u32 i;

	for (i = 0; i < prog->len; i++, insn++) {
		if (insn->code == (BPF_JMP | BPF_JCOND))
			return false;
		/* With an offset, the function is a module's. */
		if (insn->code == (BPF_JMP | BPF_CALL) &&
		    insn->src_reg == BPF_PSEUDO_KFUNC_CALL && !insn->off)
			return false;
	}
	/* The first is the program itself. */
	for (i = 1; i < aux->func_info_cnt; i++)
		if (aux->func_info_aux[i].linkage != BTF_FUNC_STATIC)
			return false;
	return true;
}

/* Called before the program is verified. */
static int ops_check_member(const struct btf_type *t,
			    const struct btf_member *member,
			    const struct bpf_prog *prog)
{
	u32 at = __btf_member_bit_offset(t, member) / BITS_PER_BYTE;

	if (prog->sleepable)
		return -EINVAL;
	if (at != offsetof(struct znsage_bpf_policy, victim) &&
	    !ends_soon(prog))
		return -EINVAL;
	return 0;
}

/* Helpers that call the program back, as often as it wants. */
static const struct bpf_func_proto *
get_func_proto(enum bpf_func_id id, const struct bpf_prog *prog)
{
	bool victim = !strcmp(prog->aux->attach_func_name, "victim");

	switch (id) {
	case BPF_FUNC_loop:
	case BPF_FUNC_for_each_map_elem:
	case BPF_FUNC_user_ringbuf_drain:
		return victim ? bpf_base_func_proto(id, prog) : NULL;
	default:
		return bpf_base_func_proto(id, prog);
	}
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
	.get_func_proto = get_func_proto,
};

static struct bpf_struct_ops bpf_znsage_bpf_policy = {
	.verifier_ops = &verifier_ops,
	.init = ops_init,
	.check_member = ops_check_member,
	.init_member = ops_init_member,
	.validate = ops_validate,
	.reg = ops_reg,
	.unreg = ops_unreg,
	.cfi_stubs = &stubs,
	.name = "znsage_bpf_policy",
	.owner = THIS_MODULE,
};

/* What a program may call. */
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
