/* SPDX-License-Identifier: GPL-2.0 */
/* Layer 8: what hosts and policies call, which engine.h declares. */
#ifndef ZNSAGE_ENGINE_API_H
#define ZNSAGE_ENGINE_API_H

#include "gc.h"

/* policy.c */
u32 policy_streams(const struct zse_engine *e,
		   const struct znsage_policy *policy);

/* keys.c; with the engine lock */
u32 keys_sharing(const struct zse_engine *e);
void keys_clear(struct zse_engine *e);

#endif /* ZNSAGE_ENGINE_API_H */
