// SPDX-License-Identifier: GPL-2.0
/*
 * Limits: how many zones are written at a time, and by whom. This gives the
 * number of streams, of lanes of each stream, and of GC's lanes.
 *
 * The device's open zones are split between swap-out and GC once and for all.
 * The policy, which may change while the device runs, decides how swap-out's
 * part is split between streams.
 */
#include "limits.h"

/*
 * With fewer chunks in a zone, writing several zones at a time does not help.
 */
#define CHUNKS_OF_A_LANE	16
/* If the device sets no limit, one zone in this many may be open. */
#define ZONES_OF_A_LANE		32

/*
 * Lanes that a stream needs where a zone takes one append at a time: one append
 * is under way, one waits, one zone is about to be full.
 */
#define SERIAL_LANES		3

/* More lanes would keep more zones empty for GC, and slow down reads. */
#define MAX_GC_LANES		8

/*
 * A device that opens at most this many zones has large ones: an SSD has as
 * many dies or more, and all of them are to be busy when these zones are
 * written. A ZN540, which opens 14 zones, writes one as fast as all.
 */
#define FEW_ACTIVE		32

#define MAX_LIVES		6
/* Where zones are small. */
#define FEW_LIVES		2
/* Zones of the device for each class of lives. */
#define ZONES_OF_A_LIFE		64

#define MAX_SURVIVORS		5
/* Zones of the device for each class of survivors. */
#define ZONES_OF_A_CLASS	150

/*
 * Do swap-out and GC write the same zones? They must if the device can open
 * only one. Swap-out's room is then what GC needs neither for the victims it
 * has begun nor, as the reserve, for the next one.
 */
bool limits_shared(const struct zse_config *cfg)
{
	return cfg->max_active == 1;
}

/*
 * Classes of survivors that the number of zones allows, up to a number beyond
 * which more gained nothing in the simulator. Each has a zone that is not full.
 */
static u32 most_survivors(const struct zse_config *cfg)
{
	u32 nr = cfg->nr_zones / ZONES_OF_A_CLASS;

	if (nr > MAX_SURVIVORS)
		nr = MAX_SURVIVORS;
	return nr ? nr : 1;
}

/*
 * The most streams that the device allows. Each keeps a zone open, and each
 * class of survivors another, but these have at most half of the places: what
 * classes save for every policy is more than what a stream for each CPU does.
 * One more place stays free if the device has it, so that a stream can open its
 * next zone while the last appends to the old one are in flight. If fewer
 * places than CPUs are left, CPUs share streams. The number of zones is also a
 * bound: at least half of them must be full, or GC has no choice.
 */
static u32 most_streams(const struct zse_config *cfg)
{
	u32 most = cfg->nr_zones / 8;

	if (cfg->max_active) {
		u32 places = cfg->max_active - 1, gc = most_survivors(cfg);

		places -= gc < places / 2 ? gc : places / 2;
		if (most > places)
			most = places;
	}
	if (most > ZSE_MAX_STREAMS)
		most = ZSE_MAX_STREAMS;
	return most ? most : 1;
}

/*
 * Streams for a policy that wants as many as possible: half of the places,
 * since each stream may need one for its survivors. If the device sets no
 * limit, the number is such that the room in their open zones is negligible.
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
 * zse_max_streams() - the most streams that any policy gets
 * @cfg: configuration; its policy is ignored
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

/*
 * At most @nr streams. Where a zone takes one append at a time, few that keep
 * several zones busy each are better than many that wait.
 */
static u32 busy_streams(const struct zse_config *cfg, u32 nr)
{
	u32 lanes = zse_lanes(cfg, 1);

	if (lanes > SERIAL_LANES)
		lanes = SERIAL_LANES;
	while (cfg->serial && nr > 1 && zse_lanes(cfg, nr) < lanes)
		nr--;
	return nr;
}

/*
 * Streams of a policy that wants one for each CPU; CPUs are not equally busy. On
 * a device without zones of its own, zones that are open together share the
 * drive's erase blocks, and a drive has to copy what outlives its neighbours:
 * one stream. 16 CPUs at 70 % of a fast drive swap out 1,988 MB/s with one,
 * 1,839 with 16 (simulated).
 */
static u32 cpu_streams(const struct zse_config *cfg)
{
	return cfg->wide ? 1 : busy_streams(cfg, cfg->nr_cpus);
}

/*
 * Small zones, each on few dies: the device sets no limit, and GC writes several
 * at a time.
 */
static bool has_small_zones(const struct zse_config *cfg)
{
	return !cfg->max_active && zse_gc_lanes(cfg) > 1;
}

/*
 * Streams of a policy that places pages by their lives: one for each class of
 * lives, as many as gain more than their open zones cost. What they gain hardly
 * depends on the classes of survivors. At 80 %, zipf, memory for an eighth of
 * the device, four streams write 0.97 of what one writes with 292 zones, and
 * three 0.98 with 192; six would write 0.99 and 1.02. More than six did not gain
 * anything.
 *
 * Streams share the lanes that small zones need. Two with half of the lanes
 * keep no more zones open than one, and write 0.97 with 520 zones; three and
 * four write 1.02 and 1.01, since their chunks wait, and are padded.
 *
 * On a device without zones of its own, the drive mixes them, as for
 * cpu_streams(): 730 virtual zones at 80 %, zipf, have 6.45 flash writes a page
 * with six streams and 3.12 with one (4.69 and 2.97 if the drive has two write
 * streams). All of this is simulated.
 */
static u32 life_streams(const struct zse_config *cfg)
{
	u32 nr = cfg->nr_zones / ZONES_OF_A_LIFE;
	u32 most = has_small_zones(cfg) ? FEW_LIVES : MAX_LIVES;

	if (cfg->wide)
		return 1;
	return busy_streams(cfg, nr < most ? nr : most);
}

/**
 * zse_nr_streams() - streams that a policy gets
 * @cfg:    configuration; its policy is ignored
 * @policy: policy
 */
u32 zse_nr_streams(const struct zse_config *cfg,
		   const struct znsage_policy *policy)
{
	u32 nr = policy->streams ? policy->streams : cpu_streams(cfg);
	u32 most = zse_max_streams(cfg), gc;

	if (policy->streams == ZNSAGE_NONE)
		most = many_streams(cfg);
	if (policy->streams == ZNSAGE_LIVES)
		nr = life_streams(cfg);
	if (policy->isolates) {
		gc = limits_gc_zones(cfg, true);
		most = most < gc ? most : gc;
	}
	if (nr > most)
		nr = most;
	return nr ? nr : 1;
}

/* Places for swap-out and GC together; 0: one lane serves both. */
static u32 places(const struct zse_config *cfg)
{
	u32 most = cfg->nr_zones / 8;

	if (cfg->max_active && cfg->max_active - 1 < most)
		most = cfg->max_active - 1;
	if (most > ZSE_MAX_LANES * 2)
		most = ZSE_MAX_LANES * 2;
	return most;
}

/*
 * Is one zone at a time enough, since zones fill so fast, or since a zone lies
 * across all of the device?
 */
static bool one_is_enough(const struct zse_config *cfg)
{
	bool few = cfg->max_active && cfg->max_active <= FEW_ACTIVE;

	return cfg->wide || (few && !cfg->serial) ||
	       cfg->zone_blocks / CHUNKS_OF_A_LANE < batch_blocks(cfg);
}

/**
 * zse_lanes() - zones that each stream writes at a time
 * @cfg:     configuration
 * @streams: number of streams
 *
 * One place among the active zones is left for a zone whose last appends are in
 * flight. Half of the others are for swap-out, the rest for GC, which writes
 * more than swap-out if the device is more than about 70 % full. Where one zone
 * at a time is enough, more would only be room in which no stale blocks gather,
 * as would the zones kept empty for more lanes of GC. Where a zone takes one
 * append at a time, swap-out opens only as many as it keeps busy
 * (stripe_idle()). If the device sets no limit, its number of zones does.
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
		if (one_is_enough(cfg) && !cfg->serial)
			return 1;
		if (!cfg->max_active && cfg->nr_zones / ZONES_OF_A_LANE < most)
			most = cfg->nr_zones / ZONES_OF_A_LANE;
		lanes = most / 2 / streams;
	}
	return lanes ? lanes : 1;
}

/* The most zones, apart from GC's, that swap-out opens under any policy. */
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

	if (!cfg->stripe && one_is_enough(cfg))
		return 1;
	if (!cfg->max_active && cfg->nr_zones / ZONES_OF_A_LANE < most)
		most = cfg->nr_zones / ZONES_OF_A_LANE;
	gc = most > taken ? most - taken : 1;
	return gc < MAX_GC_LANES ? gc : MAX_GC_LANES;
}

/*
 * Number of classes of survivors: as many as there are places left.
 *
 * Of small zones, each class would have too few lanes: with several classes, a
 * device 80 % full accepted swap-out at half the rate.
 */
u32 limits_survivors(const struct zse_config *cfg)
{
	u32 nr = most_survivors(cfg), taken = stream_places(cfg);

	if (has_small_zones(cfg))
		return 1;
	if (cfg->max_active && nr + taken + 1 > cfg->max_active)
		nr = cfg->max_active > taken + 1 ?
		     cfg->max_active - taken - 1 : 1;
	return nr;
}

/**
 * zse_gc_chunks() - a good number of chunks for GC
 * @cfg: configuration; its numbers of chunks are ignored
 *
 * If the device has a limit, a zone lies across all dies and a few GC chunks
 * keep them busy. Each chunk more makes reads wait longer: for a ZN540 at 60 %,
 * the simulator's 99th percentile of swap-in is 0.84 ms with four chunks, 0.91
 * ms with five and 1.6 ms with ten. A drive that writes 6.9 GB/s takes 826 MB/s
 * of swap-out at 80 % (its WAF is 5.3) with four chunks, 799 with sixteen, 854
 * with 32, and the percentile rises from 0.21 to 0.66 ms. Small zones need two
 * chunks each: GC reads into one while it writes the other.
 */
u32 zse_gc_chunks(const struct zse_config *cfg)
{
	u32 lanes = zse_gc_lanes(cfg);

	if (cfg->max_active || cfg->wide)
		return 4;
	return 2 * lanes > 8 ? 2 * lanes : 8;
}

/*
 * Zones that GC may have open. If there are enough places, these are all its
 * lanes for the class that writes most, and one for each other class. A policy
 * that @isolates streams has a class for each; if the device sets no limit,
 * there is one for each of many_streams().
 */
u32 limits_gc_zones(const struct zse_config *cfg, bool isolates)
{
	u32 lanes = zse_gc_lanes(cfg), classes = limits_survivors(cfg);
	u32 zones, taken = stream_places(cfg);

	if (isolates && !cfg->max_active && many_streams(cfg) > classes)
		classes = many_streams(cfg);
	zones = lanes + classes - 1;
	if (cfg->max_active && zones + taken + 1 > cfg->max_active)
		zones = lanes > classes ? lanes : classes;
	return zones < ZSE_GC_ZONES ? zones : ZSE_GC_ZONES;
}

/* The most zones that are not full: the reserve, and open ones. */
u32 limits_not_full(const struct zse_config *cfg)
{
	return cfg->reserve + stream_places(cfg) + limits_gc_zones(cfg, true);
}
