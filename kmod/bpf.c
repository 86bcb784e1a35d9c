// SPDX-License-Identifier: GPL-2.0
/*
 * Policies in BPF. A program fills in a struct znsage_bpf_policy
 * (include/znsage.bpf.h has its half). Once attached, it is a policy like the
 * built-in ones, until its link is gone or it is ejected for wrong answers or
 * slow calls. Devices that use it then go back to the default.
 *
 * BPF decides place(), survivor() and victim(). GC calls the last two without a
 * lock, one at a time. freed() and cleaning() stay in C: they run under locks
 * of mm and the engine, where a program that calls back or traces would
 * deadlock.
 *
 * The verifier proves that a program ends, but not soon: it follows a million
 * instructions, and bpf_loop(), iterators and the like repeat some of them at
 * will. Reclaim waits for place(), and GC for survivor(), so these two may not
 * use any of them (ops_check_member(), get_func_proto()). victim() has a reason
 * to loop. No function may sleep, since all run in an RCU section. The time of
 * all calls has a budget (bpf_calls.c).
 *
 * This needs kernel 6.12, and the type information (BTF) of the kernel and of
 * the module. Otherwise the module works, but has no policies in BPF.
 */
#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "policy.h"

#ifdef NO_BPF

static const char *const missing = NO_BPF;

void znsage_bpf_init(void)
{
}

#else

#include <linux/bpf.h>
#include <linux/bpf_verifier.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>

/* Newer kernels trust no other arguments anyway. */
#ifndef KF_TRUSTED_ARGS
#define KF_TRUSTED_ARGS	0
#endif

static const char *missing = "the module is not initialized";

static void bpf_policy_free(struct znsage_loaded *loaded)
{
	struct bpf_policy *bp = to_bpf(loaded);

	free_percpu(bp->budget);
	kfree(bp);
}

static void eject(struct work_struct *work)
{
	struct bpf_policy *bp = container_of(work, struct bpf_policy, eject);
	char why[96];

	snprintf(why, sizeof(why), "ejected for %s", bp->why);
	znsage_err(bp->loaded.policy.name, "BPF policy %s", why);
	znsage_policy_eject(&bp->loaded, why);
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
	struct znsage_policy *policy;
	struct bpf_policy *bp;
	int err = -ENOMEM;

	if (!name_is_good(ops->name))
		return -EINVAL;
	bp = kzalloc(sizeof(*bp), GFP_KERNEL);
	if (!bp)
		return err;
	bp->ops = ops;
	bp->loaded.key = kdata;
	bp->loaded.free = bpf_policy_free;
	INIT_WORK(&bp->eject, eject);
	policy = &bp->loaded.policy;
	strscpy(policy->name, ops->name, sizeof(policy->name));
	policy->streams = ops->streams;
	policy->isolates = ops->isolates;
	policy->place = znsage_bpf_place;
	if (ops->survivor)
		policy->survivor = znsage_bpf_survivor;
	if (ops->victim)
		policy->victim = znsage_bpf_victim;
	bp->budget = alloc_percpu(struct budget);
	if (bp->budget)
		err = znsage_policy_add(&bp->loaded);
	if (err)
		bpf_policy_free(&bp->loaded);
	return err;
}

/* No function of the program runs once this returns. */
static void ops_unreg(void *kdata, struct bpf_link *link)
{
	struct znsage_loaded *loaded = znsage_policy_remove(kdata);

	if (WARN_ON_ONCE(!loaded))
		return;
	cancel_work_sync(&to_bpf(loaded)->eject);
	znsage_policy_put(&loaded->policy);
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
	bool is_name = at == offsetof(struct znsage_bpf_policy, name);

	if (at < offsetof(struct znsage_bpf_policy, name))
		return 0;
	memcpy(kdata + at, udata + at, is_name ? ZNSAGE_POLICY_NAME : 4);
	return 1;
}

/*
 * Does @prog end after a million instructions? The verifier walks all of its
 * paths, but not what may_goto and iterators repeat, and each global function
 * only once. Iterators are kfuncs of the kernel, all of which are refused:
 * policies need none.
 */
static bool ends_soon(const struct bpf_prog *prog)
{
	const struct bpf_prog_aux *aux = prog->aux;
	const struct bpf_insn *insn = prog->insnsi;
	u32 i;

	for (i = 0; i < prog->len; i++, insn++) {
		if (insn->code == (BPF_JMP | BPF_JCOND))
			return false;
		/* An offset says that the kfunc is a module's. */
		if (insn->code == (BPF_JMP | BPF_CALL) &&
		    insn->src_reg == BPF_PSEUDO_KFUNC_CALL && !insn->off)
			return false;
	}
	/* Function 0 is the program itself. */
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

/* Without BTF, or if the kernel refuses, there are no such policies. */
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

/* Why there are no policies in BPF; NULL if there can be. */
const char *znsage_bpf_missing(void)
{
	return missing;
}
