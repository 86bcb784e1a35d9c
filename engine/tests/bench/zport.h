/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine's port for the benchmark: that of user space, but for what should be as
 * in the kernel. The lock spins and takes four bytes, and its takes are counted
 * (meter.h). Memory begins at a page.
 */
#ifndef ZNSAGE_BENCH_ZPORT_H
#define ZNSAGE_BENCH_ZPORT_H

#define zp_lock_t	user_lock_t
#define zp_alloc	user_alloc
#include "../../../port/user/zport.h"
#undef zp_lock_t
#undef zp_alloc
#undef zp_lock_init
#undef zp_lock
#undef zp_unlock
#undef zp_assert_held
#define zp_assert_held(l)	((void)(l))

typedef struct {
	u32 held;
} zp_lock_t;

void *zp_alloc(size_t bytes);
void meter_lock(zp_lock_t *l);
void meter_unlock(zp_lock_t *l);

#define zp_lock_init(l)		((l)->held = 0)
#define zp_lock(l, flags)	((flags) = 0, meter_lock(l))
#define zp_unlock(l, flags)	((void)(flags), meter_unlock(l))

#endif /* ZNSAGE_BENCH_ZPORT_H */
