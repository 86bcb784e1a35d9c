// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/block/znsageN/znsage/: statistics and settings of a running device,
 * one value a file. The statistics follow the engine's table.
 */
#include <linux/blk-mq.h>
#include <linux/device.h>
#include <linux/sysfs.h>

#include "znsage.h"

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

/* What was chosen at attach. */
#define VALUE_ATTR(_name, _format, _value)				\
	static ssize_t _name##_show(struct device *dev,			\
				    struct device_attribute *attr,	\
				    char *buf)				\
	{								\
		struct znsage_device *zd = dev_to_zd(dev);		\
									\
		return sysfs_emit(buf, _format "\n", _value);		\
	}								\
	static DEVICE_ATTR_RO(_name)

VALUE_ATTR(backing, "%pg", zd->backing.bdev);
VALUE_ATTR(config, "%s", zd->name);
VALUE_ATTR(policy, "%s", znsage_policy_names[zd->policy]);
VALUE_ATTR(size_bytes, "%llu", (u64)zd->nr_slots * PAGE_SIZE);
VALUE_ATTR(chunk_bytes, "%lu", zd->chunk_blocks * PAGE_SIZE);
VALUE_ATTR(write_unit_bytes, "%lu", zd->write_unit * PAGE_SIZE);
VALUE_ATTR(zone_bytes, "%llu",
	   (u64)zse_get_config(zd->engine)->zone_blocks * PAGE_SIZE);
VALUE_ATTR(zones_unused, "%u", zd->nr_unused);

static ssize_t deadline_us_show(struct device *dev,
				struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", dev_to_zd(dev)->deadline_us);
}

static ssize_t deadline_us_store(struct device *dev,
				 struct device_attribute *attr,
				 const char *buf, size_t len)
{
	u32 us;
	int err = kstrtou32(buf, 0, &us);

	if (err)
		return err;
	if (!us || us > ZNSAGE_MAX_DEADLINE_US)
		return -EINVAL;
	WRITE_ONCE(dev_to_zd(dev)->deadline_us, us);
	return len;
}
static DEVICE_ATTR_RW(deadline_us);

static ssize_t watermark_store(struct device *dev, const char *buf, size_t len,
			       bool is_low)
{
	struct znsage_device *zd = dev_to_zd(dev);
	u32 low, high, value;
	int err = kstrtou32(buf, 0, &value);

	if (err)
		return err;
	zse_get_watermarks(zd->engine, &low, &high);
	if (is_low)
		low = value;
	else
		high = value;
	if (!zse_set_watermarks(zd->engine, low, high))
		return -EINVAL;
	znsage_kick(zd);
	return len;
}

#define WATERMARK_ATTR(_name, _field, _is_low)				\
	static ssize_t _name##_show(struct device *dev,			\
				    struct device_attribute *attr,	\
				    char *buf)				\
	{								\
		u32 low, high;						\
									\
		zse_get_watermarks(dev_to_zd(dev)->engine, &low, &high); \
		return sysfs_emit(buf, "%u\n", _field);			\
	}								\
	static ssize_t _name##_store(struct device *dev,		\
				     struct device_attribute *attr,	\
				     const char *buf, size_t len)	\
	{								\
		return watermark_store(dev, buf, len, _is_low);		\
	}								\
	static DEVICE_ATTR_RW(_name)

WATERMARK_ATTR(gc_low, low, true);
WATERMARK_ATTR(gc_high, high, false);

/* Violations found by the checker, as text that fits a page. */
struct report {
	char *buf;
	size_t len;
	u32 more;
};

static void report_violation(void *arg, const char *what, u32 where, u64 is,
			     u64 want)
{
	struct report *rep = arg;

	/* Leave room for the last line. */
	if (rep->len > PAGE_SIZE - 256) {
		rep->more++;
		return;
	}
	rep->len += sysfs_emit_at(rep->buf, rep->len,
				  "%s: at %u, is %llu, should be %llu\n", what,
				  where, is, want);
}

/*
 * Walk all maps. Bios that come meanwhile wait at the queue's door; slots may
 * still be freed, which the checker allows for.
 */
static ssize_t check_show(struct device *dev, struct device_attribute *attr,
			  char *buf)
{
	struct znsage_device *zd = dev_to_zd(dev);
	struct report rep = { .buf = buf };

	if (!percpu_ref_tryget_live(&zd->ref))
		return -ENODEV;
	mutex_lock(&zd->check_lock);
	blk_mq_freeze_queue(zd->disk->queue);
	znsage_quiesce(zd);
	zse_check(zd->engine, report_violation, &rep);
	zse_set_gc(zd->engine, true);
	blk_mq_unfreeze_queue(zd->disk->queue);
	mutex_unlock(&zd->check_lock);
	znsage_kick(zd);
	percpu_ref_put(&zd->ref);

	if (rep.more)
		rep.len += sysfs_emit_at(buf, rep.len, "and %u more\n",
					 rep.more);
	return rep.len ? rep.len : sysfs_emit(buf, "ok\n");
}
static DEVICE_ATTR(check, 0400, check_show, NULL);

#define STAT_REF(_name)	&stat_##_name.attr.attr,

static struct attribute *znsage_attrs[] = {
	ZSE_COUNTERS(STAT_REF)
	ZSE_GAUGES(STAT_REF)
	&dev_attr_backing.attr,
	&dev_attr_config.attr,
	&dev_attr_policy.attr,
	&dev_attr_size_bytes.attr,
	&dev_attr_chunk_bytes.attr,
	&dev_attr_write_unit_bytes.attr,
	&dev_attr_zone_bytes.attr,
	&dev_attr_zones_unused.attr,
	&dev_attr_deadline_us.attr,
	&dev_attr_gc_low.attr,
	&dev_attr_gc_high.attr,
	&dev_attr_check.attr,
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
