/* SPDX-License-Identifier: GPL-2.0 */
/* Layer 4: how much may be written, and how fast. */
#ifndef ZNSAGE_ENGINE_ROOM_H
#define ZNSAGE_ENGINE_ROOM_H

#include "zone.h"

/* stripe.c; with the engine lock */
struct zse_stripe *stripe_of(struct zse_engine *e, u32 stream);
void stripe_init(struct zse_stripe *s, u32 nr);
void stripe_set_lanes(struct zse_engine *e, struct zse_stripe *s, u32 nr);
u32 stripe_turn(struct zse_stripe *s);
bool stripe_is_busy(const struct zse_engine *e, const struct zse_stripe *s);
bool stripe_is_open(const struct zse_stripe *s);
u32 stripe_room(const struct zse_engine *e, const struct zse_stripe *s);
bool stripe_forget(struct zse_stripe *s, u32 zone);

/* room.c; with the engine lock */
u32 flow_kept_zones(const struct zse_engine *e);
bool zone_may_open(const struct zse_engine *e, bool gc);
void flow_lane_back(struct zse_engine *e);
u64 flow_room(const struct zse_engine *e);
u32 flow_gc_room(const struct zse_engine *e);
bool flow_watermarks(const struct zse_engine *e, u32 *low, u32 *high);
void flow_default_watermarks(struct zse_engine *e);

/* pace.c; with the engine lock */
bool flow_gc_may_begin(const struct zse_engine *e);
void flow_gc_begun(struct zse_engine *e, const struct zse_zone *z);
bool flow_gc_waits(const struct zse_engine *e);
bool flow_swap_out_waits(const struct zse_engine *e);
void flow_swapped_out(struct zse_engine *e, u32 blocks);
void flow_gc_read(struct zse_engine *e, u32 blocks);

/* window.c; flow_append_sent() with the engine lock */
void flow_init(struct zse_engine *e);
bool flow_window_open(const struct zse_engine *e);
void flow_chunk_left(struct zse_engine *e, struct zse_chunk *c);
void flow_chunk_packed(struct zse_engine *e, struct zse_chunk *c);
void flow_append_ended(struct zse_engine *e, const struct zse_chunk *c,
		       u32 blocks, u64 now);
void flow_append_sent(struct zse_engine *e, struct zse_chunk *c, u64 now);

#endif /* ZNSAGE_ENGINE_ROOM_H */
