// SPDX-License-Identifier: GPL-2.0
/*
 * The stress test's threads: the host and the device of an engine.
 *
 * Each slot has one writer thread and one freer thread, which race with each other
 * and with all readers. So versions of a slot only grow, and a reader knows the range
 * that its page must be in; see verify_read().
 */
#include <sched.h>
#include <time.h>

#include "stress.h"

#define READ_MAX	4	/* slots in a read */

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

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static bool stopped(const u32 *flag)
{
	return READ_ONCE(*flag);
}

void kick(struct test *t)
{
	pthread_mutex_lock(&t->lock);
	t->kicked = true;
	pthread_cond_signal(&t->cond);
	pthread_mutex_unlock(&t->lock);
}

/* Raise @p to @v. */
static void raise_to(u32 *p, u32 v)
{
	u32 old;

	do {
		old = READ_ONCE(*p);
	} while (old < v && cmpxchg(p, old, v) != old);
}

void fault(struct test *t, const char *what, u64 slot, u64 is, u64 want)
{
	fprintf(stderr, "%s: %s: slot %llu is %llu, want %llu\n", t->sc->name,
		what, (unsigned long long)slot, (unsigned long long)is,
		(unsigned long long)want);
	atomic_inc_return(&t->errors);
}

/* ---- commands to the device */

static void submit_append(struct test *t, const struct zse_op *op)
{
	struct request rq = {
		.kind = ZSE_OP_APPEND,
		.chunk = op->chunk,
		.zone = op->zone,
		.first = op->first,
		.nr = op->nr,
		.from = op->from,
		.blocks = op->blocks,
		.padding = op->padding,
	};

	device_submit(t->dev, &rq);
}

static void append(struct test *t, struct zse_chunk *c)
{
	struct zse_op op;

	if (t->sc->cfg.pack && !pack_chunk(t, c))
		return;
	if (zse_append_start(t->e, c, &op, now_ns()))
		submit_append(t, &op);
	else
		kick(t);
	if (zse_gc_due(t->e))
		kick(t);
}

static void fail_pages(struct test *t, const struct zse_op *op)
{
	atomic_add_return(op->nr, &t->failed_pages);
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
		.from = op->from,
		.blocks = op->blocks,
	};

	if (op->kind == ZSE_OP_APPEND)
		submit_append(t, op);
	else if (op->kind == ZSE_OP_FAIL)
		fail_pages(t, op);
	else
		device_submit(t->dev, &rq);
}

/* Append what waited for the appends of its stream. */
static void flush_due(struct test *t)
{
	u32 i, streams = zse_max_streams(&t->sc->cfg);

	for (i = 0; i < streams; i++) {
		struct zse_chunk *c = NULL;

		if (zse_stream_due(t->e, i))
			c = zse_stream_flush(t->e, i);
		if (c)
			append(t, c);
	}
}

void *worker(void *p)
{
	struct test *t = p;
	struct zse_op op;

	while (!stopped(&t->stop_all)) {
		pthread_mutex_lock(&t->lock);
		while (!t->kicked && !stopped(&t->stop_all))
			pthread_cond_wait(&t->cond, &t->lock);
		t->kicked = false;
		pthread_mutex_unlock(&t->lock);
		flush_due(t);
		while (zse_next_op(t->e, &op, now_ns()))
			do_op(t, &op);
	}
	return NULL;
}

/* ---- completions */

static bool fails(struct test *t, u64 *rng)
{
	const struct scenario *sc = t->sc;

	return sc->fail_one_in && !(xorshift(rng) % sc->fail_one_in) &&
	       device_may_fail(t->dev, sc->max_failures);
}

/* The page of an entry of @c. */
static u64 page_of(struct test *t, const struct zse_chunk *c, u32 i)
{
	const struct zse_entry *entry = &c->entries[i];

	return t->sc->cfg.pack ? t->packed[c->id][entry->at] :
				 t->buffers[c->id][entry->page];
}

static void complete_append(struct test *t, const struct request *rq, bool ok)
{
	struct zse_chunk *c = rq->chunk;
	u64 pages[rq->nr];
	bool gc = c->gc, finished, more;
	u32 offset, i;

	for (i = 0; i < rq->nr; i++)
		pages[i] = page_of(t, c, rq->first + i);
	if (t->sc->cfg.pack)
		offset = device_append(t->dev, rq->zone,
				       t->packed[c->id] + rq->from, rq->blocks,
				       rq->padding, ok);
	else
		offset = device_append(t->dev, rq->zone, pages, rq->nr,
				       rq->padding, ok);
	more = zse_append_done(t->e, c, &ok, offset, now_ns(), &finished);
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
			if (zse_gc_entry_failed(t->e, c, i))
				atomic_inc_return(&t->lost);
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

void *completer(void *p)
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
		} else if (rq.kind == ZSE_OP_READ && t->sc->cfg.pack) {
			complete_span(t, &rq, fails(t, &rng));
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

/* Keys: more than streams if the policy is "keys" or there are many streams. */
static u32 place(struct test *t, u32 cpu, u32 slot)
{
	bool keys = t->sc->streams > 3 ||
		    (t->sc->policy && t->sc->policy[0] == 'k');
	u32 past = READ_ONCE(t->pages[slot].past);
	struct znsage_page page = {
		.cgroup = slot % (keys ? 13 : 3) + 1,
		.cpu = cpu,
		.life = ZNSAGE_NONE,
		.usual = zse_usual_life(t->e, past),
	};

	return zse_place(t->e, &page);
}

/* The word that a version of a page repeats, or 0. */
static u64 filled_with(u32 version)
{
	return version % 8 ? 0 : version / 8 % 5 + 1;
}

/* Write a page of @slot that repeats @word; false if there is no room for that. */
static bool fill_slot(struct test *t, u32 slot, u32 version, u64 word)
{
	struct page_state *ps = &t->pages[slot];
	bool more = false;

	WRITE_ONCE(ps->submitted, version);
	if (!zse_fill(t->e, slot, word, &more))
		return false;
	raise_to(&ps->acked, version);
	if (more)
		kick(t);
	atomic_inc_return(&t->writes);
	return true;
}

/* Add a page of @slot to a stream; false if all chunks are in use. */
static bool write_slot(struct test *t, u32 cpu, u32 slot)
{
	struct page_state *ps = &t->pages[slot];
	u32 stream = place(t, cpu, slot), version = ps->submitted + 1, i;
	struct zse_chunk *c;

	if (filled_with(version))
		return fill_slot(t, slot, version, filled_with(version));
	c = zse_stream_begin(t->e, stream);

	if (!c) {
		zse_stream_end(t->e, stream);
		return false;
	}
	if (!c->nr)
		c->born = 1;
	/* The slot's tag names this buffer: fill it first. */
	i = c->nr;
	t->buffers[c->id][i] = make_page(slot, version);
	WRITE_ONCE(ps->submitted, version);
	if (zse_chunk_add(t->e, c, slot, READ_ONCE(ps->past)) != i)
		fault(t, "entry out of order", slot, i, i);
	c = zse_stream_end(t->e, stream);
	if (c)
		append(t, c);
	atomic_inc_return(&t->writes);
	return true;
}

void *writer(void *p)
{
	struct worker_arg *arg = p;
	struct test *t = arg->t;
	u64 rng = seed_for(2, arg->index);
	u32 own = (t->nr_slots - arg->index + NR_WRITERS - 1) / NR_WRITERS;

	while (!stopped(&t->stop_io)) {
		u32 nth = xorshift(&rng) % own, cpu = xorshift(&rng) % 8, slot;
		struct zse_chunk *c;
		u32 i, batch = 1 + xorshift(&rng) % 16;

		for (i = 0; i < batch; i++) {
			slot = (nth + i) % own * NR_WRITERS + arg->index;
			if (!write_slot(t, cpu, slot))
				break;
		}
		if (i < batch)
			sched_yield();
		/* The end of a plug. */
		c = zse_stream_flush(t->e, place(t, cpu, slot));
		if (c)
			append(t, c);
	}
	return NULL;
}

void flush_all(struct test *t)
{
	u32 i, streams = zse_max_streams(&t->sc->cfg);

	for (i = 0; i < streams; i++) {
		struct zse_chunk *c = zse_stream_take(t->e, i, ~0ull);

		if (c)
			append(t, c);
	}
}

void *flusher(void *p)
{
	struct test *t = p;
	struct timespec ms = { .tv_nsec = 1000000 };
	struct zse_stats st;
	u32 low, high, rounds = 0;

	while (!stopped(&t->stop_io)) {
		nanosleep(&ms, NULL);
		flush_all(t);
		/* Mostly all of the streams for lives, sometimes one. */
		zse_lives_apart(t->e, ++rounds % 8);
		/* Read statistics and change settings meanwhile. */
		zse_get_stats(t->e, &st);
		zse_get_watermarks(t->e, &low, &high);
		zse_set_watermarks(t->e, low, low + 1 + st.stalls % 2);
	}
	return NULL;
}

static u32 nr_policies(void)
{
	u32 nr = 0;

	while (zse_builtin_policies[nr])
		nr++;
	return nr;
}

/*
 * Changes the policy, with other streams that may be isolated, the rule for victims,
 * the pace and the longest append again and again.
 */
void *switcher(void *p)
{
	struct test *t = p;
	u64 rng = seed_for(5, 0);

	while (!stopped(&t->stop_io)) {
		struct timespec pause = {
			.tv_nsec = 1000 * (long)(xorshift(&rng) % 2000),
		};
		u32 policy = xorshift(&rng) % nr_policies();

		nanosleep(&pause, NULL);
		if (!zse_prepare(t->e, zse_builtin_policies[policy]))
			abort();
		zse_set_policy(t->e, zse_builtin_policies[policy], NULL);
		zse_set_victim(t->e, xorshift(&rng) % ZSE_NR_VICTIMS);
		zse_set_pace(t->e, xorshift(&rng) % 101);
		zse_limit_append(t->e, xorshift(&rng) %
				 (2 * t->sc->cfg.chunk_pages *
				  (t->sc->cfg.pack + 1)));
		kick(t);
		atomic_inc_return(&t->switches);
	}
	return NULL;
}

void free_slot(struct test *t, u32 slot)
{
	struct page_state *ps = &t->pages[slot];

	WRITE_ONCE(ps->freed, FREE_RUNS);
	zse_free(t->e, slot);
	/* The call freed a version that was submitted before. */
	WRITE_ONCE(ps->freed, READ_ONCE(ps->submitted));
}

void *freer(void *p)
{
	struct worker_arg *arg = p;
	struct test *t = arg->t;
	u64 rng = seed_for(3, arg->index);
	u32 own = t->nr_slots / NR_FREERS;

	while (!stopped(&t->stop_io)) {
		u32 nth = xorshift(&rng) % own;

		free_slot(t, nth * NR_FREERS + arg->index);
		atomic_inc_return(&t->frees);
		if (xorshift(&rng) % 4)
			sched_yield();
	}
	return NULL;
}

/* Is @word that of a version from @acked to @submitted? */
static bool was_filled(u64 word, u32 acked, u32 submitted)
{
	u32 v;

	for (v = acked; v <= submitted; v++)
		if (filled_with(v) == word)
			return true;
	return false;
}

/*
 * A read of @slot may return version @acked, loaded before the read, or a later one,
 * or zeros if the slot was freed. @page: the page, or the word that it repeats.
 */
static void verify_read(struct test *t, u32 slot, u32 acked,
			enum zse_read result, u64 page)
{
	const struct page_state *ps = &t->pages[slot];
	u32 submitted = READ_ONCE(ps->submitted), version = page_version(page);

	if (result == ZSE_READ_FILLED && page) {
		if (!was_filled(page, acked, submitted))
			fault(t, "a page of another word", slot, page, acked);
	} else if (result == ZSE_READ_FILLED) {
		if (READ_ONCE(ps->freed) < acked)
			fault(t, "zeros where a page was", slot, 0, acked);
	} else if (result == ZSE_READ_LOST) {
		if (!may_fail(t->sc))
			fault(t, "lost without an error", slot, 0, acked);
	} else if (page_slot(page) != slot) {
		fault(t, "page of another slot", slot, page_slot(page), slot);
	} else if (version > submitted || version < acked) {
		fault(t, "stale page", slot, version, acked);
	}
}

/* Read up to @max slots from @slot on; the device yields @delay times. */
static void read_run(struct test *t, u32 slot, u32 max, u32 delay)
{
	u32 acked[READ_MAX], i;
	struct zse_run run;
	bool more = false;
	enum zse_read r;
	u64 page;

	/* Where pages are packed, only the first one's length is known. */
	if (t->sc->cfg.pack)
		max = 1;
	for (i = 0; i < max; i++)
		acked[i] = READ_ONCE(t->pages[slot + i].acked);
	r = zse_read_begin(t->e, slot, max, &run, &more);
	if (r == ZSE_READ_BLOCK) {
		while (delay--)
			sched_yield();
		for (i = 0; i < run.nr; i++) {
			page = t->sc->cfg.pack ?
			       read_packed(t, slot, &run) :
			       device_read(t->dev, run.block + i);
			verify_read(t, slot + i, acked[i], r, page);
			WRITE_ONCE(t->pages[slot + i].past, zse_past(t->e, slot + i, run.block + i));
		}
		more |= zse_read_end(t->e, run.block);
	} else {
		run.nr = 1;
		if (r != ZSE_READ_BUSY)
			verify_read(t, slot, acked[0], r,
				    r == ZSE_READ_FILLED ? run.word : 0);
	}
	if (more)
		kick(t);
	atomic_add_return(run.nr, &t->reads);
}

void read_slot(struct test *t, u32 slot)
{
	read_run(t, slot, 1, 0);
}

void *reader(void *p)
{
	struct worker_arg *arg = p;
	struct test *t = arg->t;
	u64 rng = seed_for(4, arg->index);

	while (!stopped(&t->stop_io)) {
		u32 slot = xorshift(&rng) % t->nr_slots;
		u32 max = 1 + xorshift(&rng) % READ_MAX;

		if (max > t->nr_slots - slot)
			max = t->nr_slots - slot;
		read_run(t, slot, max, xorshift(&rng) % 64 ? 0 : 100);
	}
	return NULL;
}
