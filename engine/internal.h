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
/* Times that what GC cannot read stays; one more, and it is lost. */
#define ZSE_MAX_UNREAD		6
/* Failures of a zone, without a success between them, that are forgiven. */
#define ZSE_MAX_FAILURES	1
/* Resets in flight: enough to hide one's latency, too few to hurt reads. */
#define ZSE_MAX_RESETTING	4
/* Shards of the counters that swap-in and swap_slot_free_notify touch. */
#define ZSE_SHARDS		16
/* Slots or blocks that are walked at a time; a cache miss or two each. */
#define ZSE_RESCHED		4096

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

/* Why GC leaves a zone alone for some time. */
enum zse_aside {
	ZSE_NOT_ASIDE,
	ZSE_UNREAD,		/* a block of it could not be read */
	ZSE_UNWRITTEN,		/* what was read could not be written */
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
 * @stream, @moves, @mixed, @key, @born: see zone_describe()
 * @owner:   stream that it counts for, see share.c; or ZSE_NONE
 * @reads:   blocks that swap-in has read, since the reset; atomic
 * @filled:  when it became full, by the clock
 * @bad:     an append or the finish failed: it is read out and reset
 * @failures: how often it became bad since it was last written to its end; one
 *	     that does too often is retired
 * @active:  no finish came to pass: the device may count it as active until it
 *	     is reset
 * @held:    counted as active for that
 * @let_go:  not any more, since nothing else could be opened
 * @aside:   GC could not move all of it, and leaves it alone; read anywhere
 * @unread:  times in a row that it could not be read though the device worked;
 *	     likewise
 * @aside_until: GC leaves it alone until engine.demand is that
 * @revived: its reset is a try, see zone_revive()
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
	u32 bad;
	u32 mixed;
	u32 aside;
	u32 unread;
	u8 tries;
	u8 failures;
	bool active;
	bool held;
	bool let_go;
	bool revived;
	u64 aside_until;
	u32 stream;
	u32 moves;
	u32 reads;
	u32 owner;
	u64 key;
	u64 born;
	u64 filled;
};

/**
 * struct zse_stripe - zones that are written in turn, see stripe.c
 * @nr:	  lanes
 * @kept: of these, so many are to find an empty zone at any time
 * @next: lane of the next chunk
 * @zone: of each lane, its open zone or ZSE_NONE; beyond @nr, zones that were
 *	  left open when it had more lanes
 */
struct zse_stripe {
	u32 nr;
	u32 kept;
	u32 next;
	u32 zone[ZSE_MAX_LANES];
};

/**
 * struct zse_reading - a victim that is being read out
 * @zone:   which
 * @cursor: next block to look at; only the caller of zse_next_op() does
 * @passed: blocks that were looked at and accounted for; under the engine lock
 * @class:  of its survivors
 */
struct zse_reading {
	u32 zone;
	u32 cursor;
	u32 passed;
	u32 class;
};

/**
 * struct zse_stream - a source of appends
 * @lock:   guards @chunk and its entries while it fills
 * @chunk:  being filled, or NULL
 *
 * Under the engine lock:
 * @stripe: its open zones
 * @nr_keys: keys that have this stream
 * @key:    the last one that got it
 * @mixed:  others had it then
 * @recent: pages, those of long ago counting less
 * @nr_chunks: in use
 * @nr_zones: that count for it
 * @nr_coming: of these, on their way to be empty
 * @over:   it has used up its share of the zones; read anywhere
 * @count:  for zse_get_stream()
 */
struct zse_stream {
	zp_lock_t lock;
	struct zse_chunk *chunk;
	struct zse_stripe stripe;
	u32 nr_keys;
	u64 key;
	bool mixed;
	u32 recent;
	u32 nr_chunks;
	u32 nr_zones;
	u32 nr_coming;
	u32 over;
	struct zse_stream_info count;
};

/**
 * struct zse_gc_share - what a stream has of GC, see share.c
 * @chunks:  with pages of its zones, but for those that are parked
 * @victims: of its zones; read anywhere
 * @slow:    GC goes past it; read anywhere
 */
struct zse_gc_share {
	u32 chunks;
	u32 victims;
	u32 slow;
};

/* Zones that are nobody's have a share together. */
#define ZSE_NOBODY	ZSE_MAX_STREAMS

/* Places for keys that have a stream, see keys.c. */
#define ZSE_KEYS	256

/**
 * struct zse_key - a key that has a stream
 * @word: hash and stream, or 0; changed under the engine lock, read anywhere
 * @used: when it last came, by the clock; likewise, but written by anyone
 */
struct zse_key {
	u64 word;
	u32 used;
};

struct zse_shard {
	u64 used;		/* slots filled minus slots freed, modulo 2^64 */
	u64 freed;
	u64 pad[6];		/* a cache line of its own */
	u64 read_blocks[ZSE_MAX_STREAMS];	/* by stream of their zone */
};

/**
 * struct zse_engine - one device
 *
 * Written once by zse_create(): @cfg, @max_streams, @shared, @min_cap,
 * @nr_blocks, @map_bytes and the pointers to the arrays. @fwd and @rev: see
 * map.c. @shared: swap-out writes the zones of GC, see limits_shared().
 *
 * Written under @lock, read anywhere:
 * @policy, @policy_private, @nr_streams: see zse_set_policy()
 * @nr_survivors: classes of survivors
 * @victim:	  rule, if the policy has none
 * @clock:	  blocks given to appends of swap-out
 * @keys:	  see keys.c
 * @nr_bad:	  full zones that failed
 * @failing:	  a read or an append failed, and none has worked since: a hint,
 *		  cleared without the lock, too
 * @urgent:	  swap-out waits: victims are those that gain most
 * @pace:	  see pace.c
 *
 * Written anywhere:
 * @policy_refused: answers of the policy that would not do
 * @dead:	  a full zone may have no live block left
 *
 * Under @lock:
 * @counters:	  but slots_freed and read_blocks, which are the shards'
 * @nr_state:	  zones in each state; zone_set_state() alone changes it
 * @nr_held:	  zones that are held
 * @nr_aside:	  zones that are put aside
 * @demand:	  blocks swapped out, or refused though the device works
 * @aside_until:  the least of these zones'
 * @errors_in_row: appends that failed since one worked
 * @wants_try:	  zones_try_again() is to do something
 * @wants_finish: to finish zones, once there is a place for it
 * @revives:	  retired zones that are still to be tried
 * @not_revived:  of those that were tried with them, in vain
 * @revives_worn: of the worn ones, too
 * @try_gap:	  errors from one try to the next
 * @try_in:	  of these, how many are left
 * @empty, @drained, @to_finish: zones in these states, oldest first
 * @retired:	  those that could not be reset, likewise
 * @worn:	  retired ones that failed again after a reset, likewise
 * @free_chunks, @free_gc_chunks: the pool
 * @stalled:	  swap-out chunks that wait for a zone, in order
 * @gc_ready:	  GC chunks that were read (or wait for a zone), in order
 * @parked:	  those that cannot be written, see carry.c
 * @failed:	  swap-out chunks given up
 * @nr_used_chunks, @nr_used_gc_chunks: not in the pool
 * @nr_parked:	  of the latter
 * @window:	  so many chunks may be used at once, see window.c
 * @window_in_time: chunks since it last changed that were in time
 * @window_cut:	  when it last shrank
 * @appends:	  in flight over all zones
 * @left_open:	  there may be open zones beyond the lanes of a stream
 * @nr_keys:	  keys that have a stream
 * @gc_stripe:	  survivors go here; if @shared, all pages do
 * @gc_class:	  of each lane of GC, the class of survivors that it is for
 * @gc_turn:	  which of its lanes the next chunk of a class goes to
 * @gc_unplaced:  entries of GC chunks that have no zone yet
 * @isolates:	  the policy does; see share.c for this and the next two
 * @shares_off:	  no stream waits for zones of its own
 * @gc_for_shares: GC only cleans for those that do; read anywhere
 * @gc_shares:	  of each stream, and ZSE_NOBODY
 * @gc_left:	  of its room, what all but the first victim of a stream leave to
 *		  others; read anywhere
 * @gc_leave:	  blocks that GC may read now, see pace.c
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
	u32 max_streams;
	bool shared;
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

	const struct znsage_policy *policy;
	void *policy_private;
	u32 nr_streams;
	u32 nr_survivors;
	u32 victim;
	u32 nr_bad;
	u32 failing;
	u32 urgent;
	u32 pace;
	u64 clock;
	struct zse_key keys[ZSE_KEYS];
	u64 policy_refused;
	u32 dead;

	zp_lock_t lock;
	struct zse_stats counters;
	u32 nr_state[ZSE_NR_ZONE_STATES];
	u32 nr_held;
	u32 nr_aside;
	u64 demand;
	u64 aside_until;
	bool wants_try;
	bool wants_finish;
	u32 errors_in_row;
	u32 revives;
	u32 not_revived;
	bool revives_worn;
	u32 try_gap;
	u32 try_in;
	struct list_head empty;
	struct list_head drained;
	struct list_head retired;
	struct list_head worn;
	struct list_head to_finish;
	struct list_head free_chunks;
	struct list_head free_gc_chunks;
	struct list_head stalled;
	struct list_head gc_ready;
	struct list_head parked;
	struct list_head failed;
	u32 nr_used_chunks;
	u32 nr_used_gc_chunks;
	u32 nr_parked;
	u32 window;
	u32 window_in_time;
	u64 window_cut;
	u32 appends;
	bool left_open;
	u32 nr_keys;
	struct zse_stripe gc_stripe;
	u32 gc_class[ZSE_MAX_LANES];
	u32 gc_turn;
	u32 gc_unplaced;
	bool isolates;
	bool shares_off;
	u32 gc_for_shares;
	u32 gc_left;
	struct zse_gc_share gc_shares[ZSE_MAX_STREAMS + 1];
	u64 gc_leave;
	bool gc_on;
	bool gc_running;
	u32 gc_low;
	u32 gc_high;

	struct zse_reading victims[ZSE_MAX_LANES];
	u32 nr_victims;
	u32 turn;
};

static inline u32 round_up_unit(const struct zse_engine *e, u32 blocks)
{
	u32 unit = e->cfg.write_unit;

	return (blocks + unit - 1) / unit * unit;
}

/* Is this entry of a chunk of GC carried? See carry.c. */
static inline bool entry_is_carried(const struct zse_entry *entry)
{
	return entry->expect >= ZSE_TAG_BASE;
}

/* map.c */
void map_clear(struct zse_engine *e);
u32 map_tag(const struct zse_engine *e, const struct zse_chunk *c, u32 index);
void map_begin_write(struct zse_engine *e, u32 slot, u32 tag);
u32 map_publish(struct zse_engine *e, const struct zse_chunk *c, u32 first,
		u32 nr, u32 block);
bool map_lose(struct zse_engine *e, u32 slot, u32 expect);
bool map_is(const struct zse_engine *e, u32 slot, u32 value);
bool map_drop(struct zse_engine *e, u32 slot, u32 block);
bool map_carry(struct zse_engine *e, u32 slot, u32 block, u32 tag);

extern const char *const zone_state_names[ZSE_NR_ZONE_STATES];

/* zone.c; all but zones_init() want the engine lock */
void zones_init(struct zse_engine *e);
void zone_set_state(struct zse_engine *e, u32 zone, enum zse_zone_state to);
u32 zone_room(const struct zse_engine *e, u32 zone);
u32 zones_active(const struct zse_engine *e);
bool zone_may_open(const struct zse_engine *e, bool gc);
u32 zone_for_append(struct zse_engine *e, struct zse_chunk *c);
void zone_append_ended(struct zse_engine *e, u32 zone, u32 blocks, bool ok);
void zone_moved(struct zse_engine *e, u32 zone, u32 entries);
bool zone_swap_for_gc(struct zse_engine *e);
void zone_check_drained(struct zse_engine *e, u32 zone);
u32 zones_soon_empty(const struct zse_engine *e);
void zones_take_dead(struct zse_engine *e);

/* recover.c; want the engine lock */
void zone_append_worked(struct zse_engine *e);
void zone_append_failed(struct zse_engine *e, struct zse_zone *z);
bool zone_let_go(struct zse_engine *e);
void zone_put_aside(struct zse_engine *e, u32 zone, enum zse_aside why);
void zone_take_back(struct zse_engine *e, struct zse_zone *z);
void zones_look_again(struct zse_engine *e);
bool zones_want_try(struct zse_engine *e);
void zones_try_again(struct zse_engine *e, bool last);

/* zone.c, without the lock */
void zone_look(const struct zse_engine *e, u32 zone, struct znsage_zone *z);
u64 zone_age(const struct zse_engine *e, const struct zse_zone *z);

/* stripe.c; want the engine lock */
struct zse_stripe *stripe_of(struct zse_engine *e, u32 stream);
void stripe_init(struct zse_stripe *s, u32 nr, u32 kept);
void stripe_set_lanes(struct zse_stripe *s, u32 nr);
u32 stripe_turn(struct zse_stripe *s);
u32 stripe_missing(const struct zse_stripe *s);
bool stripe_narrow(struct zse_stripe *s);
bool stripe_is_open(const struct zse_stripe *s);
u32 stripe_room(const struct zse_engine *e, const struct zse_stripe *s);
u32 stripe_usable(const struct zse_engine *e, const struct zse_stripe *s,
		  u32 lane, bool gc);
void stripe_forget(struct zse_stripe *s, u32 zone);
u32 stripe_take_left_open(struct zse_engine *e);

/* clean.c; want the engine lock, but for clean_fill() */
bool clean_may_begin(const struct zse_engine *e);
bool clean_wants_victim(struct zse_engine *e);
bool clean_can_read(struct zse_engine *e);
u32 clean_room(const struct zse_engine *e);
u32 clean_spare(const struct zse_engine *e);
bool clean_is_reading(const struct zse_engine *e, u32 zone);
void clean_begin(struct zse_engine *e, u32 zone, u32 class);
bool clean_begin_bad(struct zse_engine *e);
void clean_end(struct zse_engine *e, struct zse_reading *v);
bool clean_buffer(struct zse_engine *e, u32 slot, struct zse_run *run);
bool clean_fill(struct zse_engine *e, struct zse_op *op);

/* gc.c; wants the engine lock */
void gc_drop_entries(struct zse_engine *e, struct zse_chunk *c, u32 from);
void gc_drop_dead(struct zse_engine *e, struct zse_chunk *c);

/* carry.c; want the engine lock */
void carry_or_drop(struct zse_engine *e, struct zse_chunk *c, bool more);
struct zse_chunk *carry_next(const struct zse_engine *e);
void carry_look(struct zse_engine *e);
void carry_resume(struct zse_engine *e);
bool carry_forget(struct zse_engine *e);
void carry_begin(struct zse_engine *e);

/* stream.c; want the engine lock */
void chunk_release(struct zse_engine *e, struct zse_chunk *c);
bool chunk_copied(struct zse_engine *e, struct zse_chunk *c);
bool chunk_assign(struct zse_engine *e, struct zse_chunk *c,
		  struct zse_op *op);

/* window.c; all but window_init() want the engine lock */
void window_init(struct zse_engine *e);
bool window_open(const struct zse_engine *e);
void window_update(struct zse_engine *e, u64 sent, u64 now);

/* limits.c */
bool limits_shared(const struct zse_config *cfg);
u32 limits_survivors(const struct zse_config *cfg);
u32 limits_gc_zones(const struct zse_config *cfg);
u32 limits_not_full(const struct zse_config *cfg);
bool limits_watermarks(const struct zse_engine *e, u32 *low, u32 *high);

/* share.c; want the engine lock, but for those of victim.c */
bool share_of_chunks(const struct zse_engine *e, u32 stream);
bool share_of_zones(struct zse_engine *e, u32 stream);
bool share_wants_gc(const struct zse_engine *e);
bool share_may_pass(const struct zse_engine *e, const struct zse_chunk *c);
bool share_may_clean(const struct zse_engine *e, const struct zse_zone *z);
bool share_is_slow(const struct zse_engine *e, const struct zse_zone *z);
u32 share_of_room(const struct zse_engine *e, const struct zse_zone *z,
		  u32 room);
bool share_may_read(const struct zse_engine *e, const struct zse_zone *z,
		    const struct zse_chunk *c);
void share_gc_taken(struct zse_engine *e, struct zse_chunk *c,
		    const struct zse_zone *z);
void share_gc_again(struct zse_engine *e, const struct zse_chunk *c);
void share_gc_ended(struct zse_engine *e, const struct zse_chunk *c);
void share_see_slow(struct zse_engine *e);
u32 share_stuck(const struct zse_engine *e);
void share_yield(struct zse_engine *e);
bool share_give_way(struct zse_engine *e);
void share_moves(struct zse_engine *e, const struct zse_zone *z,
		 enum zse_zone_state to);
void share_own(struct zse_engine *e, struct zse_zone *z, u32 stream);
void share_open(struct zse_engine *e, struct zse_zone *z,
		const struct zse_chunk *c);
void share_clear(struct zse_engine *e);

/* pace.c; want the engine lock */
void pace_written(struct zse_engine *e, u32 blocks);
bool pace_holds(const struct zse_engine *e);
void pace_moved(struct zse_engine *e, u32 blocks);

/* policy.c, heat.c; policy_survivor() and policy_victim() without the lock */
extern const struct znsage_policy policy_heat;
u32 policy_survivor(struct zse_engine *e, u32 zone);
u32 policy_victim(struct zse_engine *e, u32 room);
void policy_freed(struct zse_engine *e, u32 zone);
void policy_cleaning(struct zse_engine *e, u32 zone, bool begins);

/* victim.c */
bool victim_will_do(const struct zse_engine *e, u32 zone, u32 room);
u32 victim_by_rule(const struct zse_engine *e, u32 room, bool any);
u32 victim_choose(struct zse_engine *e, u32 room, bool any);

/* keys.c; want the engine lock */
void keys_count(struct zse_engine *e, u32 stream, u32 nr);
u32 keys_sharing(const struct zse_engine *e);
void keys_clear(struct zse_engine *e);

/* check.c */
u32 check_count_live(const struct zse_engine *e, u32 zone);

#endif /* ZNSAGE_ENGINE_INTERNAL_H */
