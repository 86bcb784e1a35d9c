/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface between the engine and its host: everything that engine/ uses
 * but does not define. <zport.h> on the include path provides it: port/kernel/
 * includes the kernel's headers, port/user/ has the same names for user space.
 * The engine includes no other system header and has no conditional on its
 * host.
 *
 * Of the kernel, with the kernel's meaning:
 *
 *   types      u8 to u64, s32, bool, size_t, atomic_t, atomic64_t, spinlock_t,
 *              struct list_head and its helpers
 *   locks      spin_lock_irqsave() and others, lockdep_assert_held()
 *   memory     READ_ONCE(), WRITE_ONCE(), smp_mb(), smp_load_acquire(),
 *   ordering   smp_store_release()
 *   atomics    xchg() and cmpxchg() of a u32; atomic_*_return(),
 *              atomic64_xchg(), atomic64_cmpxchg(): full barriers, the
 *              compare-and-exchanges if they succeed; atomic64_add(), _sub(),
 *              _inc(), _dec(): no ordering
 *   policies   rcu_read_lock(), rcu_read_unlock(): around calls of a policy,
 *              so that the host can wait for all that have begun
 *   caches     prefetchw(), ____cacheline_aligned
 *   others     cond_resched(), div_u64(), __ffs(), WARN_ON_ONCE(),
 *              raw_smp_processor_id()
 *
 * Of the port:
 *
 *   void *zport_alloc(size_t bytes)	zeroed, or NULL; may sleep; only called
 *					by zse_create() and zse_prepare()
 *   void zport_free(void *p)		p may be NULL; may sleep
 */
#ifndef ZNSAGE_PORT_H
#define ZNSAGE_PORT_H

#include <zport.h>

#endif /* ZNSAGE_PORT_H */
