// SPDX-License-Identifier: GPL-2.0
/*
 * Compiled into the shared object of a policy. Forwards the policy's calls
 * through a table that the simulator fills in.
 */
#include "calls.h"

struct znsage_calls znsage_calls;

int znsage_register_policy(struct znsage_policy *policy)
{
	return znsage_calls.register_policy(policy);
}

void znsage_unregister_policy(struct znsage_policy *policy)
{
	znsage_calls.unregister_policy(policy);
}

u32 znsage_stream_of(struct zse_engine *dev, u64 key)
{
	return znsage_calls.stream_of(dev, key);
}

void znsage_get_levels(struct zse_engine *dev, struct znsage_levels *levels)
{
	znsage_calls.get_levels(dev, levels);
}

bool znsage_get_zone(struct zse_engine *dev, u32 zone, struct znsage_zone *z)
{
	return znsage_calls.get_zone(dev, zone, z);
}

void *znsage_private(struct zse_engine *dev)
{
	return znsage_calls.private_data(dev);
}
