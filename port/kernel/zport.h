/* SPDX-License-Identifier: GPL-2.0 */
/* The engine's port in the kernel; see engine/port.h. */
#ifndef ZNSAGE_ZPORT_H
#define ZNSAGE_ZPORT_H

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/bug.h>
#include <linux/cache.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/prefetch.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/vmalloc.h>

/*
 * The maps take 8 bytes for each page of the device, up to 32 GiB. This leaves
 * an eighth of the available memory, so that attach fails and the OOM killer is
 * not invoked. Huge pages save TLB misses.
 */
static inline void *zport_alloc(size_t bytes)
{
	long available = si_mem_available();

	if (available < 0 || bytes >> PAGE_SHIFT > available - available / 8)
		return NULL;
	return vmalloc_huge(bytes, GFP_KERNEL | __GFP_ZERO |
			    __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
}

static inline void zport_free(void *p)
{
	vfree(p);
}

#endif /* ZNSAGE_ZPORT_H */
