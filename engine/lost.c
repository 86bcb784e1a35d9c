// SPDX-License-Identifier: GPL-2.0
/*
 * Zones whose pages are lost: another program has reset them, the device has
 * forgotten what it acknowledged, or GC gives up packed pages (packed_judge()).
 *
 * The device chooses where an append lands, and that tells. Whatever was
 * acknowledged when the append was submitted lies below the write pointer, so
 * the append lands above it (chunk.floor). Two appends have different places,
 * so what all have written fits below the end of the highest (zone.end). The
 * device's report of a zone tells as well: zse_look_begin().
 *
 * Such a zone is ZSE_GONE until it is reset: it takes no append, those in
 * flight fail, so that their pages go elsewhere, and each read of it is an
 * error, also if it has begun before. When no append is in flight any more, the
 * worker walks the map and makes the zone's slots ZSE_LOST, and the zone is
 * reset like any without a live block.
 *
 * zone.end and zone.unwritten are atomic, without a lock. An append raises
 * zone.end before it lowers zone.unwritten, with a full barrier in between, and
 * then looks at zone.end: so it sees the ends of all that it counts.
 */
#include "gc.h"

/* The pages in @zone are lost. Returns false if they were, or it has none. */
static bool zone_lose(struct zse_engine *e, u32 zone)
{
	struct zse_zone *z = &e->zones[zone];
	unsigned long flags;
	bool loses;

	spin_lock_irqsave(&e->lock, flags);
	loses = !zone_is_gone(z) && zone_has_data(z);
	if (loses) {
		e->counters.zones_lost++;
		zone_health_event(e, z, ZSE_PAGES_LOST);
		zone_take_out(e, zone);
	}
	spin_unlock_irqrestore(&e->lock, flags);
	return loses;
}

static void tell(struct zse_engine *e, u32 zone, enum zse_oddity odd, u32 at,
		 u32 least)
{
	if (e->cfg.odd)
		e->cfg.odd(e->cfg.host, zone, odd, at / page_blocks(&e->cfg),
			   least / page_blocks(&e->cfg));
}

/*
 * An append to @zone ended at block @end. Appends end in any order. After one
 * that failed, a zone is not written to its end.
 */
static void zone_reached(struct zse_zone *z, u32 end)
{
	u32 was;

	do {
		was = READ_ONCE(z->end);
	} while (was < end && cmpxchg(&z->end, was, end) != was);
}

/**
 * zone_landed() - can the place be right where the device put an append?
 * @e:	    engine
 * @c:	    its chunk; it counts among zone.appends
 * @offset: in its zone
 * @blocks: data and padding
 * @last:   set: it wrote the last block of the zone
 *
 * Context: any, without the engine lock.
 * Return: false: the append has failed. Else its blocks count as written.
 */
bool zone_landed(struct zse_engine *e, const struct zse_chunk *c, u32 offset,
		 u32 blocks, bool *last)
{
	struct zse_zone *z = &e->zones[c->zone];
	u32 cap = e->cfg.zone_blocks, left, end;

	if (zone_is_gone(z))
		return false;
	if (offset > cap - blocks) {
		tell(e, c->zone, ZSE_BEYOND, offset, cap - blocks);
		return false;
	}
	if (offset < c->floor) {
		if (zone_lose(e, c->zone))
			tell(e, c->zone, ZSE_WAS_RESET, offset, c->floor);
		return false;
	}
	zone_reached(z, offset + blocks);
	left = atomic_sub_return(blocks, &z->unwritten);
	end = READ_ONCE(z->end);
	*last = !left;
	if (cap - left <= end)
		return true;
	atomic_add_return(blocks, &z->unwritten);
	if (zone_lose(e, c->zone))
		tell(e, c->zone, ZSE_OVERLAP, end, cap - left);
	return false;
}

/* ---- what the device reports of its zones ---- */

/**
 * zse_look_begin() - the host is about to ask the device for the state of a
 *		      zone
 * @e:	  engine
 * @zone: zone
 * @look: set: what must be written of it
 *
 * The zone is not reset until zse_look_end().
 *
 * Return: false if it holds nothing; zse_look_end() must not be called then.
 */
bool zse_look_begin(struct zse_engine *e, u32 zone, struct zse_look *look)
{
	struct zse_zone *z = &e->zones[zone];
	unsigned long flags;
	bool holds;

	spin_lock_irqsave(&e->lock, flags);
	holds = zone_has_data(z) && READ_ONCE(z->end) && !zone_is_gone(z);
	if (holds)
		atomic_inc_return(&z->readers);
	look->zone = zone;
	look->written = READ_ONCE(z->end);
	look->full = z->place == ZSE_PLACE_NONE &&
		     (z->state == ZSE_ZONE_FULL || z->state == ZSE_ZONE_VICTIM);
	look->lost = false;
	spin_unlock_irqrestore(&e->lock, flags);
	return holds;
}

/**
 * zse_look_end() - the device has answered
 * @e:	     engine
 * @look:    from zse_look_begin(); look->lost is set if the pages in the zone
 *	     were lost
 * @full:    the zone cannot be written: full, read-only, or no answer
 * @written: else, the blocks below its write pointer
 *
 * Return: true if zse_next_op() may have something new.
 */
bool zse_look_end(struct zse_engine *e, struct zse_look *look, bool full,
		  u32 written)
{
	u32 block = look->zone * e->cfg.zone_blocks;

	if (!full && (look->full || written < look->written)) {
		look->lost = zone_lose(e, look->zone);
		if (look->lost)
			tell(e, look->zone, ZSE_WAS_RESET, written,
			     look->written);
	}
	return zse_read_end(e, block) || look->lost;
}

/* ---- the walk ---- */

/* Does @z have slots that are to be lost, and no append that adds some? */
static bool has_lost_slots(const struct zse_zone *z)
{
	u32 state = READ_ONCE(z->state);

	return zone_is_gone(z) && zone_live(z) &&
	       (state == ZSE_ZONE_FULL || state == ZSE_ZONE_VICTIM);
}

/* Has lost_work() anything to do? With the engine lock or without. */
bool lost_is_due(const struct zse_engine *e)
{
	u32 i;

	for (i = 0; READ_ONCE(e->recovery.nr_gone) && i < e->cfg.nr_zones; i++)
		if (has_lost_slots(&e->zones[i]))
			return true;
	return false;
}

/*
 * Make the slots of zones that are gone ZSE_LOST. For the caller of
 * zse_next_op(), without the engine lock. May take long.
 */
void lost_work(struct zse_engine *e)
{
	unsigned long flags;
	u64 lost = 0;
	u32 slot;

	if (!lost_is_due(e))
		return;
	/* Pairs with zone_close(): the map has what appends have written. */
	smp_mb();
	for (slot = 0; slot < e->cfg.nr_slots; slot++) {
		u64 ref = map_get(e, slot);
		struct zse_entry entry = {
			.slot = slot,
			.expect = ref_block(ref),
			.len = ref_len(e, ref),
		};

		if (!(slot % ZSE_RESCHED))
			cond_resched();
		if (entry.expect < e->nr_blocks &&
		    has_lost_slots(&e->zones[zse_block_zone(e, entry.expect)]))
			lost += map_lose(e, &entry);
	}
	spin_lock_irqsave(&e->lock, flags);
	e->counters.pages_lost += lost;
	spin_unlock_irqrestore(&e->lock, flags);
}
