/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine's state. README.md in this directory says which file does what.
 *
 * Layers. limits.h, map.h, zone.h, room.h, alloc.h, chunk.h, gc.h and api.h
 * declare the functions of a layer each, and include the layer below. A file
 * includes the header of its own layer and so sees nothing above it;
 * tests/layers looks at the objects.
 *
 * Lock order: stream lock, then engine lock. A field is under the engine lock
 * unless its comment says otherwise; "read anywhere" fields are written under
 * the engine lock by WRITE_ONCE() and read without it by READ_ONCE(). Atomics
 * and the maps are under no lock; map.c has their argument.
 */
#ifndef ZNSAGE_ENGINE_STATE_H
#define ZNSAGE_ENGINE_STATE_H

#include "engine.h"

/* Most zones that GC has open: one for each stream, and one stream's lanes. */
#define ZSE_GC_ZONES		(ZSE_MAX_STREAMS + 8)
/* Retries of a failed append, finish or reset. */
#define ZSE_MAX_RETRIES		3
/* GC gives a block up when it fails to read it once more than this. */
#define ZSE_MAX_UNREAD		6
/* The best zones of a walk. */
#define ZSE_BEST		128
/* Most shards of the counters that swap-in and swap_slot_free_notify touch. */
#define ZSE_MAX_SHARDS		64
/* Bytes of a CPU's cache line, or a part of one. */
#define ZSE_LINE		64
/* Slots or blocks walked without a reschedule; a cache miss or two each. */
#define ZSE_RESCHED		4096
/* Zones looked at with the engine lock held, where there may be many. */
#define ZSE_TAKE_DEAD		64
#define ZSE_RECOUNT		1024

/* Where a zone is in its life; zone.c has the diagram. */
enum zse_zone_state {
	ZSE_ZONE_EMPTY,
	ZSE_ZONE_OPEN,		/* appends are allocated from it */
	ZSE_ZONE_CLOSING,	/* allocated in full, appends in flight */
	ZSE_ZONE_FINISH,	/* written, to be finished on the device */
	ZSE_ZONE_FINISHING,
	ZSE_ZONE_FULL,
	ZSE_ZONE_VICTIM,	/* GC reads it or moves what it read */
	ZSE_ZONE_DRAINED,	/* no live block; reset once readers are gone */
	ZSE_ZONE_RESETTING,
	ZSE_ZONE_RETIRED,	/* holds nothing and is not usable for now */
	ZSE_NR_ZONE_STATES
};

/* What errors say of a zone; health.c has the diagram and the transitions. */
enum zse_health {
	ZSE_GOOD,
	ZSE_PROBATION,		/* had an error; not yet written to its end */
	ZSE_FAILED,		/* cannot be written: empty it, then reset it */
	ZSE_WORN,		/* failed on probation: reset, then retire */
	ZSE_DEFERRED,		/* GC could not empty it; waits for retry_at */
	ZSE_GONE,		/* its pages are lost: lost.c */
	ZSE_NR_HEALTHS
};

enum zse_health_event {
	ZSE_WRITE_FAILED,	/* an append, or all tries to finish it */
	ZSE_MOVE_FAILED,	/* GC could not read or copy a block */
	ZSE_RETRY,		/* GC may try again at once */
	ZSE_RESET_DONE,
	ZSE_RESET_FAILED,
	ZSE_FILLED,		/* written to its end */
	ZSE_PAGES_LOST,		/* another program reset it */
	ZSE_NR_HEALTH_EVENTS
};

/* Does a zone that the device did not finish count as active? */
enum zse_place {
	ZSE_PLACE_NONE,		/* no: it was finished, or reset */
	ZSE_PLACE_HELD,		/* yes, until it is reset */
	ZSE_PLACE_RELEASED,	/* assumed not, since no zone could be opened */
};

/* One zone: two cache lines. */
struct zse_zone {
	/*
	 * Blocks that the forward map points to. Atomic, no lock. Raised before
	 * the map gets a block and lowered after it lost one, so the count is
	 * never too low, and 0 is certain.
	 */
	atomic_t live;
	atomic_t readers;	/* swap-ins in flight; no lock */
	u32 state;		/* enum zse_zone_state; read anywhere */
	u32 on_dead_list;	/* atomic, no lock; see zone_note_dead() */
	u32 next_dead;		/* atomic, no lock */
	u32 end;		/* of the highest append; atomic, no lock */
	struct list_head link;	/* on empty, drained, retired or to_finish */

	u32 alloc;		/* blocks given to appends; read anywhere */
	/*
	 * Atomic, lowered without the lock when an append ends. Both are raised
	 * under it: @unwritten by the reset, @appends with @alloc.
	 */
	atomic_t unwritten;	/* blocks not acknowledged */
	atomic_t appends;	/* in flight */
	u32 moving;		/* blocks that GC has read but not settled */
	u32 cursor;		/* of a victim: next block that GC reads */
	u32 spans;		/* of a victim, packed: being read by GC */
	u8 class;		/* of a victim: class of its survivors */
	u8 place;		/* enum zse_place */
	u8 tries;		/* finishes or resets in a row that failed */
	u8 unread;		/* reads by GC in a row that failed in time */
	u8 health;		/* enum zse_health; read anywhere */
	u8 mixed;		/* see zone_describe(); read anywhere */
	u8 kept;		/* of a victim: a page that was read stays */
	u64 retry_at;		/* recover_demand(); read anywhere */

	/* What is in it, see zone_describe(); read anywhere. */
	u32 stream;
	u32 moves;
	u32 reads;		/* blocks swapped in since the reset; no lock */
	u32 list;		/* in census.lists, or ZSE_NONE; read anywhere */
	u64 key;
	u64 born;
	u64 filled;		/* when it became full, by the clock */
	u32 owner;		/* stream it counts for, or ZSE_NONE: owner.c */
	u32 counted;		/* of its live blocks, in share.of[].live */

	/* Of zse_check() alone, which must not allocate. */
	u32 check_live;		/* @live before the walk of the map */
	u32 check_found;	/* blocks that the walk found */
};

/*
 * Open zones that are written in turn, a chunk to each; see stripe.c. All read
 * anywhere.
 */
struct zse_stripe {
	u32 nr;			/* lanes */
	u32 next;		/* lane of the next chunk */
	u32 zone[ZSE_GC_ZONES];	/* open ones, or ZSE_NONE */
};

/* A source of appends. It begins a cache line: often, each CPU has its own. */
struct zse_stream {
	spinlock_t lock;		/* guards the chunk and its entries */
	unsigned long flags;	/* from zse_stream_begin() to its end */
	struct zse_chunk *chunk;	/* being filled, or NULL */
	u64 born;		/* of its first page, or 0; read anywhere */
	u32 due;		/* it goes when @sent allows; read anywhere */

	atomic_t sent;		/* chunks that left and did not end */
	u32 packed_len;		/* blocks of a page, of its last chunk; a hint */

	/* Under the engine lock: */
	struct zse_stripe stripe;
	u32 nr_keys;		/* that have this stream; read anywhere */
	u64 key;		/* the last one that got it; read anywhere */
	u32 mixed;		/* others had it then; read anywhere */
	u32 recent;		/* pages written, older ones count less */
	/* See share.c: */
	u32 nr_zones;		/* owned */
	u32 nr_emptying;		/* of these, being emptied or reset */
	u32 over_share;	/* has used up its share of zones; read anywhere */
	u64 gc_blocks;		/* counters of its table row */
	u64 gc_padding;
	u64 stalls;
} ____cacheline_aligned;

/* All zones without an owner count as one more stream. */
#define ZSE_NOBODY	ZSE_MAX_STREAMS

/* What a stream uses of zones and of GC; see share.c. */
struct zse_gc_share {
	u64 live;		/* live blocks in its zones when last counted */
	u32 chunks;		/* GC chunks with pages of its zones */
	u32 victims;		/* its zones that are victims; read anywhere */
	u32 slow;		/* GC passes over it; read anywhere */
};

/* Size of the table of keys; see keys.c. */
#define ZSE_KEYS	256

struct zse_key {
	u64 word;		/* hash and stream, or 0; read anywhere */
	u32 used;		/* last time, by the clock; no lock */
};

/* Counters of what needs no lock; each CPU tends to have its own shard. */
struct zse_shard {
	atomic64_t filled;	/* slots that had no page; those in use, with @freed */
	atomic64_t freed;
	atomic64_t host_blocks;	/* of swap-out, as the four next */
	atomic64_t host_pages;
	atomic64_t padding_blocks;
	atomic64_t chunks;
	atomic64_t live;	/* packed: blocks of live pages, mod 2^64 */
	atomic64_t refused;	/* pages without room; mod 2^64; fills a line */
	struct {
		atomic64_t read_blocks;	/* from its zones */
		atomic64_t host_blocks;
		atomic64_t padding_blocks;
		u64 pad;
	} stream[ZSE_MAX_STREAMS];
};

/* How pages are placed in streams: policy.c, keys.c. All read anywhere. */
struct zse_placement {
	const struct znsage_policy *policy;
	void *policy_private;
	u32 nr_streams;
	u32 nr_survivors;	/* classes of survivors */
	atomic64_t invalid;	/* answers of the policy; no lock */
	u32 nr_keys;
	struct zse_key keys[ZSE_KEYS];
};

/*
 * Do the pasts of pages tell their next lives? past.c; hints, written without a
 * lock, but for @apart.
 */
struct zse_told {
	u32 nr;			/* lives compared, up to a number */
	u32 before;		/* the mean level of pasts, a fraction */
	u32 after;		/* of the lives that followed */
	u32 covariance;		/* of both; signed */
	u32 apart;		/* they do; read anywhere */
};

/* Chunks, but for those that streams are filling: stream.c, gc.c. */
struct zse_pool {
	u32 *free;		/* bits: of swap-out, not in use; atomic */
	struct list_head gc_free;
	struct list_head queued;	/* of swap-out, wait for a lane */
	struct list_head stalled;	/* of swap-out, wait for a zone */
	struct list_head gc_ready;	/* of GC, read, wait for a zone */
	struct list_head failed;	/* of swap-out, given up */
	u32 waiting;		/* some wait for an append; read anywhere */
	u32 gc_used;
};

/* How much may be written, and when GC works: room.c, pace.c, window.c. */
struct zse_flow {
	/* Without a lock: */
	atomic_t in_flight;	/* swap-out's blocks of all sent */
	atomic_t packing;	/* chunks that are being packed, not counted yet */
	atomic_t delivered;	/* blocks written, modulo 2^32 */
	u32 rate;		/* the best of this cycle, window.c; a hint */
	u32 shortest;		/* ns: the quickest append; a hint */

	u32 window;		/* for in_flight; read anywhere */
	u32 last_rate;		/* the best of the cycle before */
	u32 round;		/* of this cycle */
	u32 round_end;		/* when it ends, in delivered */
	u64 open_room;		/* blocks of zones that streams have open */
	u32 low;		/* GC starts below it; read anywhere */
	u32 high;		/* GC stops at it; read anywhere */
	u32 wanted_low;		/* as set; 0: what fits the streams */
	u32 wanted_high;
	u32 pace;		/* see zse_set_pace(); read anywhere */
	s64 credit;		/* blocks that GC may read; below 0: is ahead */
	u32 live;		/* of the last victim, when it began; not all */
	bool gc_on;		/* the host lets GC begin victims */
	bool gc_running;	/* set below low, cleared at high */
	u32 urgent;		/* swap-out waits for a zone; read anywhere */
};

/* GC's work in progress: clean.c. */
struct zse_gc {
	struct zse_stripe stripe;	/* survivors; if shared, all pages */
	u32 lanes;		/* to keep zones for; fewer if zones are lost */
	/*
	 * Of @stripe, for the policy's classes. What the lanes after these have
	 * open since a policy with more, GC fills first.
	 */
	u32 nr_classed;
	u32 class[ZSE_GC_ZONES];	/* class of survivors of each lane */
	u32 turn;		/* selects the lane of a class's next chunk */
	u32 unplaced;		/* blocks of its chunks without a zone yet */
	u32 claimed;		/* packed: blocks being read, dead or live */
	/*
	 * Victims being read. Only the caller of zse_next_op() changes these,
	 * so it may read them without the lock.
	 */
	u32 victims[ZSE_MAX_LANES];
	u32 nr_victims;		/* read anywhere */
	u32 reads_on;		/* swap-out let it; read anywhere */
	u32 next_victim;	/* that the next chunk begins with */
	/* Of the last walk of many zones, best first; and where it was in lists. */
	u32 best[ZSE_BEST];
	u64 best_score[ZSE_BEST];
	u32 vain_room;		/* a walk found no victim for it; 0: it did */
	u64 vain_clock;		/* when that was */
	u32 vain_tries;		/* without a walk since, while swap-out waits */
	u32 nr_best;
	u32 list;
};

/* A list of the slots that have the blocks of a zone. */
struct zse_list {
	u32 zone;		/* or ZSE_NONE; read anywhere */
	u64 complete;		/* when the walk has come so far */
};

/* Slots of victims, and of zones that may be: lists.c. */
struct zse_census {
	/* Written once, but for the slots: */
	u32 nr;			/* lists */
	u32 *slots;		/* zone_blocks for each list */
	u8 *parts;		/* lists of the zones in each part of a zone */
	u32 shift;		/* size of a part, in bits of a block number */
	u64 pace;		/* slots walked for each block that GC passes */

	struct zse_list *lists;
	u32 nr_free;		/* read anywhere */
	u32 search;		/* for zones for these; read anywhere */
	/* Only for the caller of zse_next_op(), without a lock: */
	u64 debt;		/* slots to walk, since GC has read */
	u32 at;			/* slot at which the walk goes on */
	u64 walked;		/* slots, of all time */
	u64 newest;		/* when the newest list is complete */
};

/* After errors: recover.c. */
struct zse_recovery {
	u64 refused;		/* see recover_refused(); read anywhere */
	u32 failing;		/* no success since the last error; a hint */
	u32 errors_in_row;	/* failed since one worked; read anywhere */
	u32 nr_failed;		/* FAILED or WORN, not retired; read anywhere */
	u32 nr_gone;		/* ZSE_GONE; read anywhere */
	u32 nr_held;		/* zones with ZSE_PLACE_HELD */
	bool wanted;		/* a round of retries is to begin */
	bool last_resort;	/* this round tries worn zones, too */
	u32 left;		/* retired zones that this round may reset */
	u32 failures;		/* of these, resets that failed */
	u32 gap;		/* refusals between rounds; read anywhere */
	u32 countdown;		/* of these, left */
	/*
	 * Appends of GC that failed while swap-out waited, since one of
	 * swap-out worked or the chunks that waited failed; read and cleared
	 * anywhere.
	 */
	u32 vain;
	u64 vain_since;		/* when the first of these ended, ns */
};

/* Each stream's share of zones, chunks and GC: share.c, share_gc.c. */
struct zse_share {
	u32 on;			/* the policy isolates streams; read anywhere */
	bool suspended;		/* streams need not wait for their own zones */
	u32 next;		/* zone to count next */
	/* GC cleans only for streams that wait; read anywhere. */
	u32 gc_only;
	/* GC room that all but a stream's first victim leave; read anywhere. */
	u32 gc_left;
	/* Of each stream, and of ZSE_NOBODY. */
	struct zse_gc_share of[ZSE_MAX_STREAMS + 1];
};

/* One device. */
struct zse_engine {
	/* Written once, by zse_create(). */
	struct zse_config cfg;
	u32 max_streams;
	u32 nr_blocks;
	bool shared;		/* swap-out uses GC's zones: limits_shared() */
	u64 map_bytes;
	u64 most_live;		/* blocks, packed: zse_chunk_fits() */
	struct zse_zone *zones;
	struct zse_stream *streams;
	struct zse_chunk *chunks;
	struct zse_entry *entries;

	/* No lock: map.c. One of the two forward maps. */
	u32 *fwd;
	atomic64_t *fwd64;
	u8 *past;		/* of the page in each slot, or NULL: past.c */
	atomic64_t words[ZSE_WORDS];	/* that pages repeat: filled.c */
	struct zse_shard *shards;
	u32 nr_shards;		/* a power of two */
	u32 dead;		/* list of full zones with no live block */

	struct zse_census census;
	u32 victim_rule;	/* read anywhere */
	/* Each page looks at these three; none is written as often as another. */
	struct zse_placement placement ____cacheline_aligned;
	struct zse_told told ____cacheline_aligned;
	u64 clock ____cacheline_aligned; /* blocks sent by swap-out; read anywhere */

	spinlock_t lock ____cacheline_aligned;
	struct zse_stats counters;	/* except those in the shards */
	u32 nr_state[ZSE_NR_ZONE_STATES];	/* zones; read anywhere */
	u64 usable_blocks;	/* of zones that are not retired */
	u32 dying;		/* dead zones taken from the list, to drain */
	atomic_t appends;	/* in flight; lowered without the lock */
	struct list_head empty;	/* zones in these states, oldest first */
	struct list_head drained;
	struct list_head to_finish;
	struct list_head retired;
	u32 longest;		/* blocks of an append's pages; read anywhere */
	struct zse_pool pool;
	struct zse_flow flow;
	struct zse_gc gc;
	struct zse_recovery recovery;
	struct zse_share share;
};

static inline u32 round_up_unit(const struct zse_engine *e, u32 blocks)
{
	u32 unit = e->cfg.write_unit;

	return (blocks + unit - 1) / unit * unit;
}

/*
 * Of the forward map: a block, and how many blocks the slot's page takes where
 * pages are packed. Without a block, just the value.
 */
static inline u64 map_ref(const struct zse_engine *e, u32 block, u32 len)
{
	return e->fwd64 ? (u64)len << 32 | block : block;
}

static inline u32 ref_block(u64 ref)
{
	return (u32)ref;
}

static inline u32 ref_len(const struct zse_engine *e, u64 ref)
{
	return e->fwd64 ? ref >> 32 : 1;
}

/* Blocks of a page. Without packing, nobody sets its length. */
static inline u32 entry_len(const struct zse_engine *e,
			    const struct zse_entry *entry)
{
	return e->cfg.pack ? entry->len : 1;
}

/* Blocks of pages [@first, @first + @nr) of @c, which follow one another. */
static inline u32 entries_len(const struct zse_engine *e,
			      const struct zse_chunk *c, u32 first, u32 nr)
{
	const struct zse_entry *entry = &c->entries[first];

	if (!e->cfg.pack || !nr)
		return nr;
	return entry[nr - 1].at + entry[nr - 1].len - entry->at;
}

/* Blocks of @z that the forward map points to. Context: any. */
static inline u32 zone_live(const struct zse_zone *z)
{
	return atomic_read(&z->live);
}

/* Chunks of @st that left it and did not end. Context: any. */
static inline u32 stream_sent(const struct zse_stream *st)
{
	return atomic_read(&st->sent);
}

/* Blocks that swap-out has in flight. Context: any. */
static inline u32 flow_in_flight(const struct zse_engine *e)
{
	return atomic_read(&e->flow.in_flight);
}

/* Do the slots of @z point to pages that are lost? Context: any. See lost.c. */
static inline bool zone_is_gone(const struct zse_zone *z)
{
	return READ_ONCE(z->health) == ZSE_GONE;
}

/* The counters of this CPU. */
static inline struct zse_shard *shard_of(struct zse_engine *e)
{
	return &e->shards[raw_smp_processor_id() & (e->nr_shards - 1)];
}

/* The policy in force. Under rcu_read_lock(), if it is called. */
static inline const struct znsage_policy *policy_of(const struct zse_engine *e)
{
	return smp_load_acquire(&e->placement.policy);
}

/* The policy's answer is invalid. */
static inline void policy_refused(struct zse_engine *e)
{
	atomic64_inc(&e->placement.invalid);
}

#endif /* ZNSAGE_ENGINE_STATE_H */
