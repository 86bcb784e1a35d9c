// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/config/znsage/NAME/: a directory for each device. Its files are
 * the settings; writing to power attaches or detaches the device.
 */
#include <linux/capability.h>
#include <linux/configfs.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "device.h"

#define MAX_OVER_PROVISIONING		90
#define MAX_RESERVE			64

struct znsage_item {
	struct config_item item;	/* the directory */
	struct mutex lock;		/* guards the rest */
	struct znsage_settings set;	/* fixed while zd runs */
	struct znsage_device *zd;	/* or NULL */
};

static struct configfs_subsystem znsage_subsys;

static struct znsage_item *to_znsage(struct config_item *item)
{
	return container_of(item, struct znsage_item, item);
}

static int set_string(char *value, const char *page, size_t len)
{
	if (len && page[len - 1] == '\n')
		len--;
	if (!len || len >= ZNSAGE_MAX_PATH)
		return -EINVAL;
	memcpy(value, page, len);
	value[len] = '\0';
	return 0;
}

static int set_size(u64 *value, const char *page)
{
	u64 v;
	int err = kstrtou64(page, 0, &v);

	if (!err && v > S64_MAX)
		err = -EINVAL;
	if (!err)
		*value = v;
	return err;
}

/* A multiple of @unit. */
static int set_u32(u32 *value, const char *page, u32 low, u32 high, u32 unit)
{
	u32 v;
	int err = kstrtou32(page, 0, &v);

	if (!err && (v < low || v > high || v % unit))
		err = -EINVAL;
	if (!err)
		*value = v;
	return err;
}

/* The policy must exist now, and when the device starts. */
static int set_policy(char *value, const char *page)
{
	char name[ZNSAGE_POLICY_NAME + 1];	/* and a newline */
	const struct znsage_policy *policy;

	if (strscpy(name, page, sizeof(name)) < 0)
		return -EINVAL;
	policy = znsage_policy_get(strim(name));
	if (!policy)
		return -EINVAL;
	strscpy(value, policy->name, ZNSAGE_POLICY_NAME);
	znsage_policy_put(policy);
	return 0;
}

/* @_value: the index of @page among the first @_nr names. */
#define SET_NAME(_value, _names, _nr)					\
({									\
	int i = __sysfs_match_string(_names, _nr, page);		\
									\
	if (i >= 0)							\
		_value = i;						\
	min(i, 0);							\
})

/* A setting: @_parse stores @page and returns 0 or an errno. */
#define SETTING(_name, _format, _value, _parse)				\
static ssize_t znsage_##_name##_show(struct config_item *item,		\
				     char *page)			\
{									\
	const struct znsage_settings *set = &to_znsage(item)->set;	\
									\
	return sysfs_emit(page, _format "\n", _value);			\
}									\
									\
static ssize_t znsage_##_name##_store(struct config_item *item,		\
				      const char *page, size_t len)	\
{									\
	struct znsage_item *zi = to_znsage(item);			\
	struct znsage_settings *set = &zi->set;				\
	int err = -EBUSY;						\
									\
	mutex_lock(&zi->lock);						\
	if (!zi->zd)							\
		err = _parse;						\
	mutex_unlock(&zi->lock);					\
	return err ? err : len;						\
}									\
CONFIGFS_ATTR(znsage_, _name)

SETTING(backing, "%s", set->backing, set_string(set->backing, page, len));
SETTING(size, "%llu", set->size, set_size(&set->size, page));
SETTING(zone_size, "%llu", set->zone_size, set_size(&set->zone_size, page));
SETTING(policy, "%s", set->policy, set_policy(set->policy, page));
SETTING(victim, "%s", zse_victim_names[set->victim],
	SET_NAME(set->victim, zse_victim_names, ZSE_NR_VICTIMS));
SETTING(encrypt, "%s", znsage_encrypt_names[set->encrypt],
	SET_NAME(set->encrypt, znsage_encrypt_names, ZNSAGE_NR_ENCRYPTS));
SETTING(compress, "%s", znsage_compress_names[set->compress],
	SET_NAME(set->compress, znsage_compress_names, ZNSAGE_NR_COMPRESS));

#define SETTING_U32(_name, _low, _high, _unit)				\
	SETTING(_name, "%u", set->_name,				\
		set_u32(&set->_name, page, _low, _high, _unit))

SETTING_U32(over_provisioning, 0, MAX_OVER_PROVISIONING, 1);
SETTING_U32(chunk, 0, BIO_MAX_VECS * PAGE_SIZE, PAGE_SIZE);
SETTING_U32(write_unit, 0, BIO_MAX_VECS * PAGE_SIZE, PAGE_SIZE);
SETTING_U32(reserve, 1, MAX_RESERVE, 1);
SETTING_U32(pace, 0, 100, 1);
SETTING_U32(stripe, 0, ZSE_MAX_LANES, 1);
SETTING_U32(gc_low, 0, U32_MAX, 1);
SETTING_U32(gc_high, 0, U32_MAX, 1);
SETTING_U32(deadline_us, ZNSAGE_MIN_DEADLINE_US, ZNSAGE_MAX_DEADLINE_US, 1);
SETTING(force, "%d", set->force, kstrtobool(page, &set->force));
SETTING(keep_slots, "%d", set->keep_slots,
	kstrtobool(page, &set->keep_slots));
SETTING(discard, "%d", set->discard, kstrtobool(page, &set->discard));

static ssize_t znsage_index_show(struct config_item *item, char *page)
{
	struct znsage_item *zi = to_znsage(item);
	int index;

	mutex_lock(&zi->lock);
	index = zi->zd ? zi->zd->index : -1;
	mutex_unlock(&zi->lock);
	return sysfs_emit(page, "%d\n", index);
}
CONFIGFS_ATTR_RO(znsage_, index);

static ssize_t znsage_power_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!READ_ONCE(to_znsage(item)->zd));
}

/* A running device pins its directory: rmdir gets EBUSY. */
static int power_on(struct znsage_item *zi)
{
	struct znsage_device *zd;
	int err;

	if (!zi->set.backing[0])
		return -EINVAL;
	err = configfs_depend_item_unlocked(&znsage_subsys, &zi->item);
	if (err)
		return err;
	zd = znsage_attach(config_item_name(&zi->item), &zi->set);
	err = PTR_ERR_OR_ZERO(zd);
	if (err)
		configfs_undepend_item(&zi->item);
	else
		WRITE_ONCE(zi->zd, zd);
	return err;
}

static int power_off(struct znsage_item *zi)
{
	int err = znsage_detach(zi->zd);

	if (!err) {
		WRITE_ONCE(zi->zd, NULL);
		configfs_undepend_item(&zi->item);
	}
	return err;
}

static ssize_t znsage_power_store(struct config_item *item, const char *page,
				  size_t len)
{
	struct znsage_item *zi = to_znsage(item);
	bool on;
	int err = kstrtobool(page, &on);

	if (err)
		return err;
	/* This erases devices. */
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	mutex_lock(&zi->lock);
	if (on && !zi->zd)
		err = power_on(zi);
	else if (!on && zi->zd)
		err = power_off(zi);
	mutex_unlock(&zi->lock);
	return err ? err : len;
}
CONFIGFS_ATTR(znsage_, power);

static struct configfs_attribute *znsage_item_attrs[] = {
	&znsage_attr_backing,
	&znsage_attr_size,
	&znsage_attr_zone_size,
	&znsage_attr_over_provisioning,
	&znsage_attr_policy,
	&znsage_attr_victim,
	&znsage_attr_chunk,
	&znsage_attr_write_unit,
	&znsage_attr_reserve,
	&znsage_attr_stripe,
	&znsage_attr_pace,
	&znsage_attr_gc_low,
	&znsage_attr_gc_high,
	&znsage_attr_deadline_us,
	&znsage_attr_encrypt,
	&znsage_attr_compress,
	&znsage_attr_force,
	&znsage_attr_keep_slots,
	&znsage_attr_discard,
	&znsage_attr_index,
	&znsage_attr_power,
	NULL
};

static void znsage_item_release(struct config_item *item)
{
	kfree(to_znsage(item));
}

static struct configfs_item_operations znsage_item_ops = {
	.release = znsage_item_release,
};

static const struct config_item_type znsage_item_type = {
	.ct_item_ops = &znsage_item_ops,
	.ct_attrs = znsage_item_attrs,
	.ct_owner = THIS_MODULE,
};

static struct config_item *znsage_make_item(struct config_group *group,
					    const char *name)
{
	struct znsage_item *zi = kzalloc(sizeof(*zi), GFP_KERNEL);

	if (!zi)
		return ERR_PTR(-ENOMEM);
	mutex_init(&zi->lock);
	zi->set.over_provisioning = 12;	/* as in the ZNSwap papers */
	/* GC opens one zone, and another if an append to it fails. */
	zi->set.reserve = 2;
	zi->set.pace = 50;
	zi->set.victim = ZSE_VICTIM_AGE;
	/* Longer than a batch of reclaim takes even on a slow CPU. */
	zi->set.deadline_us = 5000;
	zi->set.discard = true;
	strscpy(zi->set.policy, ZNSAGE_DEFAULT_POLICY, sizeof(zi->set.policy));
	config_item_init_type_name(&zi->item, name, &znsage_item_type);
	return &zi->item;
}

static struct configfs_group_operations znsage_group_ops = {
	.make_item = znsage_make_item,
};

/* Beside the devices: the names that policy accepts. */
static ssize_t znsage_group_policies_show(struct config_item *item, char *page)
{
	return znsage_policy_names(page);
}
CONFIGFS_ATTR_RO(znsage_group_, policies);

/* Beside the devices: can there be policies in BPF? */
static ssize_t znsage_group_bpf_show(struct config_item *item, char *page)
{
	const char *missing = znsage_bpf_missing();

	return sysfs_emit(page, "%s%s\n", missing ? "no: " : "yes",
			  missing ? missing : "");
}
CONFIGFS_ATTR_RO(znsage_group_, bpf);

static struct configfs_attribute *znsage_group_attrs[] = {
	&znsage_group_attr_policies,
	&znsage_group_attr_bpf,
	NULL
};

static const struct config_item_type znsage_group_type = {
	.ct_group_ops = &znsage_group_ops,
	.ct_attrs = znsage_group_attrs,
	.ct_owner = THIS_MODULE,
};

static struct configfs_subsystem znsage_subsys = {
	.su_group = {
		.cg_item = {
			.ci_namebuf = "znsage",
			.ci_type = &znsage_group_type,
		},
	},
};

int znsage_config_register(void)
{
	config_group_init(&znsage_subsys.su_group);
	mutex_init(&znsage_subsys.su_mutex);
	return configfs_register_subsystem(&znsage_subsys);
}

void znsage_config_unregister(void)
{
	configfs_unregister_subsystem(&znsage_subsys);
}
