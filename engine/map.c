// SPDX-License-Identifier: GPL-2.0
/*
 * Forward map (slot -> block) and reverse map (block -> slot).
 *
 * Four parties change the forward map of a slot, all without a lock:
 *
 *   swap-out      xchg(tag)              the slot's old block dies
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
 * block: cas(block -> lost). Nobody reads the slot until that write.
 *
 * A live count is raised before a block enters the map and lowered after it has
 * left. At rest it is exact; at any time a count of 0 is certain.
 *
 * The owner of the append writes the reverse map before the block enters the
 * forward map. GC reads the reverse map once the zone is full. The engine lock,
 * taken in between, orders the two.
 */
#include "internal.h"

static struct zse_shard *shard(struct zse_engine *e)
{
	return &e->shards[zp_shard() % ZSE_SHARDS];
}

/* A block left the map. Returns true if it was a full zone's last live one. */
static bool block_died(struct zse_engine *e, struct zse_zone *z)
{
	u32 left = zp_sub_return(&z->live, 1);

	zp_warn(left > e->cfg.zone_blocks);
	if (left || zp_load(&z->state) != ZSE_ZONE_FULL)
		return false;
	zone_note_dead(e, z);
	return true;
}

/* block_died(), and tell the policy. Without the engine lock. */
static bool block_gone(struct zse_engine *e, u32 block)
{
	u32 zone = zse_block_zone(e, block);
	bool last = block_died(e, &e->zones[zone]);

	policy_freed(e, zone);
	return last;
}

/* One loop for both maps: there are fewer slots than blocks. May sleep. */
void map_clear(struct zse_engine *e)
{
	u32 i;

	for (i = 0; i < e->nr_blocks; i++) {
		if (i < e->cfg.nr_slots)
			e->fwd[i] = ZSE_NONE;
		e->rev[i] = ZSE_NONE;
		if (!(i % ZSE_RESCHED))
			zp_resched();
	}
}

/* The forward map's value while entry @index of @c is being written. */
u32 map_tag(const struct zse_engine *e, const struct zse_chunk *c, u32 index)
{
	return ZSE_TAG_BASE + c->id * e->cfg.chunk_blocks + index;
}

/* @slot is being written from now on, as @tag. */
void map_begin_write(struct zse_engine *e, u32 slot, u32 tag)
{
	u32 old = zp_xchg(&e->fwd[slot], tag);

	if (old < ZSE_TAG_BASE)
		block_gone(e, old);
	else if (old == ZSE_NONE)
		zp_count(&shard(e)->used, 1);
}

/**
 * map_publish() - entries of a chunk are on the device
 * @e:	   engine
 * @c:	   chunk
 * @first: first entry
 * @nr:	   number of entries
 * @block: block of the first entry; the others follow
 *
 * Return: number of entries that were still needed and are now live.
 */
u32 map_publish(struct zse_engine *e, const struct zse_chunk *c, u32 first,
		u32 nr, u32 block)
{
	struct zse_zone *z = &e->zones[zse_block_zone(e, block)];
	u32 i, dead = 0;

	zp_add(&z->live, nr);
	for (i = 0; i < nr; i++) {
		const struct zse_entry *entry = &c->entries[first + i];

		zp_store(&e->rev[block + i], entry->slot);
		if (!zp_cas(&e->fwd[entry->slot], entry->expect, block + i))
			dead++;
		else if (entry->expect < ZSE_TAG_BASE)
			block_gone(e, entry->expect);
	}
	if (dead)
		zp_sub_return(&z->live, dead);
	return nr - dead;
}

/**
 * map_lose() - the data of a slot is gone
 * @e:	    engine
 * @slot:   slot
 * @expect: value of its forward map if the data is still needed
 *
 * Return: true if it was; reads of the slot fail from now on.
 */
bool map_lose(struct zse_engine *e, u32 slot, u32 expect)
{
	if (!zp_cas(&e->fwd[slot], expect, ZSE_LOST))
		return false;
	if (expect < ZSE_TAG_BASE)
		block_gone(e, expect);
	return true;
}

/*
 * Drop @block of @slot: the kernel has the page in memory and will write it
 * again. Returns false if the slot's value has changed.
 */
bool map_drop(struct zse_engine *e, u32 slot, u32 block)
{
	if (!zp_cas(&e->fwd[slot], block, ZSE_LOST))
		return false;
	block_gone(e, block);
	return true;
}

bool map_is(const struct zse_engine *e, u32 slot, u32 value)
{
	return zp_load(&e->fwd[slot]) == value;
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
	u32 old;

	if (map_is(e, slot, ZSE_NONE))
		return false;
	old = zp_xchg(&e->fwd[slot], ZSE_NONE);
	if (old == ZSE_NONE)
		return false;
	if (old < ZSE_TAG_BASE)
		empty = block_gone(e, old);
	zp_count(&shard(e)->used, -1ULL);
	zp_count(&shard(e)->freed, 1);
	return empty;
}

/* Number of slots from @slot on, at most @max, whose blocks are consecutive. */
static u32 run_length(const struct zse_engine *e, u32 slot, u32 max, u32 block)
{
	u32 room = e->cfg.zone_blocks - zse_block_offset(e, block), nr = 0;

	if (max > room)
		max = room;
	while (nr < max && map_is(e, slot + nr, block + nr))
		nr++;
	return nr;
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

	if (zp_load(&z->state) != ZSE_ZONE_VICTIM)
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
		u32 b = zp_load(&e->fwd[slot]);
		struct zse_zone *z;
		enum zse_read from;

		if (b == ZSE_NONE)
			return ZSE_READ_ZERO;
		if (b == ZSE_LOST)
			return ZSE_READ_LOST;
		if (b >= ZSE_TAG_BASE)
			return ZSE_READ_BUSY;

		z = &e->zones[zse_block_zone(e, b)];
		zp_add(&z->readers, 1);
		run->block = b;
		run->nr = run_length(e, slot, max, b);
		if (run->nr) {
			from = read_from(e, z, slot, run);
			count_read(e, z, run->nr);
			return from;
		}
		if (zse_read_end(e, b))
			*kick = true;
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
	u32 tag = zp_load(&e->fwd[slot]);

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
