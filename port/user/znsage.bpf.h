/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of <znsage.bpf.h> that a policy in BPF needs, for user space. So the
 * same source compiles to BPF for the kernel and to a library for the
 * simulator. There are no maps here, and variables are the process's: a run
 * after another finds what that left in them.
 */
#ifndef ZNSAGE_USER_ZNSAGE_BPF_H
#define ZNSAGE_USER_ZNSAGE_BPF_H

#include <linux/module.h>
#include <znsage.h>

/* BPF's loop: @step with 0, 1, ... below @nr, until it returns 1. */
#define bpf_loop(_nr, _step, _context, _flags)				\
do {									\
	u32 _i, _n = (_nr);						\
									\
	(void)(_flags);							\
	for (_i = 0; _i < _n; _i++)					\
		if (_step(_i, _context))				\
			break;						\
} while (0)

static inline u32 znsage_streams(struct zse_engine *dev)
{
	struct znsage_levels levels = { 0 };

	znsage_get_levels(dev, &levels);
	return levels.streams ? levels.streams : 1;
}

#define ZNSAGE_PLACE(_name, _dev, _page)				\
	static u32 _name(struct zse_engine *_dev,			\
			 const struct znsage_page *_page)
#define ZNSAGE_SURVIVOR(_name, _dev, _zone)				\
	static u32 _name(struct zse_engine *_dev,			\
			 const struct znsage_zone *_zone)
#define ZNSAGE_VICTIM(_name, _dev, _room)				\
	static u32 _name(struct zse_engine *_dev, u32 _room)

/* A section has the policy's variable, whatever its name is. */
#define ZNSAGE_POLICY							\
	static struct znsage_policy					\
	__attribute__((section("znsage_policy"), used))

extern struct znsage_policy __start_znsage_policy[]
	__attribute__((visibility("hidden")));

static int znsage_bpf_policy_begin(void)
{
	return znsage_register_policy(__start_znsage_policy);
}
module_init(znsage_bpf_policy_begin);

static void znsage_bpf_policy_end(void)
{
	znsage_unregister_policy(__start_znsage_policy);
}
module_exit(znsage_bpf_policy_end);

#endif /* ZNSAGE_USER_ZNSAGE_BPF_H */
