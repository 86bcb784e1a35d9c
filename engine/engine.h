/* SPDX-License-Identifier: GPL-2.0 */
/*
 * znsage engine: a log of zones behind an array of swap slots.
 *
 * The engine does no I/O, has no thread and no clock. Its host tells it what
 * happened (a page is to be written, an append ended, a slot was freed) and
 * is told what to do (append this chunk to that zone, reset this zone). The
 * same source runs in the kernel module, in the simulator and in the tests.
 *
 * Units: a slot, a block and an entry of a chunk are one page of data each.
 * Block numbers are zone * zone_blocks + offset in the zone. Unless a
 * function says otherwise it may be called from any context, does not sleep
 * and does not allocate.
 */
#ifndef ZNSAGE_ENGINE_H
#define ZNSAGE_ENGINE_H

#include "port.h"
#include "stats.h"
#include "../include/znsage.h"

/*
 * Values of the forward map. Below ZSE_TAG_BASE: a block. From there up to
 * ZSE_LOST: the slot is being written, by the entry (value - ZSE_TAG_BASE) of
 * the chunk pool. A 16 TiB device has 2^32 pages of 4 KiB; the last 2^20 of
 * them (4 GiB) give way to the tags.
 */
#define ZSE_TAG_BASE	0xfff00000u
#define ZSE_LOST	0xfffffffeu	/* its data could not be read or written */
#define ZSE_NONE	0xffffffffu	/* empty; also: no zone, no slot */

#define ZSE_MAX_BLOCKS	ZSE_TAG_BASE
#define ZSE_MAX_ENTRIES	(ZSE_LOST - ZSE_TAG_BASE)

/* How GC chooses a zone if the policy does not; see victim.c. */
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
	ZSE_BAD_CHUNK,		/* it or a zone not in write units, or above one */
	ZSE_TOO_FEW_ZONES,	/* for streams, GC and the reserve */
	ZSE_TOO_MANY_BLOCKS,	/* more than ZSE_MAX_BLOCKS */
	ZSE_TOO_MANY_SLOTS,	/* more than zse_max_slots() */
	ZSE_TOO_MANY_CHUNKS,	/* more than ZSE_MAX_ENTRIES in the pool */
	ZSE_BAD_SETTING,	/* a watermark, the policy, ... out of range */
};

/* Zones that a stream, or GC, writes at a time, at most. */
#define ZSE_MAX_LANES		16
#define ZSE_MAX_STREAMS		64

/**
 * struct zse_config - device and settings
 * @nr_zones:	 zones that the engine may use, numbered from 0
 * @zone_blocks: blocks that fit a zone, a multiple of @write_unit
 * @finish:	 a zone with all its blocks written is not full for the device
 *		 (its capacity is no multiple of the write unit): finish it
 * @max_active:	 zones that may be open or active at a time, 0: any number
 * @nr_slots:	 size of the swap area
 * @chunk_blocks: entries of a chunk
 * @write_unit:	 appends are padded to a multiple of this many blocks
 * @nr_chunks:	 chunks for swap-out
 * @nr_gc_chunks: chunks for GC
 * @reserve:	 zones that only GC may open, at least 1
 * @nr_cpus:	 streams that policy cpu would like to have
 * @policy:	 which stream a page goes to; one without private data
 * @victim:	 how GC chooses a zone if @policy does not
 * @stripe:	 zones that each stream writes at a time; 0: what the limits and
 *		 the zones allow
 * @gc_low:	 GC starts when fewer zones are empty; 0: the default
 * @gc_high:	 and stops at this many; 0: the default
 * @pace:	 see zse_set_pace()
 *
 * Calls of the host, each may be NULL:
 * @host:	 given to them
 * @in_memory:	 GC is about to read the block of @slot, which is live. Makes
 *		 sure that the kernel has the page in memory and will write it
 *		 again rather than drop it; or returns false. From zse_next_op(),
 *		 without a lock.
 * @zone_event:	 @zone goes from one state to another, by their names; with the
 *		 engine lock held
 */
struct zse_config {
	u32 nr_zones;
	u32 zone_blocks;
	bool finish;
	u32 max_active;
	u32 nr_slots;
	u32 chunk_blocks;
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
	bool (*in_memory)(void *host, u32 slot);
	void (*zone_event)(void *host, u32 zone, const char *from,
			   const char *to);
};

/**
 * struct zse_entry - one page of a chunk
 * @slot:	whose page it is
 * @expect:	value of the forward map that makes the page still wanted: the
 *		tag of this entry, or in a GC chunk the block it was read from
 * @page:	index of the page's buffer, as numbered when it was added
 */
struct zse_entry {
	u32 slot;
	u32 expect;
	u32 page;
};

/**
 * struct zse_chunk - pages that travel together
 * @id:		index in the pool; GC chunks come after those for swap-out
 * @gc:		holds survivors of GC
 * @nr:		entries in use
 * @max:	entries it takes: chunk_blocks, or what is left of its zone
 * @done:	entries whose append has ended; above 0 after a chunk had to be
 *		split at the end of a zone
 * @entries:	chunk_blocks of them
 * @born:	for the host: when the first page came, in a unit of its own
 * @sent:	for the host: when it was taken from its stream, in ns, or 0
 * @priv:	for the host
 *
 * The rest belongs to the engine. A chunk is touched by one party at a time:
 * the holder of its stream's lock while it fills, then the append's owner.
 */
struct zse_chunk {
	u32 id;
	bool gc;
	u32 nr;
	u32 max;
	u32 done;
	struct zse_entry *entries;
	u64 born;
	u64 sent;
	void *priv;

	struct list_head link;
	u32 stream;		/* of a GC chunk, that of its first victim */
	u32 owner;		/* of that, see share.c */
	u32 lane;		/* of the stripe, see stripe.c */
	u64 key;		/* of the stream when it was begun, or the victim */
	bool mixed;
	u32 moves;		/* that its pages have behind them */
	u64 written_at;		/* when they were swapped out, by the clock */
	u32 zone;		/* of the append in flight, else ZSE_NONE */
	u32 nr_inflight;	/* entries in it */
	u32 nr_padding;		/* blocks behind them */
	u32 retries;
	bool loaded;		/* of GC: its pages are in memory */
	u32 readers;		/* swap-ins that copy from it */
};

/**
 * enum zse_op_kind - what the host is to do; see zse_next_op()
 * @ZSE_OP_NONE:   nothing
 * @ZSE_OP_APPEND: append the entries [first, first + nr) of chunk and then
 *		   padding blocks to zone; zse_append_done()
 * @ZSE_OP_FAIL:   end the pages [first, first + nr) of chunk with an error;
 *		   then zse_chunk_put()
 * @ZSE_OP_READ:   read the blocks entries[].expect of the GC chunk into the
 *		   buffers entries[].page; zse_gc_read_done()
 * @ZSE_OP_RESET:  reset zone, which may be one that failed; zse_reset_done()
 * @ZSE_OP_FINISH: finish zone; zse_finish_done()
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
	u32 padding;
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

/* Swap-out: fill a chunk, take it when it is to go, append it. */
u32 zse_place(struct zse_engine *e, const struct znsage_page *page);
struct zse_chunk *zse_stream_begin(struct zse_engine *e, u32 stream,
				   unsigned long *flags);
u32 zse_chunk_add(struct zse_engine *e, struct zse_chunk *c, u32 slot);
struct zse_chunk *zse_stream_end(struct zse_engine *e, u32 stream,
				 unsigned long *flags);
struct zse_chunk *zse_stream_take(struct zse_engine *e, u32 stream,
				  bool units, u64 born_before);
u64 zse_stream_born(struct zse_engine *e, u32 stream);
bool zse_append_start(struct zse_engine *e, struct zse_chunk *c,
		      struct zse_op *op);
void zse_chunk_lose(struct zse_engine *e, struct zse_chunk *c);
bool zse_has_chunk(struct zse_engine *e, u32 stream);

/*
 * Ends of what the engine asked for. Each returns true if zse_next_op() may
 * have something new.
 */
bool zse_append_done(struct zse_engine *e, struct zse_chunk *c, bool ok,
		     u32 offset, bool *finished);
bool zse_chunk_put(struct zse_engine *e, struct zse_chunk *c, u64 now);
bool zse_gc_entry_failed(struct zse_engine *e, struct zse_chunk *c, u32 index);
bool zse_gc_read_done(struct zse_engine *e, struct zse_chunk *c);
bool zse_reset_done(struct zse_engine *e, u32 zone, bool ok);
bool zse_finish_done(struct zse_engine *e, u32 zone, bool ok);

/* What a worker of the host calls until it answers false. */
bool zse_next_op(struct zse_engine *e, struct zse_op *op);
bool zse_gc_due(struct zse_engine *e);

/* Swap-in. */
enum zse_read {
	ZSE_READ_ZERO,		/* nothing was written: a page of zeros */
	ZSE_READ_BLOCK,		/* read *run, then zse_read_end() */
	ZSE_READ_BUSY,		/* being written: ask again when a chunk ended */
	ZSE_READ_LOST,		/* an I/O error took the data */
	ZSE_READ_BUFFER,	/* GC has it: copy, then zse_buffer_end() */
};

/**
 * struct zse_run - blocks of one zone that follow one another
 * @block: the first
 * @nr:	   how many; 1 for ZSE_READ_BUFFER
 * @chunk: chunk of GC that has the block in memory, for ZSE_READ_BUFFER
 * @page:  its buffer there
 */
struct zse_run {
	u32 block;
	u32 nr;
	struct zse_chunk *chunk;
	u32 page;
};

enum zse_read zse_read_begin(struct zse_engine *e, u32 slot, u32 max,
			     struct zse_run *run, bool *kick);
bool zse_read_end(struct zse_engine *e, u32 block);
bool zse_buffer_end(struct zse_engine *e, const struct zse_run *run);
bool zse_is_busy(struct zse_engine *e, u32 slot);
void zse_read_failed(struct zse_engine *e, u32 nr);
void zse_read_worked(struct zse_engine *e);
u32 zse_block_life(const struct zse_engine *e, u32 block);
u32 zse_block_stream(const struct zse_engine *e, u32 block);

/* Slot-free callback, discard. */
bool zse_free(struct zse_engine *e, u32 slot);

/* Policies. */
extern const struct znsage_policy *const zse_builtin_policies[];
const struct znsage_policy *zse_builtin_policy(const char *name);
const struct znsage_policy *zse_get_policy(const struct zse_engine *e);
void zse_set_policy(struct zse_engine *e, const struct znsage_policy *policy,
		    void *private_data);
enum zse_victim zse_get_victim(const struct zse_engine *e);
void zse_set_victim(struct zse_engine *e, enum zse_victim victim);

/* Looking in and tuning. */
const struct zse_config *zse_get_config(const struct zse_engine *e);
void zse_get_stats(struct zse_engine *e, struct zse_stats *st);
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
	u32 room;		/* that can still be given to appends */
	u32 live;
	bool failed;		/* cannot be written; GC is to empty it */
	bool mixed;		/* holds pages of other keys than @key */
	bool deferred;		/* GC could not move all of it, and will try again */
	u32 stream;		/* that wrote it first, ZSE_NONE: empty */
	u32 moves;		/* times that GC moved what is in it */
	u32 reads;		/* blocks of it that swap-in has read */
	u64 key;
	u64 age;		/* by the clock, of its pages on average */
};

bool zse_get_zone(struct zse_engine *e, u32 zone, struct zse_zone_info *zi);

/* A stream, likewise. Its zones are those it has open. */
struct zse_stream_info {
	u64 host_blocks;
	u64 gc_blocks;		/* moved by GC out of zones that it wrote */
	u64 padding_blocks;
	u64 read_blocks;	/* swapped in from zones that it wrote */
	u64 stalls;
	u64 key;		/* the last one that it was given to, 0: none */
	u32 nr_keys;
	u32 zones_open;
};

bool zse_get_stream(struct zse_engine *e, u32 stream,
		    struct zse_stream_info *si);

/* Invariants. @say is called once for each violation. May take long. */
typedef void (*zse_say_fn)(void *arg, const char *what, u32 where, u64 is,
			   u64 want);
u32 zse_check(struct zse_engine *e, zse_say_fn say, void *arg);

#endif /* ZNSAGE_ENGINE_H */
