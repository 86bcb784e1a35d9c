// SPDX-License-Identifier: GPL-2.0
/*
 * What policies know of a page: its cgroup and flags, taken from the folio by
 * exported calls only, and its lives, from a table of page frames.
 *
 * A page in a swap-out bio is under writeback and in the swap cache. So its
 * folio is neither freed nor split, stays charged to a memory cgroup, and is
 * anonymous, shared memory, or written back by zswap. Pages of other writers to
 * the disk are not both swap-backed and in the swap cache, and have no owner
 * here. (A page under direct I/O may be both. It is pinned, which is enough.)
 * cgroup v1 may move the charge meanwhile; RCU keeps the old cgroup.
 *
 * The table remembers frames from swap-in to swap-out. When swap-in reads a
 * block, the engine knows how long the page was on the device, and what its
 * slot remembers of earlier stays. The page's next swap-out may have another
 * slot, but nearly always comes from the same frame. So a word of the table has
 * the life of the block that was read into a frame, and the past of its page
 * (engine/past.c).
 *
 * A word is a hint, read and written without a lock. Words with the same index
 * overwrite each other. One may describe another frame or cgroup with the same
 * tag (1 in 256 each), or an earlier page in the frame; the policy then guesses
 * wrong for one page. A word is used once: it is cleared when its page joins a
 * chunk. There are up to 2^20 words, 4 MiB; above 4 GiB of RAM, frames share
 * them.
 */
#include <linux/cgroup.h>
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/memcontrol.h>
#include <linux/slab.h>
#include <linux/swap.h>

#include "znsage.h"

#define MAX_WORDS	(1UL << 20)

/*
 * A word of zd->frames is 0, or has, lowest byte first: the life as a small
 * float, plus 1; the past; tags of the cgroup and of the frame.
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

static u32 *word_of(struct znsage_device *zd, unsigned long pfn)
{
	return &zd->frames[pfn & (zd->nr_frames - 1)];
}

static u8 frame_tag(const struct znsage_device *zd, unsigned long pfn)
{
	return pfn / zd->nr_frames;
}

static u32 tags(const struct znsage_device *zd, unsigned long pfn, u64 cgroup)
{
	return (u32)hash_64(cgroup, 8) | (u32)frame_tag(zd, pfn) << 8;
}

/*
 * Number of the memory cgroup that a folio is charged to, or 0. The folio is
 * swap-backed and cannot leave the swap cache. Context: any.
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
 * Is the kernel's swap-in reading into @folio? Then the folio is locked and in
 * the swap cache, but not up to date. (Its entry there is not compared with the
 * slot: with virtual swap they will differ.)
 */
static bool is_swap_in(struct folio *folio)
{
	return folio_test_locked(folio) && folio_test_swapbacked(folio) &&
	       folio_test_swapcache(folio) && !folio_test_uptodate(folio);
}

/*
 * A block is about to be read into a page, by swap-in or another reader. The
 * caller is a reader of the block's zone, so the zone is not reset. Context:
 * any.
 */
void znsage_frames_note(struct znsage_device *zd, struct page *page, u32 slot,
			u32 block)
{
	struct folio *folio = page_folio(page);
	unsigned long pfn = page_to_pfn(page);
	u32 life, past;

	if (!READ_ONCE(zd->wants_owners) || !is_swap_in(folio))
		return;
	life = zse_block_life(zd->engine, block);
	past = zse_past(zd->engine, slot, block);
	WRITE_ONCE(*word_of(zd, pfn), (life_pack(life) + 1) | past << 8 |
		   tags(zd, pfn, cgroup_of(folio)) << 16);
}

/* Fill in a page's last and usual life, if known. Returns its past. */
static u8 recall(struct znsage_device *zd, struct page *page,
		 struct znsage_page *owner)
{
	unsigned long pfn = page_to_pfn(page);
	u32 word = zd->frames ? READ_ONCE(*word_of(zd, pfn)) : 0;

	if (!word || SEEN_TAGS(word) != tags(zd, pfn, owner->cgroup))
		return 0;
	owner->life = life_unpack(SEEN_LIFE(word));
	owner->usual = zse_usual_life(zd->engine, SEEN_PAST(word));
	return SEEN_PAST(word);
}

/*
 * Describe a page of a write bio for policies; only by @cpu if the policy does
 * not look at pages. Returns the page's past; 0: unknown.
 */
static u8 page_owner(struct znsage_device *zd, struct page *page, u32 cpu,
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

/* Bytes of @bio from @iter on that have one owner. */
static u32 owned_bytes(struct znsage_device *zd, struct bio *bio,
		       struct bvec_iter iter)
{
	struct bio_vec bv = bio_iter_iovec(bio, iter);
	struct folio *folio;
	size_t left;

	if (!(bio->bi_opf & REQ_SWAP) || !READ_ONCE(zd->wants_owners))
		return iter.bi_size;
	folio = page_folio(bv.bv_page);
	left = folio_size(folio) -
	       folio_page_idx(folio, bv.bv_page) * PAGE_SIZE;
	return min_t(size_t, left, mp_bvec_iter_len(bio->bi_io_vec, iter));
}

/**
 * znsage_place() - choose the streams of pages that are swapped out
 * @zd:	 device
 * @bio: write bio
 * @cpu: CPU that the pages count for
 * @p:	 set: the next pages of @bio, as many as there is room for
 *
 * A folio has one owner. Since 7.3, swap-out puts neighbours on the disk into
 * one bio, whoever owns them; before, a bio had one folio. All pages of a folio
 * get the past of the first.
 *
 * Context: process; does not sleep.
 */
void znsage_place(struct znsage_device *zd, struct bio *bio, u32 cpu,
		  struct znsage_placed *p)
{
	struct bvec_iter iter = bio->bi_iter;

	BUILD_BUG_ON(ZSE_MAX_STREAMS > 64);	/* bits in a plug */
	p->at = 0;
	p->nr = 0;
	while (iter.bi_size && p->nr < ZNSAGE_PLACED) {
		u32 bytes = owned_bytes(zd, bio, iter);
		u32 nr = min_t(u32, bytes / PAGE_SIZE, ZNSAGE_PLACED - p->nr);
		struct znsage_page owner;
		u8 past = page_owner(zd, bio_iter_page(bio, iter), cpu, &owner);

		memset(&p->stream[p->nr], zse_place(zd->engine, &owner), nr);
		memset(&p->past[p->nr], past, nr);
		p->nr += nr;
		bio_advance_iter(bio, &iter, nr * PAGE_SIZE);
	}
}

/*
 * A page joins a chunk: clear its word, even one with another cgroup, which
 * describes an earlier page in the frame. (A page that finds no chunk is placed
 * again, so recall() clears nothing.) Context: any.
 */
void znsage_frames_forget(struct znsage_device *zd, struct page *page)
{
	unsigned long pfn = page_to_pfn(page);

	if (zd->frames && READ_ONCE(zd->wants_owners) &&
	    SEEN_FRAME(READ_ONCE(*word_of(zd, pfn))) == frame_tag(zd, pfn))
		WRITE_ONCE(*word_of(zd, pfn), 0);
}

/* Allocate the table if there is memory; before any I/O of the device. */
void znsage_frames_alloc(struct znsage_device *zd)
{
	zd->nr_frames = roundup_pow_of_two(min(totalram_pages(), MAX_WORDS));
	zd->frames = kvcalloc(zd->nr_frames, sizeof(*zd->frames), GFP_KERNEL);
}
