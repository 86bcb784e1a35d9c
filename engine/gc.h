/* SPDX-License-Identifier: GPL-2.0 */
/* Layer 7: garbage collection, retries, zones that are lost. */
#ifndef ZNSAGE_ENGINE_GC_H
#define ZNSAGE_ENGINE_GC_H

#include "chunk.h"

/* victim.c; any context */
u32 victim_blocks(const struct zse_engine *e, const struct zse_zone *z);
bool victim_will_do(const struct zse_engine *e, u32 zone, u32 room);
u32 victim_by_rule(struct zse_engine *e, u32 room, bool any);
u32 victim_ahead(struct zse_engine *e);
u32 victim_choose(struct zse_engine *e, u32 room, bool any);
u32 policy_survivor(struct zse_engine *e, u32 zone);

u32 life_class(u64 life, u64 most, u32 spread, u32 nr);
u32 survivors_by_age(struct zse_engine *e, const struct znsage_zone *z);

/* share_gc.c; with the engine lock, but for those that victim.c calls */
bool share_wants_gc(const struct zse_engine *e);
bool share_may_clean(const struct zse_engine *e, const struct zse_zone *z);
bool share_may_read(const struct zse_engine *e, const struct zse_zone *z,
		    const struct zse_chunk *c);
void share_gc_taken(struct zse_engine *e, struct zse_chunk *c,
		    const struct zse_zone *z);
void share_update_slow(struct zse_engine *e);
u32 share_others_victims(const struct zse_engine *e);
bool share_is_slow(const struct zse_engine *e, const struct zse_zone *z);
u32 share_of_room(const struct zse_engine *e, const struct zse_zone *z,
		  u32 room);
void share_no_victim(struct zse_engine *e, bool none);
bool share_suspend(struct zse_engine *e);
void share_clear(struct zse_engine *e);

/* drain.c; with the engine lock */
bool clean_is_reading(const struct zse_engine *e, u32 zone);
void zone_check_drained(struct zse_engine *e, u32 zone);
void zone_moved(struct zse_engine *e, u32 zone, u32 blocks);

void victim_begin(struct zse_engine *e, u32 zone, u32 class);
void gc_moved(struct zse_engine *e, struct zse_chunk *c);

void clean_read_out(struct zse_engine *e, u32 zone);

/* scan.c; with the engine lock */
bool packed_span(struct zse_engine *e, u32 zone, struct zse_chunk *c,
		   struct zse_op *op);

/* clean.c; with the engine lock, but for clean_fill() */
bool clean_can_read(struct zse_engine *e);
bool clean_find_victim(struct zse_engine *e);
bool clean_begin_failed(struct zse_engine *e);
bool clean_fill(struct zse_engine *e, struct zse_op *op);

/* census.c */
bool census_waits(const struct zse_engine *e);
void census_gc_read(struct zse_engine *e, u32 blocks);
void census_work(struct zse_engine *e, bool more);

/* recover.c; with the engine lock, but for the first two */
bool recover_after_errors(const struct zse_engine *e);
void recover_swapped_out(struct zse_engine *e);
void recover_gc_append_failed(struct zse_engine *e, u64 now);
void recover_fail_waiting(struct zse_engine *e, u64 now);
void recover_append_failed(struct zse_engine *e, struct zse_zone *z);
void recover_append_worked(struct zse_engine *e);
void recover_move_failed(struct zse_engine *e, u32 zone, bool unread);
void recover_refused(struct zse_engine *e, u32 blocks);
void recover_retry(struct zse_engine *e);
bool recover_last_resort(struct zse_engine *e);
bool recover_gives_up(const struct zse_engine *e, const struct zse_zone *z);

/* lost.c; without the engine lock, but for lost_is_due() */
bool zone_landed(struct zse_engine *e, const struct zse_chunk *c, u32 offset,
		 u32 blocks, bool *last);
bool lost_is_due(const struct zse_engine *e);
void lost_work(struct zse_engine *e);

#endif /* ZNSAGE_ENGINE_GC_H */
