// SPDX-License-Identifier: GPL-2.0
/*
 * How swap-out scales with the tasks that compress. Sleeps take the place of the
 * compressor and of the device, so a machine of two CPUs shows what more would do.
 *
 *	bench-pack
 *
 * Prints a line for each number of tasks. 64 pages make a chunk, which shrinks to a
 * third; an append takes 100 us.
 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"

#define PACK		64
#define CHUNK		64
#define APPEND_NS	100000
#define CHUNKS_A_TASK	100
#define MOST_TASKS	8
#define IN_FLIGHT	64

static struct zse_engine *engine;
static u32 next_slot, wp[64];
static u32 page_us;

struct task {
	struct zse_op op[IN_FLIGHT];	/* appends of this task */
	u64 due[IN_FLIGHT];		/* when they end; 0: none */
	pthread_t thread;
};

static u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void end_append(struct task *t, u32 i)
{
	struct zse_chunk *c = t->op[i].chunk;
	bool ok = true, finished;
	u32 blocks = t->op[i].blocks + t->op[i].padding;
	u32 at = __atomic_fetch_add(&wp[t->op[i].zone], blocks,
				    __ATOMIC_RELAXED);

	t->due[i] = 0;
	zse_append_done(engine, c, &ok, at, now(), &finished);
	if (finished)
		zse_chunk_put(engine, c);
}

/* End the appends that are due, or all (@wait). */
static void end_appends(struct task *t, bool wait)
{
	u32 i;

	for (i = 0; i < IN_FLIGHT; i++) {
		while (wait && t->due[i] > now())
			usleep(50);
		if (t->due[i] && t->due[i] <= now())
			end_append(t, i);
	}
}

static void append(struct task *t, struct zse_chunk *c)
{
	struct zse_op op;
	u32 i;

	usleep(CHUNK * page_us);
	for (i = 0; i < CHUNK; i++)
		zse_chunk_pack(engine, c, i, PACK / 3);
	if (!zse_chunk_fits(engine, c) ||
	    !zse_append_start(engine, c, &op, now())) {
		fprintf(stderr, "bench-pack: the device is full\n");
		exit(1);
	}
	for (i = 0; t->due[i]; i++)
		;
	t->op[i] = op;
	t->due[i] = now() + APPEND_NS;
}

/* Add a page. Returns the chunk if it is full. */
static struct zse_chunk *add_page(struct task *t)
{
	struct zse_chunk *c;

	for (;;) {
		end_appends(t, false);
		c = zse_stream_begin(engine, 0);
		if (c)
			break;
		zse_stream_end(engine, 0);
		usleep(50);
	}
	if (!c->nr)
		c->born = now();
	zse_chunk_add(engine, c, __atomic_fetch_add(&next_slot, 1,
						    __ATOMIC_RELAXED), 0);
	return zse_stream_end(engine, 0);
}

static void *run(void *p)
{
	struct task *t = p;
	u32 i;

	for (i = 0; i < CHUNKS_A_TASK * CHUNK; i++) {
		struct zse_chunk *c = add_page(t);

		if (c)
			append(t, c);
	}
	end_appends(t, true);
	return NULL;
}

/* MB/s of @nr tasks. */
static double measure(u32 nr)
{
	static struct task tasks[MOST_TASKS];
	struct zse_config cfg = {
		/* One zone has room for all, so GC has nothing to do. */
		.nr_zones = 64, .zone_blocks = 32768 * PACK, .pack = PACK,
		.write_unit = PACK, .chunk_pages = CHUNK, .nr_chunks = 64,
		.nr_gc_chunks = 4, .reserve = 1, .nr_cpus = MOST_TASKS,
		.policy = zse_builtin_policy("single"),
	};
	enum zse_refusal why;
	u64 begin;
	u32 i;

	cfg.nr_slots = zse_max_slots(&cfg);
	engine = zse_create(&cfg, &why);
	if (!engine)
		exit(1);
	next_slot = 0;
	memset(wp, 0, sizeof(wp));
	begin = now();
	for (i = 0; i < nr; i++)
		pthread_create(&tasks[i].thread, NULL, run, &tasks[i]);
	for (i = 0; i < nr; i++)
		pthread_join(tasks[i].thread, NULL);
	begin = now() - begin;
	zse_destroy(engine);
	return 4096e3 * nr * CHUNKS_A_TASK * CHUNK / (double)begin;
}

int main(void)
{
	static const u32 costs[] = { 6, 20 }, numbers[] = { 1, 2, 4, 8 };
	double one = 0;
	u32 i, k;

	for (i = 0; i < 2; i++) {
		page_us = costs[i];
		for (k = 0; k < 4; k++) {
			double rate = measure(numbers[k]);

			if (!k)
				one = rate;
			printf("%2u us a page, %u tasks: %5.0f MB/s, %.2f times one\n",
			       page_us, numbers[k], rate, rate / one);
		}
	}
	return 0;
}
