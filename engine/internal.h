/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the engine's files share. README.md in this directory tells which file
 * does what; the rules of access are here, beside the fields.
 *
 * Lock order: stream lock, then engine lock. The maps and the per-zone
 * counters live and readers are not under any lock; map.c has their argument.
 */
#ifndef ZNSAGE_ENGINE_INTERNAL_H
#define ZNSAGE_ENGINE_INTERNAL_H

#include "engine.h"

/* Times that an append, a finish or a reset that failed is tried again. */
#define ZSE_MAX_RETRIES		3
/* Resets in flight: enough to hide one's latency, too few to hurt reads. */
#define ZSE_MAX_RESETTING	4
/* Shards of the counters that swap_slot_free_notify touches. */
#define ZSE_SHARDS		16

enum zse_zone_state {
	ZSE_ZONE_EMPTY,
	ZSE_ZONE_OPEN,		/* a stream allocates from it */
	ZSE_ZONE_CLOSING,	/* allocated in full, appends in flight */
	ZSE_ZONE_FINISH,	/* written, the device has yet to be told */
	ZSE_ZONE_FINISHING,
	ZSE_ZONE_FULL,
	ZSE_ZONE_VICTIM,	/* GC reads it or moves what it read */
	ZSE_ZONE_DRAINED,	/* nothing live; waits for readers, then reset */
	ZSE_ZONE_RESETTING,
	ZSE_ZONE_RETIRED,	/* failed; holds nothing */
	ZSE_NR_ZONE_STATES
};

/**
 * struct zse_zone - one zone
 * @live:    blocks the forward map points to; atomic. Raised before the map
 *	     says so and lowered after: never below the truth, so 0 is certain.
 * @readers: swap-in reads in flight; atomic
 * @state:   enum zse_zone_state; changed by zone_set_state() under the engine
 *	     lock, read anywhere
 * @cap:     blocks that fit
 * @link:    list of empty, drained or to-be-finished zones
 *
 * Under the engine lock:
 * @alloc:   blocks given to appends since the reset
 * @written: blocks acknowledged
 * @appends: in flight
 * @moving:  entries of GC chunks that were read from here and not yet settled
 * @tries:   finishes or resets in a row that failed
 * @bad:     an append failed: it is read out and then retired
 * @active:  no finish came to pass: the device may count it as active until it
 *	     is reset, which is done before it is retired
 * @held:    counted as active for that
 */
struct zse_zone {
	u32 live;
	u32 readers;
	u32 state;
	u32 cap;
	struct list_head link;
	u32 alloc;
	u32 written;
	u32 appends;
	u32 moving;
	u32 tries;
	bool bad;
	bool active;
	bool held;
};

/**
 * struct zse_stripe - zones that are written in turn, see stripe.c
 * @nr:	  lanes
 * @next: lane of the next chunk
 * @zone: of each lane, its open zone or ZSE_NONE
 */
struct zse_stripe {
	u32 nr;
	u32 next;
	u32 zone[ZSE_MAX_LANES];
};

/**
 * struct zse_victim - a zone that is being read out
 * @zone:   which
 * @cursor: next block to look at; only the caller of zse_next_op() does
 */
struct zse_victim {
	u32 zone;
	u32 cursor;
};

/**
 * struct zse_stream - a source of appends
 * @lock:   guards @chunk and its entries while it fills
 * @chunk:  being filled, or NULL
 * @stripe: its open zones; under the engine lock
 */
struct zse_stream {
	zp_lock_t lock;
	struct zse_chunk *chunk;
	struct zse_stripe stripe;
};

struct zse_shard {
	u64 used;		/* slots filled minus slots freed, modulo 2^64 */
	u64 freed;
	u64 pad[6];		/* a cache line of its own */
};

/**
 * struct zse_engine - one device
 *
 * Written once by zse_create(): @cfg, @nr_streams, @min_cap, @nr_blocks,
 * @map_bytes and the pointers to the arrays. @fwd and @rev: see map.c.
 *
 * Under @lock:
 * @counters:	  but slots_freed, which is the shards'
 * @nr_state:	  zones in each state; zone_set_state() alone changes it
 * @nr_held:	  zones that are held
 * @empty, @drained, @to_finish: zones in these states, oldest first
 * @free_chunks, @free_gc_chunks: the pool
 * @stalled:	  swap-out chunks that wait for a zone, in order
 * @gc_ready:	  GC chunks that were read (or wait for a zone), in order
 * @failed:	  swap-out chunks given up
 * @nr_used_chunks, @nr_used_gc_chunks: not in the pool
 * @window:	  so many chunks may be used at once, see window.c
 * @window_in_time: chunks since it last changed that were in time
 * @window_cut:	  when it last shrank
 * @appends:	  in flight over all zones
 * @gc_stripe:	  survivors go here
 * @gc_unplaced:  entries of GC chunks that have no zone yet
 * @gc_on, @gc_running: allowed to run ahead; between the watermarks
 * @gc_low, @gc_high: watermarks
 *
 * @victims:	  zones that are being read out, the first @nr_victims; changed
 *		  only by the caller of zse_next_op(), who may look at them
 *		  without the lock
 * @turn:	  of these, the one that the next GC chunk begins with; likewise
 */
struct zse_engine {
	struct zse_config cfg;
	u32 nr_streams;
	u32 min_cap;
	u32 nr_blocks;
	u64 usable_blocks;
	u64 map_bytes;
	u32 *fwd;
	u32 *rev;
	struct zse_zone *zones;
	struct zse_stream *streams;
	struct zse_chunk *chunks;
	struct zse_entry *entries;
	struct zse_shard shards[ZSE_SHARDS];

	zp_lock_t lock;
	struct zse_stats counters;
	u32 nr_state[ZSE_NR_ZONE_STATES];
	u32 nr_held;
	struct list_head empty;
	struct list_head drained;
	struct list_head to_finish;
	struct list_head free_chunks;
	struct list_head free_gc_chunks;
	struct list_head stalled;
	struct list_head gc_ready;
	struct list_head failed;
	u32 nr_used_chunks;
	u32 nr_used_gc_chunks;
	u32 window;
	u32 window_in_time;
	u64 window_cut;
	u32 appends;
	struct zse_stripe gc_stripe;
	u32 gc_unplaced;
	bool gc_on;
	bool gc_running;
	u32 gc_low;
	u32 gc_high;

	struct zse_victim victims[ZSE_MAX_LANES];
	u32 nr_victims;
	u32 turn;
};

static inline u32 round_up_unit(const struct zse_engine *e, u32 blocks)
{
	u32 unit = e->cfg.write_unit;

	return (blocks + unit - 1) / unit * unit;
}

/* map.c */
void map_clear(struct zse_engine *e);
u32 map_tag(const struct zse_engine *e, const struct zse_chunk *c, u32 index);
void map_begin_write(struct zse_engine *e, u32 slot, u32 tag);
u32 map_publish(struct zse_engine *e, const struct zse_chunk *c, u32 first,
		u32 nr, u32 block);
bool map_lose(struct zse_engine *e, u32 slot, u32 expect);
bool map_is(const struct zse_engine *e, u32 slot, u32 value);

/* zone.c; all but zones_init() want the engine lock */
void zones_init(struct zse_engine *e);
void zone_set_state(struct zse_engine *e, u32 zone, enum zse_zone_state to);
u32 zone_room(const struct zse_engine *e, u32 zone);
bool zone_may_open(const struct zse_engine *e, bool gc);
u32 zone_for_append(struct zse_engine *e, struct zse_chunk *c);
void zone_append_ended(struct zse_engine *e, u32 zone, u32 blocks, bool ok);
void zone_moved(struct zse_engine *e, u32 zone, u32 entries);
bool zone_let_go(struct zse_engine *e);
bool zone_swap_for_gc(struct zse_engine *e);
void zone_check_drained(struct zse_engine *e, u32 zone);
u32 zones_soon_empty(const struct zse_engine *e);

/* stripe.c; want the engine lock */
void stripe_init(struct zse_stripe *s, u32 nr);
u32 stripe_turn(struct zse_stripe *s);
u32 stripe_missing(const struct zse_stripe *s);
bool stripe_narrow(struct zse_stripe *s);
bool stripe_is_open(const struct zse_stripe *s);
u32 stripe_room(const struct zse_engine *e, const struct zse_stripe *s);
u32 stripe_usable(const struct zse_engine *e, const struct zse_stripe *s,
		  u32 lane, bool gc);
void stripe_forget(struct zse_stripe *s, u32 zone);

/* gc.c; wants the engine lock */
bool gc_is_reading(const struct zse_engine *e, u32 zone);

/* stream.c; want the engine lock */
void chunk_release(struct zse_engine *e, struct zse_chunk *c);
bool chunk_assign(struct zse_engine *e, struct zse_chunk *c,
		  struct zse_op *op);

/* window.c; all but window_init() want the engine lock */
void window_init(struct zse_engine *e);
bool window_open(const struct zse_engine *e);
void window_update(struct zse_engine *e, u64 sent, u64 now);

/* policy.c; policy_victim() wants the engine lock */
u32 policy_place(const struct zse_engine *e, u32 cpu);
bool policy_watermarks(const struct zse_engine *e, u32 *low, u32 *high);
u32 policy_victim(struct zse_engine *e, u32 room, bool any);

/* check.c */
u32 check_count_live(const struct zse_engine *e, u32 zone);

#endif /* ZNSAGE_ENGINE_INTERNAL_H */
