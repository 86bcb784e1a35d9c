// SPDX-License-Identifier: GPL-2.0
/*
 * Packed pages: the host compresses the pages of a chunk when it has left its
 * stream, and puts them one after the other, from block to block of the device
 * without a gap. The engine counts in small blocks then (64 bytes, say), of
 * which a page takes as many as it is long. A few rules make this work:
 *
 * The first word of a page is its slot. There is no reverse map: GC reads all
 * that was written of a victim, and looks at each place where a page can begin.
 * The page there is live if and only if the forward map has that place for the
 * slot that the word names. Other words are part of a page, or stale, or never
 * written: the forward map does not have their place, whatever they say. So
 * nothing that the device returns can mislead GC, and no header is trusted. If
 * GC does not find a page, since the device returns other data, that is as if
 * it could not read it.
 *
 * GC reads a victim in spans. A page belongs to the span that it begins in.
 * The host reads as much beyond the span as the longest page may need. So
 * spans do not depend on each other, and several are read at a time.
 *
 * An append begins and ends with a block of the device, and is padded to a
 * write unit if that is more. If the end of a zone splits a chunk, the second
 * append begins with the block that the first one ended with; what precedes its
 * first page is stale at once. A zone is never left with less room than a page
 * may need: it is padded to its end.
 *
 * The forward map has a page's length beside its block, in one word of 64 bits,
 * so that whoever removes a page from the map knows by how much the zone's live
 * count falls.
 */
#include "api.h"

/**
 * zse_chunk_pack() - a page of a chunk has been packed
 * @e:	   engine
 * @c:	   chunk, taken from its stream and owned by the caller, which calls this
 *	   for each page in turn before zse_append_start()
 * @index: entry of the page
 * @len:   blocks that it takes; it is at block c->fill, and c->fill grows
 */
void zse_chunk_pack(struct zse_engine *e, struct zse_chunk *c, u32 index,
		    u32 len)
{
	struct zse_entry *entry = &c->entries[index];

	WARN_ON_ONCE(len < packed_shortest(&e->cfg) ||
		     len > longest_page(&e->cfg));
	entry->at = c->fill;
	entry->len = len;
	c->fill += len;
}

/* Blocks that are live or in flight, or that retired zones cannot take. */
static u64 blocks_taken(struct zse_engine *e)
{
	u64 live = 0;
	u32 i;

	for (i = 0; i < e->nr_shards; i++)
		live += atomic64_read(&e->shards[i].live);
	return live + flow_in_flight(e) +
	       (u64)READ_ONCE(e->nr_state[ZSE_ZONE_RETIRED]) *
	       packed_full_zone(&e->cfg);
}

/* Pages that have room in @blocks even if none shrinks. */
static u32 pages_certain(const struct zse_engine *e, u64 blocks)
{
	u64 pages = div_u64(blocks, longest_page(&e->cfg));

	return pages < e->cfg.nr_slots ? pages : e->cfg.nr_slots;
}

/**
 * zse_certain() - pages that all have room even if none shrinks
 * @e: engine
 *
 * Return: fewer than there are slots if these promise more than that.
 */
u32 zse_certain(const struct zse_engine *e)
{
	return pages_certain(e, e->most_live);
}

/**
 * zse_room() - pages that still have room even if none shrinks
 * @e: engine
 *
 * Context: any; reads a few counters that others change meanwhile.
 * Return: the number of slots where all pages have room.
 */
u32 zse_room(struct zse_engine *e)
{
	u64 taken = blocks_taken(e);

	if (e->most_live == ~0ULL)
		return e->cfg.nr_slots;
	return taken < e->most_live ? pages_certain(e, e->most_live - taken) : 0;
}

/**
 * zse_chunk_fits() - is there room for the pages of a chunk?
 * @e: engine
 * @c: chunk of swap-out, all of whose pages are packed; to be called once for
 *     each, also if it cannot be written
 *
 * There may be more slots than the device has room for if no page shrinks. This
 * is where swap-out is refused then, so that GC always finds a victim. What is
 * in flight counts in full, also what replaces pages, whose old blocks have
 * died. A page that has just been written counts twice for a moment.
 *
 * Return: false: the caller calls zse_chunk_lose(). Else zse_append_start().
 * zse_has_chunk() may now answer true.
 */
bool zse_chunk_fits(struct zse_engine *e, struct zse_chunk *c)
{
	flow_chunk_packed(e, c);
	WRITE_ONCE(e->streams[c->stream].packed_len, c->fill / c->nr);
	/* Each of two chunks that are packed now sees the other, or is seen. */
	smp_mb();
	if (blocks_taken(e) <= e->most_live)
		return true;
	atomic64_add(c->nr, &shard_of(e)->refused);
	return false;
}
