// SPDX-License-Identifier: GPL-2.0
/*
 * Many threads at the engine, as in the kernel: writers swap out, freers free,
 * readers swap in and look at what they get, completion threads are the
 * device, a flusher is the deadline, one worker does what zse_next_op() says.
 * Built for ThreadSanitizer and AddressSanitizer besides plainly; those say
 * whether the engine orders what it must, this file says whether every page
 * is where it should be.
 *
 * Who may do what to a slot: each slot has one writer thread and one freer
 * thread, which race with each other and with everybody's reads. Versions of
 * a slot therefore grow, and a reader knows between which two its page must
 * be; see verify_read().
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "device.h"

#define NR_WRITERS	3
#define NR_FREERS	2
#define NR_READERS	2
#define NR_COMPLETERS	3
#define FREE_RUNS	(~0u)	/* value of struct page's freed, see there */

/* One run of the stress. */
struct scenario {
	const char *name;
	struct zse_config cfg;
	u32 percent;		/* of zse_max_slots() that is used */
	u32 fail_one_in;	/* appends, reads of GC, resets, finishes; 0: none */
	u32 max_failures;
};

/**
 * struct page_state - what the test knows of a slot
 * @submitted: version last handed to the engine; by the slot's writer
 * @acked:     version last acknowledged
 * @freed:     no version up to this one need be there; FREE_RUNS while a
 *	       call of zse_free() is under way
 */
struct page_state {
	u32 submitted;
	u32 acked;
	u32 freed;
};

struct test {
	const struct scenario *sc;
	struct zse_engine *e;
	struct device *dev;
	struct page_state *pages;
	u64 **buffers;		/* of each chunk: pages as (slot, version) */
	u32 nr_slots;
	u32 stop_io;		/* writers, freers, readers */
	u32 stop_all;

	pthread_mutex_t lock;
	pthread_cond_t cond;	/* for the worker */
	bool kicked;

	/* Counted for the report; relaxed. */
	u32 writes, reads, frees, lost, failed_pages, errors;
};

struct worker_arg {
	struct test *t;
	u32 index;
};

static u64 xorshift(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static u64 seed_for(u32 kind, u32 index)
{
	return 0x9e3779b97f4a7c15ull * (kind * 64 + index + 1);
}

static bool stopped(const u32 *flag)
{
	return zp_load(flag);
}

static void kick(struct test *t)
{
	pthread_mutex_lock(&t->lock);
	t->kicked = true;
	pthread_cond_signal(&t->cond);
	pthread_mutex_unlock(&t->lock);
}

/* Raise @p to @v. */
static void raise_to(u32 *p, u32 v)
{
	u32 old = zp_load(p);

	while (old < v && !zp_cas(p, old, v))
		old = zp_load(p);
}

static void fault(struct test *t, const char *what, u64 slot, u64 is, u64 want)
{
	fprintf(stderr, "%s: %s: slot %llu is %llu, want %llu\n", t->sc->name,
		what, (unsigned long long)slot, (unsigned long long)is,
		(unsigned long long)want);
	zp_add(&t->errors, 1);
}

/* ---- what the worker and submitters ask of the device */

static void submit_append(struct test *t, const struct zse_op *op)
{
	struct request rq = {
		.kind = ZSE_OP_APPEND,
		.chunk = op->chunk,
		.zone = op->zone,
		.first = op->first,
		.nr = op->nr,
		.padding = op->padding,
	};

	device_submit(t->dev, &rq);
}

static void append(struct test *t, struct zse_chunk *c)
{
	struct zse_op op;

	if (zse_append_start(t->e, c, &op))
		submit_append(t, &op);
	else
		kick(t);
	if (zse_gc_due(t->e))
		kick(t);
}

static void fail_pages(struct test *t, const struct zse_op *op)
{
	zp_add(&t->failed_pages, op->nr);
	if (zse_chunk_put(t->e, op->chunk))
		kick(t);
}

static void do_op(struct test *t, const struct zse_op *op)
{
	struct request rq = {
		.kind = op->kind,
		.chunk = op->chunk,
		.zone = op->zone,
		.nr = op->nr,
	};

	if (op->kind == ZSE_OP_APPEND)
		submit_append(t, op);
	else if (op->kind == ZSE_OP_FAIL)
		fail_pages(t, op);
	else
		device_submit(t->dev, &rq);
}

static void *worker(void *p)
{
	struct test *t = p;
	struct zse_op op;

	while (!stopped(&t->stop_all)) {
		pthread_mutex_lock(&t->lock);
		while (!t->kicked && !stopped(&t->stop_all))
			pthread_cond_wait(&t->cond, &t->lock);
		t->kicked = false;
		pthread_mutex_unlock(&t->lock);
		while (zse_next_op(t->e, &op))
			do_op(t, &op);
	}
	return NULL;
}

/* ---- the device answers */

static bool fails(struct test *t, u64 *rng)
{
	const struct scenario *sc = t->sc;

	return sc->fail_one_in && !(xorshift(rng) % sc->fail_one_in) &&
	       device_may_fail(t->dev, sc->max_failures);
}

static void complete_append(struct test *t, const struct request *rq, bool ok)
{
	struct zse_chunk *c = rq->chunk;
	const u64 *buffers = t->buffers[c->id];
	u64 pages[rq->nr];
	bool gc = c->gc, finished, more;
	u32 offset, i;

	for (i = 0; i < rq->nr; i++)
		pages[i] = buffers[c->entries[rq->first + i].page];
	offset = device_append(t->dev, rq->zone, pages, rq->nr, rq->padding,
			       ok);
	more = zse_append_done(t->e, c, ok, offset, &finished);
	for (i = 0; ok && !gc && i < rq->nr; i++)
		raise_to(&t->pages[page_slot(pages[i])].acked,
			 page_version(pages[i]));
	if (finished)
		more |= zse_chunk_put(t->e, c);
	if (more)
		kick(t);
}

static void complete_gc_read(struct test *t, const struct request *rq, u64 *rng)
{
	struct zse_chunk *c = rq->chunk;
	u32 i;

	for (i = 0; i < rq->nr; i++) {
		const struct zse_entry *entry = &c->entries[i];
		u64 page = device_read(t->dev, entry->expect);

		if (fails(t, rng)) {
			if (zse_gc_entry_lost(t->e, c, i))
				zp_add(&t->lost, 1);
			continue;
		}
		if (page_slot(page) != entry->slot)
			fault(t, "GC read another page", entry->slot,
			      page_slot(page), entry->slot);
		t->buffers[c->id][entry->page] = page;
	}
	if (zse_gc_read_done(t->e, c))
		kick(t);
}

static void *completer(void *p)
{
	struct worker_arg *arg = p;
	struct test *t = arg->t;
	u64 rng = seed_for(1, arg->index);
	struct request rq;

	while (device_next(t->dev, xorshift(&rng), &rq)) {
		bool ok = rq.kind == ZSE_OP_READ || !fails(t, &rng);
		bool more = false;

		if (rq.kind == ZSE_OP_APPEND) {
			complete_append(t, &rq, ok);
		} else if (rq.kind == ZSE_OP_READ) {
			complete_gc_read(t, &rq, &rng);
		} else if (rq.kind == ZSE_OP_RESET) {
			device_reset(t->dev, rq.zone);
			more = zse_reset_done(t->e, rq.zone, ok);
		} else {
			more = zse_finish_done(t->e, rq.zone, ok);
		}
		if (more)
			kick(t);
		device_end(t->dev);
	}
	return NULL;
}

/* ---- swap-out, free, swap-in */

/* Add a page of @slot to a stream; false if all chunks are in use. */
static bool write_slot(struct test *t, u32 cpu, u32 slot)
{
	struct page_state *ps = &t->pages[slot];
	u32 stream = zse_place(t->e, cpu), version = ps->submitted + 1, i;
	unsigned long flags;
	struct zse_chunk *c = zse_stream_begin(t->e, stream, &flags);

	if (!c) {
		zse_stream_end(t->e, stream, &flags);
		return false;
	}
	if (!c->nr)
		c->born = 1;
	/* The tag gives the entry's buffer its owner: fill it before. */
	i = c->nr;
	t->buffers[c->id][i] = make_page(slot, version);
	zp_store(&ps->submitted, version);
	if (zse_chunk_add(t->e, c, slot) != i)
		fault(t, "entry out of order", slot, i, i);
	c = zse_stream_end(t->e, stream, &flags);
	if (c)
		append(t, c);
	zp_add(&t->writes, 1);
	return true;
}

static void *writer(void *p)
{
	struct worker_arg *arg = p;
	struct test *t = arg->t;
	u64 rng = seed_for(2, arg->index);
	u32 own = (t->nr_slots - arg->index + NR_WRITERS - 1) / NR_WRITERS;

	while (!stopped(&t->stop_io)) {
		u32 nth = xorshift(&rng) % own, cpu = xorshift(&rng) % 8;
		struct zse_chunk *c;
		u32 i, batch = 1 + xorshift(&rng) % 16;

		for (i = 0; i < batch; i++)
			if (!write_slot(t, cpu, (nth + i) % own * NR_WRITERS +
						arg->index))
				break;
		if (i < batch)
			sched_yield();
		/* The end of a plug. */
		c = zse_stream_take(t->e, zse_place(t->e, cpu), true, ~0ull);
		if (c)
			append(t, c);
	}
	return NULL;
}

static void flush_all(struct test *t)
{
	u32 i, streams = zse_nr_streams(&t->sc->cfg);

	for (i = 0; i < streams; i++) {
		struct zse_chunk *c = zse_stream_take(t->e, i, false, ~0ull);

		if (c)
			append(t, c);
	}
}

static void *flusher(void *p)
{
	struct test *t = p;
	struct timespec ms = { .tv_nsec = 1000000 };
	struct zse_stats st;
	u32 low, high;

	while (!stopped(&t->stop_io)) {
		nanosleep(&ms, NULL);
		flush_all(t);
		/* Somebody also looks at the statistics and turns knobs. */
		zse_get_stats(t->e, &st);
		zse_get_watermarks(t->e, &low, &high);
		zse_set_watermarks(t->e, low, low + 1 + st.stalls % 2);
	}
	return NULL;
}

static void free_slot(struct test *t, u32 slot)
{
	struct page_state *ps = &t->pages[slot];

	zp_store(&ps->freed, FREE_RUNS);
	zse_free(t->e, slot);
	/* Whatever the call hit had been submitted before. */
	zp_store(&ps->freed, zp_load(&ps->submitted));
}

static void *freer(void *p)
{
	struct worker_arg *arg = p;
	struct test *t = arg->t;
	u64 rng = seed_for(3, arg->index);
	u32 own = t->nr_slots / NR_FREERS;

	while (!stopped(&t->stop_io)) {
		u32 nth = xorshift(&rng) % own;

		free_slot(t, nth * NR_FREERS + arg->index);
		zp_add(&t->frees, 1);
		if (xorshift(&rng) % 4)
			sched_yield();
	}
	return NULL;
}

/*
 * What a read of @slot may give. @acked was looked at before: that version or
 * a later one, or zeros if it was freed.
 */
static void verify_read(struct test *t, u32 slot, u32 acked,
			enum zse_read result, u64 page)
{
	const struct page_state *ps = &t->pages[slot];
	u32 submitted = zp_load(&ps->submitted), version = page_version(page);

	if (result == ZSE_READ_ZERO) {
		if (zp_load(&ps->freed) < acked)
			fault(t, "zeros where a page was", slot, 0, acked);
	} else if (result == ZSE_READ_LOST) {
		if (!t->sc->fail_one_in)
			fault(t, "lost without an error", slot, 0, acked);
	} else if (page_slot(page) != slot) {
		fault(t, "page of another slot", slot, page_slot(page), slot);
	} else if (version > submitted || version < acked) {
		fault(t, "stale page", slot, version, acked);
	}
}

static void read_slot(struct test *t, u32 slot, u32 delay)
{
	u32 acked = zp_load(&t->pages[slot].acked), block = 0;
	bool more = false;
	enum zse_read r = zse_read_begin(t->e, slot, &block, &more);
	u64 page = 0;

	if (r == ZSE_READ_BLOCK) {
		while (delay--)
			sched_yield();
		page = device_read(t->dev, block);
		more |= zse_read_end(t->e, block);
	}
	if (r != ZSE_READ_BUSY)
		verify_read(t, slot, acked, r, page);
	if (more)
		kick(t);
	zp_add(&t->reads, 1);
}

static void *reader(void *p)
{
	struct worker_arg *arg = p;
	struct test *t = arg->t;
	u64 rng = seed_for(4, arg->index);

	while (!stopped(&t->stop_io))
		read_slot(t, xorshift(&rng) % t->nr_slots,
			  xorshift(&rng) % 64 ? 0 : 100);
	return NULL;
}

/* ---- a scenario, from start to end */

static void say(void *arg, const char *what, u32 where, u64 is, u64 want)
{
	fault(arg, what, where, is, want);
}

/* All writes end. Up to 60 s: a sanitizer is slow, a stall is for ever. */
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

static void check_at_rest(struct test *t)
{
	struct zse_stats st;
	u32 slot;

	zse_check(t->e, say, t);
	for (slot = 0; slot < t->nr_slots; slot++)
		read_slot(t, slot, 0);

	zse_get_stats(t->e, &st);
	if (device_blocks(t->dev) !=
	    st.host_blocks + st.gc_blocks + st.padding_blocks)
		fault(t, "blocks appended", 0,
		      st.host_blocks + st.gc_blocks + st.padding_blocks,
		      device_blocks(t->dev));
	if (!t->sc->fail_one_in && (t->failed_pages || st.zones_retired))
		fault(t, "pages failed", 0, t->failed_pages, 0);
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
	printf("%s %s: %u writes, %u reads, %u frees; %llu blocks by GC, %llu resets, %llu stalls, %llu errors\n",
	       ok ? "ok    " : "FAILED", t->sc->name, t->writes, t->reads,
	       t->frees, (unsigned long long)st.gc_blocks,
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

	cfg.nr_slots = zse_max_slots(&cfg) / 100.0 * sc->percent;
	memset(t, 0, sizeof(*t));
	t->sc = sc;
	t->nr_slots = cfg.nr_slots;
	t->e = zse_create(&cfg, &why);
	if (!t->e) {
		fprintf(stderr, "%s: refused, %d\n", sc->name, why);
		exit(1);
	}
	t->dev = device_create(&cfg);
	t->pages = must_alloc(cfg.nr_slots * sizeof(*t->pages));
	t->buffers = must_alloc(chunks * sizeof(*t->buffers));
	for (i = 0; i < chunks; i++)
		t->buffers[i] = must_alloc(cfg.chunk_blocks * sizeof(u64));
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
	pthread_t work, flush;
	struct test t;
	bool ok;

	time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
	test_init(&t, sc);
	if (pthread_create(&work, NULL, worker, &t) ||
	    pthread_create(&flush, NULL, flusher, &t))
		abort();
	hire(&device, &t, completer, NR_COMPLETERS);
	hire(&io, &t, writer, NR_WRITERS);
	hire(&io, &t, freer, NR_FREERS);
	hire(&io, &t, reader, NR_READERS);

	nanosleep(&time, NULL);
	zp_store(&t.stop_io, 1);
	wait_for(&io);
	pthread_join(flush, NULL);
	ok = drain(&t);

	zp_store(&t.stop_all, 1);
	kick(&t);
	pthread_join(work, NULL);
	device_stop(t.dev);
	wait_for(&device);
	if (ok) {
		check_at_rest(&t);
		check_all_freed(&t);
	}
	ok = !t.errors && !device_faults(t.dev);
	report(&t, ok);
	test_free(&t);
	return ok;
}

#define COMMON								\
	.nr_cpus = 4, .nr_chunks = 16, .nr_gc_chunks = 4, .reserve = 1

static const struct scenario scenarios[] = {
	{ .name = "one stream", .percent = 80,
	  .cfg = { COMMON, .nr_zones = 24, .zone_blocks = 64, .chunk_blocks = 8,
		   .write_unit = 1, .policy = ZSE_POLICY_SINGLE } },
	{ .name = "a stream for each CPU", .percent = 90,
	  .cfg = { COMMON, .nr_zones = 40, .zone_blocks = 32, .chunk_blocks = 8,
		   .write_unit = 1, .policy = ZSE_POLICY_CPU } },
	{ .name = "full device", .percent = 100,
	  .cfg = { COMMON, .nr_zones = 16, .zone_blocks = 32, .chunk_blocks = 4,
		   .write_unit = 1, .policy = ZSE_POLICY_CPU } },
	{ .name = "few open zones, write unit, finish", .percent = 90,
	  .cfg = { COMMON, .nr_zones = 40, .zone_blocks = 32, .chunk_blocks = 8,
		   .write_unit = 4, .max_active = 4, .finish = true,
		   .policy = ZSE_POLICY_CPU } },
	{ .name = "few chunks", .percent = 90,
	  .cfg = { .nr_zones = 24, .zone_blocks = 32, .chunk_blocks = 4,
		   .write_unit = 1, .max_active = 2, .nr_chunks = 2,
		   .nr_gc_chunks = 1, .reserve = 1, .nr_cpus = 4,
		   .policy = ZSE_POLICY_CPU } },
	{ .name = "errors", .percent = 60, .fail_one_in = 200,
	  .max_failures = 6,
	  .cfg = { COMMON, .nr_zones = 40, .zone_blocks = 32, .chunk_blocks = 8,
		   .write_unit = 1, .max_active = 6, .finish = true,
		   .policy = ZSE_POLICY_CPU } },
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
