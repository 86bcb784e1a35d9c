/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The functions of include/znsage.h as a table, for a policy in a shared
 * object. With it, the program that loads the object need not export symbols.
 */
#ifndef ZNSAGE_USER_CALLS_H
#define ZNSAGE_USER_CALLS_H

#include <znsage.h>

struct znsage_calls {
	int (*register_policy)(struct znsage_policy *policy);
	void (*unregister_policy)(struct znsage_policy *policy);
	u32 (*stream_of)(struct zse_engine *dev, u64 key);
	void (*get_levels)(struct zse_engine *dev,
			   struct znsage_levels *levels);
	bool (*get_zone)(struct zse_engine *dev, u32 zone,
			 struct znsage_zone *z);
	void *(*private_data)(struct zse_engine *dev);
};

#endif /* ZNSAGE_USER_CALLS_H */
