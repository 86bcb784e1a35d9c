/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policies for znsage in BPF, for kernels from 6.12. <znsage.h> describes the
 * terms and the fields; a program sees the same page and may call the same
 * functions. It needs no kernel header:
 *
 *	clang -O2 -g -target bpf -Iinclude -c mine.bpf.c
 *
 * -g adds the type information by which the loader finds the fields, so one
 * object file fits all versions.
 */
#ifndef _ZNSAGE_BPF_H
#define _ZNSAGE_BPF_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef _Bool bool;

#define SEC(name)	__attribute__((section(name), used))
#define __ksym		__attribute__((section(".ksyms")))
#define __always_inline	inline __attribute__((always_inline))
#define __kernel_type	__attribute__((preserve_access_index))

/* The loader finds the fields where the running module has them. */
#pragma clang attribute push(__kernel_type, apply_to = record)
#include <znsage.h>
#pragma clang attribute pop

/* Opaque. Defined because the loader compares the kinds of types. */
struct zse_engine {
};

extern u32 znsage_stream_of(struct zse_engine *dev, u64 key) __ksym;
extern void znsage_get_levels(struct zse_engine *dev,
			      struct znsage_levels *levels) __ksym;
extern bool znsage_get_zone(struct zse_engine *dev, u32 zone,
			    struct znsage_zone *z) __ksym;

/*
 * The kernel's loop, for victim() only. It calls @step with 0, 1, ... below @nr
 * and with @context, until @step returns 1. See bpf-helpers(7).
 */
static long (*const bpf_loop)(u32 nr, void *step, void *context,
			      u64 flags) = (void *)181;

/* The number of streams of @dev, at least 1; place() returns less. */
static __always_inline u32 znsage_streams(struct zse_engine *dev)
{
	struct znsage_levels levels = {};

	znsage_get_levels(dev, &levels);
	return levels.streams ? levels.streams : 1;
}

/* BPF passes all arguments in one array. */
#define ZNSAGE_FUNCTION(_member, _name, _dev, _type, _arg)		\
static __always_inline u32 _name##_body(struct zse_engine *_dev,	\
					const struct _type *_arg);	\
SEC("struct_ops/" #_member)						\
u32 _name(u64 *args)							\
{									\
	return _name##_body((void *)args[0], (void *)args[1]);		\
}									\
static __always_inline u32 _name##_body(struct zse_engine *_dev,	\
					const struct _type *_arg)

#define ZNSAGE_PLACE(_name, _dev, _page)				\
	ZNSAGE_FUNCTION(place, _name, _dev, znsage_page, _page)
#define ZNSAGE_SURVIVOR(_name, _dev, _zone)				\
	ZNSAGE_FUNCTION(survivor, _name, _dev, znsage_zone, _zone)

#define ZNSAGE_VICTIM(_name, _dev, _room)				\
static __always_inline u32 _name##_body(struct zse_engine *_dev,	\
					u32 _room);			\
SEC("struct_ops/victim")						\
u32 _name(u64 *args)							\
{									\
	return _name##_body((void *)args[0], (u32)args[1]);		\
}									\
static __always_inline u32 _name##_body(struct zse_engine *_dev, u32 _room)

/* The policy is a variable. The license lets it call the module. */
#define ZNSAGE_POLICY							\
	char _license[] SEC("license") = "GPL";				\
	SEC(".struct_ops.link") struct znsage_bpf_policy

#endif /* _ZNSAGE_BPF_H */
