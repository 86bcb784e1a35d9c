// SPDX-License-Identifier: GPL-2.0
/*
 * Many threads use the engine, as in the kernel: writers swap out, freers free,
 * readers swap in and verify, completion threads are the device, a flusher is the
 * deadline, one worker does what zse_next_op() says, and in one scenario a switcher
 * changes policies. The test is built plainly and with ThreadSanitizer and
 * AddressSanitizer: these find missing order, this file finds misplaced pages.
 */
#include <string.h>
#include <time.h>

#include "stress.h"

#define NR_READERS	2
#define NR_COMPLETERS	3

static void say(void *arg, const char *what, u32 where, u64 is, u64 want)
{
	fault(arg, what, where, is, want);
}

/* Wait until all writes end. Sanitizers are slow; more than 60 s is a stall. */
static bool drain(struct test *t)
{
	struct timespec ms = { .tv_nsec = 1000000 };
	u32 tries = 60000;

	while (tries--) {
		flush_all(t);
		kick(t);
		if (device_idle(t->dev) && zse_idle(t->e))
			return true;
		nanosleep(&ms, NULL);
	}
	fault(t, "stalled: chunks and zones never came to rest", 0, 0, 0);
	return false;
}

/*
 * A policy whose answers are mostly invalid: streams, classes and zones that do not
 * exist, zones that are not full. The engine counts them and uses defaults.
 */
static u32 nonsense(void)
{
	static u64 state;
	/* Knuth's MMIX generator: its upper bits are good. */
	u64 r = READ_ONCE(state) * 6364136223846793005ULL +
		1442695040888963407ULL;

	WRITE_ONCE(state, r);
	return (r >> 60) % 3 ? (u32)r : (u32)(r >> 32) % 64;
}

static u32 nonsense_place(struct zse_engine *e, const struct znsage_page *page)
{
	return nonsense();
}

static u32 nonsense_victim(struct zse_engine *e, u32 room)
{
	return nonsense();
}

static u32 nonsense_survivor(struct zse_engine *e, const struct znsage_zone *z)
{
	return nonsense();
}

static const struct znsage_policy policy_nonsense = {
	.name = "nonsense",
	.place = nonsense_place,
	.victim = nonsense_victim,
	.survivor = nonsense_survivor,
};

/* More keys than streams, which are not isolated. */
static u32 keys_place(struct zse_engine *e, const struct znsage_page *page)
{
	return znsage_stream_of(e, page->cgroup);
}

static const struct znsage_policy policy_keys = {
	.name = "keys",
	.streams = ZNSAGE_NONE,
	.place = keys_place,
};

static const struct znsage_policy *policy_named(const char *name)
{
	if (!name)
		return &policy_nonsense;
	return name[0] == 'k' ? &policy_keys : zse_builtin_policy(name);
}

static void check_at_rest(struct test *t)
{
	u64 appended = device_blocks(t->dev), counted;
	struct zse_stats st;
	u32 slot;

	zse_check(t->e, say, t);
	for (slot = 0; slot < t->nr_slots; slot++)
		read_slot(t, slot);

	/* Statistics count blocks of the device. */
	if (t->sc->cfg.pack)
		appended /= t->sc->cfg.pack;
	zse_get_stats(t->e, &st);
	counted = st.host_blocks + st.gc_blocks + st.padding_blocks;
	if (appended != counted)
		fault(t, "blocks appended", 0, counted, appended);
	if (t->sc->streams && !t->sc->switches &&
	    st.streams != t->sc->streams)
		fault(t, "streams", 0, st.streams, t->sc->streams);
	if (!!st.policy_refused != !t->sc->policy)
		fault(t, "answers refused", 0, st.policy_refused,
		      !t->sc->policy);
	if (!may_fail(t->sc) && (atomic_read(&t->failed_pages) || st.zones_retired))
		fault(t, "pages failed", 0, atomic_read(&t->failed_pages),
		      0);
}

static void check_all_freed(struct test *t)
{
	struct zse_stats st;
	u32 slot;

	for (slot = 0; slot < t->nr_slots; slot++)
		free_slot(t, slot);
	zse_check(t->e, say, t);
	zse_get_stats(t->e, &st);
	if (st.slots_used || st.live_blocks)
		fault(t, "something is left", 0, st.slots_used, st.live_blocks);
}

static void report(struct test *t, bool ok)
{
	struct zse_stats st;

	zse_get_stats(t->e, &st);
	printf("%s %s: %d writes, %d reads, %d frees, %d switches; %llu blocks by GC, %llu resets, %llu stalls, %llu errors\n",
	       ok ? "ok    " : "FAILED", t->sc->name, atomic_read(&t->writes),
	       atomic_read(&t->reads), atomic_read(&t->frees),
	       atomic_read(&t->switches), (unsigned long long)st.gc_blocks,
	       (unsigned long long)st.zone_resets,
	       (unsigned long long)st.stalls,
	       (unsigned long long)(st.write_errors + st.read_errors));
	fflush(stdout);
}

static void test_free(struct test *t)
{
	u32 i;

	for (i = 0; i < t->sc->cfg.nr_chunks + t->sc->cfg.nr_gc_chunks; i++)
		free(t->buffers[i]);
	for (i = 0; t->packed && i < t->sc->cfg.nr_chunks + t->sc->cfg.nr_gc_chunks; i++)
		free(t->packed[i]);
	free(t->packed);
	free(t->buffers);
	free(t->pages);
	device_destroy(t->dev);
	zse_destroy(t->e);
	pthread_cond_destroy(&t->cond);
	pthread_mutex_destroy(&t->lock);
}

static void test_init(struct test *t, const struct scenario *sc)
{
	u32 chunks = sc->cfg.nr_chunks + sc->cfg.nr_gc_chunks, i;
	struct zse_config cfg = sc->cfg;
	enum zse_refusal why;

	cfg.policy = policy_named(sc->policy);
	cfg.nr_slots = zse_max_slots(&cfg) / 100.0 * sc->percent;
	memset(t, 0, sizeof(*t));
	t->sc = sc;
	t->nr_slots = cfg.nr_slots;
	if (cfg.policy->isolates && zse_nr_streams(&cfg, cfg.policy) < 2) {
		fprintf(stderr, "%s: no streams to isolate\n", sc->name);
		exit(1);
	}
	t->e = zse_create(&cfg, &why);
	if (!t->e) {
		fprintf(stderr, "%s: refused, %d\n", sc->name, why);
		exit(1);
	}
	t->dev = device_create(&cfg);
	t->pages = must_alloc(cfg.nr_slots * sizeof(*t->pages));
	t->buffers = must_alloc(chunks * sizeof(*t->buffers));
	for (i = 0; i < chunks; i++)
		t->buffers[i] = must_alloc(cfg.chunk_pages * sizeof(u64));
	if (cfg.pack)
		t->packed = must_alloc(chunks * sizeof(*t->packed));
	for (i = 0; cfg.pack && i < chunks; i++)
		t->packed[i] = must_alloc(packed_most(&cfg) * sizeof(u64));
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->cond, NULL);
}

struct crew {
	pthread_t threads[16];
	struct worker_arg args[16];
	u32 nr;
};

static void hire(struct crew *crew, struct test *t, void *(*job)(void *),
		 u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		struct worker_arg *arg = &crew->args[crew->nr];

		*arg = (struct worker_arg){ .t = t, .index = i };
		if (pthread_create(&crew->threads[crew->nr++], NULL, job, arg))
			abort();
	}
}

static void wait_for(struct crew *crew)
{
	while (crew->nr)
		pthread_join(crew->threads[--crew->nr], NULL);
}

static bool run(const struct scenario *sc, double seconds)
{
	struct timespec time = { .tv_sec = (time_t)seconds };
	struct crew io = { .nr = 0 }, device = { .nr = 0 };
	pthread_t work, flush, policies;
	struct test t;
	bool ok;

	time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
	test_init(&t, sc);
	if (pthread_create(&work, NULL, worker, &t) ||
	    pthread_create(&flush, NULL, flusher, &t))
		abort();
	if (sc->switches && pthread_create(&policies, NULL, switcher, &t))
		abort();
	hire(&device, &t, completer, NR_COMPLETERS);
	hire(&io, &t, writer, NR_WRITERS);
	hire(&io, &t, freer, NR_FREERS);
	hire(&io, &t, reader, NR_READERS);

	nanosleep(&time, NULL);
	WRITE_ONCE(t.stop_io, 1);
	wait_for(&io);
	pthread_join(flush, NULL);
	if (sc->switches)
		pthread_join(policies, NULL);
	ok = drain(&t);

	WRITE_ONCE(t.stop_all, 1);
	kick(&t);
	pthread_join(work, NULL);
	device_stop(t.dev);
	wait_for(&device);
	if (ok) {
		check_at_rest(&t);
		check_all_freed(&t);
	}
	ok = !atomic_read(&t.errors) && !device_faults(t.dev);
	report(&t, ok);
	test_free(&t);
	return ok;
}

#define COMMON								\
	.nr_cpus = 4, .nr_chunks = 16, .nr_gc_chunks = 4, .reserve = 1

static const struct scenario scenarios[] = {
	{ .name = "one stream", .percent = 80,
	  .cfg = { COMMON, .nr_zones = 24, .zone_blocks = 64, .chunk_pages = 8,
		   .write_unit = 1 }, .policy = "single" },
	{ .name = "a stream for each CPU", .percent = 90,
	  .cfg = { COMMON, .nr_zones = 40, .zone_blocks = 32, .chunk_pages = 8,
		   .write_unit = 1 }, .policy = "cpu" },
	{ .name = "full device", .percent = 100,
	  .cfg = { COMMON, .nr_zones = 16, .zone_blocks = 32, .chunk_pages = 4,
		   .write_unit = 1 }, .policy = "cpu" },
	{ .name = "few open zones, write unit, finish", .percent = 90,
	  .cfg = { COMMON, .nr_zones = 40, .zone_blocks = 32, .chunk_pages = 8,
		   .write_unit = 4, .max_active = 4, .finish = true },
	  .policy = "cpu" },
	{ .name = "few chunks", .percent = 90,
	  .cfg = { .nr_zones = 24, .zone_blocks = 32, .chunk_pages = 4,
		   .write_unit = 1, .max_active = 2, .nr_chunks = 2,
		   .nr_gc_chunks = 1, .reserve = 1, .nr_cpus = 4 },
	  .policy = "cpu" },
	{ .name = "one open zone", .percent = 100,
	  .cfg = { COMMON, .nr_zones = 24, .zone_blocks = 32, .chunk_pages = 8,
		   .write_unit = 1, .max_active = 1, .pace = 50 },
	  .policy = "cpu" },
	{ .name = "one open zone, write unit, finish", .percent = 90,
	  .cfg = { COMMON, .nr_zones = 40, .zone_blocks = 32, .chunk_pages = 8,
		   .write_unit = 4, .max_active = 1, .finish = true },
	  .policy = "keys" },
	{ .name = "errors", .percent = 60, .fail_one_in = 200,
	  .max_failures = 6,
	  .cfg = { COMMON, .nr_zones = 40, .zone_blocks = 32, .chunk_pages = 8,
		   .write_unit = 1, .max_active = 6, .finish = true },
	  .policy = "cpu" },
	{ .name = "more keys than streams", .percent = 90,
	  .cfg = { COMMON, .nr_zones = 200, .zone_blocks = 32,
		   .chunk_pages = 8, .write_unit = 1, .max_active = 7,
		   .victim = ZSE_VICTIM_AGE }, .policy = "keys" },
	{ .name = "shares", .percent = 95,
	  .cfg = { COMMON, .nr_zones = 200, .zone_blocks = 32,
		   .chunk_pages = 8, .write_unit = 1, .max_active = 14,
		   .stripe = 2, .pace = 50 }, .policy = "cgroup" },
	{ .name = "shares of units, one lane of GC", .percent = 95,
	  .cfg = { COMMON, .nr_zones = 300, .zone_blocks = 16,
		   .chunk_pages = 8, .write_unit = 4, .max_active = 7 },
	  .policy = "cgroup" },
	{ .name = "policies that are switched", .percent = 90,
	  .cfg = { COMMON, .nr_zones = 200, .zone_blocks = 32,
		   .chunk_pages = 8, .write_unit = 2, .max_active = 14,
		   .stripe = 2 }, .policy = "cgroup", .switches = true },
	{ .name = "shares of three streams", .percent = 95,
	  .cfg = { COMMON, .nr_zones = 450, .zone_blocks = 32,
		   .chunk_pages = 8, .write_unit = 1, .max_active = 14,
		   .pace = 50 }, .policy = "cgroup", .streams = 3 },
	{ .name = "shares of ten streams, also switched", .percent = 95,
	  .cfg = { COMMON, .nr_zones = 640, .zone_blocks = 16,
		   .chunk_pages = 8, .write_unit = 1, .pace = 50 },
	  .policy = "cgroup", .streams = 10, .switches = true },
	{ .name = "classes of survivors, several lanes", .percent = 90,
	  .cfg = { COMMON, .nr_zones = 450, .zone_blocks = 32,
		   .chunk_pages = 2, .write_unit = 1, .max_active = 14,
		   .victim = ZSE_VICTIM_AGE }, .policy = "keys" },
	{ .name = "zones that take one append at a time", .percent = 80,
	  .cfg = { COMMON, .nr_zones = 100, .zone_blocks = 64,
		   .chunk_pages = 4, .write_unit = 1, .max_active = 14,
		   .serial = true } },
	{ .name = "a policy that answers nonsense", .percent = 90,
	  .cfg = { COMMON, .nr_zones = 200, .zone_blocks = 32,
		   .chunk_pages = 8, .write_unit = 1 } },
	{ .name = "packed pages", .percent = 100,
	  .cfg = { COMMON, .nr_zones = 40, .zone_blocks = 512,
		   .chunk_pages = 8, .pack = 16, .write_unit = 16,
		   .max_active = 14 }, .policy = "cpu" },
	{ .name = "packed pages, more than fit", .percent = 200,
	  .cfg = { COMMON, .nr_zones = 60, .zone_blocks = 512,
		   .chunk_pages = 4, .pack = 16, .write_unit = 16 },
	  .policy = "heat" },
	{ .name = "packed pages, errors", .percent = 80, .fail_one_in = 200,
	  .max_failures = 6,
	  .cfg = { COMMON, .nr_zones = 60, .zone_blocks = 512,
		   .chunk_pages = 4, .pack = 16, .write_unit = 16,
		   .max_active = 6, .finish = true }, .policy = "cpu" },
	{ .name = "heat, all of its streams", .percent = 90,
	  .cfg = { COMMON, .nr_zones = 450, .zone_blocks = 32,
		   .chunk_pages = 8, .write_unit = 1, .max_active = 14,
		   .victim = ZSE_VICTIM_COST_BENEFIT }, .policy = "heat" },
};

#define NR_SCENARIOS	(sizeof(scenarios) / sizeof(scenarios[0]))

/* usage: stress [SECONDS for each scenario] */
int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 3;
	u32 i, passed = 0;

	for (i = 0; i < NR_SCENARIOS; i++)
		passed += run(&scenarios[i], seconds);
	printf("%u passed, %u failed\n", passed, (u32)NR_SCENARIOS - passed);
	return passed == NR_SCENARIOS ? 0 : 1;
}
