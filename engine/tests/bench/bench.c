// SPDX-License-Identifier: GPL-2.0
/*
 * What swap-out, swap-in and free cost in the engine, by case. Prints a line of JSON
 * for each; crates/znsage-lab runs it, and bench/README.md says what is counted.
 *
 *	bench [--small] [--once] [--stream] [--pages N] [CASE...]
 *
 * --small: a device of small zones, for programs that count instructions
 * --once:  only the pass that is timed, which is measured() alone
 * --stream: the lock of the first stream takes the place of the engine lock
 * --pages: that the pass swaps out
 * CASE:    its name; without any, all cases
 *
 * out-64x12: one thread swaps out, in appends of 64 pages to 12 streams in turn.
 * out-64x12-victim: the same while GC has a victim open, so that its pace counts.
 * mix-64x12-2: two threads swap out, swap in and free, and a third one does GC.
 */
#include <sched.h>
#include <string.h>

#include "host.h"

#define BATCH		64	/* pages between looks at the clock */
#define BATCH_FREED	16	/* a fifth of the slots is then free */
#define PAGES		(1u << 20)

/* 32 GiB: the maps do not fit a CPU's caches, as those of real devices. */
#define ZONE_BLOCKS	8192
#define SMALL_ZONE	1024

/* Of the largest swap area. Swap-out alone needs room, as nothing is collected. */
#define OUT_PERCENT	60
#define MIX_PERCENT	90

struct bench_case {
	u32 append;		/* pages */
	u32 streams;
	bool victim;
	u32 threads;		/* 0: one that only swaps out */
};

static const struct bench_case cases[] = {
	{ 64, 12, false, 0 }, { 32, 12, false, 0 }, { 1, 12, false, 0 },
	{ 64, 64, false, 0 }, { 32, 64, false, 0 }, { 1, 64, false, 0 },
	{ 64, 12, true, 0 }, { 32, 12, true, 0 }, { 1, 12, true, 0 },
	{ 64, 64, true, 0 }, { 32, 64, true, 0 }, { 1, 64, true, 0 },
	{ 64, 1, false, 0 },
	{ 64, 12, false, 1 }, { 64, 12, false, 2 }, { 64, 12, false, 4 },
	{ 1, 12, false, 1 }, { 1, 12, false, 2 }, { 1, 12, false, 4 },
};

#define NR_CASES	(sizeof(cases) / sizeof(cases[0]))

/* Pages, and CPU time without that of waiting for GC. */
struct tally {
	u64 pages;
	u64 ns;
};

/* A thread that swaps. */
struct swapper {
	struct host *h;
	const struct bench_case *bc;
	u64 pages;		/* that it is to swap out */
	u64 random;
	u32 turn;		/* picks the stream of the next append */
	u64 waited;		/* CPU time */
	struct tally out, in, freed;
	struct meter locks;
};

/* Of a whole pass. */
struct result {
	struct tally out, in, freed;
	struct meter locks;	/* of swappers */
	struct meter gc_locks;	/* of the worker */
	u64 host_blocks, gc_blocks;
};

static u64 next_random(struct swapper *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random;
}

static u32 random_slot(struct swapper *s)
{
	return (u32)(next_random(s) % s->h->cfg.nr_slots);
}

/* ---- what a thread does ---- */

static void wait_for_room(struct swapper *s)
{
	u64 begin = meter_now(CLOCK_THREAD_CPUTIME_ID);

	if (!s->bc->threads) {
		fprintf(stderr, "bench: no room, and nothing is collected\n");
		exit(1);
	}
	sched_yield();
	s->waited += meter_now(CLOCK_THREAD_CPUTIME_ID) - begin;
}

/* Swap @nr random slots out, in appends to the streams in turn. */
static void swap_out(struct swapper *s, u32 nr)
{
	u32 i, stream = 0;

	for (i = 0; i < nr; i++) {
		u32 slot = random_slot(s);

		if (!(i % s->bc->append))
			stream = s->turn++ % s->bc->streams;
		while (!host_write(s->h, stream, slot))
			wait_for_room(s);
		if (!((i + 1) % s->bc->append))
			host_flush(s->h, stream);
	}
	s->out.pages += nr;
}

static void swap_in(struct swapper *s, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		s->in.pages += host_read(s->h, random_slot(s));
}

static void free_slots(struct swapper *s, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		host_free(s->h, random_slot(s));
	s->freed.pages += nr;
}

static void timed(struct swapper *s, struct tally *t,
		  void (*work)(struct swapper *s, u32 nr), u32 nr)
{
	u64 begin = meter_now(CLOCK_THREAD_CPUTIME_ID), waited = s->waited;

	work(s, nr);
	t->ns += meter_now(CLOCK_THREAD_CPUTIME_ID) - begin -
		 (s->waited - waited);
}

static void *mix(void *p)
{
	struct swapper *s = p;

	memset(&meter, 0, sizeof(meter));
	while (s->out.pages < s->pages) {
		timed(s, &s->out, swap_out, BATCH);
		timed(s, &s->in, swap_in, BATCH);
		timed(s, &s->freed, free_slots, BATCH_FREED);
	}
	s->locks = meter;
	return NULL;
}

/* Callgrind counts the instructions of this function. */
__attribute__((noinline, noclone)) static void measured(struct swapper *s)
{
	swap_out(s, (u32)s->pages);
}

/* ---- passes ---- */

static struct swapper swapper(struct host *h, const struct bench_case *bc,
			      u64 pages, u32 index)
{
	return (struct swapper){
		.h = h, .bc = bc, .pages = pages, .turn = index * 5,
		.random = 0x9e3779b97f4a7c15ULL * (index + 1),
	};
}

static void pass_out(struct host *h, const struct bench_case *bc, u64 pages,
		     struct result *r)
{
	struct swapper s = swapper(h, bc, pages, 0);
	u64 begin;

	memset(&meter, 0, sizeof(meter));
	begin = meter_now(CLOCK_THREAD_CPUTIME_ID);
	measured(&s);
	s.out.ns = meter_now(CLOCK_THREAD_CPUTIME_ID) - begin;
	r->out = s.out;
	r->locks = meter;
}

static void add(struct tally *to, const struct tally *t)
{
	to->pages += t->pages;
	to->ns += t->ns;
}

static void pass_mix(struct host *h, const struct bench_case *bc, u64 pages,
		     struct result *r)
{
	struct swapper swappers[64];
	pthread_t threads[64];
	u32 i;

	for (i = 0; i < bc->threads; i++) {
		swappers[i] = swapper(h, bc, pages / bc->threads, i);
		if (pthread_create(&threads[i], NULL, mix, &swappers[i]))
			abort();
	}
	for (i = 0; i < bc->threads; i++) {
		pthread_join(threads[i], NULL);
		add(&r->out, &swappers[i].out);
		add(&r->in, &swappers[i].in);
		add(&r->freed, &swappers[i].freed);
		meter_add(&r->locks, &swappers[i].locks);
	}
}

/* One pass, and what the engine counted meanwhile. */
static struct result pass(struct host *h, const struct bench_case *bc,
			  u64 pages)
{
	struct zse_stats before, after;
	struct result r = { 0 };

	zse_get_stats(h->e, &before);
	if (bc->threads) {
		host_start_worker(h);
		pass_mix(h, bc, pages, &r);
		host_stop_worker(h);
		r.gc_locks = h->locks;
	} else {
		pass_out(h, bc, pages, &r);
	}
	zse_get_stats(h->e, &after);
	r.host_blocks = after.host_blocks - before.host_blocks;
	r.gc_blocks = after.gc_blocks - before.gc_blocks;
	return r;
}

/* ---- cases ---- */

/*
 * Fill the swap area, then overwrite a sixteenth of it so that zones have dead
 * blocks; or so much that GC is at work.
 */
static void fill(struct host *h, const struct bench_case *bc)
{
	struct bench_case whole = { 64, bc->streams, false, bc->threads };
	struct swapper s = swapper(h, &whole, 0, 63);
	u32 slots = h->cfg.nr_slots, slot;

	if (bc->threads)
		host_start_worker(h);
	for (slot = 0; slot < slots; slot++)
		while (!host_write(h, slot / 64 % bc->streams, slot))
			wait_for_room(&s);
	swap_out(&s, bc->threads ? slots / 4 : slots / 16);
	if (bc->threads)
		host_stop_worker(h);
	if (bc->victim)
		host_open_victim(h);
}

static struct host *prepare(const struct bench_case *bc, bool small)
{
	struct host *h = host_create(bc->streams,
				     bc->threads ? MIX_PERCENT : OUT_PERCENT,
				     small ? SMALL_ZONE : ZONE_BLOCKS);

	fill(h, bc);
	return h;
}

static double ratio(u64 a, u64 b)
{
	return b ? (double)a / (double)b : 0;
}

static void say_pass(const struct bench_case *bc, const struct result *r)
{
	printf(",\"append\":%u,\"streams\":%u,\"victim\":%s,\"threads\":%u",
	       bc->append, bc->streams, bc->victim ? "true" : "false",
	       bc->threads ? bc->threads : 1);
	printf(",\"pages\":%llu,\"appends\":%llu",
	       (unsigned long long)r->out.pages,
	       (unsigned long long)r->locks.appends);
	printf(",\"out_ns\":%.1f", ratio(r->out.ns, r->out.pages));
	if (bc->threads)
		printf(",\"in_ns\":%.1f,\"free_ns\":%.1f,\"waf\":%.2f,\"gc_takes\":%.2f",
		       ratio(r->in.ns, r->in.pages),
		       ratio(r->freed.ns, r->freed.pages),
		       ratio(r->host_blocks + r->gc_blocks, r->host_blocks),
		       ratio(r->gc_locks.takes, r->gc_locks.appends));
	printf(",\"takes\":%.3f,\"stream_takes\":%.3f,\"contended\":%.4f",
	       ratio(r->locks.takes, r->locks.appends),
	       ratio(r->locks.stream_takes, r->locks.appends),
	       ratio(r->locks.contended, r->locks.takes));
}

/* The second pass times holds of the engine lock, which slows down the pages. */
static void say_holds(struct host *h, const struct bench_case *bc, u64 pages)
{
	struct result r;

	meter_time_holds(true);
	r = pass(h, bc, pages);
	printf(",\"held_ns\":%.1f", meter_hold_ns(&r.locks) *
	       ratio(r.locks.takes, r.locks.appends));
	meter_time_holds(false);
}

static void say_each(const char *what, const u64 *nr, u64 appends)
{
	static const char *const names[NR_LINES_OF] = {
		"engine", "streams", "chunks", "zones", "maps",
	};
	u32 i;

	printf(",\"%s\":{", what);
	for (i = 0; i < NR_LINES_OF; i++)
		printf("%s\"%s\":%.2f", i ? "," : "", names[i],
		       ratio(nr[i], appends));
	printf("}");
}

static void say_lines(struct host *h, const struct bench_case *bc, u64 pages)
{
	struct result r;

	lines_begin(h->e);
	r = pass(h, bc, pages);
	lines_end();
	printf(",\"locked\":%.2f", ratio(lines.locked, r.locks.appends));
	say_each("written", lines.written, r.locks.appends);
	say_each("read", lines.read, r.locks.appends);
}

struct options {
	bool small, once, stream;
	u64 pages;
};

static void run(const char *name, const struct bench_case *bc,
		const struct options *o)
{
	struct host *h;
	struct result r;

	if (bc->threads && lines_can_count())
		return;
	h = prepare(bc, o->small);
	if (o->stream)
		meter_engine_lock = &h->e->streams[0].lock;
	printf("{\"case\":\"%s\"", name);
	if (lines_can_count()) {
		say_lines(h, bc, o->pages);
	} else {
		r = pass(h, bc, o->pages);
		say_pass(bc, &r);
		if (!o->once)
			say_holds(h, bc, o->pages / 4);
	}
	printf("}\n");
	fflush(stdout);
	host_destroy(h);
}

static bool is_chosen(const char *name, char **words, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (!strcmp(name, words[i]))
			return true;
	return !nr;
}

static void name_case(const struct bench_case *bc, char *name, size_t size)
{
	if (bc->threads)
		snprintf(name, size, "mix-%ux%u-%u", bc->append, bc->streams,
			 bc->threads);
	else
		snprintf(name, size, "out-%ux%u%s", bc->append, bc->streams,
			 bc->victim ? "-victim" : "");
}

/* Returns where the cases begin; exits if it does not know an option. */
static int parse(int argc, char **argv, struct options *o)
{
	int i;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--small")) {
			o->small = true;
		} else if (!strcmp(argv[i], "--once")) {
			o->once = true;
		} else if (!strcmp(argv[i], "--stream")) {
			o->stream = true;
		} else if (!strcmp(argv[i], "--pages") && i + 1 < argc) {
			o->pages = strtoull(argv[++i], NULL, 10);
		} else {
			fprintf(stderr, "bench: what is %s?\n", argv[i]);
			exit(2);
		}
	}
	return i;
}

int main(int argc, char **argv)
{
	struct options o = { .pages = PAGES };
	int first = parse(argc, argv, &o);
	bool any = false;
	char name[64];
	u32 i;

	for (i = 0; i < NR_CASES; i++) {
		name_case(&cases[i], name, sizeof(name));
		if (!is_chosen(name, argv + first, argc - first))
			continue;
		any = true;
		run(name, &cases[i], &o);
	}
	if (!any)
		fprintf(stderr, "bench: no such case\n");
	return any ? 0 : 2;
}
