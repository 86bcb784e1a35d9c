// SPDX-License-Identifier: GPL-2.0
/*
 * Tables of zones and streams. The table of all zones does not fit a sysfs file
 * and is in debugfs; sysfs has sums. Zones keep changing while a table is read.
 */
#include <linux/debugfs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/sysfs.h>

#include "znsage.h"

/* The engine has fewer. */
#define MAX_STATES	16
#define NR_SHARES	10
/* Bytes in each line of the stream table. */
#define STREAM_LINE	166
/* Keeps a number within a narrow column; real ones are smaller. */
#define NARROW(_n)	min_t(u32, _n, 999999)

static struct dentry *root;

/* Look at zone @i, in a loop over all of them. */
static bool zone_at(struct znsage_device *zd, u32 i, struct zse_zone_info *zi)
{
	if (!(i % 1024))
		cond_resched();
	return zse_get_zone(zd->engine, i, zi);
}

/* Number of zones in each state that has any. */
ssize_t znsage_zone_states(struct znsage_device *zd, char *buf)
{
	const char *names[MAX_STATES];
	u32 counts[MAX_STATES], nr = 0, i, k;
	struct zse_zone_info zi;
	ssize_t len;

	for (i = 0; zone_at(zd, i, &zi); i++) {
		for (k = 0; k < nr && names[k] != zi.state; k++)
			;
		if (k == MAX_STATES)
			continue;
		if (k == nr) {
			names[nr] = zi.state;
			counts[nr++] = 0;
		}
		counts[k]++;
	}
	len = sysfs_emit(buf, "state zones\n");
	for (k = 0; k < nr; k++)
		len += sysfs_emit_at(buf, len, "%s %u\n", names[k], counts[k]);
	return len;
}

/* Full zones by the share of their blocks that is live. */
ssize_t znsage_live_histogram(struct znsage_device *zd, char *buf)
{
	u32 counts[NR_SHARES] = { 0 }, i;
	struct zse_zone_info zi;
	ssize_t len;

	for (i = 0; zone_at(zd, i, &zi); i++) {
		u64 share = (u64)zi.live * NR_SHARES;

		if (strcmp(zi.state, "full"))
			continue;
		do_div(share, zi.capacity);
		counts[min_t(u64, share, NR_SHARES - 1)]++;
	}
	len = sysfs_emit(buf, "live_percent zones\n");
	for (i = 0; i < NR_SHARES; i++)
		len += sysfs_emit_at(buf, len, "%u %u\n",
				     (i + 1) * 100 / NR_SHARES, counts[i]);
	return len;
}

/* Line @nr of the table of streams; the first is the heading. */
static bool stream_line(struct znsage_device *zd, u32 nr, char *line)
{
	struct zse_stream_info si;
	u64 stall_ns;

	if (!nr) {
		snprintf(line, STREAM_LINE + 1,
			 "%6s %20s %20s %20s %20s %20s %20s %6s %6s %18s\n",
			 "stream", "host_blocks", "gc_blocks", "padding_blocks",
			 "read_blocks", "stalls", "stall_ns", "zones", "keys",
			 "key");
		return true;
	}
	if (!zse_get_stream(zd->engine, nr - 1, &si))
		return false;
	stall_ns = atomic64_read(&zd->stall_ns[nr - 1]);
	snprintf(line, STREAM_LINE + 1,
		 "%6u %20llu %20llu %20llu %20llu %20llu %20llu %6u %6u 0x%016llx\n",
		 NARROW(nr - 1), si.host_blocks, si.gc_blocks,
		 si.padding_blocks, si.read_blocks, si.stalls, stall_ns,
		 NARROW(si.zones_open), NARROW(si.nr_keys), si.key);
	return true;
}

/*
 * Read @count bytes of the stream table. It may be longer than a page, so user
 * space reads it in parts. All lines have the same length, so a part begins
 * where the last one ended even if the numbers have changed. Returns bytes, 0
 * at the end.
 */
size_t znsage_stream_table(struct znsage_device *zd, char *buf, u32 from,
			   size_t count)
{
	char line[STREAM_LINE + 1];
	size_t done = 0;

	while (done < count && stream_line(zd, from / STREAM_LINE, line)) {
		u32 skip = from % STREAM_LINE;
		u32 len = min_t(size_t, count - done, STREAM_LINE - skip);

		memcpy(buf + done, line + skip, len);
		done += len;
		from += len;
	}
	return done;
}

/* Positions: 0 is the heading, then each zone. */
static void *zones_start(struct seq_file *m, loff_t *pos)
{
	struct znsage_device *zd = m->private;

	return *pos <= zse_get_config(zd->engine)->nr_zones ? pos : NULL;
}

static void *zones_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return zones_start(m, pos);
}

static void zones_stop(struct seq_file *m, void *v)
{
}

static int zones_show(struct seq_file *m, void *v)
{
	struct znsage_device *zd = m->private;
	u32 zone = *(loff_t *)v - 1;
	struct zse_zone_info zi;

	if (!*(loff_t *)v) {
		seq_puts(m, "index zone state capacity written live failed stream moves age reads key mixed deferred\n");
		return 0;
	}
	if (!zse_get_zone(zd->engine, zone, &zi))
		return 0;
	seq_printf(m, "%u %u %s %u %u %u %d ", zone, zd->zone_nr[zone],
		   zi.state, zi.capacity, zi.written, zi.live, zi.failed);
	if (zi.stream == ZSE_NONE)
		seq_puts(m, "- ");
	else
		seq_printf(m, "%u ", zi.stream);
	seq_printf(m, "%u %llu %u 0x%llx %d %d\n", zi.moves, zi.age, zi.reads,
		   zi.key, zi.mixed, zi.deferred);
	return 0;
}

static const struct seq_operations zones_sops = {
	.start = zones_start,
	.next = zones_next,
	.stop = zones_stop,
	.show = zones_show,
};
DEFINE_SEQ_ATTRIBUTE(zones);

/* May fail, for example without debugfs. Nothing depends on it. */
void znsage_debugfs_add(struct znsage_device *zd)
{
	zd->debugfs = debugfs_create_dir(zd->disk->disk_name, root);
	debugfs_create_file("zones", 0400, zd->debugfs, zd, &zones_fops);
}

/* Waits for readers of the file. */
void znsage_debugfs_remove(struct znsage_device *zd)
{
	debugfs_remove(zd->debugfs);
}

void znsage_debugfs_init(void)
{
	root = debugfs_create_dir("znsage", NULL);
}

void znsage_debugfs_exit(void)
{
	debugfs_remove(root);
}
