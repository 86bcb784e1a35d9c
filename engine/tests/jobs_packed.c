// SPDX-License-Identifier: GPL-2.0
/*
 * What the stress test's threads do otherwise where pages are packed. A block of the
 * device holds the same word for each of its parts that a page takes, so every place in
 * a page looks to GC as if a page of that slot began there.
 */
#include "stress.h"

/* Blocks that a page takes; each version of a slot has a length of its own. */
static u32 length(const struct zse_config *cfg, u64 page)
{
	u32 least = cfg->pack / ZSE_LEAST_PART, most = cfg->pack + 1;

	return least + (page * 0x9e3779b97f4a7c15ull >> 40) %
		       (most - least + 1);
}

/* Blocks that any chunk appends at most, or that GC reads at a time. */
u32 packed_most(const struct zse_config *cfg)
{
	return cfg->chunk_pages * (cfg->pack + 1) + 3 * cfg->pack;
}

/* Fill the rest of what @c appends. */
static void pad(struct test *t, struct zse_chunk *c)
{
	u32 i;

	for (i = c->fill; i % t->sc->cfg.pack; i++)
		t->packed[c->id][i] = 0;
}

/* Pack a chunk of swap-out. Returns false if it was refused, and has ended. */
bool pack_chunk(struct test *t, struct zse_chunk *c)
{
	u32 i, k;

	for (i = 0; i < c->nr; i++) {
		u64 page = t->buffers[c->id][i];
		u32 at = c->fill, len = length(&t->sc->cfg, page);

		zse_chunk_pack(t->e, c, i, len);
		for (k = 0; k < len; k++)
			t->packed[c->id][at + k] = page;
	}
	pad(t, c);
	if (zse_chunk_fits(t->e, c))
		return true;
	zse_chunk_lose(t->e, c);
	atomic_add_return(c->nr, &t->failed_pages);
	if (zse_chunk_put(t->e, c))
		kick(t);
	return false;
}

/* What GC has read: @bad is a block that could not be, or ZSE_NONE. */
struct span {
	const u64 *words;
	u32 pack;
	u32 bad;
};

static u32 span_slot(void *host, u32 at)
{
	const struct span *w = host;

	return page_slot(w->words[at]);
}

static bool span_failed(void *host, u32 at)
{
	const struct span *w = host;

	return at / w->pack == w->bad;
}

/* GC has read a span; @fails: one block of it could not be read. */
void complete_span(struct test *t, const struct request *rq, bool fails)
{
	u32 base = rq->zone * t->sc->cfg.zone_blocks + rq->from, i, k;
	u32 pack = t->sc->cfg.pack;
	struct zse_chunk *c = rq->chunk;
	u64 words[rq->blocks];
	struct span arg = {
		.words = words,
		.pack = pack,
		.bad = fails ? base % (rq->blocks / pack) : ZSE_NONE,
	};
	struct zse_span w = {
		.host = &arg,
		.slot = span_slot,
		.failed = span_failed,
	};

	for (i = 0; i < rq->blocks; i++)
		words[i] = device_read(t->dev, base + i);
	zse_gc_scan(t->e, c, &w);
	for (i = 0; i < c->nr; i++) {
		const struct zse_entry *entry = &c->entries[i];
		u64 page = words[entry->page];

		for (k = 0; k < entry->len; k++) {
			u64 part = words[entry->page + k];

			if (part != page || page_slot(part) != entry->slot)
				fault(t, "GC copies another page", entry->slot,
				      part, page);
			t->packed[c->id][entry->at + k] = part;
		}
	}
	pad(t, c);
	if (zse_gc_read_done(t->e, c))
		kick(t);
}

/* The page of the first slot of @run, all of whose blocks must be the same. */
u64 read_packed(struct test *t, u32 slot, const struct zse_run *run)
{
	u64 page = device_read(t->dev, run->block), part;
	u32 i;

	for (i = 1; i < run->len; i++) {
		part = device_read(t->dev, run->block + i);
		if (part != page)
			fault(t, "page of parts", slot, part, page);
	}
	return page;
}
