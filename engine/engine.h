/* SPDX-License-Identifier: GPL-2.0 */
/*
 * znsage engine: stores an array of swap slots in a log of zones.
 *
 * The engine does no I/O, and has no thread and no clock. Its host tells it
 * what happens (a page to write, the end of an append, a freed slot). It tells
 * the host what to do (append this chunk to that zone, reset this zone). The
 * kernel module, the simulator and the tests run the same source.
 *
 * Units: a slot and an entry of a chunk are one page of data each. A block is
 * what the map counts in: a page, or where pages are packed (packed.c) a part
 * of one, of which a page takes as many as it is long.
 * Block numbers are zone * zone_blocks + offset in the zone. Unless its comment
 * says otherwise, a function may be called from any context, does not sleep and
 * does not allocate.
 */
#ifndef ZNSAGE_ENGINE_H
#define ZNSAGE_ENGINE_H

#include "port.h"
#include "stats.h"
#include "../include/znsage.h"

/*
 * Values of the forward map. Below ZSE_WORD_BASE: a block. Up to ZSE_TAG_BASE:
 * the page repeats word (value - ZSE_WORD_BASE) of a table. From there up to
 * ZSE_LOST: entry (value - ZSE_TAG_BASE) of the chunk pool is writing the slot.
 * A 16 TiB device has 2^32 pages of 4 KiB. Words and tags take the numbers of
 * its last pages, 4 GiB.
 */
#define ZSE_WORDS	512
#define ZSE_TAG_BASE	0xfff00000u
#define ZSE_WORD_BASE	(ZSE_TAG_BASE - ZSE_WORDS)
#define ZSE_LOST	0xfffffffeu	/* no data: error, or dropped by GC */
#define ZSE_NONE	0xffffffffu	/* empty; also: no zone, no slot */

#define ZSE_MAX_BLOCKS	ZSE_WORD_BASE
#define ZSE_MAX_ENTRIES	(ZSE_LOST - ZSE_TAG_BASE)

/* How GC chooses a victim if the policy does not; see victim.c. */
enum zse_victim {
	ZSE_VICTIM_GREEDY,
	ZSE_VICTIM_COST_BENEFIT,
	ZSE_VICTIM_AGE,
	ZSE_NR_VICTIMS
};

extern const char *const zse_victim_names[ZSE_NR_VICTIMS];

/* Why zse_create() refuses a configuration. */
enum zse_refusal {
	ZSE_OK,
	ZSE_NO_MEMORY,
	ZSE_BAD_CHUNK,		/* larger than a zone, or not in write units */
	ZSE_TOO_FEW_ZONES,	/* for streams, GC and the reserve */
	ZSE_TOO_MANY_BLOCKS,	/* more than ZSE_MAX_BLOCKS */
	ZSE_TOO_MANY_SLOTS,	/* more than zse_max_slots(), or 16 times */
	ZSE_TOO_MANY_CHUNKS,	/* more than ZSE_MAX_ENTRIES in the pool */
	ZSE_BAD_SETTING,	/* a watermark, the policy, ... out of range */
};

/* What a device says that cannot be right; see lost.c. */
enum zse_oddity {
	ZSE_WAS_RESET,	/* pages that were acknowledged are gone: all are lost */
	ZSE_OVERLAP,	/* two appends are in one place: all pages are lost */
	ZSE_BEYOND,	/* an append is not in its zone: it has failed */
};

/* Most zones that a stream, or GC, writes at a time. */
#define ZSE_MAX_LANES		16
#define ZSE_MAX_STREAMS		64
/*
 * Appends of a stream in flight that hold its chunk back, where a zone takes
 * several. With one, the device is idle from the end of an append until the
 * worker sends the next: at 4 ms an append, swap-out is a quarter slower than
 * with four.
 */
#define ZSE_DEPTH		4

/**
 * struct zse_config - device and settings
 * @nr_zones:	 zones that the engine may use, numbered from 0
 * @zone_blocks: capacity of each zone in blocks, a multiple of @write_unit
 * @pack:	 0: a page is a block. Else pages are packed: this many blocks
 *		 are one of the device, and a page takes from @pack /
 *		 ZSE_LEAST_PART to @pack + 1 blocks, as zse_chunk_pack() says
 * @finish:	 zones may be larger on the device than @zone_blocks, so finish
 *		 them when that much is written
 * @max_active:	 zones that may be open or active at a time, or if @wide, that
 *		 may take appends; 0: no limit. If 1, swap-out and GC share it
 * @serial:	 a zone takes one append at a time, as where the kernel emulates
 *		 zone append
 * @wide:	 a zone lies across all of the device, which does not know of
 *		 zones
 * @nr_slots:	 size of the swap area
 * @chunk_pages: entries that a chunk has room for, for the longest append
 * @batch_pages: entries with which a chunk is full. While the device is busy,
 *		 chunks of swap-out grow up to @chunk_pages. 0: @chunk_pages
 * @write_unit:	 appends are padded to a multiple of this many blocks
 * @nr_chunks:	 chunks for swap-out
 * @nr_gc_chunks: chunks for GC
 * @reserve:	 zones that only GC may open, at least 1
 * @nr_cpus:	 streams that policy cpu wants
 * @policy:	 chooses the stream of a page; must have no private data
 * @victim:	 how GC chooses a victim if @policy does not
 * @stripe:	 zones that each stream writes at a time; 0: as many as the
 *		 device's limits and its number of zones allow
 * @gc_low:	 GC starts when fewer zones are empty; 0: the default
 * @gc_high:	 GC stops when this many are empty; 0: the default
 * @pace:	 see zse_set_pace()
 *
 * Callbacks, each of which may be NULL:
 * @host:	 passed to them
 * @zone_event:	 @zone changes from one named state to another. Called with the
 *		 engine lock held.
 * @odd:	 what the device says of @zone cannot be right. An append is at
 *		 page @at of it, or that many pages are written, but @least would
 *		 be right. Called without a lock, in any context.
 */
struct zse_config {
	u32 nr_zones;
	u32 zone_blocks;
	u32 pack;
	bool finish;
	u32 max_active;
	bool serial;
	bool wide;
	u32 nr_slots;
	u32 chunk_pages;
	u32 batch_pages;
	u32 write_unit;
	u32 nr_chunks;
	u32 nr_gc_chunks;
	u32 reserve;
	u32 nr_cpus;
	const struct znsage_policy *policy;
	enum zse_victim victim;
	u32 stripe;
	u32 gc_low;
	u32 gc_high;
	u32 pace;

	void *host;
	void (*zone_event)(void *host, u32 zone, const char *from,
			   const char *to);
	void (*odd)(void *host, u32 zone, enum zse_oddity odd, u32 at,
		    u32 least);
};

/* A packed page takes at least this part of a block of the device. */
#define ZSE_LEAST_PART		16

/**
 * struct zse_entry - one page of a chunk
 * @slot:	slot of the page
 * @expect:	the page is still needed while the forward map has this value:
 *		the entry's tag, or in a GC chunk the block it was read from
 * @page:	index of the page's buffer; where pages are packed and the chunk
 *		is one of GC, the block in what was read where the page begins
 * @at:		block in what the chunk appends where the page begins
 * @len:	blocks that the page takes
 */
struct zse_entry {
	u32 slot;
	u32 expect;
	u32 page;
	u32 at;
	u32 len;
};

/**
 * struct zse_chunk - pages that are appended together
 * @id:		index in the pool; GC chunks come after those for swap-out
 * @gc:		holds survivors of GC
 * @nr:		entries in use
 * @max:	entries it takes for now: batch_pages, more when the device is
 *		busy, less at the end of a zone
 * @done:	entries whose append has ended; above 0 if the end of a zone
 *		split the chunk
 * @fill:	blocks of all entries
 * @offset:	of the append in flight, in its zone: where a host writes that
 *		chooses the place itself
 * @entries:	chunk_pages of them
 * @born:	of swap-out: when its first page came, ns, not 0; by the host
 * @priv:	for the host
 *
 * The rest belongs to the engine. One party at a time touches a chunk: the
 * holder of its stream's lock while it fills, then the owner of the append.
 */
struct zse_chunk {
	u32 id;
	bool gc;
	u32 nr;
	u32 max;
	u32 done;
	u32 fill;
	struct zse_entry *entries;
	u64 born;
	void *priv;

	struct list_head link;
	u32 stream;		/* of a GC chunk, that of its first victim */
	u32 owner;		/* of a GC chunk; see share.c */
	u64 key;		/* of its stream or victim when it began */
	u32 moves;		/* how often GC has moved its pages */
	u32 retries;
	u32 nr_charged;		/* of swap-out: blocks in flow.in_flight */
	u32 nr_claimed;		/* of GC, packed: blocks being read */
	u32 low, high;		/* of its span, the first; how many are read */
	bool mixed;		/* may hold pages of other keys */
	u32 lane;		/* of the stripe, see stripe.c */

	/*
	 * Written under the engine lock for each append, so side by side: a
	 * cache line that the lock's holder has to fetch, or two.
	 */
	u64 sent;		/* when the host got the append, in ns */
	u64 written_at;		/* when they were swapped out, by the clock */
	u32 delivered;		/* flow.delivered when it was sent */
	u32 offset;
	u32 zone;		/* of the append in flight, else ZSE_NONE */
	u32 nr_inflight;	/* entries in it */
	u32 nr_blocks;		/* that it writes for them */
	u32 nr_padding;		/* blocks after them */
	u32 floor;		/* it lands in its zone here or above */
};

/**
 * enum zse_op_kind - what the host is to do; see zse_next_op()
 * @ZSE_OP_NONE:   nothing
 * @ZSE_OP_APPEND: append entries [first, first + nr) of chunk, then padding
 *		   blocks, to zone; then zse_append_done(). The device chooses
 *		   the place; a host that has to, writes at chunk->offset. Where
 *		   pages are packed: blocks [from, from + blocks) of what the
 *		   chunk appends, in which the entries lie
 * @ZSE_OP_FAIL:   end the pages [first, first + nr) of chunk with an error;
 *		   then zse_chunk_put()
 * @ZSE_OP_READ:   read the blocks entries[].expect of the GC chunk into the
 *		   buffers entries[].page; then zse_gc_read_done(). Where pages
 *		   are packed: read blocks [from, from + blocks) of zone, all
 *		   that was written of them; then zse_gc_scan()
 * @ZSE_OP_RESET:  reset zone; then zse_reset_done()
 * @ZSE_OP_FINISH: finish zone; then zse_finish_done()
 */
enum zse_op_kind {
	ZSE_OP_NONE,
	ZSE_OP_APPEND,
	ZSE_OP_FAIL,
	ZSE_OP_READ,
	ZSE_OP_RESET,
	ZSE_OP_FINISH,
};

struct zse_op {
	enum zse_op_kind kind;
	struct zse_chunk *chunk;
	u32 zone;
	u32 first;
	u32 nr;
	u32 from;
	u32 blocks;
	u32 padding;
	bool no_room;		/* of ZSE_OP_FAIL: for want of a zone, else errors */
};

struct zse_engine;

/* Life cycle. Both may sleep. */
struct zse_engine *zse_create(const struct zse_config *cfg,
			      enum zse_refusal *why);
void zse_destroy(struct zse_engine *e);
u32 zse_max_slots(const struct zse_config *cfg);
u32 zse_max_streams(const struct zse_config *cfg);
u32 zse_nr_streams(const struct zse_config *cfg,
		   const struct znsage_policy *policy);
u32 zse_lanes(const struct zse_config *cfg, u32 streams);
u32 zse_gc_lanes(const struct zse_config *cfg);
u32 zse_gc_chunks(const struct zse_config *cfg);

/* Swap-out: fill a chunk, take it when it is to be sent, append it. */
u32 zse_place(struct zse_engine *e, const struct znsage_page *page);
struct zse_chunk *zse_stream_begin(struct zse_engine *e, u32 stream);
u32 zse_chunk_add(struct zse_engine *e, struct zse_chunk *c, u32 slot, u8 past);
bool zse_fill(struct zse_engine *e, u32 slot, u64 word, bool *kick);
struct zse_chunk *zse_stream_end(struct zse_engine *e, u32 stream);
struct zse_chunk *zse_stream_flush(struct zse_engine *e, u32 stream);
struct zse_chunk *zse_stream_take(struct zse_engine *e, u32 stream,
				  u64 born_before);
void zse_chunk_pack(struct zse_engine *e, struct zse_chunk *c, u32 index,
		    u32 len);
bool zse_chunk_fits(struct zse_engine *e, struct zse_chunk *c);
bool zse_stream_due(const struct zse_engine *e, u32 stream);
u64 zse_stream_born(const struct zse_engine *e, u32 stream);
bool zse_append_start(struct zse_engine *e, struct zse_chunk *c,
		      struct zse_op *op, u64 now);
bool zse_limit_append(struct zse_engine *e, u32 blocks);
void zse_chunk_lose(struct zse_engine *e, struct zse_chunk *c);
bool zse_has_chunk(struct zse_engine *e, u32 stream);
u32 zse_write_stream(const struct zse_chunk *c, u32 nr);

/* Ends of operations. Return true if zse_next_op() may have something new. */
bool zse_append_done(struct zse_engine *e, struct zse_chunk *c, bool *ok,
		     u32 offset, u64 now, bool *finished);
bool zse_chunk_put(struct zse_engine *e, struct zse_chunk *c);
bool zse_gc_entry_failed(struct zse_engine *e, struct zse_chunk *c, u32 index);
bool zse_gc_read_done(struct zse_engine *e, struct zse_chunk *c);

/**
 * struct zse_span - blocks of a zone that GC has in memory, where pages are
 *		       packed
 * @host:   passed to the callbacks
 * @slot:   the slot whose page would begin at block @at of the span: the
 *	    first word there, whatever it is
 * @failed: could block @at not be read?
 */
struct zse_span {
	void *host;
	u32 (*slot)(void *host, u32 at);
	bool (*failed)(void *host, u32 at);
};

void zse_gc_scan(struct zse_engine *e, struct zse_chunk *c,
		 const struct zse_span *w);
bool zse_reset_done(struct zse_engine *e, u32 zone, bool ok);
bool zse_finish_done(struct zse_engine *e, u32 zone, bool ok);

/**
 * struct zse_look - a look at what the device says of a zone
 * @zone:    zone
 * @written: blocks of it that must be below the write pointer
 * @full:    it must be full
 * @lost:    set at the end: its pages have been found lost
 */
struct zse_look {
	u32 zone;
	u32 written;
	bool full;
	bool lost;
};

bool zse_look_begin(struct zse_engine *e, u32 zone, struct zse_look *look);
bool zse_look_end(struct zse_engine *e, struct zse_look *look, bool full,
		  u32 written);

/*
 * Deferred work: the host's worker calls zse_next_op() until it returns false.
 */
bool zse_next_op(struct zse_engine *e, struct zse_op *op, u64 now);
bool zse_gc_due(struct zse_engine *e);

/* Swap-in. */
enum zse_read {
	ZSE_READ_FILLED,	/* the page repeats a word: run->word */
	ZSE_READ_BLOCK,		/* read *run, then zse_read_end() */
	ZSE_READ_BUSY,		/* being written: copy it, see zse_write_of() */
	ZSE_READ_LOST,		/* the data is gone: an I/O error */
};

/**
 * struct zse_run - consecutive blocks of one zone
 * @block: the first block
 * @nr:	   number of pages
 * @len:   number of blocks that the first one takes
 * @blocks: number of blocks that all take
 * @word:  for ZSE_READ_FILLED; 0 if nothing was written to the slot
 */
struct zse_run {
	u32 block;
	u32 nr;
	u32 len;
	u32 blocks;
	u64 word;
};

enum zse_read zse_read_begin(struct zse_engine *e, u32 slot, u32 max,
			     struct zse_run *run, bool *kick);
bool zse_block_lost(const struct zse_engine *e, u32 block);
bool zse_read_end(struct zse_engine *e, u32 block);
struct zse_chunk *zse_write_of(struct zse_engine *e, u32 slot, u32 *index);
void zse_read_failed(struct zse_engine *e, u32 nr);
void zse_read_worked(struct zse_engine *e);
u32 zse_block_life(const struct zse_engine *e, u32 block);
bool zse_prepare(struct zse_engine *e, const struct znsage_policy *policy);
u8 zse_past(struct zse_engine *e, u32 slot, u32 block);
u32 zse_usual_life(const struct zse_engine *e, u8 past);
void zse_lives_apart(struct zse_engine *e, bool apart);

/* The kernel freed or discarded a slot. */
void zse_prefetch(const struct zse_engine *e, u32 slot, u32 nr);
bool zse_free(struct zse_engine *e, u32 slot);

/* Policies. */
extern const struct znsage_policy *const zse_builtin_policies[];
const struct znsage_policy *zse_builtin_policy(const char *name);
const struct znsage_policy *zse_get_policy(const struct zse_engine *e);
void zse_set_policy(struct zse_engine *e, const struct znsage_policy *policy,
		    void *private_data);
enum zse_victim zse_get_victim(const struct zse_engine *e);
void zse_set_victim(struct zse_engine *e, enum zse_victim victim);

/* Statistics and tuning. */
const struct zse_config *zse_get_config(const struct zse_engine *e);
void zse_get_stats(struct zse_engine *e, struct zse_stats *st);
u32 zse_certain(const struct zse_engine *e);
u32 zse_room(struct zse_engine *e);
bool zse_set_watermarks(struct zse_engine *e, u32 low, u32 high);
void zse_get_watermarks(struct zse_engine *e, u32 *low, u32 *high);
bool zse_set_pace(struct zse_engine *e, u32 pace);
u32 zse_get_pace(const struct zse_engine *e);
void zse_set_gc(struct zse_engine *e, bool on);
bool zse_idle(struct zse_engine *e);
struct zse_chunk *zse_chunk_get(struct zse_engine *e, u32 id);
u32 zse_block_zone(const struct zse_engine *e, u32 block);
u32 zse_block_offset(const struct zse_engine *e, u32 block);

/* One row of the zone table, for people and tests. */
struct zse_zone_info {
	const char *state;
	u32 capacity;
	u32 written;
	u32 room;		/* blocks that appends can still get */
	u32 live;
	bool failed;		/* cannot be written; GC is to empty it */
	bool mixed;		/* also holds pages of other keys than @key */
	bool deferred;		/* GC could not empty it and will try later */
	u32 stream;		/* of its first pages; ZSE_NONE: empty */
	u32 moves;		/* the most that GC moved any of its pages */
	u32 reads;		/* blocks that swap-in read since the reset */
	u64 key;
	u64 age;		/* of its pages on average, by the clock */
};

bool zse_get_zone(struct zse_engine *e, u32 zone, struct zse_zone_info *zi);

/* One row of the stream table. */
struct zse_stream_info {
	u64 host_blocks;
	u64 gc_blocks;		/* blocks that GC moved out of its zones */
	u64 padding_blocks;
	u64 read_blocks;	/* blocks swapped in from its zones */
	u64 stalls;
	u64 key;		/* the last key that got this stream; 0: none */
	u32 nr_keys;
	u32 zones_open;
};

bool zse_get_stream(struct zse_engine *e, u32 stream,
		    struct zse_stream_info *si);

/* Invariants. Calls @say for each violation. May take long. */
typedef void (*zse_say_fn)(void *arg, const char *what, u32 where, u64 is,
			   u64 want);
u32 zse_check(struct zse_engine *e, zse_say_fn say, void *arg);
u32 zse_check_twice(struct zse_engine *e, u32 *bits, u32 words,
		    zse_say_fn say, void *arg);

#endif /* ZNSAGE_ENGINE_H */
