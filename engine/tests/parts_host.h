/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A host of the engine in one thread, whose device does at once what it is told
 * to, and how a test of a part says what must be.
 */
#ifndef PARTS_HOST_H
#define PARTS_HOST_H

#include "internal.h"

#define NR_ZONES	24
#define ZONE_BLOCKS	32
#define CHUNK		8

/* Findings of all tests. */
extern u32 failures;

#define must(cond) must_at((cond), #cond, __func__, __LINE__)

void must_at(bool cond, const char *what, const char *where, int line);

struct host {
	struct zse_engine *e;
	u32 wp[NR_ZONES];
	/* What the engine told. */
	const char *state[NR_ZONES];
	u32 events, asked;
	/* What in_memory() is to answer: yes for even slots. */
	bool cached;
	/* It frees the slots that it is asked for, too late to be of use. */
	bool frees;
};

struct zse_config config(struct host *h);
void host_init(struct host *h);

/* Does what the engine has to do, to the end. */
void work(struct host *h);

void write_slot(struct host *h, u32 slot);
void flush(struct host *h);
u32 nr_slots(const struct host *h);

/* All slots, and then every third again and again, so that GC has to work. */
void fill(struct host *h, u32 rounds);

/* parts_check.c */
void test_check(void);

#endif
