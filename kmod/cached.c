// SPDX-License-Identifier: GPL-2.0
/*
 * Before GC moves a page it asks whether the page is in memory anyway. Swap-in
 * leaves a page in the swap cache and its slot in use, so that an unchanged
 * page need not be written again. Once such a page is marked dirty, the kernel
 * writes it before dropping it, so GC can drop its block. That saves GC a read
 * and a write. It costs a swap-out if the kernel evicts the page unchanged.
 *
 * Claim: once znsage_in_memory() has returned true for a slot, nobody reads the
 * slot from the disk until it is written again or freed. If that happens before
 * GC drops the block, nothing is dropped: the engine drops the block it asked
 * about by compare-and-swap, and that block number cannot be reused before
 * (engine/map.c).
 *
 * The table of frames.c names a frame for the slot. It is only a hint, so
 * everything is checked in the folio:
 *
 * 1. The frame. pfn_to_online_page() refuses what is not memory, or no longer.
 *    It takes no lock against hot-remove. Like page_idle and DAMON, this relies
 *    on offlining taking long enough between its two steps.
 *
 * 2. The folio. It is on an LRU list, so it is no slab, hugetlb or page table.
 *    folio_try_get() fails on a free one. The folio is checked again with the
 *    reference held: it may have been freed and reused in between, even as the
 *    tail of a large folio.
 *
 * 3. The lock. GC only tries to take it, since its holder may be waiting for
 *    room on this disk. Under the lock, a folio neither enters nor leaves the
 *    swap cache and is not reclaimed, migrated, split or read into.
 *
 * 4. The slot. The folio is in the swap cache under a type (one for each swap
 *    area) and an offset, which is the slot if the area is the whole disk. The
 *    type is learnt when swap-in reads a slot by an entry with that offset,
 *    while the disk itself is a swap area (IS_SWAPFILE() of its inode; no file
 *    on it, no volume made of it). It is forgotten when somebody opens the
 *    disk. Whoever learns it holds a locked folio of the area, so swapoff
 *    cannot complete meanwhile. swapon opens the disk before IS_SWAPFILE()
 *    holds, so a type that is known after IS_SWAPFILE() was seen belongs to the
 *    area now on the disk. swapoff clears IS_SWAPFILE() before another area can
 *    get the type, so a folio found under that type while IS_SWAPFILE() still
 *    holds belongs to this area.
 *
 * 5. The contents. The folio is up to date and not under writeback, so its
 *    contents are those on the disk or newer, and no older write is in flight.
 *    It is anonymous, mapped and one page. (That excludes shared memory, which
 *    may be copied to another folio in the swap cache without its dirty flag,
 *    and read-ahead pages that nobody uses.)
 *
 * znsage_in_memory() then marks the folio dirty and unlocks it. From then on:
 *
 *   reclaim	checks the dirty flag under the folio's lock before it removes a
 *		folio from the swap cache, and again with its count frozen. It
 *		writes a dirty one: to this disk, into zswap, or as a note that
 *		it is all zeros, and reads it from there. If the write fails,
 *		the folio is dirty again.
 *   a fault	finds the folio in the swap cache.
 *   a write	to the page, exit, swapoff, and dropping the last reference to
 *		the slot remove the folio from the swap cache and free the slot.
 *		The folio stays dirty if anybody still needs it.
 *   MADV_FREE	removes it first; if it cannot, it leaves the folio alone.
 *   fork	copies references to the slot.
 *   migration	carries the dirty flag and the swap cache entry along.
 *   KSM	and huge pages copy the page and keep the folio until nobody
 *		refers to the slot.
 *   a memory error	in a dirty page kills its users; in a clean one it does
 *		not. That is the only loss, and no worse than for memory that
 *		was never swapped. The folio stays in the swap cache, not up to
 *		date: nobody reads the slot.
 *
 * Whoever reads the disk itself, as dd does, gets an error for a dropped page.
 *
 * The kernel documents none of this, but 6.1 to 7.3 all behave so. 7.2 has a
 * new swap cache (a table for each cluster of slots) with the same rules.
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

/* Somebody opens the disk, perhaps swapon. */
void znsage_cached_forget(struct znsage_device *zd)
{
	WRITE_ONCE(zd->swap_type, NO_TYPE);
}

/**
 * znsage_cached_learn() - learn the swap type from a folio being swapped in
 * @zd:	   device
 * @folio: the folio to read into, locked by the reader
 *
 * Context: any.
 */
void znsage_cached_learn(struct znsage_device *zd, struct folio *folio)
{
	u32 type = swp_type(znsage_folio_swap(folio));

	if (READ_ONCE(zd->swap_type) != type && znsage_is_swap(zd->disk))
		WRITE_ONCE(zd->swap_type, type);
}

/* The folio of a frame, with a reference, if it can be in the swap cache. */
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
static bool folio_holds_slot(struct znsage_device *zd, struct folio *folio,
			     u32 slot)
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
	/* See 4. above. */
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
		dirty = folio_holds_slot(zd, folio, slot);
		if (dirty)
			folio_mark_dirty(folio);
		folio_unlock(folio);
	}
	folio_put(folio);
	return dirty;
}
