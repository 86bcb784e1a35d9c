// SPDX-License-Identifier: GPL-2.0
/*
 * Carrying: GC without a zone to write to.
 *
 * Zones that fail one after another while GC writes to them can take the whole
 * reserve: each is full, with a little that is live. If all others work, no more
 * is missing than one empty zone. So GC takes the pages of a victim into its
 * buffers, has the victim reset, and writes them back.
 *
 * A policy's freed() is not called for them, since it may take the engine lock; the
 * zone's cleaning() tells enough.
 *
 * Pages are carried only when all that is live in their zone is in memory. The
 * forward map of their slots says so: a tag, as while a page is swapped out, but
 * of a chunk of GC. So nothing in the zone is live any more, and it is reset like
 * any other; who wants such a page gets it from the buffer. If the reset or the
 * append fails, the chunk is parked, and its pages stay in memory: until there is
 * a zone, or if its appends have failed too often, until a zone could be reset or
 * what failed is tried again; or until nobody wants them any more.
 *
 * Everything here runs under the engine lock.
 */
#include "internal.h"

/* Is all that is live in @zone in chunks of GC that are read? */
static bool can_carry(const struct zse_engine *e, u32 zone)
{
	const struct zse_zone *z = &e->zones[zone];

	return z->state == ZSE_ZONE_VICTIM && !clean_is_reading(e, zone) &&
	       zp_load(&z->live) <= z->moving;
}

/* Carry @entry of @c. Returns false if it is to be dropped. */
static bool carry_entry(struct zse_engine *e, const struct zse_chunk *c,
			struct zse_entry *entry)
{
	u32 zone = zse_block_zone(e, entry->expect);
	u32 tag = map_tag(e, c, entry->page);

	if (!can_carry(e, zone) ||
	    !map_carry(e, entry->slot, entry->expect, tag))
		return false;
	entry->expect = tag;
	zone_moved(e, zone, 1);
	return true;
}

static void park(struct zse_engine *e, struct zse_chunk *c)
{
	list_del_init(&c->link);
	list_add_tail(&c->link, &e->parked);
	e->nr_parked++;
	share_gc_ended(e, c);
}

/**
 * carry_or_drop() - what becomes of a chunk that GC cannot write
 * @e:	  engine
 * @c:	  chunk, ready to be appended
 * @more: carry what can be; else only what is already
 *
 * Entries that are not carried stay where they are. A chunk in which nothing
 * changes by that is parked, or goes back to the pool.
 */
void carry_or_drop(struct zse_engine *e, struct zse_chunk *c, bool more)
{
	u32 i, kept = c->done;
	bool begun = false;

	for (i = c->done; i < c->nr; i++) {
		struct zse_entry entry = c->entries[i];

		if (!entry_is_carried(&entry)) {
			if (!more || !carry_entry(e, c, &entry))
				continue;
			begun = true;
		}
		c->entries[i] = c->entries[kept];
		c->entries[kept++] = entry;
	}
	gc_drop_entries(e, c, kept);
	if (c->nr == c->done) {
		list_del_init(&c->link);
		chunk_release(e, c);
	} else if (!begun) {
		park(e, c);
	}
}

static void unpark(struct zse_engine *e, struct zse_chunk *c)
{
	list_del_init(&c->link);
	e->nr_parked--;
	share_gc_again(e, c);
}

/* @c, which is parked, is to be appended again, before others. */
static void resume(struct zse_engine *e, struct zse_chunk *c)
{
	unpark(e, c);
	list_add(&c->link, &e->gc_ready);
}

/*
 * Parked chunks whose pages were all freed or written again go back to the pool:
 * GC may have no other. Returns true if there were any.
 */
bool carry_forget(struct zse_engine *e)
{
	u32 left = e->nr_parked;
	bool any = false;

	while (left--) {
		struct zse_chunk *c = list_first_entry(&e->parked,
						       struct zse_chunk, link);

		gc_drop_dead(e, c);
		if (c->nr > c->done) {
			list_del_init(&c->link);
			list_add_tail(&c->link, &e->parked);
			continue;
		}
		unpark(e, c);
		chunk_release(e, c);
		any = true;
	}
	return any;
}

/* A chunk that waits for no more than a zone, if there is one; or NULL. */
struct zse_chunk *carry_next(const struct zse_engine *e)
{
	struct zse_chunk *c;

	if (list_empty(&e->parked) ||
	    !(stripe_room(e, &e->gc_stripe) || zone_may_open(e, true)))
		return NULL;
	list_for_each_entry(c, &e->parked, link)
		if (c->retries <= ZSE_MAX_RETRIES)
			return c;
	return NULL;
}

/* Go on with that one. */
void carry_look(struct zse_engine *e)
{
	struct zse_chunk *c = carry_next(e);

	if (c)
		resume(e, c);
}

/* All of them are tried again. */
void carry_resume(struct zse_engine *e)
{
	while (!list_empty(&e->parked)) {
		struct zse_chunk *c = list_first_entry(&e->parked,
						       struct zse_chunk, link);

		c->retries = 0;
		resume(e, c);
	}
}

/**
 * carry_begin() - begin a victim for which there is no room
 * @e: engine; nothing is under way
 *
 * The one with the least to move, if half of the chunks that GC has left hold
 * that: what is appended to it may fail again, and the other half is for the next
 * one then. A zone that failed is the last choice, since its reset may fail as
 * well, or it is not written again at once.
 */
void carry_begin(struct zse_engine *e)
{
	u32 chunks = (e->cfg.nr_gc_chunks - e->nr_used_gc_chunks + 1) / 2;
	u32 best = ZSE_NONE, least = ZSE_NONE, i;

	/* Zones that are tried again may do. */
	if (e->nr_state[ZSE_ZONE_DRAINED] || e->nr_state[ZSE_ZONE_FINISH])
		return;
	for (i = 0; i < e->cfg.nr_zones; i++) {
		const struct zse_zone *z = &e->zones[i];
		u32 live = round_up_unit(e, zp_load(&z->live));

		if (z->state != ZSE_ZONE_FULL || z->aside || live >= z->cap ||
		    zp_load(&z->live) > chunks * e->cfg.chunk_blocks ||
		    !share_may_read(e, z, NULL))
			continue;
		if (z->bad)
			live += z->failures * e->cfg.zone_blocks;
		if (live < least) {
			least = live;
			best = i;
		}
	}
	if (best != ZSE_NONE)
		clean_begin(e, best, 0);
}
