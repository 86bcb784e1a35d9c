// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/block/znsageN/znsage/: statistics and settings of a running device, one
 * value in each file. engine/stats.h lists the statistics.
 */
#include <linux/lockdep.h>
#include <linux/sched/signal.h>

#include "disk.h"

static struct znsage_device *dev_to_zd(struct device *dev)
{
	return dev_to_disk(dev)->private_data;
}

/* Statistics of the engine: a file for each, found by its offset. */
struct stat_attribute {
	struct device_attribute attr;
	size_t offset;
};

static ssize_t stat_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	struct stat_attribute *sa = container_of(attr, struct stat_attribute,
						 attr);
	struct zse_stats st;

	zse_get_stats(dev_to_zd(dev)->engine, &st);
	return sysfs_emit(buf, "%llu\n", *(u64 *)((char *)&st + sa->offset));
}

#define STAT_ATTR(_name)						\
	static struct stat_attribute stat_##_name = {			\
		.attr = __ATTR(_name, 0444, stat_show, NULL),		\
		.offset = offsetof(struct zse_stats, _name),		\
	};

ZSE_COUNTERS(STAT_ATTR)
ZSE_GAUGES(STAT_ATTR)

#define VALUE_SHOW(_name, _format, _value)				\
	static ssize_t _name##_show(struct device *dev,			\
				    struct device_attribute *attr,	\
				    char *buf)				\
	{								\
		struct znsage_device *zd = dev_to_zd(dev);		\
									\
		return sysfs_emit(buf, _format "\n", _value);		\
	}

/* What cannot be set. */
#define VALUE_ATTR(_name, _format, _value)				\
	VALUE_SHOW(_name, _format, _value)				\
	static DEVICE_ATTR_RO(_name)

/* The device's name, or the file's path. */
static ssize_t backing_show(struct device *dev, struct device_attribute *attr,
			    char *buf)
{
	const struct znsage_backing *b = &dev_to_zd(dev)->backing;
	char *path;
	size_t len;

	if (!b->swap_file)
		return sysfs_emit(buf, "%pg\n", b->bdev);
	path = file_path(b->swap_file, buf, PAGE_SIZE - 1);
	if (IS_ERR(path))
		return PTR_ERR(path);
	len = strlen(path);
	memmove(buf, path, len);
	buf[len] = '\n';
	return len + 1;
}
static DEVICE_ATTR_RO(backing);

VALUE_ATTR(config, "%s", zd->name);
VALUE_ATTR(size_bytes, "%llu", (u64)zd->nr_slots * PAGE_SIZE);
VALUE_ATTR(certain_bytes, "%llu", (u64)zse_certain(zd->engine) * PAGE_SIZE);
VALUE_ATTR(chunk_bytes, "%lu", zd->batch_pages * PAGE_SIZE);
VALUE_ATTR(write_unit_bytes, "%lu", zd->write_unit * PAGE_SIZE);
VALUE_ATTR(zone_bytes, "%llu", (u64)zse_get_config(zd->engine)->zone_blocks /
	   zd->page_blocks * PAGE_SIZE);
VALUE_ATTR(zones_unused, "%u", zd->nr_unused);
VALUE_ATTR(discard, "%d", zd->discard);
VALUE_ATTR(encrypt, "%s",
	   znsage_encrypt_names[zd->crypt ? ZNSAGE_ENCRYPT_AES_XTS :
				ZNSAGE_ENCRYPT_OFF]);

VALUE_ATTR(room_bytes, "%llu", (u64)zse_room(zd->engine) * PAGE_SIZE);

/*
 * Settings: @_set parses @buf and returns 0 or an errno. Then the worker runs,
 * since there may be GC to do.
 */
#define SETTING_ATTR(_name, _format, _value, _set)			\
	VALUE_SHOW(_name, _format, _value)				\
	static ssize_t _name##_store(struct device *dev,		\
				     struct device_attribute *attr,	\
				     const char *buf, size_t len)	\
	{								\
		struct znsage_device *zd = dev_to_zd(dev);		\
		int err = _set;						\
									\
		if (!err)						\
			znsage_kick(zd);				\
		return err ? err : len;					\
	}								\
	static DEVICE_ATTR_RW(_name)

static int set_deadline(struct znsage_device *zd, const char *buf)
{
	u32 us;
	int err = kstrtou32(buf, 0, &us);

	if (err)
		return err;
	if (us < ZNSAGE_MIN_DEADLINE_US || us > ZNSAGE_MAX_DEADLINE_US)
		return -EINVAL;
	WRITE_ONCE(zd->deadline_us, us);
	return 0;
}

static int set_victim(struct znsage_device *zd, const char *buf)
{
	int victim = __sysfs_match_string(zse_victim_names, ZSE_NR_VICTIMS,
					  buf);

	if (victim < 0)
		return victim;
	zse_set_victim(zd->engine, victim);
	return 0;
}

static int set_compress(struct znsage_device *zd, const char *buf)
{
	int how = __sysfs_match_string(znsage_compress_names,
				       ZNSAGE_NR_COMPRESS, buf);

	return how < 0 ? how : znsage_compress_set(zd, how);
}

/* A change of the policy sets both watermarks, too, under the same lock. */
static int set_watermark(struct znsage_device *zd, const char *buf, bool is_low)
{
	u32 value, low, high;
	int err = kstrtou32(buf, 0, &value);

	if (err)
		return err;
	mutex_lock(&znsage_policy_lock);
	zse_get_watermarks(zd->engine, &low, &high);
	if (!zse_set_watermarks(zd->engine, is_low ? value : low,
				is_low ? high : value))
		err = -EINVAL;
	mutex_unlock(&znsage_policy_lock);
	return err;
}

static u32 watermark(struct znsage_device *zd, bool is_low)
{
	u32 low, high;

	zse_get_watermarks(zd->engine, &low, &high);
	return is_low ? low : high;
}

static int set_pace(struct znsage_device *zd, const char *buf)
{
	u32 pace;
	int err = kstrtou32(buf, 0, &pace);

	if (err)
		return err;
	return zse_set_pace(zd->engine, pace) ? 0 : -EINVAL;
}

SETTING_ATTR(deadline_us, "%u", zd->deadline_us, set_deadline(zd, buf));
SETTING_ATTR(victim, "%s", zse_victim_names[zse_get_victim(zd->engine)],
	     set_victim(zd, buf));
SETTING_ATTR(compress, "%s", znsage_compress_name(zd), set_compress(zd, buf));
SETTING_ATTR(gc_low, "%u", watermark(zd, true), set_watermark(zd, buf, true));
SETTING_ATTR(gc_high, "%u", watermark(zd, false),
	     set_watermark(zd, buf, false));
SETTING_ATTR(pace, "%u", zse_get_pace(zd->engine), set_pace(zd, buf));
SETTING_ATTR(time_reads, "%d", zd->time_reads,
	     kstrtobool(buf, &zd->time_reads));

/* @_value may change under znsage_policy_lock. */
#define LOCKED_SHOW(_name, _value)					\
	static ssize_t _name##_show(struct device *dev,			\
				    struct device_attribute *attr,	\
				    char *buf)				\
	{								\
		struct znsage_device *zd = dev_to_zd(dev);		\
		ssize_t len;						\
									\
		mutex_lock(&znsage_policy_lock);			\
		len = sysfs_emit(buf, "%s\n", _value);			\
		mutex_unlock(&znsage_policy_lock);			\
		return len;						\
	}

LOCKED_SHOW(policy, zd->policy->name)

static ssize_t policy_store(struct device *dev, struct device_attribute *attr,
			    const char *buf, size_t len)
{
	char name[ZNSAGE_POLICY_NAME + 1];	/* and a newline */
	int err;

	if (strscpy(name, buf, sizeof(name)) < 0)
		return -EINVAL;
	err = znsage_policy_switch(dev_to_zd(dev), strim(name));
	return err ? err : len;
}
static DEVICE_ATTR_RW(policy);

/* Why the last BPF policy was ejected, or empty. */
LOCKED_SHOW(policy_ejected, zd->ejected)
static DEVICE_ATTR_RO(policy_ejected);

/* Most memory of a check. */
#define CHECK_BYTES	(32 << 20)

static void report_violation(void *arg, const char *what, u32 where, u64 is,
			     u64 want)
{
	struct znsage_check *check = arg;

	if (check->len > sizeof(check->text) - 256) {
		check->more++;
		return;
	}
	check->len += scnprintf(check->text + check->len,
				sizeof(check->text) - check->len,
				"%s: at %u, is %llu, should be %llu\n", what,
				where, is, want);
}

/* Ask the device for each zone in use. */
static void look_at_zones(struct znsage_device *zd)
{
	u32 nr = zse_get_config(zd->engine)->nr_zones, i;

	for (i = 0; i < nr && !fatal_signal_pending(current); i++) {
		if (znsage_look(zd, i))
			report_violation(&zd->check,
					 "a zone was reset by another program, its pages are lost",
					 zd->zone_nr[i], 0, 1);
		cond_resched();
	}
}

/* A bit for each block; with less, the maps are walked several times. */
static u32 check_words(const struct znsage_device *zd)
{
	const struct zse_config *cfg = zse_get_config(zd->engine);
	u64 words = DIV_ROUND_UP_ULL((u64)cfg->nr_zones * cfg->zone_blocks, 32);

	return min_t(u64, words, CHECK_BYTES / sizeof(u32));
}

/*
 * Reclaim waits for a frozen queue. Tell lockdep, so that it reports whatever
 * waits for reclaim under znsage_freeze(): an allocation, or a work item or
 * mutex that allocates. Since 6.13 the kernel tells it.
 */
static void reclaim_may_wait(struct lockdep_map *frozen)
{
	fs_reclaim_acquire(GFP_KERNEL);
	lock_map_acquire(frozen);
	lock_map_release(frozen);
	fs_reclaim_release(GFP_KERNEL);
}

/* Walk all maps, with the queue frozen. The checker allows for freed slots. */
static void run_check(struct znsage_device *zd)
{
	u32 words = check_words(zd), *bits;
	unsigned int flags;

	zd->check.len = 0;
	zd->check.more = 0;
	look_at_zones(zd);
	bits = kvmalloc_array(words, sizeof(*bits),
			      GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
	if (!bits)
		report_violation(&zd->check,
				 "no memory to look for slots with the same block",
				 0, 0, words);
	reclaim_may_wait(&zd->check.frozen);
	flags = znsage_freeze(zd->disk);
	WARN_ON_ONCE(!(current->flags & PF_MEMALLOC_NOIO));
	lock_map_acquire(&zd->check.frozen);
	znsage_quiesce(zd);
	zse_check(zd->engine, report_violation, &zd->check);
	if (bits)
		zse_check_twice(zd->engine, bits, words, report_violation,
				&zd->check);
	zse_set_gc(zd->engine, true);
	lock_map_release(&zd->check.frozen);
	znsage_unfreeze(zd->disk, flags);
	znsage_kick(zd);
	kvfree(bits);
	zd->check.done = true;
}

static ssize_t check_store(struct device *dev, struct device_attribute *attr,
			   const char *buf, size_t len)
{
	struct znsage_device *zd = dev_to_zd(dev);
	bool on;
	int err = kstrtobool(buf, &on);

	if (err || !on)
		return -EINVAL;
	if (!percpu_ref_tryget_live(&zd->ref))
		return -ENODEV;
	mutex_lock(&zd->check.lock);
	run_check(zd);
	mutex_unlock(&zd->check.lock);
	percpu_ref_put(&zd->ref);
	return len;
}

/* What the last check found. */
static ssize_t check_show(struct device *dev, struct device_attribute *attr,
			  char *buf)
{
	struct znsage_device *zd = dev_to_zd(dev);
	const struct znsage_check *check = &zd->check;
	ssize_t len;

	mutex_lock(&zd->check.lock);
	len = sysfs_emit(buf, "%s", !check->done ? "never\n" :
			 !check->len ? "ok\n" : check->text);
	if (check->more)
		len += sysfs_emit_at(buf, len, "and %u more\n", check->more);
	mutex_unlock(&zd->check.lock);
	return len;
}
static DEVICE_ATTR_ADMIN_RW(check);

#define STAT_REF(_name)	&stat_##_name.attr.attr,

static struct attribute *znsage_attrs[] = {
	ZSE_COUNTERS(STAT_REF)
	ZSE_GAUGES(STAT_REF)
	&dev_attr_backing.attr,
	&dev_attr_config.attr,
	&dev_attr_policy.attr,
	&dev_attr_policy_ejected.attr,
	&dev_attr_victim.attr,
	&dev_attr_size_bytes.attr,
	&dev_attr_certain_bytes.attr,
	&dev_attr_room_bytes.attr,
	&dev_attr_chunk_bytes.attr,
	&dev_attr_write_unit_bytes.attr,
	&dev_attr_zone_bytes.attr,
	&dev_attr_zones_unused.attr,
	&dev_attr_discard.attr,
	&dev_attr_encrypt.attr,
	&dev_attr_compress.attr,
	&dev_attr_deadline_us.attr,
	&dev_attr_gc_low.attr,
	&dev_attr_gc_high.attr,
	&dev_attr_pace.attr,
	&dev_attr_check.attr,
	&dev_attr_time_reads.attr,
	NULL
};

static const struct attribute_group znsage_group = {
	.name = "znsage",
	.attrs = znsage_attrs,
};

const struct attribute_group *znsage_disk_groups[] = {
	&znsage_group,
	NULL
};
