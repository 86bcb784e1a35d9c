// SPDX-License-Identifier: GPL-2.0
/*
 * What is remembered of page frames between swap-in and swap-out.
 *
 * When swap-in reads a block, the engine knows how long the page has been on
 * the device and which stream it was in. When the page is swapped out the next
 * time it may have another slot, but nearly always the same frame. Two tables
 * of fixed size tell what was known:
 *
 *	seen	frame -> life and stream of the block that was read into it
 *	where	slot -> frame that it was read into
 *
 * Both are hints. Several CPUs read and write their words at once without a
 * lock, a word is one store, and words that fall on the same place overwrite
 * each other. What that can do:
 *
 *   A word of @seen may be of another page: of a frame elsewhere with the same
 *   place and the same tag (a chance of 1 in 256 where frames share places), of
 *   a page of another cgroup with the same tag (likewise), or of one that was
 *   freed, after which the frame came to a page that was never swapped out.
 *   A page then gets a life that is not its own, and the policy, which guesses
 *   from it anyway, guesses wrong for one page. A word is used once: it is
 *   cleared when its page is added to a chunk.
 *
 *   A word of @where may name any frame. Who uses it (cached.c) looks whether
 *   the frame holds the page, under the folio's lock.
 *
 * Up to 2^20 words each, 8 MiB for both: frames share places in machines with
 * more than 4 GiB. Without memory for them, nothing is remembered.
 */
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/swapops.h>

#include "znsage.h"

#define MAX_WORDS	(1UL << 20)

/**
 * struct znsage_frames - the tables
 * @nr_seen:  words of @seen, a power of two
 * @nr_where: words of @where, likewise
 * @seen:  0: nothing; else see SEEN_LIFE()
 * @where: 0: nothing; else the frame's number plus 1
 */
struct znsage_frames {
	u32 nr_seen;
	u32 nr_where;
	u32 *seen;
	u32 *where;
};

/*
 * A word of @seen, lowest byte first: the life as a small float, plus 1, so
 * that it is not 0; the stream; tags of the cgroup and of the frame.
 */
#define SEEN_LIFE(w)	((u8)(w) - 1)
#define SEEN_STREAM(w)	((u8)((w) >> 8))
#define SEEN_TAGS(w)	((w) >> 16)
#define SEEN_FRAME(w)	((u8)((w) >> 24))
#define NO_LIFE		0xfe
#define NO_STREAM	0xff

/* A life in 8 bits, to within an eighth: up to 0xef, so NO_LIFE is free. */
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
 * Is @folio being read in from @slot, by the kernel's swap-in? It is then
 * locked, and in the swap cache by the slot's number, but holds nothing yet.
 */
static bool is_swap_in(struct folio *folio, u32 slot)
{
	return folio_test_locked(folio) && folio_test_swapbacked(folio) &&
	       folio_test_swapcache(folio) && !folio_test_uptodate(folio) &&
	       !folio_test_large(folio) &&
	       swp_offset(znsage_folio_swap(folio)) == slot;
}

/**
 * znsage_frames_note() - swap-in reads a block into a page
 * @zd:	   device
 * @page:  that is read into; or of whoever else reads from the disk
 * @slot:  whose block it is
 * @block: block, counted as being read
 *
 * Context: any.
 */
void znsage_frames_note(struct znsage_device *zd, struct page *page, u32 slot,
			u32 block)
{
	struct znsage_frames *f = zd->frames;
	struct folio *folio = page_folio(page);
	unsigned long pfn = page_to_pfn(page);
	u32 life, stream;

	if (!f || !is_swap_in(folio, slot))
		return;
	znsage_cached_learn(zd, folio);
	if (pfn < U32_MAX)
		WRITE_ONCE(f->where[slot & (f->nr_where - 1)], pfn + 1);
	if (!READ_ONCE(zd->wants_owners))
		return;
	life = zse_block_life(zd->engine, block);
	stream = min_t(u32, zse_block_stream(zd->engine, block), NO_STREAM);
	WRITE_ONCE(f->seen[pfn & (f->nr_seen - 1)],
		   (life_pack(life) + 1) | stream << 8 |
		   tags(f, pfn, znsage_cgroup_of(folio)) << 16);
}

/**
 * znsage_frames_recall() - fill in a page's last life and stream
 * @zd:	   device
 * @page:  that is swapped out
 * @owner: has its cgroup; life and stream are set if something is known
 *
 * Context: any.
 */
void znsage_frames_recall(struct znsage_device *zd, struct page *page,
			  struct znsage_page *owner)
{
	struct znsage_frames *f = zd->frames;
	unsigned long pfn = page_to_pfn(page);
	u32 word;

	if (!f)
		return;
	word = READ_ONCE(f->seen[pfn & (f->nr_seen - 1)]);
	if (!word || SEEN_TAGS(word) != tags(f, pfn, owner->cgroup))
		return;
	owner->life = life_unpack(SEEN_LIFE(word));
	if (SEEN_STREAM(word) != NO_STREAM)
		owner->stream = SEEN_STREAM(word);
}

/**
 * znsage_frames_forget() - a page has its stream: its word was used
 * @zd:	  device
 * @page: that is swapped out
 *
 * Not part of znsage_frames_recall(): a page is placed again if it finds no
 * chunk. The word goes, too, if it is of another cgroup, whose page had the frame
 * before.
 *
 * Context: any.
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

/**
 * znsage_frames_where() - into which frame was a slot read last?
 * @zd:	  device
 * @slot: slot
 * @pfn:  set when true; any frame may be there, also one that does not exist
 *
 * Context: any. Return: is anything known?
 */
bool znsage_frames_where(struct znsage_device *zd, u32 slot,
			 unsigned long *pfn)
{
	struct znsage_frames *f = zd->frames;
	u32 word;

	if (!f)
		return false;
	word = READ_ONCE(f->where[slot & (f->nr_where - 1)]);
	*pfn = (unsigned long)word - 1;
	return word != 0;
}

void znsage_frames_free(struct znsage_device *zd)
{
	if (!zd->frames)
		return;
	kvfree(zd->frames->seen);
	kvfree(zd->frames->where);
	kfree(zd->frames);
	zd->frames = NULL;
}

/**
 * znsage_frames_alloc() - make the tables, if there is memory
 * @zd: device that has its size and runs no I/O
 *
 * Context: sleeps.
 */
void znsage_frames_alloc(struct znsage_device *zd)
{
	unsigned long frames = min(totalram_pages(), MAX_WORDS);
	struct znsage_frames *f = kzalloc(sizeof(*f), GFP_KERNEL);

	BUILD_BUG_ON(ZSE_MAX_STREAMS > NO_STREAM);
	if (!f)
		return;
	zd->frames = f;
	f->nr_seen = roundup_pow_of_two(frames);
	f->nr_where = roundup_pow_of_two(min_t(unsigned long, frames,
					       zd->nr_slots));
	f->seen = kvcalloc(f->nr_seen, sizeof(*f->seen), GFP_KERNEL);
	f->where = kvcalloc(f->nr_where, sizeof(*f->where), GFP_KERNEL);
	if (!f->seen || !f->where)
		znsage_frames_free(zd);
}
