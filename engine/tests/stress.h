/* SPDX-License-Identifier: GPL-2.0 */
/* What the threads (jobs.c) and scenarios (stress.c) of the stress test share. */
#ifndef STRESS_H
#define STRESS_H

#include "device.h"

/* Each slot has one writer and one freer. */
#define NR_WRITERS	3
#define NR_FREERS	2

#define FREE_RUNS	(~0u)	/* value of page_state.freed, see there */

/* One run of the stress. */
struct scenario {
	const char *name;
	struct zse_config cfg;
	u32 percent;		/* of zse_max_slots() that is used; packed: may be above 100 */
	const char *policy;	/* NULL: one that answers nonsense */
	bool switches;		/* policies, victim rules and pace change */
	u32 streams;		/* that the policy must get; 0: any */
	u32 fail_one_in;	/* appends, reads of GC, resets, finishes; 0: none */
	u32 max_failures;
};

/**
 * struct page_state - what the test knows of a slot
 * @submitted: version that the slot's writer last gave to the engine
 * @acked:     version last acknowledged
 * @freed:     versions up to this one may be gone; FREE_RUNS during zse_free()
 * @past:      what the engine said that is to be remembered of its page
 */
struct page_state {
	u32 submitted;
	u32 acked;
	u32 freed;
	u32 past;
};

struct test {
	const struct scenario *sc;
	struct zse_engine *e;
	struct device *dev;
	struct page_state *pages;
	u64 **buffers;		/* of each chunk: pages as (slot, version) */
	u64 **packed;		/* of each chunk, where pages are packed: what it appends */
	u32 nr_slots;
	u32 stop_io;		/* writers, freers, readers */
	u32 stop_all;

	pthread_mutex_t lock;
	pthread_cond_t cond;	/* for the worker */
	bool kicked;

	/* Counted for the report; relaxed. */
	atomic_t writes, reads, frees, lost, failed_pages, switches, errors;
};

struct worker_arg {
	struct test *t;
	u32 index;
};

void fault(struct test *t, const char *what, u64 slot, u64 is, u64 want);
void kick(struct test *t);

/* Threads. The first three get the test, the others a worker_arg. */
void *worker(void *p);
void *flusher(void *p);
void *switcher(void *p);
void *completer(void *p);
void *writer(void *p);
void *freer(void *p);
void *reader(void *p);

/* jobs_packed.c */
u32 packed_most(const struct zse_config *cfg);
bool pack_chunk(struct test *t, struct zse_chunk *c);
void complete_span(struct test *t, const struct request *rq, bool fails);
u64 read_packed(struct test *t, u32 slot, const struct zse_run *run);

/* May pages be lost? */
static inline bool may_fail(const struct scenario *sc)
{
	return sc->fail_one_in || sc->percent > 100;
}

/* Steps of the threads, for the end of a scenario. */
void flush_all(struct test *t);
void free_slot(struct test *t, u32 slot);
void read_slot(struct test *t, u32 slot);

#endif /* STRESS_H */
