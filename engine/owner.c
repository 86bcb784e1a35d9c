// SPDX-License-Identifier: GPL-2.0
/*
 * Which stream a zone counts for while the policy isolates streams, and how
 * many live blocks, victims and zones being emptied each stream has. share.c
 * and share_gc.c say what follows from it.
 *
 * Everything here runs under the engine lock, unless its comment says
 * otherwise.
 */
#include "zone.h"

/* Whose share @z uses: a stream's, or ZSE_NOBODY's. */
u32 share_owner(const struct zse_zone *z)
{
	u32 owner = READ_ONCE(z->owner);

	return owner == ZSE_NONE ? ZSE_NOBODY : owner;
}

/* Count the live blocks of @z for its owner. */
void share_count_live(struct zse_engine *e, struct zse_zone *z)
{
	u64 *live = &e->share.of[share_owner(z)].live;
	u32 now = zone_live(z);

	lockdep_assert_held(&e->lock);
	*live = *live - z->counted + now;
	z->counted = now;
}

static bool is_emptying(u32 state)
{
	return state == ZSE_ZONE_VICTIM || state == ZSE_ZONE_DRAINED ||
	       state == ZSE_ZONE_RESETTING;
}

static void count_victims(struct zse_engine *e, u32 owner, int more)
{
	u32 *nr = &e->share.of[owner].victims;

	WRITE_ONCE(*nr, *nr + more);
}

/* @stream owns @z from now on; ZSE_NONE: no stream does. */
void share_own(struct zse_engine *e, struct zse_zone *z, u32 stream)
{
	lockdep_assert_held(&e->lock);
	if (z->owner != ZSE_NONE)
		e->streams[z->owner].nr_zones--;
	if (z->state == ZSE_ZONE_VICTIM)
		count_victims(e, share_owner(z), -1);
	e->share.of[share_owner(z)].live -= z->counted;
	z->counted = 0;
	WRITE_ONCE(z->owner, stream);
	share_count_live(e, z);
	if (z->state == ZSE_ZONE_VICTIM)
		count_victims(e, share_owner(z), 1);
	if (stream != ZSE_NONE)
		e->streams[stream].nr_zones++;
}

/* @z is about to change its state. An empty or retired zone has no owner. */
void share_zone_state(struct zse_engine *e, struct zse_zone *z,
		 enum zse_zone_state to)
{
	struct zse_stream *st;

	lockdep_assert_held(&e->lock);
	count_victims(e, share_owner(z), (to == ZSE_ZONE_VICTIM) -
				      (z->state == ZSE_ZONE_VICTIM));
	if (e->share.on)
		share_count_live(e, z);
	if (z->owner == ZSE_NONE)
		return;
	st = &e->streams[z->owner];
	WRITE_ONCE(st->nr_emptying, st->nr_emptying + is_emptying(to) -
				 is_emptying(z->state));
	if (to == ZSE_ZONE_EMPTY || to == ZSE_ZONE_RETIRED)
		share_own(e, z, ZSE_NONE);
}

/* @z is opened for @c. Survivors of zones without an owner get none either. */
void share_open(struct zse_engine *e, struct zse_zone *z,
		const struct zse_chunk *c)
{
	u32 owner = c->gc ? c->owner : c->stream;

	lockdep_assert_held(&e->lock);
	if (!e->share.on)
		return;
	if (!c->gc)
		e->share.suspended = false;
	share_own(e, z, owner == ZSE_NOBODY ? ZSE_NONE : owner);
}

void share_gc_ended(struct zse_engine *e, const struct zse_chunk *c)
{
	lockdep_assert_held(&e->lock);
	e->share.of[c->owner].chunks--;
}
