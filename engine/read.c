// SPDX-License-Identifier: GPL-2.0
/*
 * Swap-in: where the pages of slots are. map.c has the forward map.
 */
#include "api.h"

/*
 * Find the slots from @slot on, at most @max, whose blocks follow those of
 * @run. Returns false if @slot has none of it.
 */
static bool run_length(const struct zse_engine *e, u32 slot, u32 max,
		       struct zse_run *run)
{
	u32 room = e->cfg.zone_blocks - zse_block_offset(e, run->block);

	for (run->nr = 0, run->blocks = 0; run->nr < max; run->nr++) {
		u64 ref = map_get(e, slot + run->nr);

		if (run->blocks == room ||
		    ref_block(ref) != run->block + run->blocks)
			break;
		if (!run->nr)
			run->len = ref_len(e, ref);
		run->blocks += ref_len(e, ref);
	}
	return run->nr;
}

/*
 * Swap-in reads @nr blocks of @z. It is counted as a reader, so the zone keeps
 * its stream until the read has ended.
 */
static void count_read(struct zse_engine *e, struct zse_zone *z, u32 nr)
{
	u32 stream = READ_ONCE(z->stream);

	WRITE_ONCE(z->reads, READ_ONCE(z->reads) + nr);
	if (!WARN_ON_ONCE(stream >= e->max_streams))
		atomic64_add(nr, &shard_of(e)->stream[stream].read_blocks);
}

/**
 * zse_read_begin() - find the pages of slots
 * @e:	  engine
 * @slot: the first slot
 * @max:  number of slots wanted, at least 1; all below nr_slots
 * @run:  set for ZSE_READ_BLOCK: the blocks of @slot and of the slots after it,
 *	  as far as they are consecutive on the device
 * @kick: set to true if zse_next_op() may have something new, else untouched
 *
 * After ZSE_READ_BLOCK, the zone is not reset until zse_read_end(). This counts
 * the reader before it looks at the map again. A reset looks at the readers
 * after it has seen that the map has no block of the zone (live is 0). Both
 * have a full barrier in between.
 * Any other answer is for @slot alone.
 *
 * Return: what to do, see enum zse_read.
 */
enum zse_read zse_read_begin(struct zse_engine *e, u32 slot, u32 max,
			     struct zse_run *run, bool *kick)
{
	for (;;) {
		u32 b = ref_block(map_get(e, slot));
		struct zse_zone *z;

		if (b == ZSE_LOST)
			return ZSE_READ_LOST;
		if (b == ZSE_NONE || (b >= ZSE_WORD_BASE && b < ZSE_TAG_BASE)) {
			run->word = filled_word(e, b);
			return ZSE_READ_FILLED;
		}
		if (b >= ZSE_TAG_BASE)
			return ZSE_READ_BUSY;

		z = &e->zones[zse_block_zone(e, b)];
		atomic_inc_return(&z->readers);
		run->block = b;
		if (run_length(e, slot, max, run) && !zone_is_gone(z)) {
			count_read(e, z, run->nr);
			return ZSE_READ_BLOCK;
		}
		if (zse_read_end(e, b))
			*kick = true;
		if (run->nr)
			return ZSE_READ_LOST;
	}
}

/**
 * zse_block_lost() - is what was read at a block no page?
 * @e:	   engine
 * @block: from zse_read_begin(); zse_read_end() comes after this
 *
 * Context: any. Return: true: the read is an I/O error.
 */
bool zse_block_lost(const struct zse_engine *e, u32 block)
{
	return zone_is_gone(&e->zones[zse_block_zone(e, block)]);
}

/**
 * zse_read_failed() - blocks could not be read
 * @e:	engine
 * @nr: how many
 */
void zse_read_failed(struct zse_engine *e, u32 nr)
{
	unsigned long flags;

	spin_lock_irqsave(&e->lock, flags);
	WRITE_ONCE(e->recovery.failing, true);
	e->counters.read_errors += nr;
	spin_unlock_irqrestore(&e->lock, flags);
}

/**
 * zse_read_worked() - a swap-in read has succeeded
 * @e: engine
 *
 * Matters only after an error, as a sign that the device works. Takes no lock.
 */
void zse_read_worked(struct zse_engine *e)
{
	if (READ_ONCE(e->recovery.failing))
		WRITE_ONCE(e->recovery.failing, false);
}

/**
 * zse_write_of() - the chunk that a slot is being written with
 * @e:	   engine
 * @slot:  slot
 * @index: set to the entry, if there is a chunk
 *
 * Context: any. The answer holds until the host ends the entry's page or calls
 * zse_chunk_put(): a caller keeps the host from that, and then asks again.
 * Return: the chunk, or NULL if the slot is not being written.
 */
struct zse_chunk *zse_write_of(struct zse_engine *e, u32 slot, u32 *index)
{
	u32 tag = ref_block(map_get(e, slot));

	if (tag < ZSE_TAG_BASE || tag >= ZSE_LOST)
		return NULL;
	*index = (tag - ZSE_TAG_BASE) % e->cfg.chunk_pages;
	return &e->chunks[(tag - ZSE_TAG_BASE) / e->cfg.chunk_pages];
}

/**
 * zse_block_life() - how long a page has been on the device
 * @e:	   engine
 * @block: live, or returned by zse_read_begin() and not yet ended
 *
 * Return: blocks swapped out since the page was, averaged over its zone.
 */
u32 zse_block_life(const struct zse_engine *e, u32 block)
{
	u64 age = zone_age(e, &e->zones[zse_block_zone(e, block)]);

	return age < ZSE_NONE ? (u32)age : ZSE_NONE - 1;
}
