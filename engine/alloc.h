/* SPDX-License-Identifier: GPL-2.0 */
/* Layer 5: which zone an append goes to. */
#ifndef ZNSAGE_ENGINE_ALLOC_H
#define ZNSAGE_ENGINE_ALLOC_H

#include "room.h"

/* alloc.c; with the engine lock */
bool zone_has_no_room(const struct zse_engine *e, const struct zse_chunk *c);
u32 packed_from(const struct zse_config *cfg, const struct zse_chunk *c);
u32 zone_for_append(struct zse_engine *e, struct zse_chunk *c);
bool zone_swap_for_gc(struct zse_engine *e);

void zone_leave_stripes(struct zse_engine *e, u32 zone);

void zone_take_out(struct zse_engine *e, u32 zone);

/* share.c; with the engine lock, but for the first */
bool share_of_chunks(const struct zse_engine *e, u32 stream);
bool share_of_zones(struct zse_engine *e, u32 stream);
bool share_may_pass(const struct zse_engine *e, const struct zse_chunk *c);

#endif /* ZNSAGE_ENGINE_ALLOC_H */
