// SPDX-License-Identifier: GPL-2.0
/* What is remembered of pages: engine/past.c. */
#include "parts_host.h"

#define UNIT	1000	/* blocks of 1/512 of the device */
#define SLOT	3
#define PAGES	50

/* One that is not built in, and may look at pasts. */
static const struct znsage_policy other = { .name = "cpus" };

static u32 state = 1;

static u32 below(u32 nr)
{
	state = state * 1664525 + 1013904223;
	return (u64)state * nr >> 32;
}

/* A device of 512 units; its zones do not matter here. */
static u32 past_init(struct host *h)
{
	struct zse_run run;
	bool kick;

	host_init(h);
	must(zse_prepare(h->e, &other));
	write_slot(h, SLOT);
	flush(h);
	h->e->nr_blocks = 512 * UNIT;
	must(zse_read_begin(h->e, SLOT, 1, &run, &kick) == ZSE_READ_BLOCK);
	return run.block;
}

/* @past of a page that is read after @life. */
static u8 lived(struct host *h, u8 past, u32 block, u32 life)
{
	h->e->past[SLOT] = past;
	h->e->clock = h->e->zones[zse_block_zone(h->e, block)].born + life;
	must(zse_block_life(h->e, block) == life);
	return zse_past(h->e, SLOT, block);
}

static bool near(u64 value, u64 want, u32 percent)
{
	return value * 100 >= want * (100 - percent) &&
	       value * 100 <= want * (100 + percent);
}

static void test_bounds(void)
{
	struct host h;
	u32 block = past_init(&h), i;

	must(zse_usual_life(h.e, 0) == ZNSAGE_NONE);
	for (i = 0; i < 256; i++) {
		u32 life = zse_usual_life(h.e, i);

		must(life == ZNSAGE_NONE || (life && life < 2 * 512 * UNIT));
		must((life == ZNSAGE_NONE) == !(i % 64));
		must(zse_usual_life(h.e, lived(&h, i, block, 0)) <=
		     (i % 64 ? life : UNIT));
		must(zse_usual_life(h.e, lived(&h, i, block, ZSE_NONE - 1)) >=
		     (i % 64 ? life : 15 << 6));
	}
	/* The first life is to within the float. */
	for (i = 8 * UNIT; i < 900 * UNIT; i += 777)
		must(near(zse_usual_life(h.e, lived(&h, 0, block, i)), i, 13));
	zse_destroy(h.e);
}

/* Lives that differ, with the same mean: after each, the mean of pages' means. */
static void test_no_bias(void)
{
	static const u32 means[] = { 9, 20, 60, 300 };
	struct host h;
	u32 block = past_init(&h), i, k, n;

	for (i = 0; i < 4; i++) {
		u32 mean = means[i] * UNIT;
		u64 sum = 0, square = 0;

		for (k = 0; k < PAGES; k++) {
			u8 past = 0;

			for (n = 0; n < 300; n++) {
				u32 life, usual;

				past = lived(&h, past, block, below(2 * mean));
				life = zse_usual_life(h.e, past);
				if (n < 100)
					continue;
				sum += life;
				usual = life > mean ? life - mean : mean - life;
				square += (u64)usual * usual;
			}
		}
		must(near(sum / (PAGES * 200), mean, 4));
		/*
		 * A mean of 16 lives, where old ones count less and less,
		 * varies by sqrt(1/3/31) = 0.10 of itself; rounding adds 0.13
		 * where the float is coarse. Lives vary by 0.58.
		 */
		must(square / (PAGES * 200) < (u64)mean * mean / 25);
	}
	zse_destroy(h.e);
}

/* The mean follows pages that change. */
static void test_changes(void)
{
	struct host h;
	u32 block = past_init(&h), i, n;
	u64 first = 0, then = 0;

	/* Nearly constant lives; the clock has to go on, as rounding uses it. */
	for (i = 0; i < PAGES; i++) {
		u8 past = 0;

		for (n = 0; n < 100; n++)
			past = lived(&h, past, block, 20 * UNIT + below(9));
		first += zse_usual_life(h.e, past);
		for (n = 0; n < 100; n++)
			past = lived(&h, past, block, 400 * UNIT + below(99));
		then += zse_usual_life(h.e, past);
	}
	must(near(first / PAGES, 20 * UNIT, 5));
	must(near(then / PAGES, 400 * UNIT, 5));
	zse_destroy(h.e);
}

static u32 streams_of(const struct host *h)
{
	return READ_ONCE(h->e->placement.nr_streams);
}

/*
 * Lives of PAGES pages. Those of one page vary from nothing to twice their
 * mean, which is @most for the last page and @most / @spread for the first.
 */
static void lives(struct host *h, u32 block, u32 most, u32 spread, u32 nr)
{
	static u8 pasts[PAGES];

	while (nr--) {
		u32 page = below(PAGES);
		u32 mean = most - (most - most / spread) / (PAGES - 1) *
				  (PAGES - 1 - page);

		pasts[page] = lived(h, pasts[page], block, below(2 * mean));
	}
}

/*
 * There are streams for lives while pasts tell these, and else one. What is
 * placed and what GC moves goes to one that exists.
 */
static void test_apart(void)
{
	struct zse_config cfg;
	struct znsage_page page = { .usual = UNIT };
	struct znsage_zone z = { .stream = 5, .age = 1 };
	enum zse_refusal why;
	struct zse_run run;
	struct host h = { 0 };
	bool kick;

	cfg = config(&h);
	cfg.nr_zones = 904;
	cfg.max_active = 14;
	cfg.policy = zse_builtin_policy("heat");
	cfg.nr_slots = 100;
	h.e = zse_create(&cfg, &why);
	write_slot(&h, SLOT);
	flush(&h);
	h.e->nr_blocks = 512 * UNIT;
	must(zse_read_begin(h.e, SLOT, 1, &run, &kick) == ZSE_READ_BLOCK);
	must(streams_of(&h) == 1 && zse_place(h.e, &page) == 0);

	/* Too few, then pages of one mean, then of many, and of one again. */
	lives(&h, run.block, 300 * UNIT, 100, 2000);
	must(streams_of(&h) == 1);
	h.e->told = (struct zse_told){ 0 };
	lives(&h, run.block, 300 * UNIT, 1, 50000);
	must(streams_of(&h) == 1);
	lives(&h, run.block, 300 * UNIT, 100, 50000);
	must(streams_of(&h) == 6);
	page.usual = 2 * 512 * UNIT;
	must(zse_place(h.e, &page) == 5);
	lives(&h, run.block, 300 * UNIT, 1, 100000);
	must(streams_of(&h) == 1 && zse_place(h.e, &page) == 0);
	must(h.e->placement.policy->survivor(h.e, &z) == 0);

	/* Other policies have their streams, and no wrong answer was counted. */
	zse_set_policy(h.e, zse_builtin_policy("cgroup"), NULL);
	must(streams_of(&h) > 1);
	lives(&h, run.block, 300 * UNIT, 100, 50000);
	must(streams_of(&h) == zse_nr_streams(&cfg, zse_builtin_policy("cgroup")));
	zse_set_policy(h.e, zse_builtin_policy("heat"), NULL);
	must(streams_of(&h) == 6 && !atomic64_read(&h.e->placement.invalid));
	zse_destroy(h.e);
}

/* A slot has the past of the page that was last written to it. */
static void test_carried(void)
{
	struct zse_run run;
	struct host h;
	u8 past;

	past_init(&h);
	h.e->nr_blocks = NR_ZONES * ZONE_BLOCKS;
	must(!h.e->past[SLOT]);
	write_slot_past(&h, 5, 0x93);
	must(h.e->past[5] == 0x93 && !h.e->past[SLOT]);
	write_slot(&h, SLOT);
	flush(&h);
	zse_free(h.e, SLOT);
	must(zse_read_begin(h.e, 5, 1, &run, &(bool){ false }) ==
	     ZSE_READ_BLOCK);
	past = zse_past(h.e, 5, run.block);
	must(past && past != 0x93);
	zse_read_end(h.e, run.block);
	write_slot_past(&h, SLOT, past);
	write_slot(&h, 5);
	must(h.e->past[SLOT] == past && !h.e->past[5]);
	zse_destroy(h.e);
}

/* The bytes are there once a policy wants them, and then stay. */
static void test_wanted(void)
{
	struct zse_stats st;
	struct zse_run run;
	struct host h;
	bool kick;
	u64 before;

	host_init(&h);
	write_slot_past(&h, SLOT, 0x93);
	flush(&h);
	must(zse_prepare(h.e, zse_builtin_policy("cgroup")) && !h.e->past);
	/* The device has one stream for lives. */
	must(zse_prepare(h.e, zse_builtin_policy("heat")) && !h.e->past);
	must(zse_read_begin(h.e, SLOT, 1, &run, &kick) == ZSE_READ_BLOCK);
	must(!zse_past(h.e, SLOT, run.block));
	zse_get_stats(h.e, &st);
	before = st.map_bytes;
	must(zse_prepare(h.e, &other) && h.e->past);
	zse_get_stats(h.e, &st);
	must(st.map_bytes == before + nr_slots(&h));
	must(zse_past(h.e, SLOT, run.block));
	zse_read_end(h.e, run.block);
	must(zse_prepare(h.e, zse_builtin_policy("cpu")) && h.e->past);
	zse_destroy(h.e);
}

void test_past(void)
{
	test_wanted();
	test_bounds();
	test_no_bias();
	test_changes();
	test_carried();
	test_apart();
}
