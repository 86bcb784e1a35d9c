/* SPDX-License-Identifier: GPL-2.0 */
/* A policy in BPF: what bpf.c and bpf_calls.c share. */
#ifndef ZNSAGE_BPF_POLICY_H
#define ZNSAGE_BPF_POLICY_H

#include "znsage.h"

#if !ZNSAGE_HAS_STRUCT_OPS
#define NO_BPF	"this kernel is older than 6.12"
#elif !IS_ENABLED(CONFIG_DEBUG_INFO_BTF_MODULES) || !IS_ENABLED(CONFIG_BPF_JIT)
#define NO_BPF	"this kernel is built without BTF of modules, or without BPF's JIT"
#endif

#ifndef NO_BPF

/* What a program fills in; the members mean the same as in znsage_policy. */
struct znsage_bpf_policy {
	u32 (*place)(struct zse_engine *dev, const struct znsage_page *page);
	u32 (*survivor)(struct zse_engine *dev, const struct znsage_zone *zone);
	u32 (*victim)(struct zse_engine *dev, u32 room);
	char name[ZNSAGE_POLICY_NAME];
	u32 streams;
	u32 isolates;
};

/* On one CPU. */
struct budget {
	u64 at;				/* when it was last looked at */
	u64 debt;			/* ns that calls took beyond it */
};

/* One that is attached. */
struct bpf_policy {
	struct znsage_loaded loaded;
	const struct znsage_bpf_policy *ops;	/* valid while attached */
	struct budget __percpu *budget;
	atomic64_t forgotten;		/* when no wrong answer will be left */
	atomic_t ejected;
	char why[80];			/* under @ejected */
	struct work_struct eject;
};

static inline struct bpf_policy *to_bpf(struct znsage_loaded *loaded)
{
	return container_of(loaded, struct bpf_policy, loaded);
}

/* bpf_calls.c */
u32 znsage_bpf_place(struct zse_engine *dev, const struct znsage_page *page);
u32 znsage_bpf_survivor(struct zse_engine *dev, const struct znsage_zone *z);
u32 znsage_bpf_victim(struct zse_engine *dev, u32 room);

#endif

#endif /* ZNSAGE_BPF_POLICY_H */
