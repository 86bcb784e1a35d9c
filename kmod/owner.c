// SPDX-License-Identifier: GPL-2.0
/*
 * Owners of pages: what policies get to know of a page, taken from the folio alone
 * and with exported calls only.
 *
 * A page in a swap-out bio is under writeback and in the swap cache. So its
 * folio is neither freed nor split, stays charged to a memory cgroup (which it
 * pins), and is anonymous, shared memory, or written back by zswap. Other
 * writers to the disk submit pages that are not both swap-backed and in the
 * swap cache; these have no owner here. (A page under direct I/O may be both.
 * It is pinned, which is enough.)
 *
 * cgroup: the number that `stat -c %i` shows of the memory cgroup's directory.
 *   cgroup v1 may move the charge meanwhile; RCU keeps the old cgroup.
 */
#include <linux/cgroup.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>

#include "znsage.h"

#ifdef CONFIG_MEMCG
/*
 * Number of the memory cgroup that a folio is charged to, or 0. The folio is
 * swap-backed and in the swap cache, and cannot leave it. Context: any.
 */
u64 znsage_cgroup_of(struct folio *folio)
{
	struct mem_cgroup *memcg;
	u64 id = 0;

	rcu_read_lock();
	memcg = folio_memcg(folio);
	if (memcg)
		id = cgroup_id(memcg->css.cgroup);
	rcu_read_unlock();
	return id;
}
#else
u64 znsage_cgroup_of(struct folio *folio)
{
	return 0;
}
#endif

/**
 * znsage_page_owner() - describe a page for policies
 * @zd:	   device
 * @page:  page of a write bio; any page of a large folio
 * @cpu:   CPU that the page counts for
 * @owner: filled in; only with @cpu if the policy does not look at pages
 *
 * Context: process; does not sleep.
 * Return: the page's past, for zse_chunk_add(); 0: unknown.
 */
u8 znsage_page_owner(struct znsage_device *zd, struct page *page, u32 cpu,
		     struct znsage_page *owner)
{
	struct folio *folio = page_folio(page);

	*owner = (struct znsage_page) {
		.cpu = cpu,
		.life = ZNSAGE_NONE,
		.usual = ZNSAGE_NONE,
	};
	if (!READ_ONCE(zd->wants_owners) || !folio_test_swapbacked(folio) ||
	    !folio_test_swapcache(folio))
		return 0;

	owner->cgroup = znsage_cgroup_of(folio);
	owner->workingset = folio_test_workingset(folio);
	owner->active = folio_test_active(folio);
	return znsage_frames_recall(zd, page, owner);
}
