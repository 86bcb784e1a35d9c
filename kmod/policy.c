// SPDX-License-Identifier: GPL-2.0
/*
 * Policies by name, both the engine's own and those in BPF, and changing the
 * policy of a running device.
 *
 * To change it, the device gives the new policy to the engine and waits for an
 * RCU grace period, since a policy's functions are called inside RCU sections.
 * Then it puts the old one.
 */
#include <linux/delay.h>
#include <linux/module.h>

#include "policy.h"

/* Held to change the policy of a device, and while a loaded policy ends. */
DEFINE_MUTEX(znsage_policy_lock);

/* Policies that can be chosen or are dead. Taken under the lock above. */
static LIST_HEAD(loaded_policies);
static DEFINE_MUTEX(loaded_lock);

/* NULL if @policy is NULL or built in. */
static struct znsage_loaded *to_loaded(const struct znsage_policy *policy)
{
	if (!policy || policy == zse_builtin_policy(policy->name))
		return NULL;
	return container_of(policy, struct znsage_loaded, policy);
}

/* One that is not dead, by name; or NULL. Under loaded_lock. */
static struct znsage_loaded *find(const char *name)
{
	struct znsage_loaded *p;

	list_for_each_entry(p, &loaded_policies, link)
		if (!p->dead && !strcmp(p->policy.name, name))
			return p;
	return NULL;
}

/*
 * Find a policy by name, or return NULL. It stays in memory until
 * znsage_policy_put(), but may be dead by then. Context: sleeps.
 */
const struct znsage_policy *znsage_policy_get(const char *name)
{
	const struct znsage_policy *policy = zse_builtin_policy(name);
	struct znsage_loaded *p;

	if (policy)
		return policy;
	mutex_lock(&loaded_lock);
	p = find(name);
	if (p)
		refcount_inc(&p->refs);
	mutex_unlock(&loaded_lock);
	return p ? &p->policy : NULL;
}

/* @policy may be NULL. */
void znsage_policy_put(const struct znsage_policy *policy)
{
	struct znsage_loaded *p = to_loaded(policy);

	if (p && refcount_dec_and_test(&p->refs))
		p->free(p);
}

/* The names of all policies, a line each. Returns the length. */
ssize_t znsage_policy_names(char *buf)
{
	const struct znsage_policy *const *builtin;
	const struct znsage_loaded *p;
	ssize_t len = 0;

	for (builtin = zse_builtin_policies; *builtin; builtin++)
		len += sysfs_emit_at(buf, len, "%s\n", (*builtin)->name);
	mutex_lock(&loaded_lock);
	list_for_each_entry(p, &loaded_policies, link)
		if (!p->dead)
			len += sysfs_emit_at(buf, len, "%s\n", p->policy.name);
	mutex_unlock(&loaded_lock);
	return len;
}

/* Some policies look only at the CPU, so the owner is not looked up. */
static bool looks_at_pages(const struct znsage_policy *policy)
{
	return policy != zse_builtin_policy("single") &&
	       policy != zse_builtin_policy("cpu");
}

/*
 * Give the device @policy, with the caller's reference, and put its old one.
 * Under znsage_policy_lock.
 */
static int change(struct znsage_device *zd, const struct znsage_policy *policy)
{
	struct znsage_loaded *from = to_loaded(zd->policy);
	struct znsage_loaded *to = to_loaded(policy);
	const struct znsage_policy *old = zd->policy;

	/* It has ended since it was found by name. */
	if (to && to->dead)
		return -ENOENT;
	if (!zse_prepare(zd->engine, policy))
		return -ENOMEM;
	/*
	 * A loaded policy is its functions' private data, and none may see
	 * another's. So the old policy's calls end while the device has a
	 * policy without any.
	 */
	if (old && (from || to)) {
		zse_set_policy(zd->engine, zse_builtin_policy("cpu"), from);
		synchronize_rcu();
	}
	zse_set_policy(zd->engine, policy, to);
	zd->policy = policy;
	WRITE_ONCE(zd->isolates, policy->isolates);
	WRITE_ONCE(zd->wants_owners, looks_at_pages(policy));
	synchronize_rcu();
	if (!policy->isolates)
		znsage_charge_end(zd);
	if (from)
		list_del(&zd->policy_user);
	if (to)
		list_add(&zd->policy_user, &to->users);
	znsage_policy_put(old);
	return 0;
}

/* change(), with a message if it fails. Under znsage_policy_lock. */
static int start(struct znsage_device *zd, const struct znsage_policy *policy)
{
	int err = change(zd, policy);

	if (err)
		znsage_err(zd->name, "policy %s cannot be started",
			   policy->name);
	else
		zd->ejected[0] = '\0';
	return err;
}

/* A device's first policy, before it runs. On success it has the reference. */
int znsage_policy_start(struct znsage_device *zd,
			const struct znsage_policy *policy)
{
	int err;

	mutex_lock(&znsage_policy_lock);
	err = start(zd, policy);
	mutex_unlock(&znsage_policy_lock);
	return err;
}

/*
 * Drop the policy of a device, perhaps half built, that no write reaches and
 * whose policy nobody can set. The worker goes on with a built-in policy that
 * needs no memory. Once this returns, no other policy knows the device, so none
 * kicks it. Context: sleeps.
 */
void znsage_policy_end(struct znsage_device *zd)
{
	mutex_lock(&znsage_policy_lock);
	if (zd->policy)
		change(zd, zse_builtin_policy("single"));
	mutex_unlock(&znsage_policy_lock);
}

/*
 * Change the policy of a running device. Returns 0, -EINVAL if there is no such
 * policy, or another errno if it cannot be started; then the old one stays.
 */
int znsage_policy_switch(struct znsage_device *zd, const char *name)
{
	const struct znsage_policy *policy = znsage_policy_get(name);
	int err = 0;

	if (!policy)
		return -EINVAL;
	mutex_lock(&znsage_policy_lock);
	if (policy == zd->policy)
		znsage_policy_put(policy);
	else
		err = start(zd, policy);
	mutex_unlock(&znsage_policy_lock);
	if (err)
		znsage_policy_put(policy);
	else
		znsage_kick(zd);
	return err;
}

#ifdef ZNSAGE_DEBUG
static bool hold_end;
module_param(hold_end, bool, 0600);
MODULE_PARM_DESC(hold_end, "a loaded policy that ends waits while this is set");
#else
static const bool hold_end;
#endif

/*
 * Make a policy known under its name; the caller has its first reference.
 * Returns 0, or -EEXIST if the name is taken. Context: sleeps.
 */
int znsage_policy_add(struct znsage_loaded *p)
{
	int err = 0;

	refcount_set(&p->refs, 1);
	INIT_LIST_HEAD(&p->users);
	mutex_lock(&loaded_lock);
	if (zse_builtin_policy(p->policy.name) || find(p->policy.name))
		err = -EEXIST;
	else
		list_add_tail(&p->link, &loaded_policies);
	mutex_unlock(&loaded_lock);
	return err;
}

/*
 * Give all devices that use @p the default policy. That cannot fail: the start
 * of @p allocated what the default needs. Under znsage_policy_lock.
 */
static void end(struct znsage_loaded *p, const char *why)
{
	struct znsage_device *zd, *next;

	if (p->dead)
		return;
	mutex_lock(&loaded_lock);
	p->dead = true;
	mutex_unlock(&loaded_lock);
	list_for_each_entry_safe(zd, next, &p->users, policy_user) {
		while (READ_ONCE(hold_end))
			msleep(20);
		change(zd, zse_builtin_policy(ZNSAGE_DEFAULT_POLICY));
		znsage_kick(zd);
		snprintf(zd->ejected, sizeof(zd->ejected), "%s: %s",
			 p->policy.name, why);
	}
}

/* Let no device use @p, and say @why in policy_ejected. Context: sleeps. */
void znsage_policy_eject(struct znsage_loaded *p, const char *why)
{
	mutex_lock(&znsage_policy_lock);
	end(p, why);
	mutex_unlock(&znsage_policy_lock);
}

/*
 * Forget the policy with @key and return it, or NULL. None of its functions is
 * running any more. Context: sleeps.
 */
struct znsage_loaded *znsage_policy_remove(const void *key)
{
	struct znsage_loaded *p, *found = NULL;

	mutex_lock(&znsage_policy_lock);
	mutex_lock(&loaded_lock);
	list_for_each_entry(p, &loaded_policies, link)
		if (p->key == key)
			found = p;
	if (found)
		list_del(&found->link);
	mutex_unlock(&loaded_lock);
	if (found)
		end(found, "unloaded");
	mutex_unlock(&znsage_policy_lock);
	return found;
}
