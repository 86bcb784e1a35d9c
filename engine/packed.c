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
 * GC reads a victim in windows. A page belongs to the window that it begins in.
 * The host reads as much beyond the window as the longest page may need. So
 * windows do not depend on each other, and several are read at a time.
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
#include "internal.h"

/* The fewest blocks of a page. */
u32 packed_shortest(const struct zse_config *cfg)
{
	return cfg->pack ? cfg->pack / ZSE_LEAST_PART : 1;
}

/* Blocks of a window. */
static u32 window_blocks(const struct zse_config *cfg)
{
	return chunk_batch(cfg) * cfg->pack;
}

/* Entries that a chunk of GC needs: the pages that can begin in a window. */
u32 packed_gc_entries(const struct zse_config *cfg)
{
	if (!cfg->pack)
		return cfg->chunk_blocks;
	return window_blocks(cfg) / packed_shortest(cfg);
}

/*
 * Blocks that GC may write for a victim beyond its live ones. The chunk of each
 * window ends with a write unit. The survivors may reach into a second zone: the
 * chunk between the two is split, and both may be padded to the end.
 */
u32 packed_waste(const struct zse_config *cfg)
{
	u32 windows;

	if (!cfg->pack)
		return 0;
	windows = (cfg->zone_blocks + window_blocks(cfg) - 1) /
		  window_blocks(cfg);
	return (windows + 4) * cfg->write_unit;
}

/* Blocks of live pages in a full zone that GC can still gain by emptying. */
static u32 full_zone(const struct zse_config *cfg)
{
	u32 taken = cfg->write_unit + packed_waste(cfg);

	return cfg->zone_blocks > taken ? cfg->zone_blocks - taken : 0;
}

/*
 * The most blocks of live pages with which GC always finds a victim; see
 * zse_max_slots().
 */
u64 packed_most_live(const struct zse_config *cfg)
{
	u32 zones = limits_not_full(cfg);

	return cfg->nr_zones > zones ?
	       (u64)(cfg->nr_zones - zones) * full_zone(cfg) : 0;
}

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

	zp_warn(len < packed_shortest(&e->cfg) || len > longest_page(&e->cfg));
	entry->at = c->fill;
	entry->len = len;
	c->fill += len;
}

/* Blocks that are live or in flight, or that retired zones cannot take. */
static u64 blocks_taken(struct zse_engine *e)
{
	u64 live = 0;
	u32 i;

	for (i = 0; i < ZSE_SHARDS; i++)
		live += zp_count_read(&e->shards[i].live);
	return live + zp_load(&e->flow.in_flight) +
	       (u64)zp_load(&e->nr_state[ZSE_ZONE_RETIRED]) *
	       full_zone(&e->cfg);
}

/* Pages that have room in @blocks even if none shrinks. */
static u32 pages_certain(const struct zse_engine *e, u64 blocks)
{
	u64 pages = zp_div(blocks, longest_page(&e->cfg));

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
 * @c: chunk of swap-out, all of whose pages are packed
 *
 * There may be more slots than the device has room for if no page shrinks. This
 * is where swap-out is refused then, so that GC always finds a victim. What is
 * in flight counts in full, also what replaces pages, whose old blocks have
 * died. A page that has just been written counts twice for a moment.
 *
 * Return: false: the caller calls zse_chunk_lose(). Else zse_append_start().
 */
bool zse_chunk_fits(struct zse_engine *e, struct zse_chunk *c)
{
	/* What was charged as a guess is what the pages take. */
	zp_add(&e->flow.in_flight, c->fill - c->nr_charged);
	c->nr_charged = c->fill;
	/* Each of two chunks that are packed now sees the other, or is seen. */
	zp_mb();
	if (blocks_taken(e) <= e->most_live)
		return true;
	zp_count(&e->shards[zp_shard() % ZSE_SHARDS].refused, c->nr);
	return false;
}

/* Where the next append of @c begins, in what it appends. */
u32 packed_from(const struct zse_config *cfg, const struct zse_chunk *c)
{
	u32 at = c->entries[c->done].at;

	return at - at % cfg->pack;
}

/*
 * Entries of @c for an append of at most @room blocks, whole write units; at
 * least one. Sets @blocks to what these take, from the beginning of a block of
 * the device to the end of one.
 */
u32 packed_fits(const struct zse_config *cfg, const struct zse_chunk *c,
		u32 room, u32 *blocks)
{
	u32 from = packed_from(cfg, c), nr = c->nr - c->done, end;

	for (;; nr--) {
		const struct zse_entry *last = &c->entries[c->done + nr - 1];

		end = last->at + last->len + cfg->pack - 1;
		*blocks = end - end % cfg->pack - from;
		if (*blocks <= room || nr == 1)
			return nr;
	}
}

/*
 * Let GC read the next window of @zone, a victim, into @c. Returns false if it
 * has nothing to read: then @c is in the pool again. With the engine lock.
 */
bool packed_window(struct zse_engine *e, u32 zone, struct zse_chunk *c,
		   struct zse_op *op)
{
	struct zse_zone *z = &e->zones[zone];
	u32 written = zp_load(&z->end), from = z->cursor, left;

	if (from >= written || !zp_load(&z->live)) {
		clean_read_out(e, zone);
		chunk_release(e, c);
		return false;
	}
	left = written - from;
	c->low = zone * e->cfg.zone_blocks + from;
	c->nr_claimed = window_blocks(&e->cfg);
	op->blocks = c->nr_claimed + 2 * e->cfg.pack;
	if (c->nr_claimed > left)
		c->nr_claimed = left;
	if (op->blocks > left)
		op->blocks = left;
	c->high = op->blocks;
	e->gc.claimed += c->nr_claimed;
	z->windows++;
	z->cursor += c->nr_claimed;
	if (z->cursor == written)
		clean_read_out(e, zone);
	op->kind = ZSE_OP_READ;
	op->chunk = c;
	op->zone = zone;
	op->from = from;
	return true;
}

static bool any_failed(const struct zse_window *w, u32 at, u32 len)
{
	while (len--)
		if (w->failed(w->host, at + len))
			return true;
	return false;
}

/*
 * Take the page at @at of the window into @c if it is live and can be read.
 * Returns the number of blocks to go on by.
 */
static u32 take(struct zse_engine *e, struct zse_chunk *c,
		const struct zse_window *w, u32 at)
{
	struct zse_entry *entry = &c->entries[c->nr];
	u64 ref;

	if (w->failed(w->host, at))
		return 1;
	entry->slot = w->slot(w->host, at);
	if (entry->slot >= e->cfg.nr_slots)
		return 1;
	ref = map_get(e, entry->slot);
	if (ref_block(ref) != c->low + at)
		return 1;
	entry->expect = ref_block(ref);
	entry->page = at;
	entry->at = c->fill;
	entry->len = ref_len(e, ref);
	if (!any_failed(w, at, entry->len)) {
		c->fill += entry->len;
		c->nr++;
	}
	return entry->len;
}

/*
 * GC has read all of @z, a victim, and moved what it found. If a page is left
 * although none was kept back, it could not be read, or other data is in its
 * place. With the engine lock.
 */
void packed_judge(struct zse_engine *e, struct zse_zone *z)
{
	if (!e->cfg.pack || z->kept || !zp_load(&z->live))
		return;
	if (recover_gives_up(e, z))
		zone_health_event(e, z, ZSE_PAGES_LOST);
	else
		recover_move_failed(e, z - e->zones, true);
}

/**
 * zse_gc_scan() - find the live pages of what GC has read
 * @e: engine
 * @c: chunk of ZSE_OP_READ; on return its entries are the pages to copy: each
 *     from block entry->page of the window to block entry->at of what the
 *     chunk appends
 * @w: the window
 *
 * The caller copies them, and calls zse_gc_read_done().
 *
 * Context: may sleep; looks at each block of the window.
 */
void zse_gc_scan(struct zse_engine *e, struct zse_chunk *c,
		 const struct zse_window *w)
{
	u32 zone = zse_block_zone(e, c->low), at;
	struct zse_zone *z = &e->zones[zone];
	bool failed = any_failed(w, 0, c->high);
	unsigned long flags;

	for (at = 0; at < c->nr_claimed;)
		at += take(e, c, w, at);

	zp_lock(&e->lock, flags);
	if (failed) {
		zp_store(&e->recovery.failing, true);
		e->counters.read_errors++;
	}
	e->gc.claimed -= c->nr_claimed;
	e->gc.unplaced += c->fill;
	z->moving += c->fill;
	z->windows--;
	e->counters.gc_read_blocks += c->nr;
	flow_gc_read(e, c->fill);
	zone_check_drained(e, zone);
	zp_unlock(&e->lock, flags);
}
