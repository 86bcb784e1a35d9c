// SPDX-License-Identifier: GPL-2.0
/*
 * Parts of the engine that neither random steps nor many threads reach: out of
 * memory, queries of policies and hosts, callbacks; and that zse_check() finds
 * damage.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts_host.h"

/* ---- out of memory; built with -Wl,--wrap=calloc */

static u32 callocs_left = ~0u;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	if (!callocs_left)
		return NULL;
	callocs_left--;
	return __real_calloc(n, size);
}

/* Whichever allocation fails, the others are freed. */
static void test_no_memory(void)
{
	struct host h;
	struct zse_config cfg = config(&h);
	struct zse_engine *e;
	enum zse_refusal why;
	u32 i;

	cfg.nr_slots = zse_max_slots(&cfg);
	for (i = 0; ; i++) {
		why = ZSE_OK;
		callocs_left = i;
		e = zse_create(&cfg, &why);
		callocs_left = ~0u;
		if (e)
			break;
		must(why == ZSE_NO_MEMORY);
	}
	must(i >= 6);
	zse_destroy(e);
	zse_destroy(NULL);
}

/* ---- short appends */

/* Of swap-out and of GC, in whole write units as long as these are not longer. */
static void test_append_limit(void)
{
	struct host h;
	u32 limit;

	host_init(&h);
	for (limit = CHUNK; limit; limit--) {
		h.longest = limit;
		must(zse_limit_append(h.e, limit));
		fill(&h, 2);
	}
	zse_destroy(h.e);
}

static void test_append_limit_of_units(void)
{
	struct host h;
	struct zse_config cfg = config(&h);
	enum zse_refusal why;
	u32 limit;

	memset(&h, 0, sizeof(h));
	cfg.write_unit = CHUNK / 2;
	cfg.nr_slots = zse_max_slots(&cfg);
	h.e = zse_create(&cfg, &why);
	if (!h.e)
		abort();
	for (limit = CHUNK; limit; limit--) {
		h.longest = limit < CHUNK ? CHUNK / 2 : CHUNK;
		must(zse_limit_append(h.e, limit) == (limit >= CHUNK / 2));
		fill(&h, 2);
	}
	zse_destroy(h.e);
}

/* ---- queries and settings */

static void test_questions(void)
{
	struct zse_stream_info si;
	struct zse_zone_info zi;
	struct znsage_levels levels;
	struct znsage_zone z;
	struct host h;
	u32 i, full = 0;

	host_init(&h);
	fill(&h, 3);
	must(zse_get_config(h.e)->nr_zones == NR_ZONES);
	for (i = 0; i < 12; i++)
		must(zse_chunk_get(h.e, i)->id == i &&
		     zse_chunk_get(h.e, i)->gc == (i >= 8));
	must(!zse_chunk_get(h.e, 12));
	must(!zse_get_zone(h.e, NR_ZONES, &zi));
	must(zse_get_stream(h.e, 0, &si) && si.host_blocks >= nr_slots(&h));
	must(!zse_get_stream(h.e, 1, &si));

	znsage_get_levels(h.e, &levels);
	must(levels.zones == NR_ZONES && levels.reserve == 1 &&
	     levels.streams == 1 && levels.survivors == 1);
	must(levels.gc_low < levels.gc_high);
	must(levels.clock == si.host_blocks);
	for (i = 0; i < NR_ZONES; i++) {
		must(zse_get_zone(h.e, i, &zi));
		if (!znsage_get_zone(h.e, i, &z))
			continue;
		full++;
		must(z.live == zi.live && z.capacity == ZONE_BLOCKS);
	}
	must(full && full < NR_ZONES);
	must(!znsage_get_zone(h.e, NR_ZONES, &z));
	zse_destroy(h.e);
}

/* ---- packed pages */

/* Take a chunk of CHUNK pages from slot @first on. */
static struct zse_chunk *unpacked_chunk(struct host *h, u32 first)
{
	struct zse_chunk *c = zse_stream_begin(h->e, 0);
	u32 i;

	for (i = 0; i < CHUNK; i++)
		zse_chunk_add(h->e, c, first + i, 0);
	must(zse_stream_end(h->e, 0) == c);
	return c;
}

/* The same, and none of its pages shrinks. */
static struct zse_chunk *packed_chunk(struct host *h, u32 first, bool *fits)
{
	struct zse_chunk *c = unpacked_chunk(h, first);
	u32 i;

	for (i = 0; i < CHUNK; i++)
		zse_chunk_pack(h->e, c, i, 16);
	*fits = zse_chunk_fits(h->e, c);
	return c;
}

/* Each CPU may pack a chunk, whatever the device's window. */
static void check_packing(struct host *h, const struct zse_config *cfg)
{
	struct zse_chunk *c[8];
	u32 i, window = h->e->flow.window, n;

	h->e->flow.window = 1;
	for (n = 0; zse_has_chunk(h->e, 0); n++) {
		must(n < cfg->nr_cpus);
		c[n] = unpacked_chunk(h, n * CHUNK);
	}
	must(n == cfg->nr_cpus && !zse_stream_begin(h->e, 0));
	zse_stream_end(h->e, 0);
	for (i = 0; i < CHUNK; i++)
		zse_chunk_pack(h->e, c[0], i, 1);
	must(zse_chunk_fits(h->e, c[0]) && !zse_has_chunk(h->e, 0));
	for (i = 0; i < n; i++) {
		if (i)
			zse_chunk_fits(h->e, c[i]);
		zse_chunk_lose(h->e, c[i]);
		zse_chunk_put(h->e, c[i]);
	}
	must(zse_has_chunk(h->e, 0) && !atomic_read(&h->e->flow.in_flight));
	h->e->flow.window = window;
}

/* A packed chunk of few pages waits for more, one of many does not. */
static void check_packed_flush(struct host *h, u32 len)
{
	struct zse_chunk *c;
	u32 i;

	h->e->streams[0].packed_len = len;
	for (i = 0; i < CHUNK - 1; i++) {
		c = zse_stream_begin(h->e, 0);
		c->born = 1;
		zse_chunk_add(h->e, c, i, 0);
		must(!zse_stream_end(h->e, 0));
		c = zse_stream_flush(h->e, 0);
		must(!c == ((i + 1) * len < 8 * h->e->cfg.write_unit));
		if (c)
			break;
	}
	if (!c)
		c = zse_stream_take(h->e, 0, ~0ULL);
	zse_chunk_fits(h->e, c);
	zse_chunk_lose(h->e, c);
	zse_chunk_put(h->e, c);
}

/*
 * The age of a zone is that of all its pages, however many blocks these take;
 * and retired zones have no room.
 */
static void test_packed(void)
{
	struct zse_zone_info zi;
	struct zse_chunk *c;
	enum zse_refusal why;
	bool fits, finished, ok = true;
	struct zse_op op;
	struct host h = { 0 };
	struct zse_config cfg = config(&h);
	u32 i, retired;

	cfg.pack = cfg.write_unit = 16;
	cfg.nr_cpus = 4;
	cfg.zone_blocks *= cfg.pack;
	cfg.nr_slots = 2 * zse_max_slots(&cfg);
	h.e = zse_create(&cfg, &why);
	must(h.e && why == ZSE_OK);
	for (i = 0; i < 3; i++) {
		c = packed_chunk(&h, i * CHUNK, &fits);
		must(fits && zse_append_start(h.e, c, &op, 1));
		zse_append_done(h.e, c, &ok, c->offset, 2, &finished);
		must(ok && finished);
		zse_chunk_put(h.e, c);
	}
	/* They were written after 0, 8 and 16 pages; now are 24. */
	must(zse_get_zone(h.e, 0, &zi) && zi.age == 2 * CHUNK);

	h.e->most_live = 4 * CHUNK * cfg.pack + cfg.zone_blocks / 2;
	for (retired = 0; retired < 2; retired++) {
		h.e->nr_state[ZSE_ZONE_RETIRED] = retired;
		c = packed_chunk(&h, 3 * CHUNK, &fits);
		must(fits == !retired);
		zse_chunk_lose(h.e, c);
		zse_chunk_put(h.e, c);
	}
	h.e->nr_state[ZSE_ZONE_RETIRED] = 0;
	check_packing(&h, &cfg);
	check_packed_flush(&h, 16);
	check_packed_flush(&h, 19);
	check_packed_flush(&h, 4);
	zse_destroy(h.e);
}

static void test_settings(void)
{
	const struct znsage_policy *cpu = zse_builtin_policy("cpu");
	struct host h;
	int data;

	host_init(&h);
	must(zse_set_pace(h.e, 100) && zse_get_pace(h.e) == 100);
	must(!zse_set_pace(h.e, 101) && zse_get_pace(h.e) == 100);
	zse_set_victim(h.e, ZSE_VICTIM_AGE);
	must(zse_get_victim(h.e) == ZSE_VICTIM_AGE);
	zse_set_policy(h.e, cpu, &data);
	must(zse_get_policy(h.e) == cpu && znsage_private(h.e) == &data);
	must(!zse_builtin_policy("") && !zse_builtin_policy("cpus"));
	zse_destroy(h.e);
}

/* A high watermark that does not suit the new policy's streams is replaced. */
static void test_watermarks(void)
{
	struct host h;
	struct zse_config cfg = config(&h);
	enum zse_refusal why;
	struct zse_engine *e;
	u32 low, high, before;

	cfg.nr_zones = 200;
	cfg.nr_cpus = 4;
	cfg.stripe = 2;
	cfg.nr_slots = zse_max_slots(&cfg) / 2;
	e = zse_create(&cfg, &why);
	zse_get_watermarks(e, &before, &high);
	zse_destroy(e);

	cfg.gc_high = before + 1;
	e = zse_create(&cfg, &why);
	zse_set_policy(e, zse_builtin_policy("cpu"), NULL);
	zse_get_watermarks(e, &low, &high);
	must(low > before && high > low);
	zse_destroy(e);
}

static u32 key_place(struct zse_engine *e, const struct znsage_page *page)
{
	return znsage_stream_of(e, page->cgroup + 1);
}

static const struct znsage_policy policy_keys = {
	.name = "keys",
	.streams = ZNSAGE_NONE,
	.place = key_place,
};

/*
 * More keys than the table has places: keys in use are not replaced, and each key
 * keeps its stream, in the table or not.
 */
static void test_many_keys(void)
{
	struct znsage_page page = { 0 };
	struct zse_config cfg;
	struct zse_stats st;
	struct host h;
	enum zse_refusal why;
	u32 stream[20 * ZSE_KEYS], seen = 0, round, i;
	u64 words[ZSE_KEYS], key;

	cfg = config(&h);
	cfg.nr_zones = 200;
	cfg.max_active = 9;
	cfg.policy = &policy_keys;
	cfg.nr_slots = 100;
	h.e = zse_create(&cfg, &why);
	for (round = 0; round < 2; round++) {
		for (key = 0; key < 20 * ZSE_KEYS; key++) {
			page.cgroup = key;
			if (!round)
				stream[key] = zse_place(h.e, &page);
			must(zse_place(h.e, &page) == stream[key]);
			must(stream[key] < 3);
			seen |= 1 << stream[key];
			i = key % ZSE_KEYS;
			must(!round || words[i] == h.e->placement.keys[i].word);
		}
		for (i = 0; i < ZSE_KEYS; i++)
			words[i] = h.e->placement.keys[i].word;
	}
	must(seen == 7);
	zse_get_stats(h.e, &st);
	must(st.keys > ZSE_KEYS / 2 && st.keys <= ZSE_KEYS);
	must(st.streams == 3 && !st.policy_refused);
	zse_destroy(h.e);
}

/* A page of slot 0 that the host is to append. */
static void begin_append(struct host *h, struct zse_op *op)
{
	struct zse_chunk *c = zse_stream_begin(h->e, 0);

	c->born = 1;
	zse_chunk_add(h->e, c, 0, 0);
	must(!zse_stream_end(h->e, 0));
	c = zse_stream_take(h->e, 0, ~0ull);
	if (!zse_append_start(h->e, c, op, 1))
		zse_next_op(h->e, op, 1);
}

/* No command works from now on. Returns what swap-out fails with. */
static struct zse_op fail_all(struct host *h, struct zse_op op)
{
	bool ok, finished;

	while (op.kind != ZSE_OP_FAIL) {
		ok = false;
		if (op.kind == ZSE_OP_APPEND)
			zse_append_done(h->e, op.chunk, &ok, 0, 2, &finished);
		else if (op.kind == ZSE_OP_RESET)
			zse_reset_done(h->e, op.zone, false);
		else if (op.kind == ZSE_OP_FINISH)
			zse_finish_done(h->e, op.zone, false);
		if (!zse_next_op(h->e, &op, 2))
			abort();
	}
	return op;
}

/* Pages fail for want of a zone, or since their appends did. */
static void test_failed_pages(void)
{
	unsigned long flags;
	struct zse_op op;
	struct host h;
	u32 zone;

	host_init(&h);
	begin_append(&h, &op);
	op = fail_all(&h, op);
	must(op.nr == 1 && !op.no_room);
	zse_chunk_put(h.e, op.chunk);
	zse_destroy(h.e);

	host_init(&h);
	spin_lock_irqsave(&h.e->lock, flags);
	for (zone = 0; zone < NR_ZONES; zone++)
		zone_set_state(h.e, zone, ZSE_ZONE_RETIRED);
	spin_unlock_irqrestore(&h.e->lock, flags);
	begin_append(&h, &op);
	op = fail_all(&h, op);
	must(op.nr == 1 && op.no_room);
	zse_chunk_put(h.e, op.chunk);
	zse_destroy(h.e);
}

/* Age of blocks. */
static void test_life(void)
{
	struct zse_run run;
	struct host h;
	u32 slot, before;
	bool kick;

	host_init(&h);
	must(!zse_free(h.e, 0));
	for (slot = 0; slot < ZONE_BLOCKS; slot++)
		write_slot(&h, slot);
	must(zse_read_begin(h.e, 0, 1, &run, &kick) == ZSE_READ_BLOCK);
	before = zse_block_life(h.e, run.block);
	must(before <= ZONE_BLOCKS);
	for (; slot < 3 * ZONE_BLOCKS; slot++)
		write_slot(&h, slot);
	must(zse_block_life(h.e, run.block) == before + 2 * ZONE_BLOCKS);
	zse_read_end(h.e, run.block);
	zse_destroy(h.e);
}

/* ---- callbacks */

static u32 freed, begun, ended;

static void told_freed(struct zse_engine *e, u32 zone)
{
	must(zone < NR_ZONES);
	freed++;
}

static void told_cleaning(struct zse_engine *e, u32 zone, bool begins)
{
	must(zone < NR_ZONES);
	begun += begins;
	ended += !begins;
}

static u32 first_stream(struct zse_engine *e, const struct znsage_page *page)
{
	return 0;
}

static const struct znsage_policy listener = {
	.name = "listener",
	.streams = 1,
	.place = first_stream,
	.freed = told_freed,
	.cleaning = told_cleaning,
};

/* Policies hear of every death and victim, hosts of every state. */
static void test_events(void)
{
	struct zse_stats st;
	struct host h;

	host_init(&h);
	zse_set_policy(h.e, &listener, NULL);
	fill(&h, 9);
	zse_get_stats(h.e, &st);
	must(st.gc_zones && begun == st.gc_zones && ended == begun);
	must(freed == st.host_blocks + st.gc_blocks - st.live_blocks);
	must(h.events > st.zone_resets);
	zse_destroy(h.e);
}

/*
 * Dead zones are found without a scan: a zone without live blocks that nobody listed
 * stays full.
 */
static void test_dead_zones(void)
{
	struct zse_zone *other;
	struct host h;
	u32 slot, live;

	host_init(&h);
	for (slot = 0; slot < 3 * ZONE_BLOCKS; slot++)
		write_slot(&h, slot);
	flush(&h);
	other = &h.e->zones[1];
	must(other->state == ZSE_ZONE_FULL);
	live = zone_live(other);
	atomic_set(&other->live, 0);
	for (slot = 0; slot < ZONE_BLOCKS; slot++)
		zse_free(h.e, slot);
	work(&h);
	must(h.e->zones[0].state == ZSE_ZONE_EMPTY);
	must(other->state == ZSE_ZONE_FULL);
	atomic_set(&other->live, live);
	must(!zse_check(h.e, NULL, NULL));
	zse_destroy(h.e);
}

#define LONG_ZONE	(8 * ZSE_RESCHED)

static u32 rescheds;

static void count_resched(void)
{
	rescheds++;
}

/* GC lets others run while it reads out a long zone with a single live block. */
static void test_reading_out_is_preemptible(void)
{
	struct host h = { 0 };
	struct zse_config cfg = config(&h);
	enum zse_refusal why;
	u32 slot;

	cfg.zone_blocks = LONG_ZONE;
	cfg.nr_slots = zse_max_slots(&cfg);
	h.e = zse_create(&cfg, &why);
	if (!h.e)
		abort();
	for (slot = 0; slot < 3 * LONG_ZONE; slot++)
		write_slot(&h, slot);
	flush(&h);
	for (slot = 0; slot < LONG_ZONE - 1; slot++)
		zse_free(h.e, slot);
	must(h.e->zones[0].state == ZSE_ZONE_FULL);
	must(zse_set_watermarks(h.e, NR_ZONES - 2, NR_ZONES - 1));
	on_cond_resched = count_resched;
	work(&h);
	on_cond_resched = NULL;
	must(rescheds >= LONG_ZONE / ZSE_RESCHED);
	must(h.e->zones[0].state == ZSE_ZONE_EMPTY);
	zse_destroy(h.e);
}

/* zse_check() lets others run while it walks long zones. */
static void test_check_is_preemptible(void)
{
	struct host h = { 0 };
	struct zse_config cfg = config(&h);
	enum zse_refusal why;

	cfg.zone_blocks = LONG_ZONE;
	cfg.nr_slots = zse_max_slots(&cfg);
	h.e = zse_create(&cfg, &why);
	if (!h.e)
		abort();
	rescheds = 0;
	on_cond_resched = count_resched;
	must(!zse_check(h.e, NULL, NULL));
	on_cond_resched = NULL;
	/* Slots are walked three times. */
	must(rescheds >= 3 * (cfg.nr_slots / ZSE_RESCHED));
	/* It runs while swap-out is held back: it needs no memory. */
	callocs_left = 0;
	atomic_set(&h.e->zones[0].live, 1);
	must(zse_check(h.e, NULL, NULL) == 1);
	callocs_left = ~0u;
	zse_destroy(h.e);
}

int main(void)
{
	test_check();
	test_no_memory();
	test_append_limit();
	test_append_limit_of_units();
	test_questions();
	test_packed();
	test_settings();
	test_limits();
	test_watermarks();
	test_many_keys();
	test_failed_pages();
	test_life();
	test_past();
	test_events();
	test_dead_zones();
	test_reading_out_is_preemptible();
	test_check_is_preemptible();
	test_zones();
	printf("parts: %s\n", failures ? "FAILED" : "ok");
	return failures ? 1 : 0;
}
