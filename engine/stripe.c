// SPDX-License-Identifier: GPL-2.0
/*
 * Stripes: a stream, or GC, writes several zones in turn, a chunk to each.
 *
 * A large zone lies across all dies of its device. A small zone does not, so
 * several must be written at a time to keep all dies busy. Each place of a
 * stripe is a lane. A chunk gets its lane with its first page, so that it can
 * end where the lane's zone does. If the lane cannot open a zone when the chunk
 * is sent, the chunk takes another lane, so that all room can be used.
 *
 * Everything here runs under the engine lock.
 */
#include "room.h"

/*
 * The stripe that @stream writes: its own, or the one it shares with GC. A
 * chunk whose stream lost its lanes while it filled goes where those of the
 * first stream go.
 */
struct zse_stripe *stripe_of(struct zse_engine *e, u32 stream)
{
	if (e->shared)
		return &e->gc.stripe;
	if (stream >= READ_ONCE(e->placement.nr_streams))
		stream = 0;
	return &e->streams[stream].stripe;
}

/*
 * Set the number of lanes. The open zones of lanes that go are closed: to GC,
 * the blocks that nothing was written to are as good as stale.
 */
void stripe_set_lanes(struct zse_engine *e, struct zse_stripe *s, u32 nr)
{
	u32 i;

	lockdep_assert_held(&e->lock);
	for (i = nr; i < s->nr; i++) {
		u32 zone = s->zone[i];

		if (zone == ZSE_NONE)
			continue;
		e->flow.open_room -= zone_room(e, zone);
		WRITE_ONCE(s->zone[i], ZSE_NONE);
		zone_close(e, zone);
	}
	WRITE_ONCE(s->nr, nr);
	WRITE_ONCE(s->next, 0);
}

void stripe_init(struct zse_stripe *s, u32 nr)
{
	u32 i;

	s->nr = nr;
	for (i = 0; i < ZSE_GC_ZONES; i++)
		s->zone[i] = ZSE_NONE;
}

/* The lane of the next chunk. */
u32 stripe_turn(struct zse_stripe *s)
{
	u32 lane = s->next;

	WRITE_ONCE(s->next, lane + 1 < s->nr ? lane + 1 : 0);
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

/* Blocks that appends can still get in the open zones of @s. */
u32 stripe_room(const struct zse_engine *e, const struct zse_stripe *s)
{
	u32 room = 0, i;

	for (i = 0; i < s->nr; i++)
		room += zone_room(e, s->zone[i]);
	return room;
}

/**
 * zse_write_stream() - where a device that keeps data apart is to put an append
 * @c:	chunk whose append has begun
 * @nr:	write streams of the device (FDP), at least 1
 *
 * The pages of a zone die together, so a write stream should have one open zone,
 * as long as there are enough. GC has half of them, since pages that have
 * survived live longer; there each class of survivors has lanes of its own.
 *
 * Context: any. Return: from 0 to @nr - 1.
 */
u32 zse_write_stream(const struct zse_chunk *c, u32 nr)
{
	u32 gc = nr / 2;

	if (c->gc && gc)
		return nr - 1 - c->lane % gc;
	return (c->stream + c->lane) % (nr - gc);
}

/* Does @s wait for the end of an append, since a zone takes one at a time? */
bool stripe_is_busy(const struct zse_engine *e, const struct zse_stripe *s)
{
	u32 i;

	for (i = 0; i < s->nr; i++)
		if (s->zone[i] != ZSE_NONE && zone_is_busy(e, s->zone[i]))
			return true;
	return false;
}

/* @zone takes no more appends. Returns true if @s had it. */
bool stripe_forget(struct zse_stripe *s, u32 zone)
{
	bool had = false;
	u32 i;

	for (i = 0; i < s->nr; i++) {
		if (s->zone[i] != zone)
			continue;
		WRITE_ONCE(s->zone[i], ZSE_NONE);
		had = true;
	}
	return had;
}
