// SPDX-License-Identifier: GPL-2.0
/*
 * Stripes: the zones that a stream, or GC, writes in turn, a chunk to each.
 *
 * A large zone lies across all dies of its device. One of small zones has to
 * be written several at a time, or the others' dies are idle. Each place of a
 * stripe is a lane; a chunk is for one of them from its first page on, so that
 * it can end where that zone does. When it goes out it takes another lane if
 * its own may open no zone: all the room there is can be used.
 *
 * Everything here runs under the engine lock.
 */
#include "internal.h"

void stripe_init(struct zse_stripe *s, u32 nr)
{
	u32 i;

	s->nr = nr;
	s->next = 0;
	for (i = 0; i < ZSE_MAX_LANES; i++)
		s->zone[i] = ZSE_NONE;
}

/* The lane of a new chunk. */
u32 stripe_turn(struct zse_stripe *s)
{
	u32 lane = s->next;

	s->next = lane + 1 < s->nr ? lane + 1 : 0;
	return lane;
}

bool stripe_is_open(const struct zse_stripe *s)
{
	u32 i;

	for (i = 0; i < s->nr; i++)
		if (s->zone[i] != ZSE_NONE)
			return true;
	return false;
}

/* Blocks that can still be allocated in its open zones. */
u32 stripe_room(const struct zse_engine *e, const struct zse_stripe *s)
{
	u32 room = 0, i;

	for (i = 0; i < s->nr; i++)
		room += zone_room(e, s->zone[i]);
	return room;
}

/*
 * Zones that it could open beside its first one. Those of GC are kept from
 * swap-out: GC that falls behind with one lane would never get another.
 */
u32 stripe_missing(const struct zse_stripe *s)
{
	u32 open = 0, i;

	for (i = 0; i < s->nr; i++)
		open += s->zone[i] != ZSE_NONE;
	return s->nr - (open ? open : 1);
}

/*
 * May another zone be opened for it? GC's first one may be the last of the
 * reserve. A stream that has one leaves the last zone to those that have none.
 */
static bool stripe_may_open(const struct zse_engine *e,
			    const struct zse_stripe *s, bool gc)
{
	u32 left = e->cfg.reserve;

	if (!gc)
		left += stripe_missing(&e->gc_stripe) + 1;
	if (stripe_is_open(s) && e->nr_state[ZSE_ZONE_EMPTY] <= left)
		return false;
	return zone_may_open(e, gc);
}

/*
 * Where a chunk of @lane can go now: there, or to another one. ZSE_NONE if to
 * none.
 */
u32 stripe_usable(const struct zse_engine *e, const struct zse_stripe *s,
		  u32 lane, bool gc)
{
	u32 i;

	if (lane >= s->nr)
		lane = 0;
	if (s->zone[lane] != ZSE_NONE || stripe_may_open(e, s, gc))
		return lane;
	for (i = 0; i < s->nr; i++)
		if (s->zone[i] != ZSE_NONE)
			return i;
	return ZSE_NONE;
}

/*
 * Do with a lane less for good, if one has no zone. The zone that was kept for
 * it is free to others. Returns false if there is none.
 */
bool stripe_narrow(struct zse_stripe *s)
{
	u32 i;

	if (!stripe_missing(s))
		return false;
	for (i = 0; s->zone[i] != ZSE_NONE; i++)
		;
	s->nr--;
	s->zone[i] = s->zone[s->nr];
	s->zone[s->nr] = ZSE_NONE;
	s->next = 0;
	return true;
}

/* @zone takes no more appends. */
void stripe_forget(struct zse_stripe *s, u32 zone)
{
	u32 i;

	for (i = 0; i < s->nr; i++)
		if (s->zone[i] == zone)
			s->zone[i] = ZSE_NONE;
}
