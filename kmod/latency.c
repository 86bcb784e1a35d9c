// SPDX-License-Identifier: GPL-2.0
/*
 * Histograms of latencies, one for each CPU and each thing that is timed. To
 * count is one division by a constant and two additions on the CPU's own
 * memory, so it may be done anywhere, interrupts included. Who reads the
 * files adds the CPUs up.
 *
 * A reset does not write to the counters, which would race with the CPUs that
 * add to them: it remembers what they were.
 */
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/time64.h>

#include "latency.h"

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
	if (us >> ZNSAGE_MAX_US_BITS)
		return ZNSAGE_BUCKETS - 1;
	power = ilog2((u32)us);
	return 4 * (power - 1) + (((u32)us >> (power - 2)) & 3);
}

/* What is counted in @bucket took less than this, in us. Not for the last. */
static u32 bucket_end(u32 bucket)
{
	if (bucket < 4)
		return bucket + 1;
	return (4 + bucket % 4 + 1) << (bucket / 4 - 1);
}

/* Context: any. */
void znsage_latency_add(struct znsage_latency *lat, enum znsage_time what,
			u64 ns)
{
	u32 bucket = bucket_of(div_u64(ns, NSEC_PER_USEC));

	this_cpu_inc(lat->cpus->of[what].buckets[bucket]);
	this_cpu_add(lat->cpus->of[what].total_ns, ns);
}

static void add_up(struct znsage_latency *lat, enum znsage_time what,
		   struct znsage_histogram *sum)
{
	u32 cpu, i;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const struct znsage_histogram *h =
			&per_cpu_ptr(lat->cpus, cpu)->of[what];

		for (i = 0; i < ZNSAGE_BUCKETS; i++)
			sum->buckets[i] += READ_ONCE(h->buckets[i]);
		sum->total_ns += READ_ONCE(h->total_ns);
	}
}

/* The histogram since its last reset; to be freed by kfree(). */
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
	for (i = 0; i < ZNSAGE_BUCKETS; i++)
		h->buckets[i] -= base->buckets[i];
	h->total_ns -= base->total_ns;
	mutex_unlock(&lat->lock);
	return h;
}

/**
 * znsage_latency_reset() - begin a histogram anew
 * @lat:  times
 * @what: which, or ZNSAGE_NR_TIMES for all
 *
 * Context: sleeps. Return: 0 or -ENOMEM.
 */
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
		for (i = 0; i < ZNSAGE_BUCKETS; i++)
			count += h->buckets[i];
		len += sysfs_emit_at(buf, len, "%s %llu %llu\n", names[what],
				     count, h->total_ns);
		kfree(h);
	}
	return len;
}

/* One histogram; a page holds it whatever the numbers are. */
ssize_t znsage_latency_table(struct znsage_latency *lat, enum znsage_time what,
			     char *buf)
{
	struct znsage_histogram *h = since_reset(lat, what);
	ssize_t len = sysfs_emit(buf, "below_us count\n");
	u32 i;

	if (!h)
		return -ENOMEM;
	for (i = 0; i < ZNSAGE_BUCKETS - 1; i++)
		len += sysfs_emit_at(buf, len, "%u %llu\n", bucket_end(i),
				     h->buckets[i]);
	len += sysfs_emit_at(buf, len, "inf %llu\n", h->buckets[i]);
	kfree(h);
	return len;
}

/* Context: sleeps. What is half made, znsage_latency_free() takes. */
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
