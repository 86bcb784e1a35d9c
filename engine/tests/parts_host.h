/* SPDX-License-Identifier: GPL-2.0 */
/* A single-threaded host whose device completes every command at once; assertions. */
#ifndef PARTS_HOST_H
#define PARTS_HOST_H

#include "api.h"

#define NR_ZONES	24
#define MOST_ZONES	4096
#define ZONE_BLOCKS	32
#define CHUNK		8

/* Failed assertions of all tests. */
extern u32 failures;

#define must(cond) must_at((cond), #cond, __func__, __LINE__)

void must_at(bool cond, const char *what, const char *where, int line);

struct host {
	struct zse_engine *e;
	u32 wp[MOST_ZONES];
	/* What the engine reported. */
	const char *state[MOST_ZONES];
	u32 events;
	/* Most blocks of an append; 0: not looked at. */
	u32 longest;
};

struct zse_config config(struct host *h);
void host_init(struct host *h);

/* Do an append, which ends at once. */
void host_append(struct host *h, const struct zse_op *op);

/* Do operations of the engine until there are none. */
void work(struct host *h);

void write_slot(struct host *h, u32 slot);
void write_slot_past(struct host *h, u32 slot, u8 past);
void flush(struct host *h);
u32 nr_slots(const struct host *h);

/* Write all slots, then every third again and again, so that GC has to work. */
void fill(struct host *h, u32 rounds);

/* parts_limits.c */
void test_limits(void);

/* parts_past.c */
void test_past(void);

/* parts_check.c */
void test_check(void);

/* parts_zones.c */
void test_zones(void);

#endif
