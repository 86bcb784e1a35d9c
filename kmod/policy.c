// SPDX-License-Identifier: GPL-2.0
/*
 * Policies by name, both the engine's own and those in BPF, and changing the
 * policy of a running device.
 *
 * To change it, the device gives the new policy to the engine and waits for an
 * RCU grace period, since a policy's functions are called inside RCU sections.
 * Then it puts the old one.
 */
#include <linux/mutex.h>
#include <linux/rcupdate.h>

#include "znsage.h"

/*
 * Held to change the policy of any device, and while a BPF policy ends, which
 * changes that of all its devices.
 */
DEFINE_MUTEX(znsage_policy_lock);

/*
 * Find a policy by name and keep it until znsage_policy_put(), or return NULL.
 * Context: sleeps.
 */
const struct znsage_policy *znsage_policy_get(const char *name)
{
	const struct znsage_policy *policy = zse_builtin_policy(name);

	return policy ? policy : znsage_bpf_get(name);
}

void znsage_policy_put(const struct znsage_policy *policy)
{
	znsage_bpf_put(policy);
}

/* The names of all policies, a line each. Returns the length. */
ssize_t znsage_policy_names(char *buf)
{
	const struct znsage_policy *const *p;
	ssize_t len = 0;

	for (p = zse_builtin_policies; *p; p++)
		len += sysfs_emit_at(buf, len, "%s\n", (*p)->name);
	return znsage_bpf_names(buf, len);
}

/* Some policies only need the CPU; skip the other look-ups for them. */
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
	const struct znsage_policy *old = zd->policy;
	void *old_private = zd->policy_private, *private = NULL;
	int err = znsage_bpf_private(policy, &private);

	if (err)
		return err;
	if (!zse_prepare(zd->engine, policy))
		return -ENOMEM;
	/*
	 * No function may see the other policy's private data. So the old
	 * policy's calls end while the device has a policy without any.
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
	znsage_bpf_detach(old, zd);
	znsage_bpf_attach(policy, zd);
	znsage_policy_put(old);
	return 0;
}

/* change(), with a message if it fails. */
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
 * Switch to the default policy. This cannot fail after a BPF policy, whose start
 * allocated what the default needs. Under znsage_policy_lock.
 */
void znsage_policy_default(struct znsage_device *zd)
{
	change(zd, zse_builtin_policy(ZNSAGE_DEFAULT_POLICY));
	znsage_kick(zd);
}

/**
 * znsage_policy_end() - drop the policy of a device that ends
 * @zd: device that no write reaches and whose policy nobody can set; may be
 *	half built
 *
 * The worker goes on with a built-in policy that needs no memory. Once this
 * returns, no other policy knows the device, so none kicks it.
 *
 * Context: sleeps.
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
 * policy, or an errno if it cannot be started. On failure the old one stays.
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
