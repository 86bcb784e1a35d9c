/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine's port for the benchmark: that of user space, but for what should be as
 * in the kernel. The lock spins and takes four bytes, and its takes are counted
 * (meter.h). Memory begins at a page.
 */
#ifndef ZNSAGE_BENCH_ZPORT_H
#define ZNSAGE_BENCH_ZPORT_H

#define spinlock_t	user_spinlock_t
#define zport_alloc	user_alloc
#include "../../../port/user/zport.h"
#undef spinlock_t
#undef zport_alloc
#undef spin_lock_init
#undef spin_lock_irqsave
#undef spin_unlock_irqrestore
#undef lockdep_assert_held
#undef ____cacheline_aligned
#define lockdep_assert_held(l)	((void)(l))
#define ____cacheline_aligned	__attribute__((aligned(64)))

typedef struct {
	u32 held;
} spinlock_t;

void *zport_alloc(size_t bytes);
void meter_lock(spinlock_t *l);
void meter_unlock(spinlock_t *l);

#define spin_lock_init(l)		((l)->held = 0)
#define spin_lock_irqsave(l, flags)	((flags) = 0, meter_lock(l))
#define spin_unlock_irqrestore(l, flags) ((void)(flags), meter_unlock(l))

#endif /* ZNSAGE_BENCH_ZPORT_H */
