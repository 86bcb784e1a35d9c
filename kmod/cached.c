// SPDX-License-Identifier: GPL-2.0
/*
 * GC asks before it moves a page: is it in memory anyway? Swap-in leaves the
 * page in the swap cache and the slot in use, so that an unchanged page need
 * not be written again. If such a page is marked dirty, the kernel will write
 * it before it lets go of it, and its block is not needed: GC drops it. That
 * saves a read and a write of GC, and costs a write of swap-out if the page is
 * evicted again unchanged.
 *
 * To be shown: once znsage_in_memory() has answered true for a slot and until
 * the slot is written again or freed, nobody reads it from the disk. And if it
 * was written again or freed before GC drops the block, nothing is dropped:
 * the engine drops by compare-and-swap of the very block that it asked about,
 * whose number cannot come back before (engine/map.c).
 *
 * What is looked at. The table of frames.c names a frame for the slot. It may
 * be wrong: nothing is concluded from it, all is looked up in the folio.
 *
 * 1. The frame. pfn_to_online_page() refuses what is not memory, or not any
 *    more. That is no lock against hot-remove: as with page_idle and DAMON,
 *    which go from numbers to folios in the same way, it is the time that
 *    offlining takes between the two steps that makes it safe.
 *
 * 2. The folio. It is on an LRU list, so it is no slab, no hugetlb, no page
 *    table; its count is raised only if it is not 0, so a free one stays free.
 *    Then it is looked at again: between the two it may have been freed and
 *    come back as anything else, or as the tail of a large folio.
 *
 * 3. The lock. folio_trylock(): GC never waits for a folio. (Its holder may be
 *    waiting for room on this disk.) Under the lock a folio neither enters nor
 *    leaves the swap cache, is not reclaimed, migrated, split, or filled by a
 *    read. So what is seen now is true until it is unlocked.
 *
 * 4. Which slot. The folio is in the swap cache under an entry, a type (one for
 *    each swap area) and an offset. The offset is the slot, if the area is the
 *    whole of this disk. Its type is learnt when the kernel's swap-in reads a
 *    slot by an entry with that offset, while the disk itself is a swap area
 *    (IS_SWAPFILE() of its inode; not a file on it, nor a volume made of it),
 *    and is forgotten whenever somebody opens the disk. It is not learnt late:
 *    who learns it holds a locked folio of the area, which cannot be switched
 *    off meanwhile. swapon opens the disk before IS_SWAPFILE() holds, so if
 *    IS_SWAPFILE() holds and a type is known after that, it is the type of the
 *    area that is on the disk now. swapoff takes IS_SWAPFILE() away before the
 *    type can be given to another area; so a folio that was found under that
 *    type while IS_SWAPFILE() still holds is of this one.
 *
 * 5. What it holds. It is up to date, so it has the page as it is on the disk
 *    or a newer one, and not under writeback, so nothing is on its way that
 *    began before. It is anonymous and mapped, so it is in use. (Left out with
 *    that: shared memory, which may be copied to another folio in the swap
 *    cache without its dirty flag, and what readahead brought and nobody has
 *    asked for.) It is one page.
 *
 * Then it is marked dirty and unlocked. From there on:
 *
 *   reclaim	looks at the dirty flag under the folio's lock before it removes
 *		a folio from the swap cache, and again after it has frozen its
 *		count. A dirty one it writes, to the same slot: to this disk,
 *		or into zswap, or it notes that it is all zeros; each is where
 *		the kernel then reads it from. If the write fails the folio is
 *		dirty again. zswap may be on: what it takes is read from there,
 *		and what it turns down is written here.
 *   a fault	finds the folio in the swap cache, as it does a clean one.
 *   a write	to the page, exit, swapoff, and a slot that nobody refers to any
 *		more take the folio from the swap cache and free the slot. The
 *		folio, if anybody needs it, stays dirty.
 *   MADV_FREE	first does that; if it cannot, it leaves the folio alone.
 *   fork	copies references to the slot.
 *   migration	takes the dirty flag along, as it does the place in the swap
 *		cache.
 *   KSM	and huge pages copy the page and leave the folio where it is, until
 *		nobody refers to the slot.
 *   a memory error	of a dirty page is fatal to its users, and of a clean one
 *		is not. That is the one thing lost here, and no worse than for
 *		any page of memory that is not swapped. The folio stays in the
 *		swap cache, not up to date: nobody reads the slot.
 *
 * Whoever reads the disk itself, as dd does, finds an error in place of a page
 * that was dropped.
 *
 * None of that is promised by the kernel: it is how 6.1 to 7.3 do it. The swap
 * cache is made differently in 7.2 (a table for each cluster of slots), what is
 * said here of folios in it is the same.
 */
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/swap.h>
#include <linux/swapops.h>

#include "znsage.h"

/* No swap area has this type: there are MAX_SWAPFILES of them. */
#define NO_TYPE		U32_MAX

/* The disk is opened, perhaps by swapon: what was learnt is not to be used. */
void znsage_cached_forget(struct znsage_device *zd)
{
	WRITE_ONCE(zd->swap_type, NO_TYPE);
}

/**
 * znsage_cached_learn() - the kernel swaps in by an entry that names the slot
 * @zd:	   device
 * @folio: that is read into; locked by whoever reads
 *
 * Context: any.
 */
void znsage_cached_learn(struct znsage_device *zd, struct folio *folio)
{
	u32 type = swp_type(znsage_folio_swap(folio));

	if (READ_ONCE(zd->swap_type) != type && znsage_is_swap(zd->disk))
		WRITE_ONCE(zd->swap_type, type);
}

/* The folio of a frame, held, if there is one that can be in the swap cache. */
static struct folio *folio_get_at(unsigned long pfn)
{
	struct page *page = pfn_to_online_page(pfn);
	struct folio *folio;

	if (!page || PageTail(page))
		return NULL;
	folio = page_folio(page);
	if (!folio_test_lru(folio) || !folio_try_get(folio))
		return NULL;
	if (page_folio(page) != folio || !folio_test_lru(folio)) {
		folio_put(folio);
		return NULL;
	}
	return folio;
}

/* Does @folio, which is locked, hold the page of @slot? */
static bool holds(struct znsage_device *zd, struct folio *folio, u32 slot)
{
	u32 type = READ_ONCE(zd->swap_type);
	swp_entry_t entry;

	if (type == NO_TYPE || folio_test_large(folio) ||
	    !folio_test_anon(folio) || !folio_test_swapbacked(folio) ||
	    !folio_test_swapcache(folio) || !folio_test_uptodate(folio) ||
	    folio_test_writeback(folio) || PageHWPoison(&folio->page) ||
	    !folio_mapped(folio))
		return false;
	entry = znsage_folio_swap(folio);
	if (swp_type(entry) != type || swp_offset(entry) != slot)
		return false;
	if (!znsage_is_swap(zd->disk))
		return false;
	/* Was it the area of this type that made it true? See 4. above. */
	smp_rmb();
	return READ_ONCE(zd->swap_type) == type;
}

/**
 * znsage_in_memory() - can the block of a slot be dropped?
 * @host: device
 * @slot: whose block GC is about to read
 *
 * Context: the worker; does not sleep.
 * Return: true if the page is in memory and will be written before it leaves.
 */
bool znsage_in_memory(void *host, u32 slot)
{
	struct znsage_device *zd = host;
	struct folio *folio;
	unsigned long pfn;
	bool dirty = false;

	if (!znsage_frames_where(zd, slot, &pfn))
		return false;
	folio = folio_get_at(pfn);
	if (!folio)
		return false;
	if (folio_trylock(folio)) {
		dirty = holds(zd, folio, slot);
		if (dirty)
			folio_mark_dirty(folio);
		folio_unlock(folio);
	}
	folio_put(folio);
	return dirty;
}
