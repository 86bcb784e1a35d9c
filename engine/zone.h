/* SPDX-License-Identifier: GPL-2.0 */
/* Layer 3: zones' states, health, owners and lists of slots. */
#ifndef ZNSAGE_ENGINE_ZONE_H
#define ZNSAGE_ENGINE_ZONE_H

#include "map.h"

/* zone.c; with the engine lock, but for zones_init() */
extern const char *const zone_state_names[ZSE_NR_ZONE_STATES];
void zones_init(struct zse_engine *e);
void zone_set_state(struct zse_engine *e, u32 zone, enum zse_zone_state to);
u32 zone_room(const struct zse_engine *e, u32 zone);
u32 zones_active(const struct zse_engine *e);

void zone_close(struct zse_engine *e, u32 zone);

bool zone_is_busy(const struct zse_engine *e, u32 zone);
bool zone_has_data(const struct zse_zone *z);
u32 zone_written(const struct zse_engine *e, const struct zse_zone *z);
void zones_take_dead(struct zse_engine *e);

/* zone.c, without the lock */
void zone_look(const struct zse_engine *e, u32 zone, struct znsage_zone *z);
u64 zone_age(const struct zse_engine *e, const struct zse_zone *z);

/* health.c; with the engine lock, but for the first three */
bool zone_is_failed(const struct zse_zone *z);
bool zone_is_deferred(const struct zse_engine *e, const struct zse_zone *z);
u64 recover_demand(const struct zse_engine *e);
void zone_health_event(struct zse_engine *e, struct zse_zone *z,
		       enum zse_health_event what);

void zone_set_place(struct zse_engine *e, struct zse_zone *z,
		    enum zse_place place);

void recover_release_held(struct zse_engine *e, struct zse_zone *z);
bool recover_release_place(struct zse_engine *e);

/* owner.c; with the engine lock, but for the first */
u32 share_owner(const struct zse_zone *z);
void share_count_live(struct zse_engine *e, struct zse_zone *z);
void share_own(struct zse_engine *e, struct zse_zone *z, u32 stream);

void share_zone_state(struct zse_engine *e, struct zse_zone *z,
		 enum zse_zone_state to);
void share_open(struct zse_engine *e, struct zse_zone *z,
		const struct zse_chunk *c);
void share_gc_ended(struct zse_engine *e, const struct zse_chunk *c);

/* lists.c; census_drop() with the engine lock */
u32 census_lists(const struct zse_config *cfg);
bool census_alloc(struct zse_engine *e);
void census_free(struct zse_engine *e);
bool census_has(const struct zse_engine *e, u32 zone);
u32 census_slot(const struct zse_engine *e, u32 block);
void census_drop(struct zse_engine *e, struct zse_zone *z);

void census_begin(struct zse_engine *e, u32 zone);

#endif /* ZNSAGE_ENGINE_ZONE_H */
