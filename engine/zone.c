// SPDX-License-Identifier: GPL-2.0
/*
 * Zones and their states.
 *
 *	EMPTY -> OPEN -> CLOSING [-> FINISH -> FINISHING] -> FULL
 *	FULL -> VICTIM -> DRAINED -> RESETTING -> EMPTY
 *	FULL -> DRAINED when its last live block dies
 *	VICTIM -> FULL when GC could not empty it
 *	FINISHING -> FINISH, RESETTING -> DRAINED to retry after an error
 *	RESETTING -> RETIRED -> DRAINED: see recover.c
 *
 * zone_set_state() is the only place that changes a state or counts zones.
 *
 * The device counts a zone as open or active from its first append until it is
 * full or finished: in the states OPEN to FINISHING. A zone that the device
 * fails to finish keeps its place (ZSE_PLACE_HELD) until it is reset. At most
 * max_active places are taken. One of them is kept for GC; if there is only
 * one, GC shares it with swap-out. A virtual zone needs its place only while it
 * is OPEN, so that the next one can be opened while its last appends are in
 * flight.
 *
 * Everything here runs under the engine lock.
 */
#include "zone.h"

const char *const zone_state_names[ZSE_NR_ZONE_STATES] = {
	[ZSE_ZONE_EMPTY] = "empty",
	[ZSE_ZONE_OPEN] = "open",
	[ZSE_ZONE_CLOSING] = "closing",
	[ZSE_ZONE_FINISH] = "finish",
	[ZSE_ZONE_FINISHING] = "finishing",
	[ZSE_ZONE_FULL] = "full",
	[ZSE_ZONE_VICTIM] = "victim",
	[ZSE_ZONE_DRAINED] = "drained",
	[ZSE_ZONE_RESETTING] = "resetting",
	[ZSE_ZONE_RETIRED] = "retired",
};

/*
 * Zones that the device counts as open or active. Virtual zones are none of its
 * business: only how many take new appends matters to it.
 */
u32 zones_active(const struct zse_engine *e)
{
	if (e->cfg.wide)
		return e->nr_state[ZSE_ZONE_OPEN];
	return e->nr_state[ZSE_ZONE_OPEN] + e->nr_state[ZSE_ZONE_CLOSING] +
	       e->nr_state[ZSE_ZONE_FINISH] +
	       e->nr_state[ZSE_ZONE_FINISHING] + e->recovery.nr_held;
}

/* A retired zone is neither room nor a zone that GC has to empty. */
static void zone_count_retired(struct zse_engine *e, const struct zse_zone *z,
			       bool retires)
{
	struct zse_recovery *r = &e->recovery;

	if (retires) {
		e->usable_blocks -= e->cfg.zone_blocks;
		WRITE_ONCE(r->nr_failed, r->nr_failed - zone_is_failed(z));
	} else {
		e->usable_blocks += e->cfg.zone_blocks;
		WRITE_ONCE(r->nr_failed, r->nr_failed + zone_is_failed(z));
	}
}

/* @z has come to the state @to: lists, and what begins anew. */
static void zone_enter(struct zse_engine *e, struct zse_zone *z,
		       enum zse_zone_state to)
{
	switch (to) {
	case ZSE_ZONE_EMPTY:
		WRITE_ONCE(z->alloc, 0);
		atomic_set(&z->unwritten, e->cfg.zone_blocks);
		WRITE_ONCE(z->end, 0);
		WRITE_ONCE(z->stream, ZSE_NONE);
		WRITE_ONCE(z->reads, 0);
		list_add_tail(&z->link, &e->empty);
		break;
	case ZSE_ZONE_FULL:
		WRITE_ONCE(z->filled, e->clock);
		/*
		 * Pairs with page_died(): one of the two sees 0 live blocks.
		 */
		smp_mb();
		if (!zone_live(z))
			zone_note_dead(e, z);
		break;
	case ZSE_ZONE_FINISH:
		list_add_tail(&z->link, &e->to_finish);
		break;
	case ZSE_ZONE_DRAINED:
		census_drop(e, z);
		/* First, since all others may wait for the place it holds. */
		if (z->place != ZSE_PLACE_NONE)
			list_add(&z->link, &e->drained);
		else
			list_add_tail(&z->link, &e->drained);
		break;
	case ZSE_ZONE_RETIRED:
		recover_release_held(e, z);
		list_add_tail(&z->link, &e->retired);
		break;
	default:
		break;
	}
}

void zone_set_state(struct zse_engine *e, u32 zone, enum zse_zone_state to)
{
	struct zse_zone *z = &e->zones[zone];

	lockdep_assert_held(&e->lock);
	if (e->cfg.zone_event)
		e->cfg.zone_event(e->cfg.host, zone, zone_state_names[z->state],
				  zone_state_names[to]);
	share_zone_state(e, z, to);
	if (z->state == ZSE_ZONE_RETIRED || to == ZSE_ZONE_RETIRED)
		zone_count_retired(e, z, to == ZSE_ZONE_RETIRED);
	WRITE_ONCE(e->nr_state[z->state], e->nr_state[z->state] - 1);
	WRITE_ONCE(e->nr_state[to], e->nr_state[to] + 1);
	list_del_init(&z->link);
	WRITE_ONCE(z->state, to);
	zone_enter(e, z, to);
}

void zones_init(struct zse_engine *e)
{
	u32 i;

	e->nr_state[ZSE_ZONE_EMPTY] = e->cfg.nr_zones;
	e->usable_blocks = e->nr_blocks;
	for (i = 0; i < e->cfg.nr_zones; i++) {
		struct zse_zone *z = &e->zones[i];

		z->stream = ZSE_NONE;
		z->owner = ZSE_NONE;
		z->list = ZSE_NONE;
		atomic_set(&z->unwritten, e->cfg.zone_blocks);
		list_add_tail(&z->link, &e->empty);
	}
}

/* Blocks that appends have written in @z. */
u32 zone_written(const struct zse_engine *e, const struct zse_zone *z)
{
	return e->cfg.zone_blocks - atomic_read(&z->unwritten);
}

/* Average age of the blocks in @z, in blocks swapped out. */
u64 zone_age(const struct zse_engine *e, const struct zse_zone *z)
{
	u64 now = READ_ONCE(e->clock), born = READ_ONCE(z->born);

	return now > born ? now - born : 0;
}

/* Describe a zone to a policy. */
void zone_look(const struct zse_engine *e, u32 zone, struct znsage_zone *look)
{
	const struct zse_zone *z = &e->zones[zone];

	*look = (struct znsage_zone){
		.capacity = e->cfg.zone_blocks / page_blocks(&e->cfg),
		.live = zone_live(z) / page_blocks(&e->cfg),
		.stream = READ_ONCE(z->stream),
		.moves = READ_ONCE(z->moves),
		.reads = READ_ONCE(z->reads),
		.age = zone_age(e, z),
		.key = READ_ONCE(z->key),
		.mixed = READ_ONCE(z->mixed),
		.failed = zone_is_failed(z),
	};
}

/* Blocks that can still be allocated in @zone, 0 for ZSE_NONE. */
u32 zone_room(const struct zse_engine *e, u32 zone)
{
	if (zone == ZSE_NONE)
		return 0;
	return e->cfg.zone_blocks - e->zones[zone].alloc;
}

/*
 * Send no more appends to @zone. It is full when those in flight have ended. If
 * an append failed, the zone is not written to its end. Then it is finished, so
 * that the device does not count it as active.
 */
void zone_close(struct zse_engine *e, u32 zone)
{
	struct zse_zone *z = &e->zones[zone];

	lockdep_assert_held(&e->lock);
	if (z->state == ZSE_ZONE_OPEN)
		zone_set_state(e, zone, ZSE_ZONE_CLOSING);
	/*
	 * Pairs with zone_append_worked(): one of the two sees the last one
	 * end.
	 */
	smp_mb();
	if (z->state != ZSE_ZONE_CLOSING || atomic_read(&z->appends))
		return;
	zone_set_state(e, zone, e->cfg.finish || atomic_read(&z->unwritten) ?
				ZSE_ZONE_FINISH : ZSE_ZONE_FULL);
}

/* Has @z pages, or appends in flight? */
bool zone_has_data(const struct zse_zone *z)
{
	return z->state >= ZSE_ZONE_OPEN && z->state <= ZSE_ZONE_VICTIM;
}

/* Does an append in flight keep @zone from taking another? */
bool zone_is_busy(const struct zse_engine *e, u32 zone)
{
	return e->cfg.serial && atomic_read(&e->zones[zone].appends);
}

/*
 * Drain the full zones that have no live block; they need no GC. Each zone
 * leaves the list before its live count is read, so if the last block dies
 * afterwards, the zone is listed again.
 *
 * A discard may kill all zones of the device at once, and interrupts are off
 * here. So this looks at ZSE_TAKE_DEAD zones at most; the rest stay in
 * e->dying.
 */
void zones_take_dead(struct zse_engine *e)
{
	u32 nr;

	lockdep_assert_held(&e->lock);
	if (e->dying == ZSE_NONE && READ_ONCE(e->dead) != ZSE_NONE)
		e->dying = xchg(&e->dead, ZSE_NONE);
	for (nr = 0; e->dying != ZSE_NONE && nr < ZSE_TAKE_DEAD; nr++) {
		u32 zone = e->dying;
		struct zse_zone *z = &e->zones[zone];

		e->dying = READ_ONCE(z->next_dead);
		xchg(&z->on_dead_list, 0);
		if (z->state != ZSE_ZONE_FULL || zone_live(z))
			continue;
		e->counters.zones_dead++;
		zone_set_state(e, zone, ZSE_ZONE_DRAINED);
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

	return !atomic_dec_return(&z->readers) &&
	       READ_ONCE(z->state) == ZSE_ZONE_DRAINED;
}
