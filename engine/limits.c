// SPDX-License-Identifier: GPL-2.0
/*
 * How many zones may be written at a time, and by whom: streams, the lanes of
 * each, and those of GC.
 *
 * The places among the open zones are shared between swap-out and GC once and
 * for all; a policy, which may change while the device runs, decides how the
 * places of swap-out are shared between its streams.
 */
#include "internal.h"

/* Appends of a chunk that a zone takes, for several zones at a time to help. */
#define CHUNKS_OF_A_LANE	16
/* Of all zones, what may be open if the device sets no limit. */
#define ZONES_OF_A_LANE		32

/* More would keep more zones empty for GC, and hurt reads. */
#define MAX_GC_LANES		8

#define MAX_SURVIVORS		5
/* Of all zones, a class of survivors for so many. */
#define ZONES_OF_A_CLASS	150

/*
 * Do swap-out and GC write the same zones? Where the device opens one, they
 * must: swap-out then has what GC needs neither for the victims that it has
 * begun nor, as the reserve, for the next one.
 */
bool limits_shared(const struct zse_config *cfg)
{
	return cfg->max_active == 1;
}

/*
 * Streams at most. Each keeps a zone open, GC another; one more place is left
 * free if the device has it, so that a stream can open its next zone while the
 * last appends to the old one are in flight. Where that leaves fewer places
 * than CPUs, CPUs share. Zones bound them too: at least half are to be full, or
 * GC has nothing to choose from.
 */
static u32 most_streams(const struct zse_config *cfg)
{
	u32 most = cfg->nr_zones / 8;

	if (cfg->max_active) {
		u32 active = cfg->max_active > 2 ? cfg->max_active - 2 : 1;

		if (most > active)
			most = active;
	}
	if (most > ZSE_MAX_STREAMS)
		most = ZSE_MAX_STREAMS;
	return most ? most : 1;
}

/*
 * Streams for a policy that wants as many as there can be: half of the places,
 * since each may need one for its survivors, and of a device without a limit so
 * many that what is free in their zones does not count.
 */
static u32 many_streams(const struct zse_config *cfg)
{
	u32 many = cfg->nr_zones / (2 * ZONES_OF_A_LANE);
	u32 most = most_streams(cfg);

	if (cfg->max_active && (cfg->max_active - 1) / 2 < many)
		many = (cfg->max_active - 1) / 2;
	return many < most ? many : most;
}

/**
 * zse_max_streams() - streams that there can be, whatever the policy
 * @cfg: configuration; the policy is not looked at
 */
u32 zse_max_streams(const struct zse_config *cfg)
{
	u32 nr = most_streams(cfg), many = many_streams(cfg);

	if (nr > cfg->nr_cpus)
		nr = cfg->nr_cpus;
	if (nr < many)
		nr = many;
	return nr ? nr : 1;
}

/**
 * zse_nr_streams() - streams that a policy gets
 * @cfg:    configuration; its policy is not looked at
 * @policy: policy
 */
u32 zse_nr_streams(const struct zse_config *cfg,
		   const struct znsage_policy *policy)
{
	u32 nr = policy->streams ? policy->streams : cfg->nr_cpus;
	u32 most = zse_max_streams(cfg), gc;

	if (policy->streams == ZNSAGE_NONE)
		most = many_streams(cfg);
	if (policy->isolates) {
		gc = limits_gc_zones(cfg);
		most = most < gc ? most : gc;
	}
	if (nr > most)
		nr = most;
	return nr ? nr : 1;
}

/* Places for swap-out and GC together; 0: one lane is enough for all. */
static u32 places(const struct zse_config *cfg)
{
	u32 most = cfg->nr_zones / 8;

	if (cfg->max_active && cfg->max_active - 1 < most)
		most = cfg->max_active - 1;
	if (most > ZSE_MAX_LANES * 2)
		most = ZSE_MAX_LANES * 2;
	return most;
}

/* Do zones follow one another so fast that one at a time is enough? */
static bool zones_are_short(const struct zse_config *cfg)
{
	return cfg->zone_blocks / CHUNKS_OF_A_LANE < cfg->chunk_blocks;
}

/**
 * zse_lanes() - zones that each stream writes at a time
 * @cfg:     configuration
 * @streams: how many there are
 *
 * One place among the active zones is left for a zone whose last appends are
 * in flight. Half of the others are for swap-out, the rest for GC, which
 * writes more than swap-out does on a device that is more than about 70 %
 * full. Zones of few chunks follow one another so fast that one at a time is
 * enough. On a device without a limit the number of its zones is one: those
 * that are not full hold no dead blocks.
 */
u32 zse_lanes(const struct zse_config *cfg, u32 streams)
{
	u32 most = places(cfg), lanes;

	if (cfg->stripe) {
		lanes = cfg->stripe;
		if (lanes > ZSE_MAX_LANES)
			lanes = ZSE_MAX_LANES;
		if (streams * lanes >= most)
			lanes = most ? (most - 1) / streams : 0;
	} else {
		if (zones_are_short(cfg))
			return 1;
		if (!cfg->max_active && cfg->nr_zones / ZONES_OF_A_LANE < most)
			most = cfg->nr_zones / ZONES_OF_A_LANE;
		lanes = most / 2 / streams;
	}
	return lanes ? lanes : 1;
}

/* Zones of its own that swap-out may have open, whatever the policy. */
static u32 stream_places(const struct zse_config *cfg)
{
	u32 max = zse_max_streams(cfg), most = 0, nr;

	if (limits_shared(cfg))
		return 0;
	for (nr = 1; nr <= max; nr++)
		if (nr * zse_lanes(cfg, nr) > most)
			most = nr * zse_lanes(cfg, nr);
	return most;
}

/**
 * zse_gc_lanes() - zones that GC writes at a time
 * @cfg: configuration
 */
u32 zse_gc_lanes(const struct zse_config *cfg)
{
	u32 most = places(cfg), taken = stream_places(cfg), gc;

	if (!cfg->stripe && zones_are_short(cfg))
		return 1;
	if (!cfg->max_active && cfg->nr_zones / ZONES_OF_A_LANE < most)
		most = cfg->nr_zones / ZONES_OF_A_LANE;
	gc = most > taken ? most - taken : 1;
	return gc < MAX_GC_LANES ? gc : MAX_GC_LANES;
}

/*
 * Classes of survivors: as many as there are places left, up to a number beyond
 * which more gained nothing in the simulator. Each has a zone that is not full.
 *
 * A device without a limit is one of small zones, each on few of its dies, if
 * GC is to write several at a time. There the lanes of one class would be too
 * few: with several, a device 80 % full took in half as much.
 */
u32 limits_survivors(const struct zse_config *cfg)
{
	u32 nr = cfg->nr_zones / ZONES_OF_A_CLASS, taken = stream_places(cfg);

	if (!cfg->max_active && zse_gc_lanes(cfg) > 1)
		return 1;
	if (cfg->max_active && nr + taken + 1 > cfg->max_active)
		nr = cfg->max_active > taken + 1 ?
		     cfg->max_active - taken - 1 : 1;
	if (nr > MAX_SURVIVORS)
		nr = MAX_SURVIVORS;
	return nr ? nr : 1;
}

/**
 * zse_gc_chunks() - chunks that GC does well with
 * @cfg: configuration; its chunks are not looked at
 *
 * On a device with a limit a zone lies across all dies, and a few chunks of GC
 * keep them busy; each one more makes reads wait (in the simulator, ZN540 at
 * 60 %: with four the 99th percentile of swap-in is 0.84 ms, with five 0.91,
 * with ten 1.6). Small zones want two each, one being read, one written.
 */
u32 zse_gc_chunks(const struct zse_config *cfg)
{
	u32 lanes = zse_gc_lanes(cfg);

	if (cfg->max_active)
		return 4;
	return 2 * lanes > 8 ? 2 * lanes : 8;
}

/*
 * Zones that GC may have open: if there are places, all its lanes for the class
 * that has most to write, and one for each of the others.
 */
u32 limits_gc_zones(const struct zse_config *cfg)
{
	u32 lanes = zse_gc_lanes(cfg), classes = limits_survivors(cfg);
	u32 zones = lanes + classes - 1, taken = stream_places(cfg);

	if (cfg->max_active && zones + taken + 1 > cfg->max_active)
		zones = lanes > classes ? lanes : classes;
	return zones < ZSE_MAX_LANES ? zones : ZSE_MAX_LANES;
}

/* Zones that swap-out and GC may hold without their being full. */
u32 limits_not_full(const struct zse_config *cfg)
{
	return cfg->reserve + stream_places(cfg) + limits_gc_zones(cfg);
}
