// SPDX-License-Identifier: GPL-2.0
/*
 * Whose page is this? Keys for the policies, from the folio alone and with
 * exported calls only.
 *
 * What may be looked at. A page in a swap-out bio is under writeback and in
 * the swap cache. So its folio is neither freed nor split, stays charged to a
 * memory cgroup (which it holds), and is an anonymous page, shared memory, or
 * one that zswap writes back. Bios may also come from whoever else writes to
 * the disk: theirs are pages of the page cache or of user space, which are not
 * both swap-backed and in the swap cache, and have no owner here. (A page
 * given to direct I/O may be both. It is pinned then, and nothing below needs
 * more than that the folio stays.)
 *
 * cgroup: the memory cgroup's number, the one that `stat -c %i` shows of its
 *   directory. A cgroup v1 may move a page's charge meanwhile; RCU keeps the
 *   old cgroup until this has looked, and its kernfs node as long.
 *
 * mapping: an anonymous folio points to the anon_vma of the mapping that it
 *   came from. The pointer is a key as it is. The anon_vma may be gone, and
 *   its place used for another: reclaim unmapped the page before it wrote it.
 *   Such a page is needed by nobody any more.
 *
 * process: the anon_vma's root, which fork hands on to all descendants. That
 *   means to read the anon_vma, for whose life nothing vouches: it is type-safe
 *   only within the RCU section that saw the page mapped. So it is read with
 *   copy_from_kernel_nofault(), which does not mind if the memory has become
 *   anything else or is gone. The key of a page that nobody needs is then a
 *   number that means nothing, and all that comes of it is that it is placed
 *   somewhere.
 *
 * Shared memory has left the page cache when it is written, and with that the
 * folio knows of no inode; KSM's pages belong to many. Of each kind, the pages
 * of a cgroup count as one mapping.
 *
 * Keys that come from pointers are hashed with a secret: policies and
 * statistics show keys, and kernel addresses are not to be shown.
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
/**
 * znsage_cgroup_of() - number of the memory cgroup that a folio is charged to
 * @folio: swap-backed and in the swap cache; not about to be freed
 *
 * Context: any. Return: the number, 0 if it is charged to none.
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
 * znsage_page_owner() - what policies are told of a page
 * @zd:	   device
 * @page:  of a bio that writes; the first one of a large folio will do
 * @cpu:   that the page is taken to come from
 * @owner: filled in, if the policy looks at it; else but for @cpu unknown
 *
 * Context: process; does not sleep.
 */
void znsage_page_owner(struct znsage_device *zd, struct page *page, u32 cpu,
		       struct znsage_page *owner)
{
	struct folio *folio = page_folio(page);
	unsigned long mapping;

	*owner = (struct znsage_page) {
		.cpu = cpu,
		.life = ZNSAGE_NONE,
		.stream = ZNSAGE_NONE,
	};
	if (!READ_ONCE(zd->wants_owners) || !folio_test_swapbacked(folio) ||
	    !folio_test_swapcache(folio))
		return;

	owner->cgroup = znsage_cgroup_of(folio);
	owner->workingset = folio_test_workingset(folio);
	owner->active = folio_test_active(folio);
	/* A write fault may give the page to another anon_vma meanwhile. */
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
	znsage_frames_recall(zd, page, owner);
}
