// SPDX-License-Identifier: GPL-2.0
/*
 * A host for the model: a device of a few blocks, and the module's steps around the
 * engine's calls, as functions for the scenarios.
 *
 * A page is a word: slot and version. A block is 0 after a reset.
 */
#include "api.h"

#define ZONES		8
#define ZONE_BLOCKS	2
#define CHUNKS		4
#define GC_CHUNKS	2
/* Words of a zone that threads share. */
#define OF_ZONE		8

struct model {
	struct zse_engine *e;
	u32 disk[ZONES * ZONE_BLOCKS];
	u32 wp[ZONES];
	u32 pages[CHUNKS + GC_CHUNKS];
};

/*
 * A victim is full again although none of its blocks is in the map: the thread that
 * freed the last one has not lowered the live count yet. GC tries the zone until that
 * thread has run, so let it run.
 */
static void zone_event(void *host, u32 zone, const char *from, const char *to)
{
	if (from[0] == 'v' && to[0] == 'f')
		model_yield();
}

/* Zones of two blocks; chunks and write units are one block. */
struct model *model_create(void)
{
	struct model *m = calloc(1, sizeof(*m));
	struct zse_config cfg = {
		.nr_zones = ZONES,
		.zone_blocks = ZONE_BLOCKS,
		.chunk_pages = 1,
		.write_unit = 1,
		.nr_chunks = CHUNKS,
		.nr_gc_chunks = GC_CHUNKS,
		.reserve = 1,
		.nr_cpus = 1,
		.policy = zse_builtin_policy("single"),
		.host = m,
		.zone_event = zone_event,
	};
	enum zse_refusal why;

	cfg.nr_slots = zse_max_slots(&cfg);
	m->e = zse_create(&cfg, &why);
	if (!m->e)
		model_broken("the model's engine was refused");
	return m;
}

void model_destroy(struct model *m)
{
	zse_destroy(m->e);
	free(m);
}

/* Let GC clean whenever it gains anything. */
void model_eager(struct model *m)
{
	if (!zse_set_watermarks(m->e, ZONES - 2, ZONES - 1))
		model_broken("watermarks were refused");
}

/* The engine gives up the page of @slot, as if its block could not be read. */
void model_lose(struct model *m, u32 slot)
{
	struct zse_entry entry = {
		.slot = slot,
		.expect = ref_block(map_get(m->e, slot)),
		.len = 1,
	};

	if (entry.expect < m->e->nr_blocks)
		map_lose(m->e, &entry);
}

static u32 *counter(atomic_t *a)
{
	return (u32 *)&a->counter;
}

/* Word @nr of those that threads share without a lock; NULL beyond the last. */
u32 *model_shared(struct model *m, u32 nr)
{
	struct zse_engine *e = m->e;
	u32 *const others[] = { &e->dead, counter(&e->appends), &e->pool.waiting };
	u32 i = nr;

	if (i < e->cfg.nr_slots)
		return &e->fwd[i];
	i -= e->cfg.nr_slots;
	if (i < ZONES * OF_ZONE) {
		struct zse_zone *z = &e->zones[i / OF_ZONE];
		u32 *const words[OF_ZONE] = {
			counter(&z->live), counter(&z->readers), &z->state,
			&z->on_dead_list, &z->next_dead, counter(&z->unwritten),
			counter(&z->appends), &z->end,
		};

		return words[i % OF_ZONE];
	}
	i -= ZONES * OF_ZONE;
	if (i < sizeof(others) / sizeof(others[0]))
		return others[i];
	i -= sizeof(others) / sizeof(others[0]);
	/* The device: one coherent word a block. */
	if (i < ZONES * ZONE_BLOCKS)
		return &m->disk[i];
	return NULL;
}

u32 model_page(u32 slot, u32 version)
{
	return (slot + 1) << 16 | version;
}

/*
 * Swap out a page, up to the submission of its append. Returns the chunk; *zone is
 * its zone. *kick, and every returned bool: should the worker run?
 */
u32 model_submit(struct model *m, u32 slot, u32 version, u32 *zone, bool *kick)
{
	struct zse_chunk *c = zse_stream_begin(m->e, 0);
	struct zse_op op;

	if (!c)
		model_broken("no chunk");
	c->born = 1;
	zse_chunk_add(m->e, c, slot, 0);
	m->pages[c->id] = model_page(slot, version);
	c = zse_stream_end(m->e, 0);
	if (!c || !zse_append_start(m->e, c, &op, 1))
		model_broken("no zone");
	*zone = op.zone;
	*kick |= zse_gc_due(m->e);
	return c->id;
}

/* The append ends: on the device, then in the engine. */
bool model_appended(struct model *m, u32 chunk, u32 zone)
{
	u32 offset = m->wp[zone]++;
	bool ok = true, finished, more;

	model_disk_xchg(&m->disk[zone * ZONE_BLOCKS + offset], m->pages[chunk]);
	more = zse_append_done(m->e, zse_chunk_get(m->e, chunk), &ok, offset, 2,
			       &finished);
	if (!ok)
		model_broken("the place of an append is refused");
	return more;
}

bool model_put(struct model *m, u32 chunk)
{
	return zse_chunk_put(m->e, zse_chunk_get(m->e, chunk));
}

static bool complete(struct model *m, u32 chunk, u32 zone)
{
	bool more = model_appended(m, chunk, zone);

	return model_put(m, chunk) || more;
}

bool model_free(struct model *m, u32 slot)
{
	return zse_free(m->e, slot);
}

/* Read a page into *page; returns the result of zse_read_begin(). */
u32 model_read(struct model *m, u32 slot, u32 *page, bool *kick)
{
	struct zse_run run;
	enum zse_read how = zse_read_begin(m->e, slot, 1, &run, kick);

	if (how == ZSE_READ_BLOCK) {
		*page = model_disk_read(&m->disk[run.block]);
		*kick |= zse_read_end(m->e, run.block);
	}
	return how;
}

static void gc_read(struct model *m, struct zse_chunk *c)
{
	u32 page = model_disk_read(&m->disk[c->entries[0].expect]);

	if (page >> 16 != c->entries[0].slot + 1)
		model_broken("GC read another page");
	m->pages[c->id] = page;
	zse_gc_read_done(m->e, c);
}

static void reset(struct model *m, u32 zone)
{
	u32 i;

	for (i = 0; i < ZONE_BLOCKS; i++)
		model_disk_xchg(&m->disk[zone * ZONE_BLOCKS + i], 0);
	m->wp[zone] = 0;
	zse_reset_done(m->e, zone, true);
}

/*
 * Run the worker until it has nothing to do; or until an operation of kind @until,
 * unless that is ZSE_OP_NONE. Then return true: the caller does that operation, on
 * *chunk and *zone.
 */
bool model_work(struct model *m, u32 until, u32 *chunk, u32 *zone)
{
	struct zse_op op;

	while (zse_next_op(m->e, &op, 1)) {
		if (op.kind == until) {
			*chunk = op.chunk ? op.chunk->id : 0;
			*zone = op.zone;
			return true;
		}
		switch (op.kind) {
		case ZSE_OP_APPEND:
			complete(m, op.chunk->id, op.zone);
			break;
		case ZSE_OP_READ:
			gc_read(m, op.chunk);
			break;
		case ZSE_OP_RESET:
			reset(m, op.zone);
			break;
		default:
			model_broken("an operation that has no cause");
		}
	}
	return false;
}

static void say(void *arg, const char *what, u32 where, u64 is, u64 want)
{
	model_broken(what);
}

/* At rest: check every invariant, and that the worker overlooked no zone. */
void model_check(struct model *m)
{
	u32 i;

	zse_check(m->e, say, NULL);
	for (i = 0; i < ZONES; i++) {
		const struct zse_zone *z = &m->e->zones[i];

		if (atomic_read(&z->readers))
			model_broken("a reader that has gone is counted");
		if (z->state == ZSE_ZONE_FULL && !zone_live(z))
			model_broken("a dead zone was overlooked");
		if (z->state == ZSE_ZONE_DRAINED)
			model_broken("a reset was forgotten");
	}
}
