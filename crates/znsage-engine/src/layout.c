// SPDX-License-Identifier: GPL-2.0-only
/*
 * The layout of the structures and the values of the constants that src/sys.rs
 * repeats by hand. A test compares the two lists, name by name.
 */
#include <stddef.h>

#include "engine.h"

struct zse_fact {
	const char *name;
	u64 value;
};

extern const struct zse_fact zse_facts[];
extern const u32 zse_nr_facts;

#define SIZE(type)		{ "sizeof " #type, sizeof(struct type) },
#define AT(type, member)	{ #type "." #member, offsetof(struct type, member) },
#define IS(name)		{ #name, name },
#define STAT(name)		AT(zse_stats, name)

const struct zse_fact zse_facts[] = {
	SIZE(zse_config)
	AT(zse_config, nr_zones)
	AT(zse_config, zone_blocks)
	AT(zse_config, pack)
	AT(zse_config, finish)
	AT(zse_config, max_active)
	AT(zse_config, serial)
	AT(zse_config, wide)
	AT(zse_config, nr_slots)
	AT(zse_config, chunk_pages)
	AT(zse_config, batch_pages)
	AT(zse_config, write_unit)
	AT(zse_config, nr_chunks)
	AT(zse_config, nr_gc_chunks)
	AT(zse_config, reserve)
	AT(zse_config, nr_cpus)
	AT(zse_config, policy)
	AT(zse_config, stripe)
	AT(zse_config, gc_low)
	AT(zse_config, gc_high)
	AT(zse_config, victim)
	AT(zse_config, pace)
	AT(zse_config, host)
	AT(zse_config, zone_event)
	AT(zse_config, odd)
	{ "sizeof zse_config.victim", sizeof(enum zse_victim) },

	SIZE(znsage_page)
	AT(znsage_page, cgroup)
	AT(znsage_page, cpu)
	AT(znsage_page, life)
	AT(znsage_page, usual)
	AT(znsage_page, workingset)
	AT(znsage_page, active)

	SIZE(znsage_policy)
	AT(znsage_policy, name)
	AT(znsage_policy, streams)
	AT(znsage_policy, isolates)
	AT(znsage_policy, attach)
	AT(znsage_policy, detach)

	SIZE(zse_run)
	AT(zse_run, block)
	AT(zse_run, nr)
	AT(zse_run, len)
	AT(zse_run, blocks)
	AT(zse_run, word)

	SIZE(zse_span)
	AT(zse_span, host)
	AT(zse_span, slot)
	AT(zse_span, failed)

	SIZE(zse_look)
	AT(zse_look, zone)
	AT(zse_look, written)
	AT(zse_look, full)
	AT(zse_look, lost)

	SIZE(zse_entry)
	AT(zse_entry, slot)
	AT(zse_entry, expect)
	AT(zse_entry, page)
	AT(zse_entry, at)
	AT(zse_entry, len)

	/* The fields that hosts may use. */
	SIZE(zse_chunk)
	AT(zse_chunk, id)
	AT(zse_chunk, gc)
	AT(zse_chunk, nr)
	AT(zse_chunk, max)
	AT(zse_chunk, done)
	AT(zse_chunk, fill)
	AT(zse_chunk, offset)
	AT(zse_chunk, entries)
	AT(zse_chunk, born)
	AT(zse_chunk, priv)

	SIZE(zse_op)
	AT(zse_op, kind)
	AT(zse_op, chunk)
	AT(zse_op, zone)
	AT(zse_op, first)
	AT(zse_op, nr)
	AT(zse_op, from)
	AT(zse_op, blocks)
	AT(zse_op, padding)
	AT(zse_op, no_room)

	SIZE(zse_zone_info)
	AT(zse_zone_info, state)
	AT(zse_zone_info, capacity)
	AT(zse_zone_info, written)
	AT(zse_zone_info, room)
	AT(zse_zone_info, live)
	AT(zse_zone_info, failed)
	AT(zse_zone_info, mixed)
	AT(zse_zone_info, deferred)
	AT(zse_zone_info, stream)
	AT(zse_zone_info, moves)
	AT(zse_zone_info, reads)
	AT(zse_zone_info, key)
	AT(zse_zone_info, age)

	SIZE(zse_stream_info)
	AT(zse_stream_info, host_blocks)
	AT(zse_stream_info, gc_blocks)
	AT(zse_stream_info, padding_blocks)
	AT(zse_stream_info, read_blocks)
	AT(zse_stream_info, stalls)
	AT(zse_stream_info, key)
	AT(zse_stream_info, nr_keys)
	AT(zse_stream_info, zones_open)

	SIZE(zse_stats)
	ZSE_COUNTERS(STAT)
	ZSE_GAUGES(STAT)

	IS(ZSE_WORDS)
	IS(ZSE_TAG_BASE)
	IS(ZSE_MAX_BLOCKS)
	IS(ZSE_MAX_ENTRIES)
	IS(ZSE_DEPTH)
	IS(ZSE_LEAST_PART)

	IS(ZSE_VICTIM_GREEDY)
	IS(ZSE_VICTIM_COST_BENEFIT)
	IS(ZSE_VICTIM_AGE)
	IS(ZSE_NR_VICTIMS)

	IS(ZSE_OK)
	IS(ZSE_NO_MEMORY)
	IS(ZSE_BAD_CHUNK)
	IS(ZSE_TOO_FEW_ZONES)
	IS(ZSE_TOO_MANY_BLOCKS)
	IS(ZSE_TOO_MANY_SLOTS)
	IS(ZSE_TOO_MANY_CHUNKS)
	IS(ZSE_BAD_SETTING)

	IS(ZSE_OP_NONE)
	IS(ZSE_OP_APPEND)
	IS(ZSE_OP_FAIL)
	IS(ZSE_OP_READ)
	IS(ZSE_OP_RESET)
	IS(ZSE_OP_FINISH)

	IS(ZSE_WAS_RESET)
	IS(ZSE_OVERLAP)
	IS(ZSE_BEYOND)

	IS(ZSE_READ_FILLED)
	IS(ZSE_READ_BLOCK)
	IS(ZSE_READ_BUSY)
	IS(ZSE_READ_LOST)
};

const u32 zse_nr_facts = sizeof(zse_facts) / sizeof(zse_facts[0]);
