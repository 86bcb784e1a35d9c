// SPDX-License-Identifier: GPL-2.0
/* Tables of zones, streams and latencies. They change while they are read. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "disk.h"

static struct dentry *root;

DEFINE_SHOW_ATTRIBUTE(znsage_latency);

static int stream_table_show(struct seq_file *m, void *v)
{
	struct znsage_device *zd = m->private;
	struct zse_stream_info si;
	u32 i;

	seq_puts(m, "stream host_blocks gc_blocks padding_blocks read_blocks stalls stall_ns zones keys key\n");
	for (i = 0; zse_get_stream(zd->engine, i, &si); i++)
		seq_printf(m, "%u %llu %llu %llu %llu %llu %llu %u %u 0x%llx\n",
			   i, si.host_blocks, si.gc_blocks, si.padding_blocks,
			   si.read_blocks, si.stalls,
			   (u64)atomic64_read(&zd->stall_ns[i]), si.zones_open,
			   si.nr_keys, si.key);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stream_table);

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
	debugfs_create_file("stream_table", 0400, zd->debugfs, zd,
			    &stream_table_fops);
	debugfs_create_file("latency", 0400, zd->debugfs, zd,
			    &znsage_latency_fops);
}

/* Waits for readers of the files. */
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
