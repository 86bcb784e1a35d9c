// SPDX-License-Identifier: GPL-2.0
/*
 * Latency histograms, one for each CPU and each thing that is timed. Counting
 * costs a division by a constant and two additions to per-CPU memory, in any
 * context. Readers sum over the CPUs.
 *
 * A reset does not clear the counters, since that would race with CPUs that add
 * to them. It saves their values, and readers subtract those.
 */
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/time64.h>

#include "znsage.h"

/*
 * Whole microseconds below 4, then four buckets to a power of two up to 2^24 us
 * (17 s), and one for what took longer.
 */
#define MAX_US_BITS	24
#define BUCKETS		(4 * (MAX_US_BITS - 1) + 1)

struct znsage_histogram {
	u64 buckets[BUCKETS];
	u64 total_ns;
};

struct znsage_times {
	struct znsage_histogram of[ZNSAGE_NR_TIMES];
};

static const char *const names[ZNSAGE_NR_TIMES] = {
	[ZNSAGE_SWAP_OUT] = "swap_out",
	[ZNSAGE_SWAP_IN] = "swap_in",
	[ZNSAGE_CHUNK_WAIT] = "chunk_wait",
	[ZNSAGE_SUBMIT_WAIT] = "submit_wait",
	[ZNSAGE_GC] = "gc",
	[ZNSAGE_GC_READ] = "gc_read",
	[ZNSAGE_GC_APPEND] = "gc_append",
};

static u32 bucket_of(u64 us)
{
	u32 power;

	if (us < 4)
		return us;
	if (us >> MAX_US_BITS)
		return BUCKETS - 1;
	power = ilog2((u32)us);
	return 4 * (power - 1) + (((u32)us >> (power - 2)) & 3);
}

/* The upper end of a bucket, in us; the last one has none. */
static u32 bucket_end(u32 bucket)
{
	if (bucket < 4)
		return bucket + 1;
	return (4 + bucket % 4 + 1) << (bucket / 4 - 1);
}

/* Count an event that took @ns. Context: any. */
void znsage_timed(struct znsage_device *zd, enum znsage_time what, u64 ns)
{
	struct znsage_times __percpu *cpus = zd->latency.cpus;
	u32 bucket = bucket_of(div_u64(ns, NSEC_PER_USEC));

	this_cpu_inc(cpus->of[what].buckets[bucket]);
	this_cpu_add(cpus->of[what].total_ns, ns);
}

static void add_up(struct znsage_latency *lat, enum znsage_time what,
		   struct znsage_histogram *sum)
{
	u32 cpu, i;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const struct znsage_histogram *h =
			&per_cpu_ptr(lat->cpus, cpu)->of[what];

		for (i = 0; i < BUCKETS; i++)
			sum->buckets[i] += READ_ONCE(h->buckets[i]);
		sum->total_ns += READ_ONCE(h->total_ns);
	}
}

/* The histogram since its last reset; the caller frees it with kfree(). */
static struct znsage_histogram *since_reset(struct znsage_latency *lat,
					    enum znsage_time what)
{
	const struct znsage_histogram *base = &lat->base->of[what];
	struct znsage_histogram *h = kmalloc(sizeof(*h), GFP_KERNEL);
	u32 i;

	if (!h)
		return NULL;
	mutex_lock(&lat->lock);
	add_up(lat, what, h);
	for (i = 0; i < BUCKETS; i++)
		h->buckets[i] -= base->buckets[i];
	h->total_ns -= base->total_ns;
	mutex_unlock(&lat->lock);
	return h;
}

/* Reset one histogram, or all for ZNSAGE_NR_TIMES. Returns 0 or -ENOMEM. */
int znsage_latency_reset(struct znsage_latency *lat, enum znsage_time what)
{
	struct znsage_histogram *h = kmalloc(sizeof(*h), GFP_KERNEL);
	enum znsage_time i;

	if (!h)
		return -ENOMEM;
	mutex_lock(&lat->lock);
	for (i = 0; i < ZNSAGE_NR_TIMES; i++) {
		if (what != i && what != ZNSAGE_NR_TIMES)
			continue;
		add_up(lat, i, h);
		lat->base->of[i] = *h;
	}
	mutex_unlock(&lat->lock);
	kfree(h);
	return 0;
}

/* A line for each thing that is timed. */
ssize_t znsage_latency_summary(struct znsage_latency *lat, char *buf)
{
	ssize_t len = sysfs_emit(buf, "name count total_ns\n");
	enum znsage_time what;

	for (what = 0; what < ZNSAGE_NR_TIMES; what++) {
		struct znsage_histogram *h = since_reset(lat, what);
		u64 count = 0;
		u32 i;

		if (!h)
			return -ENOMEM;
		for (i = 0; i < BUCKETS; i++)
			count += h->buckets[i];
		len += sysfs_emit_at(buf, len, "%s %llu %llu\n", names[what],
				     count, h->total_ns);
		kfree(h);
	}
	return len;
}

/* One histogram; it fits a page whatever the numbers are. */
ssize_t znsage_latency_table(struct znsage_latency *lat, enum znsage_time what,
			     char *buf)
{
	struct znsage_histogram *h = since_reset(lat, what);
	ssize_t len = sysfs_emit(buf, "below_us count\n");
	u32 i;

	if (!h)
		return -ENOMEM;
	for (i = 0; i < BUCKETS - 1; i++)
		len += sysfs_emit_at(buf, len, "%u %llu\n", bucket_end(i),
				     h->buckets[i]);
	len += sysfs_emit_at(buf, len, "inf %llu\n", h->buckets[i]);
	kfree(h);
	return len;
}

/* The caller calls znsage_latency_free() even after an error. */
int znsage_latency_init(struct znsage_latency *lat)
{
	mutex_init(&lat->lock);
	lat->cpus = alloc_percpu(struct znsage_times);
	lat->base = kzalloc(sizeof(*lat->base), GFP_KERNEL);
	return lat->cpus && lat->base ? 0 : -ENOMEM;
}

void znsage_latency_free(struct znsage_latency *lat)
{
	kfree(lat->base);
	free_percpu(lat->cpus);
}
