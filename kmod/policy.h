/* SPDX-License-Identifier: GPL-2.0 */
/* The layer of policies: by name, and those in BPF. */
#ifndef ZNSAGE_MODULE_POLICY_H
#define ZNSAGE_MODULE_POLICY_H

#include "io.h"

/* A policy that comes and goes. */
struct znsage_loaded {
	struct znsage_policy policy;
	const void *key;		/* for znsage_policy_remove() */
	refcount_t refs;
	struct list_head link;		/* under loaded_lock */
	struct list_head users;		/* devices; under znsage_policy_lock */
	bool dead;			/* ejected or gone; under both locks */
	void (*free)(struct znsage_loaded *p);
};

/* policy.c */
extern struct mutex znsage_policy_lock;
const struct znsage_policy *znsage_policy_get(const char *name);
void znsage_policy_put(const struct znsage_policy *policy);
ssize_t znsage_policy_names(char *buf);
int znsage_policy_start(struct znsage_device *zd,
			const struct znsage_policy *policy);
int znsage_policy_switch(struct znsage_device *zd, const char *name);
void znsage_policy_end(struct znsage_device *zd);
int znsage_policy_add(struct znsage_loaded *p);
void znsage_policy_eject(struct znsage_loaded *p, const char *why);
struct znsage_loaded *znsage_policy_remove(const void *key);

/* bpf.c */
void znsage_bpf_init(void);
const char *znsage_bpf_missing(void);

#if !ZNSAGE_HAS_STRUCT_OPS
#define NO_BPF	"this kernel is older than 6.12"
#elif !IS_ENABLED(CONFIG_DEBUG_INFO_BTF_MODULES) || !IS_ENABLED(CONFIG_BPF_JIT)
#define NO_BPF	"this kernel is built without BTF of modules, or without BPF's JIT"
#endif

#ifndef NO_BPF

struct budget {
	u64 at;				/* ns: when it was last charged */
	u64 debt;			/* ns beyond the budget */
};

/* A policy in BPF that is attached. */
struct bpf_policy {
	struct znsage_loaded loaded;
	const struct znsage_bpf_policy *ops;	/* valid while attached */
	struct budget __percpu *budget;
	atomic64_t forgotten;		/* ns: when the last wrong answer is */
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

#endif /* ZNSAGE_MODULE_POLICY_H */
