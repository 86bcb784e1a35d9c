/* SPDX-License-Identifier: GPL-2.0 */
/* Layer 1: what follows from the configuration. */
#ifndef ZNSAGE_ENGINE_LIMITS_H
#define ZNSAGE_ENGINE_LIMITS_H

#include "state.h"

/* limits.c */
bool limits_shared(const struct zse_config *cfg);
u32 limits_survivors(const struct zse_config *cfg);
u32 limits_gc_zones(const struct zse_config *cfg, bool isolates);
u32 limits_not_full(const struct zse_config *cfg);

/* capacity.c */
u32 packed_shortest(const struct zse_config *cfg);
u32 packed_gc_entries(const struct zse_config *cfg);
u32 packed_waste(const struct zse_config *cfg);
u64 packed_most_live(const struct zse_config *cfg);

u32 packed_span_blocks(const struct zse_config *cfg);
u32 packed_full_zone(const struct zse_config *cfg);

#endif /* ZNSAGE_ENGINE_LIMITS_H */
