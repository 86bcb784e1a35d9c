// SPDX-License-Identifier: GPL-2.0
/*
 * Forward map (slot -> block). Where pages are packed, it also has a page's
 * length. There is no reverse map: how GC finds the slots of a zone's blocks is
 * in census.c, and in packed.c where pages are packed.
 *
 * Four parties change the forward map of a slot, all without a lock:
 *
 *   swap-out      xchg(tag or word)      the slot's old block dies
 *   append ends   cas(tag -> block)      fails if the slot was freed or written
 *                                        again: the new block is dead
 *   GC's append   cas(old -> new block)  likewise
 *   free          xchg(none)             the slot's block dies
 *
 * The exchange that removes a value from the map returns it, so exactly one
 * party sees a block die and lowers its zone's live count. A tag names an entry
 * of the chunk pool. The entry is reused only after its append has ended and
 * replaced the tag, or found it gone, so a tag never names another write. A
 * block number is reused only after a reset of its zone. The reset waits until
 * the map has no block of the zone and GC has settled all entries that it read
 * from it. So a block number cannot be reused between GC's read and its old ->
 * new.
 *
 * When a slot is written again, its old block dies at the submission, not at
 * the acknowledgement. The kernel has the newer copy in memory, and GC need not
 * move a page that is about to be replaced. If the write fails, the kernel
 * keeps the page in memory and reads of the slot fail.
 *
 * If the kernel has a page in memory and will write it again, GC drops its
 * block: cas(block -> lost). Nobody reads the slot until that write. The slots
 * of a zone whose pages are lost (lost.c) lose their blocks in the same way.
 *
 * A live count is raised before a block enters the map and lowered after it has
 * left. At rest it is exact; at any time a count of 0 is certain.
 */
#include "internal.h"

/* Macros, since the model checker names the function that uses them. */
#define fwd_xchg(e, slot, ref)					\
	((e)->fwd64 ? zp_xchg64(&(e)->fwd64[slot], ref) :	\
		      zp_xchg(&(e)->fwd[slot], (u32)(ref)))
#define fwd_cas(e, slot, old, new)				\
	((e)->fwd64 ? zp_cas64(&(e)->fwd64[slot], old, new) :	\
		      zp_cas(&(e)->fwd[slot], (u32)(old), (u32)(new)))

/* The forward map's value. */
u64 map_get(const struct zse_engine *e, u32 slot)
{
	return e->fwd64 ? zp_load64(&e->fwd64[slot]) : zp_load(&e->fwd[slot]);
}

static bool is_block(u64 ref)
{
	return ref_block(ref) < ZSE_WORD_BASE;
}

/* The forward map's value while @entry is still needed. */
static u64 expected(const struct zse_engine *e, const struct zse_entry *entry)
{
	if (entry->expect >= ZSE_TAG_BASE)
		return entry->expect;
	return map_ref(e, entry->expect, entry->len);
}

static struct zse_shard *shard(struct zse_engine *e)
{
	return &e->shards[zp_shard() % ZSE_SHARDS];
}

/* A page left the map. Returns true if it was a full zone's last live one. */
static bool page_died(struct zse_engine *e, struct zse_zone *z, u32 len)
{
	u32 left = zp_sub_return(&z->live, len);

	zp_warn(left > e->cfg.zone_blocks);
	if (e->cfg.pack)
		zp_count(&shard(e)->live, -(u64)len);
	if (left || zp_load(&z->state) != ZSE_ZONE_FULL)
		return false;
	zone_note_dead(e, z);
	return true;
}

/* page_died(), and tell the policy. Without the engine lock. */
static bool page_gone(struct zse_engine *e, u64 ref)
{
	u32 zone = zse_block_zone(e, ref_block(ref));
	bool last = page_died(e, &e->zones[zone], ref_len(e, ref));

	policy_freed(e, zone);
	return last;
}

/* May sleep. */
void map_clear(struct zse_engine *e)
{
	u32 i;

	for (i = 0; i < e->cfg.nr_slots; i++) {
		if (e->fwd64)
			e->fwd64[i] = ZSE_NONE;
		else
			e->fwd[i] = ZSE_NONE;
		if (!(i % ZSE_RESCHED))
			zp_resched();
	}
}

/* The forward map's value while entry @index of @c is being written. */
u32 map_tag(const struct zse_engine *e, const struct zse_chunk *c, u32 index)
{
	return ZSE_TAG_BASE + c->id * e->cfg.chunk_blocks + index;
}

/*
 * @slot is being written from now on, as a tag, or is written, as a word: @to.
 * Returns true if zse_next_op() may have something new.
 */
bool map_write(struct zse_engine *e, u32 slot, u32 to)
{
	u64 old = fwd_xchg(e, slot, to);

	if (is_block(old))
		return page_gone(e, old);
	if (old == ZSE_NONE)
		zp_count(&shard(e)->used, 1);
	return false;
}

/* map_publish() of packed pages. */
static void publish_packed(struct zse_engine *e, const struct zse_chunk *c,
			   u32 first, u32 nr, u32 block)
{
	struct zse_zone *z = &e->zones[zse_block_zone(e, block)];
	u32 all = entries_len(e, c, first, nr), i, dead = 0;

	zp_add(&z->live, all);
	zp_count(&shard(e)->live, all);
	for (i = first; i < first + nr; i++) {
		const struct zse_entry *entry = &c->entries[i];
		u64 was = expected(e, entry);

		if ((is_block(was) && !lost_may_move(e, entry->expect)) ||
		    !zp_cas64(&e->fwd64[entry->slot], was,
			      map_ref(e, block, entry->len)))
			dead += entry->len;
		else if (is_block(was))
			page_gone(e, was);
		block += entry->len;
	}
	if (!dead)
		return;
	zp_sub_return(&z->live, dead);
	zp_count(&shard(e)->live, -(u64)dead);
}

/**
 * map_publish() - entries of a chunk are on the device
 * @e:	   engine
 * @c:	   chunk
 * @first: first entry
 * @nr:	   number of entries, at least 1
 * @block: of the first entry; the others follow
 */
void map_publish(struct zse_engine *e, const struct zse_chunk *c, u32 first,
		 u32 nr, u32 block)
{
	struct zse_zone *z = &e->zones[zse_block_zone(e, block)];
	u32 i, dead = 0;

	if (e->fwd64) {
		publish_packed(e, c, first, nr, block);
		return;
	}
	zp_add(&z->live, nr);
	for (i = 0; i < nr; i++) {
		const struct zse_entry *entry = &c->entries[first + i];

		if ((entry->expect < ZSE_TAG_BASE &&
		     !lost_may_move(e, entry->expect)) ||
		    !zp_cas(&e->fwd[entry->slot], entry->expect, block + i))
			dead++;
		else if (entry->expect < ZSE_TAG_BASE)
			page_gone(e, entry->expect);
	}
	if (dead)
		zp_sub_return(&z->live, dead);
}

/**
 * map_lose() - the data of a slot is gone, or dropped since the kernel has the
 *		page in memory and will write it again
 * @e:	   engine
 * @entry: page
 *
 * Return: true if it was still needed; reads of the slot fail from now on.
 */
bool map_lose(struct zse_engine *e, const struct zse_entry *entry)
{
	u64 was = expected(e, entry);

	if (!fwd_cas(e, entry->slot, was, ZSE_LOST))
		return false;
	if (is_block(was))
		page_gone(e, was);
	return true;
}

/* Has @slot this block, tag or other value? */
bool map_is(const struct zse_engine *e, u32 slot, u32 value)
{
	return ref_block(map_get(e, slot)) == value;
}

/**
 * zse_free() - the kernel freed a slot, or discarded it
 * @e:	  engine
 * @slot: below nr_slots
 *
 * Context: any, even under mm locks. O(1), takes no lock.
 * Return: true if zse_next_op() may have something new: a zone can be reset.
 */
bool zse_free(struct zse_engine *e, u32 slot)
{
	bool empty = false;
	u64 old;

	if (map_is(e, slot, ZSE_NONE))
		return false;
	old = fwd_xchg(e, slot, ZSE_NONE);
	if (old == ZSE_NONE)
		return false;
	if (is_block(old))
		empty = page_gone(e, old);
	zp_count(&shard(e)->used, -1ULL);
	zp_count(&shard(e)->freed, 1);
	return empty;
}

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
	u32 stream = zp_load(&z->stream);

	zp_store(&z->reads, zp_load(&z->reads) + nr);
	if (!zp_warn(stream >= e->max_streams))
		zp_count(&shard(e)->stream[stream].read_blocks, nr);
}

/* If GC has the first page in memory, reduce the run to that page. */
static enum zse_read read_from(struct zse_engine *e, const struct zse_zone *z,
			       u32 slot, struct zse_run *run)
{
	unsigned long flags;
	bool found;

	if (e->cfg.pack || zp_load(&z->state) != ZSE_ZONE_VICTIM)
		return ZSE_READ_BLOCK;
	zp_lock(&e->lock, flags);
	found = clean_buffer(e, slot, run);
	zp_unlock(&e->lock, flags);
	return found ? ZSE_READ_BUFFER : ZSE_READ_BLOCK;
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
 * After ZSE_READ_BLOCK or ZSE_READ_BUFFER, the zone is not reset until
 * zse_read_end() or zse_buffer_end(). This counts the reader before it looks at
 * the map again. A reset looks at the readers after it has seen that the map
 * has no block of the zone (live is 0). Both have a full barrier in between.
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
		enum zse_read from;

		if (b == ZSE_LOST)
			return ZSE_READ_LOST;
		if (b == ZSE_NONE || (b >= ZSE_WORD_BASE && b < ZSE_TAG_BASE)) {
			run->word = filled_word(e, b);
			return ZSE_READ_FILLED;
		}
		if (b >= ZSE_TAG_BASE)
			return ZSE_READ_BUSY;

		z = &e->zones[zse_block_zone(e, b)];
		zp_add(&z->readers, 1);
		run->block = b;
		if (run_length(e, slot, max, run) && !zone_is_gone(z)) {
			from = read_from(e, z, slot, run);
			count_read(e, z, run->nr);
			return from;
		}
		if (zse_read_end(e, b))
			*kick = true;
		if (run->nr)
			return ZSE_READ_LOST;
	}
}

/**
 * zse_read_end() - a read has ended
 * @e:	   engine
 * @block: first block of the run, as set by zse_read_begin()
 *
 * Return: true if zse_next_op() may have something new: the zone's reset was
 * waiting for this reader.
 */
bool zse_read_end(struct zse_engine *e, u32 block)
{
	struct zse_zone *z = &e->zones[zse_block_zone(e, block)];

	return !zp_sub_return(&z->readers, 1) &&
	       zp_load(&z->state) == ZSE_ZONE_DRAINED;
}

/**
 * zse_buffer_end() - a page was copied out of GC's buffer
 * @e:	 engine
 * @run: as set by zse_read_begin()
 *
 * Return: true if zse_next_op() may have something new.
 */
bool zse_buffer_end(struct zse_engine *e, const struct zse_run *run)
{
	unsigned long flags;
	bool more;

	zp_lock(&e->lock, flags);
	more = chunk_copied(e, run->chunk);
	zp_unlock(&e->lock, flags);
	return zse_read_end(e, run->block) || more;
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
	*index = (tag - ZSE_TAG_BASE) % e->cfg.chunk_blocks;
	return &e->chunks[(tag - ZSE_TAG_BASE) / e->cfg.chunk_blocks];
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

/* Zone of a block. */
u32 zse_block_zone(const struct zse_engine *e, u32 block)
{
	return block / e->cfg.zone_blocks;
}

/* Offset of a block in its zone, in blocks. */
u32 zse_block_offset(const struct zse_engine *e, u32 block)
{
	return block % e->cfg.zone_blocks;
}
