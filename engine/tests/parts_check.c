// SPDX-License-Identifier: GPL-2.0
/* zse_check() finds damage: each test damages one word and expects one finding. */
#include <stdio.h>
#include <string.h>

#include "parts_host.h"

static u32 full_zone(const struct zse_engine *e)
{
	u32 zone = 0;

	while (e->zones[zone].state != ZSE_ZONE_FULL || !zone_live(&e->zones[zone]))
		zone++;
	return zone;
}

struct finding {
	const char *what;
	u32 times;
};

static void found(void *arg, const char *what, u32 where, u64 is, u64 want)
{
	struct finding *f = arg;

	f->times += !strcmp(what, f->what);
}

/* Set @member of a full zone with live blocks to @value. */
#define DAMAGE_ZONE(member, value, text) do {				\
		struct zse_zone *z;					\
									\
		host_init(&h);						\
		fill(&h, 0);						\
		z = &h.e->zones[full_zone(h.e)];			\
		z->member = (value);					\
		finds(&h, text);					\
	} while (0)

/* @statement damages engine e, whose slot 0 is in block b of zone z. */
#define DAMAGE(statement, text) do {					\
		struct zse_engine *e;					\
		struct zse_zone *z;					\
		u32 b;							\
									\
		host_init(&h);						\
		fill(&h, 0);						\
		e = h.e;						\
		b = e->fwd[0];						\
		z = &e->zones[zse_block_zone(e, b)];			\
		statement;						\
		(void)z;						\
		(void)b;						\
		finds(&h, text);					\
	} while (0)

static void finds(struct host *h, const char *what)
{
	struct finding f = { .what = what };
	u32 bits[2];

	must(zse_check(h->e, found, &f) +
	     zse_check_twice(h->e, bits, 2, found, &f));
	if (!f.times)
		printf("FAILED %s: not found\n", what);
	failures += !f.times;
	zse_destroy(h->e);
}

static void test_check_of_zones(void)
{
	struct host h;

	DAMAGE_ZONE(live.counter, z->live.counter - 1, "live count of a zone is off");
	DAMAGE_ZONE(live.counter, z->live.counter + 1, "live count of a zone is off");
	DAMAGE_ZONE(alloc, ZONE_BLOCKS + 1, "more allocated than fits");
	DAMAGE_ZONE(alloc, ZONE_BLOCKS - 1, "more written than allocated");
	DAMAGE_ZONE(live.counter, ZONE_BLOCKS + 1, "more live than fits");
	DAMAGE_ZONE(appends.counter, 1, "append to a zone that takes none");
	DAMAGE_ZONE(moving, 1, "GC moves from a zone that is no victim");
	DAMAGE_ZONE(place, ZSE_PLACE_HELD, "zone holds a place that it cannot have");
	DAMAGE_ZONE(unwritten.counter, 1, "full zone lacks what was allocated");
	DAMAGE_ZONE(end, ZONE_BLOCKS - 1, "more written than the appends' places");
	DAMAGE(z->place = ZSE_PLACE_HELD; z->health = ZSE_FAILED;
	       z->state = ZSE_ZONE_OPEN,
	       "zone holds a place that it cannot have");
	DAMAGE(z->place = ZSE_PLACE_HELD; z->health = ZSE_FAILED;
	       z->state = ZSE_ZONE_RETIRED,
	       "zone holds a place that it cannot have");
	DAMAGE(z->place = ZSE_PLACE_HELD; z->health = ZSE_FAILED;
	       z->state = ZSE_ZONE_EMPTY,
	       "zone holds a place that it cannot have");
}

static void test_check_of_maps(void)
{
	struct host h;

	DAMAGE(e->fwd[0] = e->nr_blocks, "slot maps beyond the device");
	DAMAGE(e->fwd[1] = b, "slot with a block that another has");
	DAMAGE(z->list = 0; e->census.slots[b % ZONE_BLOCKS] = 1,
	       "list lacks a live block");
	DAMAGE(z->state = ZSE_ZONE_EMPTY,
	       "slot maps into a zone without data");
	DAMAGE(z->state = ZSE_ZONE_DRAINED,
	       "slot maps into a zone without data");
	DAMAGE(z->state = ZSE_ZONE_RESETTING,
	       "slot maps into a zone without data");
	DAMAGE(z->state = ZSE_ZONE_RETIRED,
	       "slot maps into a zone without data");
}

static void test_check_of_counters(void)
{
	struct host h;

	DAMAGE(e->nr_state[ZSE_ZONE_FULL]++, "number of zones in a state");
	DAMAGE(e->appends.counter++, "number of appends in flight");
	DAMAGE(e->recovery.nr_held++, "number of zones that hold a place");
	DAMAGE(e->recovery.nr_failed++, "number of failed zones");
	DAMAGE(e->gc.unplaced++,
	       "blocks without a zone in no chunk of GC");
	DAMAGE(e->cfg.max_active = 1; z->state = ZSE_ZONE_FINISH,
	       "more active zones than the device allows");
	DAMAGE(e->shards[0].filled.counter++, "number of slots in use");
	DAMAGE(e->share.of[0].live++, "live blocks that streams have");
	DAMAGE(e->gc.unplaced = NR_ZONES * ZONE_BLOCKS,
	       "GC has begun more than it has room for");
	DAMAGE(e->flow.open_room++, "room in the zones that streams have open");
	DAMAGE(e->census.lists[0].zone = 0, "list of a zone");
	DAMAGE(e->census.nr_free--, "number of lists without a zone");
	DAMAGE(z->list = 0, "number of lists without a zone");
	DAMAGE(e->shared = true, "stream with zones of its own");
}

void test_check(void)
{
	test_check_of_zones();
	test_check_of_maps();
	test_check_of_counters();
}
