// SPDX-License-Identifier: GPL-2.0
/*
 * Forward map (slot -> block). Where pages are packed, it also has a page's
 * length. There is no reverse map: how GC finds the slots of a zone's blocks is
 * in census.c, and in scan.c where pages are packed.
 *
 * Four parties change the forward map of a slot, all without a lock:
 *
 *   swap-out      xchg(tag or word)      the slot's old block dies
 *   append ends   cas(tag -> block)      fails if the slot was freed or written
 *                                        again: the new block is dead
 *   GC's append   cas(old -> new block)  fails in the same two cases
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
#include "map.h"

/* Macros, since the model checker names the function that uses them. */
#define fwd_xchg(e, slot, ref)						\
	((e)->fwd64 ? (u64)atomic64_xchg(&(e)->fwd64[slot], ref) :	\
		      xchg(&(e)->fwd[slot], (u32)(ref)))
#define fwd_cas(e, slot, old, new)					\
	((e)->fwd64 ?							\
	 (u64)atomic64_cmpxchg(&(e)->fwd64[slot], old, new) == (old) :	\
	 cmpxchg(&(e)->fwd[slot], (u32)(old), (u32)(new)) == (u32)(old))

/* The forward map's value. */
u64 map_get(const struct zse_engine *e, u32 slot)
{
	if (e->fwd64)
		return atomic64_read(&e->fwd64[slot]);
	return READ_ONCE(e->fwd[slot]);
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

/**
 * zone_note_dead() - the last live block of a full zone died
 * @e: engine
 * @z: zone
 *
 * Pushes the zone on a stack that zones_take_dead() takes as a whole.
 * Context: any, without a lock. The compare-and-swap publishes next_dead.
 */
void zone_note_dead(struct zse_engine *e, struct zse_zone *z)
{
	u32 head;

	if (xchg(&z->on_dead_list, 1))
		return;
	do {
		head = READ_ONCE(e->dead);
		WRITE_ONCE(z->next_dead, head);
	} while (cmpxchg(&e->dead, head, z - e->zones) != head);
}

/* Tell the policy that a block of @zone died. Context: any, no lock. */
static void policy_freed(struct zse_engine *e, u32 zone)
{
	const struct znsage_policy *policy;

	rcu_read_lock();
	policy = policy_of(e);
	if (policy->freed)
		policy->freed(e, zone);
	rcu_read_unlock();
}

/* A page left the map. Returns true if it was a full zone's last live one. */
static bool page_died(struct zse_engine *e, struct zse_zone *z, u32 len)
{
	u32 left = atomic_sub_return(len, &z->live);

	WARN_ON_ONCE(left > e->cfg.zone_blocks);
	if (e->cfg.pack)
		atomic64_sub(len, &shard_of(e)->live);
	if (left || READ_ONCE(z->state) != ZSE_ZONE_FULL)
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
			atomic64_set(&e->fwd64[i], ZSE_NONE);
		else
			e->fwd[i] = ZSE_NONE;
		if (!(i % ZSE_RESCHED))
			cond_resched();
	}
}

/**
 * zse_prefetch() - slots are swapped out or in soon
 * @e:	  engine
 * @slot: the first one
 * @nr:	  slots; @slot + @nr is at most nr_slots
 *
 * The maps do not fit the CPU's caches. So zse_chunk_add() does not wait for
 * memory, and nobody for the stream's lock meanwhile. zse_read_begin() and
 * zse_past() wait for both maps at once. Context: any.
 */
void zse_prefetch(const struct zse_engine *e, u32 slot, u32 nr)
{
	const u8 *pasts = smp_load_acquire(&e->past);
	u32 line = ZSE_LINE / (e->fwd64 ? sizeof(u64) : sizeof(u32)), at;

	for (at = slot; at < slot + nr; at += line)
		prefetchw(e->fwd64 ? (void *)&e->fwd64[at] :
				     (void *)&e->fwd[at]);
	if (pasts)
		prefetchw(&pasts[slot]);
}

/* The forward map's value while entry @index of @c is being written. */
u32 map_tag(const struct zse_engine *e, const struct zse_chunk *c, u32 index)
{
	return ZSE_TAG_BASE + c->id * e->cfg.chunk_pages + index;
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
		atomic64_inc(&shard_of(e)->filled);
	return false;
}

/*
 * May what GC has read at @block get a new place? Not if the zone was found
 * gone since.
 */
static bool may_move(const struct zse_engine *e, u32 block)
{
	return !zone_is_gone(&e->zones[zse_block_zone(e, block)]);
}

/* map_publish() of packed pages. */
static void publish_packed(struct zse_engine *e, const struct zse_chunk *c,
			   u32 first, u32 nr, u32 block)
{
	struct zse_zone *z = &e->zones[zse_block_zone(e, block)];
	u32 all = entries_len(e, c, first, nr), i, dead = 0;

	atomic_add_return(all, &z->live);
	atomic64_add(all, &shard_of(e)->live);
	for (i = first; i < first + nr; i++) {
		const struct zse_entry *entry = &c->entries[i];
		u64 was = expected(e, entry);

		if ((is_block(was) && !may_move(e, entry->expect)) ||
		    !fwd_cas(e, entry->slot, was,
			     map_ref(e, block, entry->len)))
			dead += entry->len;
		else if (is_block(was))
			page_gone(e, was);
		block += entry->len;
	}
	if (!dead)
		return;
	atomic_sub_return(dead, &z->live);
	atomic64_sub(dead, &shard_of(e)->live);
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
	atomic_add_return(nr, &z->live);
	for (i = 0; i < nr; i++) {
		const struct zse_entry *entry = &c->entries[first + i];

		if ((entry->expect < ZSE_TAG_BASE &&
		     !may_move(e, entry->expect)) ||
		    cmpxchg(&e->fwd[entry->slot], entry->expect,
			    block + i) != entry->expect)
			dead++;
		else if (entry->expect < ZSE_TAG_BASE)
			page_gone(e, entry->expect);
	}
	if (dead)
		atomic_sub_return(dead, &z->live);
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
	atomic64_inc(&shard_of(e)->freed);
	return empty;
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

/* The page that is swapped out to @slot has @past. */
void past_keep(struct zse_engine *e, u32 slot, u8 past)
{
	u8 *pasts = smp_load_acquire(&e->past);

	if (pasts)
		WRITE_ONCE(pasts[slot], past);
}
