/* SPDX-License-Identifier: GPL-2.0 */
/* Layer 6: streams and chunks. */
#ifndef ZNSAGE_ENGINE_CHUNK_H
#define ZNSAGE_ENGINE_CHUNK_H

#include "alloc.h"

/* stream.c; with the engine lock, but for the first two */
u32 pool_words(const struct zse_config *cfg);
u32 pool_used(const struct zse_engine *e);
void chunk_release(struct zse_engine *e, struct zse_chunk *c);

/* chunk.c; with the engine lock */
bool chunk_assign(struct zse_engine *e, struct zse_chunk *c,
		  struct zse_op *op, u64 now);
void chunk_wait(struct zse_engine *e, struct zse_chunk *c,
		struct list_head *list, bool head);
void chunk_stall(struct zse_engine *e, struct zse_chunk *c);

#endif /* ZNSAGE_ENGINE_CHUNK_H */
