/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The stress test: what its threads (jobs.c) and its scenarios (stress.c)
 * share.
 */
#ifndef STRESS_H
#define STRESS_H

#include "device.h"

/* Writers and freers share the slots out among themselves. */
#define NR_WRITERS	3
#define NR_FREERS	2

#define FREE_RUNS	(~0u)	/* value of page_state.freed, see there */

/* One run of the stress. */
struct scenario {
	const char *name;
	struct zse_config cfg;
	u32 percent;		/* of zse_max_slots() that is used */
	const char *policy;	/* NULL: one that answers nonsense */
	bool switches;		/* to other policies and rules for victims */
	u32 streams;		/* that the policy is to get; 0: any */
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
	u32 writes, reads, frees, lost, failed_pages, switches, errors;
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

/* Steps of theirs, for the end of a scenario. */
void flush_all(struct test *t);
void free_slot(struct test *t, u32 slot);
void read_slot(struct test *t, u32 slot);

#endif /* STRESS_H */
