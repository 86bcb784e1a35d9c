/* SPDX-License-Identifier: GPL-2.0 */
/* Layer 1: what follows from the configuration. */
#ifndef ZNSAGE_ENGINE_LIMITS_H
#define ZNSAGE_ENGINE_LIMITS_H

#include "state.h"

/* Entries of a full chunk, if swap-out does not make it grow. */
static inline u32 batch_pages(const struct zse_config *cfg)
{
	return cfg->batch_pages ? cfg->batch_pages : cfg->chunk_pages;
}

/* Blocks of a page that is stored as it is, but for its header. */
static inline u32 page_blocks(const struct zse_config *cfg)
{
	return cfg->pack ? cfg->pack : 1;
}

/* Blocks that a full chunk takes at most. */
static inline u32 batch_blocks(const struct zse_config *cfg)
{
	u32 batch = batch_pages(cfg);

	return cfg->pack ? batch * (cfg->pack + 1) : batch;
}

/* The most blocks of a page. */
static inline u32 longest_page(const struct zse_config *cfg)
{
	return cfg->pack ? cfg->pack + 1 : 1;
}

/* Pages that the device holds if none shrinks: the clock counts pages. */
static inline u64 usable_pages(const struct zse_engine *e)
{
	return div_u64(e->usable_blocks, page_blocks(&e->cfg));
}

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
