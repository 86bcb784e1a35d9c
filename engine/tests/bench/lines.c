// SPDX-License-Identifier: GPL-2.0
/*
 * Counts cache lines. In bench-lines the compiler calls one of the functions at the
 * end before each access to memory; in bench nobody does. This file itself is not
 * instrumented.
 */
#include <string.h>

#include "meter.h"

#define LINE		64
#define SET		4096	/* lines that an append can touch; a power of two */
#define WRITTEN		1u
#define READ		2u

/* Distinct lines; emptied by a new round. */
struct set {
	u32 round;
	struct {
		uintptr_t line;
		u32 round;
		u32 how;
		enum lines_of of;
	} slots[SET];
};

struct range {
	uintptr_t from, to;
	enum lines_of of;
};

struct lines lines;

static struct range ranges[8];
static u32 nr_ranges;
static bool counting;
static bool holding;
static struct set append = { .round = 1 }, hold = { .round = 1 };
/* The compiler reports accesses to this program; known from the first one on. */
static bool reported;

static void add_range(const void *p, size_t bytes, enum lines_of of)
{
	ranges[nr_ranges++] = (struct range){
		.from = (uintptr_t)p, .to = (uintptr_t)p + bytes, .of = of,
	};
}

bool lines_can_count(void)
{
	return reported;
}

/* Count, from now on, what happens to @e. */
void lines_begin(const struct zse_engine *e)
{
	const struct zse_config *cfg = &e->cfg;
	size_t chunks = cfg->nr_chunks + cfg->nr_gc_chunks;

	memset(&lines, 0, sizeof(lines));
	nr_ranges = 0;
	add_range(e, sizeof(*e), LINES_ENGINE);
	add_range(e->streams, e->max_streams * sizeof(*e->streams),
		  LINES_STREAMS);
	add_range(e->chunks, chunks * sizeof(*e->chunks), LINES_CHUNKS);
	add_range(e->entries, chunks * cfg->chunk_pages * sizeof(*e->entries),
		  LINES_CHUNKS);
	add_range(e->zones, cfg->nr_zones * sizeof(*e->zones), LINES_ZONES);
	add_range(e->fwd, (size_t)cfg->nr_slots * sizeof(*e->fwd), LINES_MAPS);
	counting = true;
}

void lines_end(void)
{
	counting = false;
}

static void note(struct set *set, uintptr_t line, u32 how, enum lines_of of)
{
	u32 i = (u32)(line * 0x9e3779b1u) % SET, tries;

	for (tries = 0; tries < SET; tries++, i = (i + 1) % SET) {
		if (set->slots[i].round != set->round) {
			set->slots[i].round = set->round;
			set->slots[i].line = line;
			set->slots[i].how = how;
			set->slots[i].of = of;
			return;
		}
		if (set->slots[i].line == line) {
			set->slots[i].how |= how;
			return;
		}
	}
	fprintf(stderr, "an append touches more than %u lines\n", SET);
	abort();
}

static void access(const void *p, bool writes)
{
	uintptr_t at = (uintptr_t)p;
	u32 how = writes ? WRITTEN : READ, i;

	reported = true;
	if (!counting)
		return;
	for (i = 0; i < nr_ranges; i++) {
		const struct range *r = &ranges[i];

		if (at < r->from || at >= r->to)
			continue;
		note(&append, at / LINE, how, r->of);
		if (holding && writes && r->of != LINES_MAPS)
			note(&hold, at / LINE, how, r->of);
		return;
	}
}

/* The engine lock was taken, or is about to be given back. */
void lines_hold(bool begins)
{
	u32 i;

	if (!counting)
		return;
	holding = begins;
	if (begins)
		return;
	for (i = 0; i < SET; i++)
		lines.locked += hold.slots[i].round == hold.round;
	hold.round++;
}

void lines_append_ended(void)
{
	u32 i;

	if (!counting)
		return;
	for (i = 0; i < SET; i++) {
		if (append.slots[i].round != append.round)
			continue;
		if (append.slots[i].how & WRITTEN)
			lines.written[append.slots[i].of]++;
		else
			lines.read[append.slots[i].of]++;
	}
	append.round++;
}

/* What the compiler calls. */
#define REPORT(size)							\
	void __asan_load##size##_noabort(const void *p)			\
	{								\
		access(p, false);					\
	}								\
	void __asan_store##size##_noabort(const void *p)		\
	{								\
		access(p, true);					\
	}

REPORT(1)
REPORT(2)
REPORT(4)
REPORT(8)
REPORT(16)

/* Objects of other sizes: the engine's are not larger than a line or two. */
void __asan_loadN_noabort(const void *p, size_t bytes)
{
	access(p, false);
	access((const char *)p + bytes - 1, false);
}

void __asan_storeN_noabort(const void *p, size_t bytes)
{
	access(p, true);
	access((const char *)p + bytes - 1, true);
}

void __asan_handle_no_return(void)
{
}
