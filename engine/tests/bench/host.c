// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "host.h"

#define ZONES		1024
#define CHUNK_BLOCKS	64
#define PAGE		4096

/*
 * A large zone's device opens few; a device without a limit has streams for all. With
 * 14, as a ZN540, twelve CPUs would share eight streams: the others are for survivors.
 * The instructions a page are the same. With 19 each has a stream, as the cases say.
 */
#define MAX_ACTIVE	19

static void fail(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

void *zport_alloc(size_t bytes)
{
	size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
	void *p = aligned_alloc(PAGE, whole);

	return p ? memset(p, 0, whole) : NULL;
}

/* An engine with @streams streams and a swap area of @percent of the largest. */
struct host *host_create(u32 streams, u32 percent, u32 zone_blocks)
{
	struct host *h = calloc(1, sizeof(*h));
	enum zse_refusal why;

	if (!h)
		fail("no memory");
	h->cfg = (struct zse_config){
		.nr_zones = ZONES,
		.zone_blocks = zone_blocks,
		.chunk_pages = CHUNK_BLOCKS,
		.write_unit = 1,
		.max_active = streams <= 12 ? MAX_ACTIVE : 0,
		.nr_chunks = 4 * streams > 64 ? 4 * streams : 64,
		.reserve = 1,
		.nr_cpus = streams,
		.policy = zse_builtin_policy("cpu"),
		.victim = ZSE_VICTIM_AGE,
		.pace = 50,
	};
	h->cfg.nr_gc_chunks = zse_gc_chunks(&h->cfg);
	h->cfg.nr_slots = (u64)zse_max_slots(&h->cfg) * percent / 100;
	h->wp = calloc(ZONES, sizeof(*h->wp));
	h->e = zse_create(&h->cfg, &why);
	if (!h->e || !h->wp)
		fail("no engine");
	if (zse_nr_streams(&h->cfg, h->cfg.policy) != streams)
		fail("another number of streams");
	meter_engine_lock = &h->e->lock;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->cond, NULL);
	return h;
}

void host_destroy(struct host *h)
{
	zse_destroy(h->e);
	pthread_cond_destroy(&h->cond);
	pthread_mutex_destroy(&h->lock);
	free(h->wp);
	free(h);
}

/* When an append is sent; the device takes a nanosecond. */
#define SENT	1

/* ---- the worker ---- */

static void host_kick(struct host *h)
{
	if (!h->working || READ_ONCE(h->kicked))
		return;
	pthread_mutex_lock(&h->lock);
	WRITE_ONCE(h->kicked, 1);
	pthread_cond_signal(&h->cond);
	pthread_mutex_unlock(&h->lock);
}

static void do_append(struct host *h, const struct zse_op *op)
{
	struct zse_chunk *c = op->chunk;
	u32 offset = __atomic_fetch_add(&h->wp[op->zone], op->nr + op->padding,
					__ATOMIC_RELAXED);
	bool ok = true, finished, more;

	meter.appends++;
	more = zse_append_done(h->e, c, &ok, offset, SENT + 1, &finished);
	if (finished)
		more |= zse_chunk_put(h->e, c);
	if (more)
		host_kick(h);
}

static void do_op(struct host *h, const struct zse_op *op)
{
	switch (op->kind) {
	case ZSE_OP_APPEND:
		do_append(h, op);
		break;
	case ZSE_OP_READ:
		zse_gc_read_done(h->e, op->chunk);
		break;
	case ZSE_OP_RESET:
		__atomic_store_n(&h->wp[op->zone], 0, __ATOMIC_RELAXED);
		zse_reset_done(h->e, op->zone, true);
		break;
	case ZSE_OP_FINISH:
		zse_finish_done(h->e, op->zone, true);
		break;
	default:
		fail("the engine lost pages of a device without errors");
	}
}

static bool sleep_until_kicked(struct host *h)
{
	pthread_mutex_lock(&h->lock);
	while (!READ_ONCE(h->kicked) && !READ_ONCE(h->stop))
		pthread_cond_wait(&h->cond, &h->lock);
	WRITE_ONCE(h->kicked, 0);
	pthread_mutex_unlock(&h->lock);
	return !READ_ONCE(h->stop);
}

static void *work(void *p)
{
	struct host *h = p;
	struct zse_op op;

	memset(&meter, 0, sizeof(meter));
	while (sleep_until_kicked(h))
		while (zse_next_op(h->e, &op, SENT))
			do_op(h, &op);
	h->locks = meter;
	return NULL;
}

void host_start_worker(struct host *h)
{
	h->working = true;
	h->stop = 0;
	h->kicked = 1;
	if (pthread_create(&h->worker, NULL, work, h))
		fail("no thread");
}

void host_stop_worker(struct host *h)
{
	pthread_mutex_lock(&h->lock);
	WRITE_ONCE(h->stop, 1);
	pthread_cond_signal(&h->cond);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->worker, NULL);
	h->working = false;
}

/*
 * Let GC begin victims, and leave them open: no read of theirs ends. So appends do
 * what they do beside GC, and GC takes no time of its own.
 */
void host_open_victim(struct host *h)
{
	struct zse_op op;

	if (!zse_set_watermarks(h->e, ZONES - 2, ZONES - 1))
		fail("watermarks refused");
	while (zse_next_op(h->e, &op, SENT) && op.kind != ZSE_OP_READ)
		do_op(h, &op);
	if (!h->e->gc.nr_victims)
		fail("GC found no victim");
}

/* ---- pages ---- */

static void append(struct host *h, struct zse_chunk *c)
{
	struct zse_op op;

	if (zse_append_start(h->e, c, &op, SENT))
		do_append(h, &op);
	else
		host_kick(h);
	if (zse_gc_due(h->e))
		host_kick(h);
	lines_append_ended();
}

/*
 * Add a page to a stream; a chunk that is full goes out. False if there is no chunk:
 * try again when GC has made room.
 */
bool host_write(struct host *h, u32 stream, u32 slot)
{
	struct znsage_page page = {
		.cpu = stream,
		.life = ZNSAGE_NONE,
		.usual = ZNSAGE_NONE,
	};
	struct zse_chunk *c;
	u32 placed;

	zse_prefetch(h->e, slot, 1);
	placed = zse_place(h->e, &page);
	c = zse_stream_begin(h->e, placed);
	if (!c) {
		zse_stream_end(h->e, placed);
		host_kick(h);
		return false;
	}
	if (!c->nr)
		c->born = 1;
	zse_chunk_add(h->e, c, slot, 0);
	c = zse_stream_end(h->e, placed);
	if (c)
		append(h, c);
	return true;
}

/* The end of a plug: what the stream has goes out. */
void host_flush(struct host *h, u32 stream)
{
	struct zse_chunk *c = zse_stream_flush(h->e, stream);

	if (c)
		append(h, c);
}

/* Swap a slot in; false if it holds no page, or one that is being written. */
bool host_read(struct host *h, u32 slot)
{
	bool more = false;
	struct zse_run run;

	switch (zse_read_begin(h->e, slot, 1, &run, &more)) {
	case ZSE_READ_BLOCK:
		more |= zse_read_end(h->e, run.block);
		break;
	case ZSE_READ_LOST:
		fail("a page is lost");
		break;
	default:
		return false;
	}
	if (more)
		host_kick(h);
	return true;
}

void host_free(struct host *h, u32 slot)
{
	if (zse_free(h->e, slot))
		host_kick(h);
}
