/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long things take: histograms, counted by each CPU for itself.
 */
#ifndef ZNSAGE_LATENCY_H
#define ZNSAGE_LATENCY_H

#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/types.h>

/**
 * enum znsage_time - what is timed
 * @ZNSAGE_SWAP_OUT:	an append, since the first page of its chunk came
 * @ZNSAGE_SWAP_IN:	a read of the device for swap-in
 * @ZNSAGE_CHUNK_WAIT:	a chunk for swap-out that has no zone
 * @ZNSAGE_SUBMIT_WAIT:	a task that wants to swap out while no chunk is free
 * @ZNSAGE_GC:		a victim, from its first read to the end of its reset
 * @ZNSAGE_GC_READ:	reads that fill a chunk of GC
 * @ZNSAGE_GC_APPEND:	the append of such a chunk
 */
enum znsage_time {
	ZNSAGE_SWAP_OUT,
	ZNSAGE_SWAP_IN,
	ZNSAGE_CHUNK_WAIT,
	ZNSAGE_SUBMIT_WAIT,
	ZNSAGE_GC,
	ZNSAGE_GC_READ,
	ZNSAGE_GC_APPEND,
	ZNSAGE_NR_TIMES
};

/*
 * Whole microseconds below 4, from there four buckets to a power of two up to
 * 2^24 us (17 s), and one for what took longer.
 */
#define ZNSAGE_MAX_US_BITS	24
#define ZNSAGE_BUCKETS		(4 * (ZNSAGE_MAX_US_BITS - 1) + 1)

struct znsage_histogram {
	u64 buckets[ZNSAGE_BUCKETS];
	u64 total_ns;
};

struct znsage_times {
	struct znsage_histogram of[ZNSAGE_NR_TIMES];
};

/**
 * struct znsage_latency - the times of a device
 * @cpus: counted since attach; only ever added to
 * @base: what these were when somebody wrote 0 to the histogram
 * @lock: guards @base
 */
struct znsage_latency {
	struct znsage_times __percpu *cpus;
	struct znsage_times *base;
	struct mutex lock;
};

int znsage_latency_init(struct znsage_latency *lat);
void znsage_latency_free(struct znsage_latency *lat);
void znsage_latency_add(struct znsage_latency *lat, enum znsage_time what,
			u64 ns);
ssize_t znsage_latency_summary(struct znsage_latency *lat, char *buf);
ssize_t znsage_latency_table(struct znsage_latency *lat, enum znsage_time what,
			     char *buf);
int znsage_latency_reset(struct znsage_latency *lat, enum znsage_time what);

#endif /* ZNSAGE_LATENCY_H */
