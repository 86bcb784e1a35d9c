// SPDX-License-Identifier: GPL-2.0
/*
 * Policies by name in user space: the engine's, those linked into the program,
 * and those loaded from shared objects, which take the place of modules. None
 * is ever unloaded.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "calls.h"
#include "registry.h"

#define MAX_POLICIES	32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct znsage_policy *policies[MAX_POLICIES];
static u32 nr_policies;

/* The policy that this thread registered last. */
static __thread struct znsage_policy *last;

static struct znsage_policy *find(const char *name)
{
	u32 i;

	for (i = 0; i < nr_policies; i++)
		if (!strncmp(policies[i]->name, name, ZNSAGE_POLICY_NAME))
			return policies[i];
	return NULL;
}

int znsage_register_policy(struct znsage_policy *policy)
{
	int err = 0;

	if (!policy->name[0] || !policy->place ||
	    strnlen(policy->name, ZNSAGE_POLICY_NAME) == ZNSAGE_POLICY_NAME)
		return -EINVAL;
	pthread_mutex_lock(&lock);
	if (zse_builtin_policy(policy->name) || find(policy->name))
		err = -EEXIST;
	else if (nr_policies == MAX_POLICIES)
		err = -ENOSPC;
	else
		policies[nr_policies++] = policy;
	pthread_mutex_unlock(&lock);
	if (!err)
		last = policy;
	return err;
}

void znsage_unregister_policy(struct znsage_policy *policy)
{
	u32 i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < nr_policies; i++)
		if (policies[i] == policy)
			policies[i] = policies[--nr_policies];
	pthread_mutex_unlock(&lock);
	if (last == policy)
		last = NULL;
}

/* The policy of that name, or NULL. */
const struct znsage_policy *zse_find_policy(const char *name)
{
	const struct znsage_policy *policy = zse_builtin_policy(name);

	if (policy)
		return policy;
	pthread_mutex_lock(&lock);
	policy = find(name);
	pthread_mutex_unlock(&lock);
	return policy;
}

static const struct znsage_calls calls = {
	.register_policy = znsage_register_policy,
	.unregister_policy = znsage_unregister_policy,
	.stream_of = znsage_stream_of,
	.get_levels = znsage_get_levels,
	.get_zone = znsage_get_zone,
	.private_data = znsage_private,
};

/*
 * Load the shared object @path and return the policy that it registers. On
 * failure return NULL and set @why to a string that the caller does not free.
 */
const struct znsage_policy *zse_load_policy(const char *path, const char **why)
{
	void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	struct znsage_calls *object_calls;
	int (*init)(void);
	int err;

	*why = "";
	if (!object) {
		*why = dlerror();
		return NULL;
	}
	object_calls = dlsym(object, "znsage_calls");
	*(void **)&init = dlsym(object, "znsage_policy_init");
	if (!object_calls || !init) {
		*why = "it has no module_init()";
		return NULL;
	}
	*object_calls = calls;
	last = NULL;
	err = init();
	if (err)
		*why = err == -EEXIST ? "there is a policy of that name" :
		       err == -EINVAL ? "a policy needs a name and place()" :
					"its init function fails";
	else if (!last)
		*why = "it registers no policy";
	return err ? NULL : last;
}
