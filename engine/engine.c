// SPDX-License-Identifier: GPL-2.0
/*
 * Life cycle of the engine, its settings and its statistics.
 */
#include "api.h"

/* Packed pages may be as small as that. */
static u64 most_slots(const struct zse_config *cfg)
{
	u64 slots = zse_max_slots(cfg);

	return cfg->pack ? slots * ZSE_LEAST_PART : slots;
}

static enum zse_refusal config_check(const struct zse_config *cfg)
{
	u64 chunks = (u64)cfg->nr_chunks + cfg->nr_gc_chunks;
	u32 batch = batch_pages(cfg);

	u32 unit = cfg->pack ? 1 : cfg->write_unit;

	if (!cfg->chunk_pages || !cfg->write_unit ||
	    cfg->chunk_pages % unit || batch % unit ||
	    cfg->chunk_pages > cfg->zone_blocks / longest_page(cfg) ||
	    batch > cfg->chunk_pages || cfg->zone_blocks % cfg->write_unit)
		return ZSE_BAD_CHUNK;
	if (cfg->pack && (cfg->write_unit % cfg->pack ||
			  cfg->pack % ZSE_LEAST_PART))
		return ZSE_BAD_SETTING;
	if ((u64)cfg->nr_zones * cfg->zone_blocks > ZSE_MAX_BLOCKS)
		return ZSE_TOO_MANY_BLOCKS;
	if (!cfg->reserve || !cfg->nr_cpus || !cfg->nr_chunks ||
	    !cfg->nr_gc_chunks || !cfg->policy ||
	    cfg->victim >= ZSE_NR_VICTIMS || cfg->pace > 100)
		return ZSE_BAD_SETTING;
	if (!zse_max_slots(cfg))
		return ZSE_TOO_FEW_ZONES;
	if (!cfg->nr_slots || cfg->nr_slots > most_slots(cfg))
		return ZSE_TOO_MANY_SLOTS;
	if (chunks > ZSE_MAX_ENTRIES ||
	    chunks * cfg->chunk_pages > ZSE_MAX_ENTRIES)
		return ZSE_TOO_MANY_CHUNKS;
	return ZSE_OK;
}

static bool engine_alloc(struct zse_engine *e)
{
	const struct zse_config *cfg = &e->cfg;
	size_t chunks = (size_t)cfg->nr_chunks + cfg->nr_gc_chunks;
	size_t entries = (size_t)cfg->nr_chunks * cfg->chunk_pages +
			 (size_t)cfg->nr_gc_chunks * packed_gc_entries(cfg);
	u64 slot_bytes = cfg->pack ? sizeof(*e->fwd64) : sizeof(*e->fwd);

	if (cfg->pack)
		e->fwd64 = zport_alloc(slot_bytes * cfg->nr_slots);
	else
		e->fwd = zport_alloc(slot_bytes * cfg->nr_slots);
	e->zones = zport_alloc(sizeof(*e->zones) * cfg->nr_zones);
	e->streams = zport_alloc(sizeof(*e->streams) * e->max_streams);
	e->shards = zport_alloc(sizeof(*e->shards) * e->nr_shards);
	e->chunks = zport_alloc(sizeof(*e->chunks) * chunks);
	e->entries = zport_alloc(sizeof(*e->entries) * entries);
	e->pool.free = zport_alloc(sizeof(*e->pool.free) * pool_words(cfg));
	e->map_bytes = slot_bytes * cfg->nr_slots +
		       sizeof(*e->zones) * (u64)cfg->nr_zones;
	return (e->fwd64 || e->fwd) && e->zones && e->streams && e->shards &&
	       e->chunks && e->entries && e->pool.free && census_alloc(e) &&
	       zse_prepare(e, cfg->policy);
}

static void pool_init(struct zse_engine *e)
{
	struct zse_entry *entries = e->entries;
	u32 i;

	for (i = 0; i < e->cfg.nr_chunks + e->cfg.nr_gc_chunks; i++) {
		struct zse_chunk *c = &e->chunks[i];

		c->id = i;
		c->gc = i >= e->cfg.nr_chunks;
		c->zone = ZSE_NONE;
		c->entries = entries;
		entries += c->gc ? packed_gc_entries(&e->cfg) :
				   e->cfg.chunk_pages;
		INIT_LIST_HEAD(&c->link);
		if (c->gc)
			list_add_tail(&c->link, &e->pool.gc_free);
		else
			e->pool.free[i / 32] |= 1u << i % 32;
	}
}

static void engine_init(struct zse_engine *e)
{
	u32 i;

	spin_lock_init(&e->lock);
	INIT_LIST_HEAD(&e->empty);
	INIT_LIST_HEAD(&e->drained);
	INIT_LIST_HEAD(&e->retired);
	INIT_LIST_HEAD(&e->to_finish);
	INIT_LIST_HEAD(&e->pool.gc_free);
	INIT_LIST_HEAD(&e->pool.queued);
	INIT_LIST_HEAD(&e->pool.stalled);
	INIT_LIST_HEAD(&e->pool.gc_ready);
	INIT_LIST_HEAD(&e->pool.failed);
	stripe_init(&e->gc.stripe, 0);
	e->gc.lanes = zse_gc_lanes(&e->cfg);
	e->dead = ZSE_NONE;
	e->dying = ZSE_NONE;
	e->longest = ZSE_NONE;
	for (i = 0; i < e->max_streams; i++) {
		spin_lock_init(&e->streams[i].lock);
		stripe_init(&e->streams[i].stripe, 0);
	}
	map_clear(e);
	zones_init(e);
	pool_init(e);
	zse_set_policy(e, e->cfg.policy, NULL);
}

/**
 * zse_create() - an engine for a device whose zones are all empty
 * @cfg: device and settings; copied
 * @why: set in any case
 *
 * Context: sleeps.
 * Return: the engine, or NULL and the reason in @why.
 */
struct zse_engine *zse_create(const struct zse_config *cfg,
			      enum zse_refusal *why)
{
	struct zse_engine *e;

	*why = config_check(cfg);
	if (*why != ZSE_OK)
		return NULL;
	e = zport_alloc(sizeof(*e));
	if (!e) {
		*why = ZSE_NO_MEMORY;
		return NULL;
	}
	e->cfg = *cfg;
	e->max_streams = zse_max_streams(cfg);
	for (e->nr_shards = 1; e->nr_shards < cfg->nr_cpus &&
	     e->nr_shards < ZSE_MAX_SHARDS;)
		e->nr_shards *= 2;
	e->placement.nr_streams = policy_streams(e, cfg->policy);
	e->shared = limits_shared(cfg);
	e->victim_rule = cfg->victim;
	e->nr_blocks = cfg->nr_zones * cfg->zone_blocks;
	/* If all slots have room, what is in flight must not be in the way. */
	e->most_live = cfg->nr_slots > zse_max_slots(cfg) ?
		       packed_most_live(cfg) : ~0ULL;
	flow_init(e);
	if (!flow_watermarks(e, &e->flow.low, &e->flow.high))
		*why = ZSE_BAD_SETTING;
	else if (!engine_alloc(e))
		*why = ZSE_NO_MEMORY;
	if (*why != ZSE_OK) {
		zse_destroy(e);
		return NULL;
	}
	engine_init(e);
	return e;
}

/**
 * zse_destroy() - free an engine; nothing may be in flight
 * @e: engine, also a half-built one, or NULL
 *
 * Context: sleeps.
 */
void zse_destroy(struct zse_engine *e)
{
	if (!e)
		return;
	zport_free(e->fwd);
	zport_free(e->fwd64);
	census_free(e);
	zport_free(e->past);
	zport_free(e->zones);
	zport_free(e->streams);
	zport_free(e->shards);
	zport_free(e->chunks);
	zport_free(e->entries);
	zport_free(e->pool.free);
	zport_free(e);
}

/*
 * The configuration as given to zse_create(). The policy, the watermarks and
 * other settings may have changed since.
 */
const struct zse_config *zse_get_config(const struct zse_engine *e)
{
	return &e->cfg;
}

/* Blocks that swap-in has read from a stream's zones. */
static u64 blocks_read(const struct zse_engine *e, u32 stream)
{
	u64 nr = 0;
	u32 i;

	for (i = 0; i < e->nr_shards; i++)
		nr += atomic64_read(&e->shards[i].stream[stream].read_blocks);
	return nr;
}

/* Add the counters that are kept without a lock. */
static void add_shards(const struct zse_engine *e, struct zse_stats *st)
{
	u32 i;

	for (i = 0; i < e->nr_shards; i++) {
		const struct zse_shard *shard = &e->shards[i];

		st->slots_used += atomic64_read(&shard->filled);
		st->slots_freed += atomic64_read(&shard->freed);
		st->host_blocks += atomic64_read(&shard->host_blocks);
		st->host_pages += atomic64_read(&shard->host_pages);
		st->refused_pages += atomic64_read(&shard->refused);
		st->padding_blocks += atomic64_read(&shard->padding_blocks);
		st->chunks += atomic64_read(&shard->chunks);
	}
	st->slots_used -= st->slots_freed;
	for (i = 0; i < e->max_streams; i++)
		st->read_blocks += blocks_read(e, i);
}

/* Packed blocks as the pages that they would fill. */
static u64 pages_of(const struct zse_engine *e, u64 blocks)
{
	u32 pack = page_blocks(&e->cfg);

	return div_u64(blocks + pack - 1, pack);
}

/* Statistics are in pages. */
static void in_pages(const struct zse_engine *e, struct zse_stats *st)
{
	st->host_blocks = pages_of(e, st->host_blocks);
	st->gc_blocks = pages_of(e, st->gc_blocks);
	st->padding_blocks = pages_of(e, st->padding_blocks);
	st->live_blocks = pages_of(e, st->live_blocks);
	st->blocks_total = pages_of(e, st->blocks_total);
	st->write_window = pages_of(e, st->write_window);
}

/**
 * zse_get_stats() - counters and gauges
 * @e:	engine
 * @st: filled in
 *
 * Reads the live count of every zone. The gauges are consistent only at rest.
 */
void zse_get_stats(struct zse_engine *e, struct zse_stats *st)
{
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&e->lock, flags);
	*st = e->counters;
	st->zones_total = e->cfg.nr_zones;
	st->zones_empty = e->nr_state[ZSE_ZONE_EMPTY];
	st->zones_full = e->nr_state[ZSE_ZONE_FULL];
	st->zones_retired = e->nr_state[ZSE_ZONE_RETIRED];
	st->blocks_total = e->usable_blocks;
	st->write_window = e->flow.window;
	st->stripe = stripe_of(e, 0)->nr;
	st->gc_stripe = e->gc.lanes;
	st->gc_shared = e->shared;
	st->survivors = e->placement.nr_survivors;
	st->keys = e->placement.nr_keys;
	st->keys_sharing = keys_sharing(e);
	spin_unlock_irqrestore(&e->lock, flags);

	st->policy_refused = atomic64_read(&e->placement.invalid);
	st->zones_open = st->zones_total - st->zones_empty - st->zones_full -
			 st->zones_retired;
	st->streams = READ_ONCE(e->placement.nr_streams);
	st->map_bytes = READ_ONCE(e->map_bytes);
	add_shards(e, st);
	for (i = 0; i < e->cfg.nr_zones; i++)
		st->live_blocks += zone_live(&e->zones[i]);
	in_pages(e, st);
}

/**
 * zse_idle() - is nothing in progress?
 * @e: engine
 *
 * Return: true if no chunk is filling, waiting or in flight, no zone is
 * changing its state, and no round of retries is to begin. With GC off and
 * nothing swapped out, only resets of zones whose last block dies can follow.
 */
bool zse_idle(struct zse_engine *e)
{
	unsigned long flags;
	bool idle;

	spin_lock_irqsave(&e->lock, flags);
	idle = !pool_used(e) && !e->pool.gc_used && !e->recovery.wanted &&
	       !atomic_read(&e->appends) && !lost_is_due(e) &&
	       !e->nr_state[ZSE_ZONE_CLOSING] &&
	       !e->nr_state[ZSE_ZONE_FINISH] &&
	       !e->nr_state[ZSE_ZONE_FINISHING] &&
	       !e->nr_state[ZSE_ZONE_VICTIM] &&
	       !e->nr_state[ZSE_ZONE_DRAINED] &&
	       !e->nr_state[ZSE_ZONE_RESETTING];
	spin_unlock_irqrestore(&e->lock, flags);
	return idle;
}

/* Chunk @id of the pool, so that the host can set its priv; or NULL. */
struct zse_chunk *zse_chunk_get(struct zse_engine *e, u32 id)
{
	if (id >= e->cfg.nr_chunks + e->cfg.nr_gc_chunks)
		return NULL;
	return &e->chunks[id];
}

/* A row of the zone table; false beyond its end. */
bool zse_get_zone(struct zse_engine *e, u32 zone, struct zse_zone_info *zi)
{
	const struct zse_zone *z;
	unsigned long flags;

	if (zone >= e->cfg.nr_zones)
		return false;
	z = &e->zones[zone];
	spin_lock_irqsave(&e->lock, flags);
	zi->state = zone_state_names[z->state];
	zi->capacity = (u32)pages_of(e, e->cfg.zone_blocks);
	zi->written = (u32)pages_of(e, zone_written(e, z));
	zi->room = (u32)pages_of(e, zone_room(e, zone));
	zi->live = (u32)pages_of(e, zone_live(z));
	zi->failed = zone_is_failed(z);
	zi->mixed = z->mixed;
	zi->deferred = z->health == ZSE_DEFERRED;
	zi->stream = z->stream;
	zi->moves = z->moves;
	zi->reads = READ_ONCE(z->reads);
	zi->key = z->key;
	zi->age = zone_age(e, z);
	spin_unlock_irqrestore(&e->lock, flags);
	return true;
}

/* A row of the stream table; false beyond zse_max_streams(). */
bool zse_get_stream(struct zse_engine *e, u32 stream,
		    struct zse_stream_info *si)
{
	const struct zse_stripe *stripe;
	const struct zse_stream *st;
	unsigned long flags;
	u32 i;

	if (stream >= e->max_streams)
		return false;
	st = &e->streams[stream];
	stripe = e->shared ? &e->gc.stripe : &st->stripe;
	spin_lock_irqsave(&e->lock, flags);
	*si = (struct zse_stream_info){
		.gc_blocks = st->gc_blocks,
		.padding_blocks = st->gc_padding,
		.stalls = st->stalls,
		.key = st->key,
		.nr_keys = st->nr_keys,
	};
	for (i = 0; i < stripe->nr; i++)
		si->zones_open += stripe->zone[i] != ZSE_NONE;
	spin_unlock_irqrestore(&e->lock, flags);
	si->gc_blocks = pages_of(e, si->gc_blocks);
	si->read_blocks = blocks_read(e, stream);
	for (i = 0; i < e->nr_shards; i++) {
		const struct zse_shard *shard = &e->shards[i];

		si->host_blocks +=
			atomic64_read(&shard->stream[stream].host_blocks);
		si->padding_blocks +=
			atomic64_read(&shard->stream[stream].padding_blocks);
	}
	si->host_blocks = pages_of(e, si->host_blocks);
	si->padding_blocks = pages_of(e, si->padding_blocks);
	return true;
}
