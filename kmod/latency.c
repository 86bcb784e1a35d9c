// SPDX-License-Identifier: GPL-2.0
/*
 * Latency histograms, one for each CPU and each thing that is timed. An event
 * costs a division by a constant and two additions to per-CPU memory, in any
 * context.
 */
#include <linux/log2.h>
#include <linux/seq_file.h>
#include <linux/time64.h>

#include "znsage.h"

/*
 * Whole microseconds below 4, then four buckets to a power of two up to 2^24 us
 * (17 s), and one for what took longer.
 */
#define MAX_US_BITS	24
#define BUCKETS		(4 * (MAX_US_BITS - 1) + 1)

struct znsage_times {
	struct {
		u64 buckets[BUCKETS];
		u64 total_ns;
	} of[ZNSAGE_NR_TIMES];
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
	u32 bucket = bucket_of(div_u64(ns, NSEC_PER_USEC));

	this_cpu_inc(zd->times->of[what].buckets[bucket]);
	this_cpu_add(zd->times->of[what].total_ns, ns);
}

/* A word of a line: the sum over the CPUs of the u64 at @offset. */
static void show_sum(struct seq_file *m, const struct znsage_device *zd,
		     size_t offset)
{
	u64 sum = 0;
	u32 cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*(u64 *)((u8 *)per_cpu_ptr(zd->times, cpu) +
					  offset));
	seq_printf(m, " %llu", sum);
}

/* A line for each bucket, with its count of each thing, and one of totals. */
int znsage_latency_show(struct seq_file *m, void *v)
{
	const struct znsage_device *zd = m->private;
	u32 i, what;

	seq_puts(m, "below_us swap_out swap_in gc");
	for (i = 0; i < BUCKETS; i++) {
		if (i < BUCKETS - 1)
			seq_printf(m, "\n%u", bucket_end(i));
		else
			seq_puts(m, "\ninf");
		for (what = 0; what < ZNSAGE_NR_TIMES; what++)
			show_sum(m, zd, offsetof(struct znsage_times,
						 of[what].buckets[i]));
	}
	seq_puts(m, "\ntotal_ns");
	for (what = 0; what < ZNSAGE_NR_TIMES; what++)
		show_sum(m, zd, offsetof(struct znsage_times,
					 of[what].total_ns));
	seq_putc(m, '\n');
	return 0;
}

int znsage_latency_init(struct znsage_device *zd)
{
	zd->times = alloc_percpu(struct znsage_times);
	return zd->times ? 0 : -ENOMEM;
}
