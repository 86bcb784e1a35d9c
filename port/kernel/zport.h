/* SPDX-License-Identifier: GPL-2.0 */
/* The engine's port in the kernel; see engine/port.h. */
#ifndef ZNSAGE_ZPORT_H
#define ZNSAGE_ZPORT_H

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/bug.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/vmalloc.h>

#ifdef ZNSAGE_DEBUG
#define ZP_DEBUG	1
#else
#define ZP_DEBUG	0
#endif

/*
 * The maps take 8 bytes for each page of the device, up to 32 GiB. This leaves
 * an eighth of the available memory, so that attach fails and the OOM killer is
 * not invoked. Huge pages save TLB misses.
 */
static inline void *zp_alloc(size_t bytes)
{
	long available = si_mem_available();

	if (available < 0 || bytes >> PAGE_SHIFT > available - available / 8)
		return NULL;
	return vmalloc_huge(bytes, GFP_KERNEL | __GFP_ZERO |
			    __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
}

static inline void zp_free(void *p)
{
	vfree(p);
}

typedef spinlock_t zp_lock_t;

#define zp_lock_init(l)		spin_lock_init(l)
#define zp_lock(l, flags)	spin_lock_irqsave(l, flags)
#define zp_unlock(l, flags)	spin_unlock_irqrestore(l, flags)
#define zp_assert_held(l)	lockdep_assert_held(l)
#define zp_acquires(l)		__acquires(l)
#define zp_releases(l)		__releases(l)

static inline u32 zp_load(const u32 *p)
{
	return READ_ONCE(*p);
}

static inline void zp_store(u32 *p, u32 v)
{
	WRITE_ONCE(*p, v);
}

static inline u8 zp_load8(const u8 *p)
{
	return READ_ONCE(*p);
}

static inline void zp_store8(u8 *p, u8 v)
{
	WRITE_ONCE(*p, v);
}

static inline u32 zp_xchg(u32 *p, u32 v)
{
	return xchg(p, v);
}

static inline bool zp_cas(u32 *p, u32 old, u32 new)
{
	return cmpxchg(p, old, new) == old;
}

/* The kernel has no atomic addition to a plain word, but atomic_t is one. */
static inline void zp_add(u32 *p, u32 v)
{
	BUILD_BUG_ON(sizeof(atomic_t) != sizeof(u32));
	atomic_add_return(v, (atomic_t *)p);
}

static inline u32 zp_sub_return(u32 *p, u32 v)
{
	return atomic_sub_return(v, (atomic_t *)p);
}

static inline void zp_mb(void)
{
	smp_mb();
}

static inline u64 zp_load64(const u64 *p)
{
	return READ_ONCE(*p);
}

static inline u64 zp_xchg64(u64 *p, u64 v)
{
	BUILD_BUG_ON(sizeof(atomic64_t) != sizeof(u64));
	return atomic64_xchg((atomic64_t *)p, v);
}

static inline bool zp_cas64(u64 *p, u64 old, u64 new)
{
	return (u64)atomic64_cmpxchg((atomic64_t *)p, old, new) == old;
}

static inline void zp_store64(u64 *p, u64 v)
{
	WRITE_ONCE(*p, v);
}

static inline u64 zp_div(u64 dividend, u32 divisor)
{
	return div_u64(dividend, divisor);
}

static inline u32 zp_ffs(u32 bits)
{
	return __ffs(bits);
}

#define zp_resched()		cond_resched()

#define zp_load_ptr(pp)		smp_load_acquire(pp)
#define zp_store_ptr(pp, p)	smp_store_release(pp, p)

#define zp_read_lock()		rcu_read_lock()
#define zp_read_unlock()	rcu_read_unlock()

static inline u32 zp_shard(void)
{
	return raw_smp_processor_id();
}

static inline void zp_count(u64 *p, u64 v)
{
	BUILD_BUG_ON(sizeof(atomic64_t) != sizeof(u64));
	atomic64_add(v, (atomic64_t *)p);
}

static inline u64 zp_count_read(const u64 *p)
{
	return READ_ONCE(*p);
}

#define zp_warn(cond)	WARN_ONCE(cond, "znsage: invariant broken: " #cond)

#endif /* ZNSAGE_ZPORT_H */
