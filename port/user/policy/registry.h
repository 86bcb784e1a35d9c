/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ZNSAGE_USER_REGISTRY_H
#define ZNSAGE_USER_REGISTRY_H

#include <znsage.h>

/* From the engine, whose header policies do not see. */
const struct znsage_policy *zse_builtin_policy(const char *name);

const struct znsage_policy *zse_find_policy(const char *name);
const struct znsage_policy *zse_load_policy(const char *path, const char **why);

#endif /* ZNSAGE_USER_REGISTRY_H */
