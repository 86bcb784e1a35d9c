/* SPDX-License-Identifier: GPL-2.0 */
/* Layer 2: slots to blocks, live counts, freed slots. No lock. */
#ifndef ZNSAGE_ENGINE_MAP_H
#define ZNSAGE_ENGINE_MAP_H

#include "limits.h"

/* map.c */
void map_clear(struct zse_engine *e);
u32 map_tag(const struct zse_engine *e, const struct zse_chunk *c, u32 index);
bool map_write(struct zse_engine *e, u32 slot, u32 to);
void map_publish(struct zse_engine *e, const struct zse_chunk *c, u32 first,
		 u32 nr, u32 block);
u64 map_get(const struct zse_engine *e, u32 slot);
bool map_lose(struct zse_engine *e, const struct zse_entry *entry);
bool map_is(const struct zse_engine *e, u32 slot, u32 value);
void zone_note_dead(struct zse_engine *e, struct zse_zone *z);
void past_keep(struct zse_engine *e, u32 slot, u8 past);

/* filled.c */
u64 filled_word(const struct zse_engine *e, u32 value);

#endif /* ZNSAGE_ENGINE_MAP_H */
