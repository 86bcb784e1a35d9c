// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts_host.h"

u32 failures;

void must_at(bool cond, const char *what, const char *where, int line)
{
	if (cond)
		return;
	printf("FAILED %s, line %d: %s\n", where, line, what);
	failures++;
}

static void zone_event(void *host, u32 zone, const char *from, const char *to)
{
	struct host *h = host;

	if (h->state[zone])
		must(!strcmp(h->state[zone], from));
	h->state[zone] = to;
	h->events++;
}

struct zse_config config(struct host *h)
{
	return (struct zse_config){
		.nr_zones = NR_ZONES,
		.zone_blocks = ZONE_BLOCKS,
		.chunk_pages = CHUNK,
		.write_unit = 1,
		.nr_chunks = 8,
		.nr_gc_chunks = 4,
		.reserve = 1,
		.nr_cpus = 1,
		.policy = zse_builtin_policy("single"),
		.host = h,
		.zone_event = zone_event,
	};
}

void host_init(struct host *h)
{
	struct zse_config cfg = config(h);
	enum zse_refusal why;

	memset(h, 0, sizeof(*h));
	cfg.nr_slots = zse_max_slots(&cfg);
	h->e = zse_create(&cfg, &why);
	if (!h->e)
		abort();
}

void host_append(struct host *h, const struct zse_op *op)
{
	u32 offset = h->wp[op->zone];
	bool ok = true, finished;

	must(!h->longest || op->nr + op->padding <= h->longest);
	h->wp[op->zone] += op->nr + op->padding;
	zse_append_done(h->e, op->chunk, &ok, offset, 2, &finished);
	if (finished)
		zse_chunk_put(h->e, op->chunk);
}

void work(struct host *h)
{
	struct zse_op op;

	while (zse_next_op(h->e, &op, 1)) {
		if (op.kind == ZSE_OP_APPEND) {
			host_append(h, &op);
		} else if (op.kind == ZSE_OP_READ) {
			zse_gc_read_done(h->e, op.chunk);
		} else if (op.kind == ZSE_OP_RESET) {
			h->wp[op.zone] = 0;
			zse_reset_done(h->e, op.zone, true);
		} else {
			abort();	/* nothing fails or is finished here */
		}
	}
}

static void go(struct host *h, struct zse_chunk *c)
{
	struct zse_op op;

	if (c && zse_append_start(h->e, c, &op, 1))
		host_append(h, &op);
	work(h);
}

void write_slot_past(struct host *h, u32 slot, u8 past)
{
	struct zse_chunk *c = zse_stream_begin(h->e, 0);

	if (!c)
		abort();
	c->born = 1;
	zse_chunk_add(h->e, c, slot, past);
	go(h, zse_stream_end(h->e, 0));
}

void write_slot(struct host *h, u32 slot)
{
	write_slot_past(h, slot, 0);
}

void flush(struct host *h)
{
	go(h, zse_stream_take(h->e, 0, ~0ull));
}

u32 nr_slots(const struct host *h)
{
	return zse_get_config(h->e)->nr_slots;
}

void fill(struct host *h, u32 rounds)
{
	u32 slot, i;

	for (slot = 0; slot < nr_slots(h); slot++)
		write_slot(h, slot);
	for (i = 0; i < rounds; i++)
		for (slot = i % 3; slot < nr_slots(h); slot += 3)
			write_slot(h, slot);
	flush(h);
	must(zse_idle(h->e));
	must(!zse_check(h->e, NULL, NULL));
}
