/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface between the engine and its host: everything that engine/ uses
 * but does not define. An implementation is a header <zport.h> on the include
 * path (port/kernel/ or port/user/). The engine includes no other system header
 * and has no conditional on its host.
 *
 * What <zport.h> provides:
 *
 *   types      u8, u16, u32, s32, u64, bool, size_t, NULL, true, false
 *
 *   memory     void *zp_alloc(size_t bytes)	zeroed, or NULL; may sleep; only
 *						called by zse_create()
 *						and zse_prepare()
 *              void zp_free(void *p)		p may be NULL; may sleep
 *
 *   lock       zp_lock_t			a lock that completions may take
 *              zp_lock_init(zp_lock_t *)
 *              zp_lock(zp_lock_t *, flags)	flags: unsigned long, by name;
 *              zp_unlock(zp_lock_t *, flags)	safe in any context
 *              zp_assert_held(zp_lock_t *)	checks in debug builds that somebody
 *						has the lock
 *              zp_acquires(lock), zp_releases(lock)
 *						mark a function that returns
 *						with the lock, or without it
 *
 *   atomics    u32 zp_load(const u32 *)	relaxed, never torn
 *              void zp_store(u32 *, u32)	relaxed, never torn
 *              u8 zp_load8(const u8 *), void zp_store8(u8 *, u8)
 *						relaxed, of a byte
 *              u32 zp_xchg(u32 *, u32)		full barrier
 *              bool zp_cas(u32 *, u32 old, u32 new)
 *						true if old was replaced by new;
 *						then a full barrier
 *              void zp_add(u32 *, u32)		atomic, full barrier
 *              u32 zp_sub_return(u32 *, u32)	atomic, full barrier
 *              void zp_mb(void)		full barrier
 *              u64 zp_xchg64(u64 *, u64)	full barrier
 *              bool zp_cas64(u64 *, u64 old, u64 new)
 *						as zp_cas()
 *              u64 zp_load64(const u64 *)	relaxed, torn on 32-bit CPUs
 *              void zp_store64(u64 *, u64)	relaxed, torn on 32-bit CPUs
 *              zp_load_ptr(pp)			acquire
 *              zp_store_ptr(pp, p)		release: a CPU that loads p sees
 *						what was stored before
 *
 *   arithmetic u64 zp_div(u64, u32)		quotient
 *              u32 zp_ffs(u32)			index of the lowest bit that is set
 *
 *   long work  void zp_resched(void)		lets others run; may sleep
 *
 *   policies   zp_read_lock(), zp_read_unlock()
 *						around calls of a policy; the
 *						host can wait for all that have
 *						begun
 *
 *   counters   u32 zp_shard(void)		a number that tends to differ
 *						between CPUs
 *              void zp_count(u64 *, u64)	atomic add, no ordering
 *              u64 zp_count_read(const u64 *)
 *
 *   lists      struct list_head and the usual list_*() helpers
 *
 *   checking   zp_warn(cond)			reports a broken invariant and
 *						evaluates to cond
 *              ZP_DEBUG			1 in builds with costly checks,
 *						else 0
 */
#ifndef ZNSAGE_PORT_H
#define ZNSAGE_PORT_H

#include <zport.h>

#endif /* ZNSAGE_PORT_H */
