// SPDX-License-Identifier: GPL-2.0
/*
 * What policies get to know of a page: its cgroup and flags, taken from the folio
 * by exported calls only, and its lives, from a table of page frames.
 *
 * A page in a swap-out bio is under writeback and in the swap cache. So its
 * folio is neither freed nor split, stays charged to a memory cgroup (which it
 * pins), and is anonymous, shared memory, or written back by zswap. Other
 * writers to the disk submit pages that are not both swap-backed and in the
 * swap cache; these have no owner here. (A page under direct I/O may be both.
 * It is pinned, which is enough.) cgroup v1 may move the charge meanwhile; RCU
 * keeps the old cgroup.
 *
 * The table remembers frames from swap-in to swap-out. When swap-in reads a
 * block, the engine knows how long the page was on the device, and what its slot
 * remembers of earlier stays. When the page is next swapped out it may have
 * another slot, but nearly always the same frame. So a word of the table has the
 * life of the block that was read into a frame, and the past of its page
 * (engine/past.c).
 *
 * It is a hint, read and written without a lock, a word at a time; words with
 * the same index overwrite each other. A word may describe another frame or
 * cgroup with the same tag (1 in 256 each), or an earlier page in the frame. The
 * policy then guesses wrong for one page. A word is used once: it is cleared when
 * its page is added to a chunk. There are up to 2^20 words, 4 MiB; above 4 GiB of
 * RAM, several frames share one.
 */
#include <linux/cgroup.h>
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/swapops.h>

#include "znsage.h"

#define MAX_WORDS	(1UL << 20)

struct znsage_frames {
	u32 nr_seen;	/* words, a power of two */
	u32 *seen;	/* 0: unknown; else see SEEN_LIFE() */
};

/*
 * A word of @seen, lowest byte first: the life as a small float, plus 1, so
 * that it is not 0; the past; tags of the cgroup and of the frame.
 */
#define SEEN_LIFE(w)	((u8)(w) - 1)
#define SEEN_PAST(w)	((u8)((w) >> 8))
#define SEEN_TAGS(w)	((w) >> 16)
#define SEEN_FRAME(w)	((u8)((w) >> 24))
#define NO_LIFE		0xfe

/* A life in 8 bits, to within an eighth. At most 0xef, so NO_LIFE is free. */
static u32 life_pack(u32 life)
{
	u32 shift;

	if (life == ZNSAGE_NONE)
		return NO_LIFE;
	if (life < 8)
		return life;
	shift = ilog2(life) - 3;
	return (shift + 1) << 3 | (life >> shift & 7);
}

static u32 life_unpack(u32 packed)
{
	if (packed == NO_LIFE)
		return ZNSAGE_NONE;
	if (packed < 8)
		return packed;
	return (8 | (packed & 7)) << ((packed >> 3) - 1);
}

static u8 frame_tag(const struct znsage_frames *f, unsigned long pfn)
{
	return pfn / f->nr_seen;
}

static u32 tags(const struct znsage_frames *f, unsigned long pfn, u64 cgroup)
{
	return (u32)hash_64(cgroup, 8) | (u32)frame_tag(f, pfn) << 8;
}

/*
 * Number of the memory cgroup that a folio is charged to, or 0. The folio is
 * swap-backed and in the swap cache, and cannot leave it. Context: any.
 */
static u64 cgroup_of(struct folio *folio)
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

/*
 * Is the kernel's swap-in reading @slot into @folio? Then the folio is locked
 * and in the swap cache under the slot's number, but not up to date.
 */
static bool is_swap_in(struct folio *folio, u32 slot)
{
	return folio_test_locked(folio) && folio_test_swapbacked(folio) &&
	       folio_test_swapcache(folio) && !folio_test_uptodate(folio) &&
	       !folio_test_large(folio) &&
	       swp_offset(znsage_folio_swap(folio)) == slot;
}

/*
 * Note that a block is about to be read into a page, by swap-in or another
 * reader. The caller is a reader of the block's zone, so the zone is not reset.
 * Context: any.
 */
void znsage_frames_note(struct znsage_device *zd, struct page *page, u32 slot,
			u32 block)
{
	struct znsage_frames *f = zd->frames;
	struct folio *folio = page_folio(page);
	unsigned long pfn = page_to_pfn(page);
	u32 life, past;

	if (!f || !READ_ONCE(zd->wants_owners) || !is_swap_in(folio, slot))
		return;
	life = zse_block_life(zd->engine, block);
	past = zse_past(zd->engine, slot, block);
	WRITE_ONCE(f->seen[pfn & (f->nr_seen - 1)],
		   (life_pack(life) + 1) | past << 8 |
		   tags(f, pfn, cgroup_of(folio)) << 16);
}

/* Fill in a page's last and usual life, if known. Returns its past. */
static u8 recall(struct znsage_device *zd, struct page *page,
		 struct znsage_page *owner)
{
	struct znsage_frames *f = zd->frames;
	unsigned long pfn = page_to_pfn(page);
	u32 word;

	if (!f)
		return 0;
	word = READ_ONCE(f->seen[pfn & (f->nr_seen - 1)]);
	if (!word || SEEN_TAGS(word) != tags(f, pfn, owner->cgroup))
		return 0;
	owner->life = life_unpack(SEEN_LIFE(word));
	owner->usual = zse_usual_life(zd->engine, SEEN_PAST(word));
	return SEEN_PAST(word);
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

	*owner = (struct znsage_page) {
		.cpu = cpu,
		.life = ZNSAGE_NONE,
		.usual = ZNSAGE_NONE,
	};
	if (!READ_ONCE(zd->wants_owners) || !folio_test_swapbacked(folio) ||
	    !folio_test_swapcache(folio))
		return 0;

	owner->cgroup = cgroup_of(folio);
	owner->workingset = folio_test_workingset(folio);
	owner->active = folio_test_active(folio);
	return recall(zd, page, owner);
}

/*
 * A page is added to a chunk: clear its word. recall() does not, since a page
 * that finds no chunk is placed again. A word with another cgroup describes an
 * earlier page in the frame, and is cleared too. Context: any.
 */
void znsage_frames_forget(struct znsage_device *zd, struct page *page)
{
	struct znsage_frames *f = zd->frames;
	unsigned long pfn = page_to_pfn(page);
	u32 *place;

	if (!f || !READ_ONCE(zd->wants_owners))
		return;
	place = &f->seen[pfn & (f->nr_seen - 1)];
	if (SEEN_FRAME(READ_ONCE(*place)) == frame_tag(f, pfn))
		WRITE_ONCE(*place, 0);
}

void znsage_frames_free(struct znsage_device *zd)
{
	if (!zd->frames)
		return;
	kvfree(zd->frames->seen);
	kfree(zd->frames);
	zd->frames = NULL;
}

/* Allocate the table if there is memory; before any I/O of the device. */
void znsage_frames_alloc(struct znsage_device *zd)
{
	unsigned long frames = min(totalram_pages(), MAX_WORDS);
	struct znsage_frames *f = kzalloc(sizeof(*f), GFP_KERNEL);

	if (!f)
		return;
	zd->frames = f;
	f->nr_seen = roundup_pow_of_two(frames);
	f->seen = kvcalloc(f->nr_seen, sizeof(*f->seen), GFP_KERNEL);
	if (!f->seen)
		znsage_frames_free(zd);
}
