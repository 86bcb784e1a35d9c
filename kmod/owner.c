// SPDX-License-Identifier: GPL-2.0
/*
 * Owners of pages: keys for the policies, taken from the folio alone and with
 * exported calls only.
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
 *
 * mapping: the folio's anon_vma pointer. The anon_vma may have been freed and
 *   reused, since reclaim unmaps a page before it writes it. Then nobody needs
 *   the page.
 *
 * process: the anon_vma's root, which fork passes on. The anon_vma is type-safe
 *   only in the RCU section that saw the page mapped, so its root is read with
 *   copy_from_kernel_nofault(). If it was freed, the key is meaningless, but
 *   then nobody needs the page and any stream will do.
 *
 * Shared memory has left the page cache when it is written, so its inode is not
 * known; pages merged by KSM have many owners. For each of the two kinds, the
 * pages of a cgroup count as one mapping.
 *
 * Keys that come from pointers are hashed with a secret: policies and
 * statistics show keys, and must not show kernel addresses.
 */
#include <linux/cgroup.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/rmap.h>
#include <linux/siphash.h>
#include <linux/uaccess.h>

#include "znsage.h"

/* What is hashed in place of a pointer; no pointer has these values. */
enum { SHARED_MEMORY = 1, MERGED_PAGES = 2 };

/* A key is not 0. */
static u64 hash(const struct znsage_device *zd, u64 a, u64 b)
{
	return siphash_2u64(a, b, &zd->key_secret) ?: 1;
}

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

static void anon_owner(const struct znsage_device *zd, unsigned long mapping,
		       struct znsage_page *owner)
{
	const struct anon_vma *av = (void *)(mapping & ~FOLIO_MAPPING_FLAGS);
	struct anon_vma *root;

	owner->mapping = hash(zd, (unsigned long)av, 0);
	if (!copy_from_kernel_nofault(&root, &av->root, sizeof(root)))
		owner->process = hash(zd, (unsigned long)root, 0);
}

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
	unsigned long mapping;

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
	if (!READ_ONCE(zd->wants_mappings))
		return znsage_frames_recall(zd, page, owner);
	/* A write fault may move the page to another anon_vma meanwhile. */
	mapping = (unsigned long)READ_ONCE(folio->mapping);
	switch (mapping & FOLIO_MAPPING_FLAGS) {
	case FOLIO_MAPPING_ANON:
		anon_owner(zd, mapping, owner);
		break;
	case FOLIO_MAPPING_KSM:
		owner->mapping = hash(zd, MERGED_PAGES, owner->cgroup);
		owner->process = owner->mapping;
		break;
	default:
		owner->mapping = hash(zd, SHARED_MEMORY, owner->cgroup);
		owner->process = owner->mapping;
	}
	return znsage_frames_recall(zd, page, owner);
}
