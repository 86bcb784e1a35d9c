// SPDX-License-Identifier: GPL-2.0
/*
 * Policies by their names: the engine's own and those that modules register;
 * and how a device changes from one to another while it runs.
 *
 * A device holds the module of its policy, so a policy that is in use stays.
 * The change: the new policy gets ready, the engine is given it, and once all
 * who may still be in a function of the old one have left (they are in an RCU
 * section there), the old one is told that it is over and its module let go.
 */
#include <linux/ctype.h>
#include <linux/export.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "znsage.h"

struct registered {
	struct list_head link;
	const struct znsage_policy *policy;
};

/* Policies of modules, in the order they came; under registry_lock. */
static LIST_HEAD(registry);
static DEFINE_MUTEX(registry_lock);

/* What a policy may ask is the engine's. */
EXPORT_SYMBOL_GPL(znsage_stream_of);
EXPORT_SYMBOL_GPL(znsage_get_levels);
EXPORT_SYMBOL_GPL(znsage_get_zone);
EXPORT_SYMBOL_GPL(znsage_private);

static struct registered *find_registered(const char *name)
{
	struct registered *r;

	list_for_each_entry(r, &registry, link)
		if (!strcmp(r->policy->name, name))
			return r;
	return NULL;
}

static bool name_is_good(const char *name)
{
	size_t len = strnlen(name, ZNSAGE_POLICY_NAME), i;

	for (i = 0; i < len; i++)
		if (!isalnum(name[i]) && name[i] != '-' && name[i] != '_')
			return false;
	return len && len < ZNSAGE_POLICY_NAME;
}

int znsage_register_policy(struct znsage_policy *policy)
{
	struct registered *r;
	int err = -EEXIST;

	if (!name_is_good(policy->name) || !policy->place)
		return -EINVAL;
	r = kmalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return -ENOMEM;
	r->policy = policy;
	mutex_lock(&registry_lock);
	if (!zse_builtin_policy(policy->name) &&
	    !find_registered(policy->name)) {
		list_add_tail(&r->link, &registry);
		err = 0;
	}
	mutex_unlock(&registry_lock);
	if (err)
		kfree(r);
	return err;
}
EXPORT_SYMBOL_GPL(znsage_register_policy);

void znsage_unregister_policy(struct znsage_policy *policy)
{
	struct registered *r;

	mutex_lock(&registry_lock);
	r = find_registered(policy->name);
	if (!WARN_ON_ONCE(!r || r->policy != policy)) {
		list_del(&r->link);
		kfree(r);
	}
	mutex_unlock(&registry_lock);
}
EXPORT_SYMBOL_GPL(znsage_unregister_policy);

/**
 * znsage_policy_get() - a policy by its name, held
 * @name: name
 *
 * Context: sleeps. Return: the policy, for znsage_policy_put(), or NULL if
 * there is none of that name or its module is about to go.
 */
const struct znsage_policy *znsage_policy_get(const char *name)
{
	const struct znsage_policy *policy = zse_builtin_policy(name);
	struct registered *r;

	if (policy)
		return policy;
	mutex_lock(&registry_lock);
	r = find_registered(name);
	if (r && try_module_get(r->policy->owner))
		policy = r->policy;
	mutex_unlock(&registry_lock);
	return policy;
}

void znsage_policy_put(const struct znsage_policy *policy)
{
	if (policy)
		module_put(policy->owner);
}

/**
 * znsage_policy_names() - the names of all policies, a line each
 * @buf: page
 *
 * Context: sleeps. Return: length.
 */
ssize_t znsage_policy_names(char *buf)
{
	const struct znsage_policy *const *p;
	struct registered *r;
	ssize_t len = 0;

	for (p = zse_builtin_policies; *p; p++)
		len += sysfs_emit_at(buf, len, "%s\n", (*p)->name);
	mutex_lock(&registry_lock);
	list_for_each_entry(r, &registry, link)
		len += sysfs_emit_at(buf, len, "%s\n", r->policy->name);
	mutex_unlock(&registry_lock);
	return len;
}

/* Most devices have one that looks at nothing but the CPU: save the trouble. */
static bool looks_at_pages(const struct znsage_policy *policy)
{
	return policy != zse_builtin_policy("single") &&
	       policy != zse_builtin_policy("cpu");
}

/*
 * Give the device @policy, which is held and stays so, and set the one it had
 * free. Wants policy_lock, unless nothing runs yet.
 */
static int change(struct znsage_device *zd, const struct znsage_policy *policy)
{
	const struct znsage_policy *old = zd->policy;
	void *old_private = zd->policy_private, *private = NULL;

	if (policy->attach) {
		private = policy->attach(zd->engine);
		if (!private)
			return -ENOMEM;
	}
	/*
	 * No function of one is to see the private data of the other: those of
	 * the old one come to their end beside a policy that looks at none.
	 */
	if (old && (old_private || private)) {
		zse_set_policy(zd->engine, zse_builtin_policy("cpu"),
			       old_private);
		synchronize_rcu();
	}
	zse_set_policy(zd->engine, policy, private);
	zd->policy = policy;
	zd->policy_private = private;
	WRITE_ONCE(zd->isolates, policy->isolates);
	WRITE_ONCE(zd->wants_owners, looks_at_pages(policy));
	synchronize_rcu();
	if (!policy->isolates)
		znsage_charge_end(zd);
	if (old && old->detach)
		old->detach(zd->engine, old_private);
	znsage_policy_put(old);
	return 0;
}

/**
 * znsage_policy_start() - give a device its first policy, or another one
 * @zd:	    device with an engine; if it runs, with policy_lock held
 * @policy: held; on success the device holds it from now on
 *
 * Context: sleeps. Return: 0 or an errno, and the log says why.
 */
int znsage_policy_start(struct znsage_device *zd,
			const struct znsage_policy *policy)
{
	int err = change(zd, policy);

	if (err)
		znsage_err(zd->name, "policy %s cannot be started",
			   policy->name);
	return err;
}

/* The device has no I/O any more; or never had a policy. */
void znsage_policy_end(struct znsage_device *zd)
{
	znsage_charge_end(zd);
	if (zd->policy && zd->policy->detach)
		zd->policy->detach(zd->engine, zd->policy_private);
	znsage_policy_put(zd->policy);
	zd->policy = NULL;
}

/**
 * znsage_policy_switch() - another policy for a running device
 * @zd:	  device
 * @name: of the policy
 *
 * Context: sleeps. Return: 0; -EINVAL: there is none of that name; another
 * errno if it cannot be started. Then the old one stays.
 */
int znsage_policy_switch(struct znsage_device *zd, const char *name)
{
	const struct znsage_policy *policy = znsage_policy_get(name);
	int err = 0;

	if (!policy)
		return -EINVAL;
	mutex_lock(&zd->policy_lock);
	if (policy == zd->policy)
		znsage_policy_put(policy);
	else
		err = znsage_policy_start(zd, policy);
	mutex_unlock(&zd->policy_lock);
	if (err)
		znsage_policy_put(policy);
	else
		znsage_kick(zd);
	return err;
}
