/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the benchmark counts.
 *
 * Locks (meter.c): how often the engine lock and the locks of streams are taken, how
 * often another thread had the engine lock, and, if asked, how long it is held. Each
 * thread has counters of its own, so that counting shares no cache line.
 *
 * Cache lines (lines.c): those of the engine's data that an append writes or reads.
 * The compiler reports each access, as for KASAN in the kernel. So this needs a
 * program of its own, bench-lines; and it counts one thread.
 */
#ifndef ZNSAGE_BENCH_METER_H
#define ZNSAGE_BENCH_METER_H

#include <time.h>

#include "api.h"

struct meter {
	u64 takes;		/* of the engine lock */
	u64 contended;		/* of these, another thread had it */
	u64 stream_takes;	/* of streams' locks */
	u64 holds;		/* of the engine lock that were timed */
	u64 held_ns;		/* of these together */
	u64 appends;
};

extern __thread struct meter meter;
extern const spinlock_t *meter_engine_lock;

u64 meter_now(clockid_t clock);
void meter_time_holds(bool on);
double meter_hold_ns(const struct meter *m);
void meter_add(struct meter *to, const struct meter *m);

/* Where a line is. */
enum lines_of {
	LINES_ENGINE,		/* struct zse_engine */
	LINES_STREAMS,
	LINES_CHUNKS,		/* and their entries */
	LINES_ZONES,
	LINES_MAPS,
	NR_LINES_OF
};

/**
 * struct lines - distinct lines, summed over appends
 * @written: written in an append
 * @read:    read and not written
 * @locked:  written under the engine lock, summed over holds; but for maps
 */
struct lines {
	u64 written[NR_LINES_OF];
	u64 read[NR_LINES_OF];
	u64 locked;
};

extern struct lines lines;

bool lines_can_count(void);
void lines_begin(const struct zse_engine *e);
void lines_end(void);
void lines_hold(bool begins);
void lines_append_ended(void);

#endif /* ZNSAGE_BENCH_METER_H */
