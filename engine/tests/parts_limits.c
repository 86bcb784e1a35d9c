// SPDX-License-Identifier: GPL-2.0
/* What follows from the shape of a device: engine/limits.c. */
#include "parts_host.h"

/* Limits are in range for devices of any size. */
static void test_ranges(void)
{
	struct host h;
	struct zse_config cfg = config(&h);

	must(zse_gc_chunks(&cfg) == 8);
	cfg.max_active = 14;
	must(zse_gc_chunks(&cfg) == 4);
	cfg.max_active = 0;
	cfg.nr_zones = 100000;
	cfg.zone_blocks = 4096;
	cfg.nr_cpus = 1000;
	must(zse_max_streams(&cfg) == ZSE_MAX_STREAMS);
	must(zse_gc_chunks(&cfg) >= 8);
	cfg.stripe = 1000;
	must(zse_lanes(&cfg, 1) == ZSE_MAX_LANES);
}

/* The most slots and classes of survivors. */
static void test_slots(void)
{
	struct host h;
	struct zse_config cfg = config(&h);

	cfg.nr_zones = 1 << 20;
	cfg.zone_blocks = 1 << 13;
	must(zse_max_slots(&cfg) == ZSE_MAX_BLOCKS);
	cfg.nr_zones = 3000;
	cfg.zone_blocks = 4096;
	cfg.max_active = 1000;
	must(limits_survivors(&cfg) == 5);
	cfg.max_active = 3;
	must(limits_survivors(&cfg) == 1);
	cfg.max_active = 0;
	cfg.nr_zones = 1000;
	must(zse_gc_lanes(&cfg) > 1 && limits_survivors(&cfg) == 1);
}

/*
 * A ZN540, which opens 14 zones: survivors have their classes however many CPUs
 * there are, and so have streams that need one each. On a device as large that
 * has no zones, CPUs and lives share a stream.
 */
static void test_cpus(void)
{
	const struct znsage_policy *heat = zse_builtin_policy("heat");
	const struct znsage_policy *cgroup = zse_builtin_policy("cgroup");
	struct host h;
	struct zse_config cfg = config(&h);

	cfg.nr_zones = 904;
	cfg.zone_blocks = 1077 << 8;
	cfg.max_active = 14;
	for (cfg.nr_cpus = 1; cfg.nr_cpus <= 256; cfg.nr_cpus++) {
		must(limits_survivors(&cfg) == 5);
		must(zse_nr_streams(&cfg, heat) == 6);
		must(zse_nr_streams(&cfg, cgroup) >= 5);
		must(limits_gc_zones(&cfg, true) + zse_max_streams(&cfg) < 14);
	}
	must(zse_nr_streams(&cfg, zse_builtin_policy("cpu")) == 8);
	cfg.max_active = 0;
	cfg.nr_cpus = 8;
	must(zse_gc_lanes(&cfg) > 1 && zse_nr_streams(&cfg, heat) == 2);
	cfg.wide = true;
	must(limits_survivors(&cfg) == 5);
	must(zse_nr_streams(&cfg, zse_builtin_policy("cpu")) == 1);
	must(zse_nr_streams(&cfg, heat) == 1);
}

/*
 * Isolated streams: what the device opens. If it sets no limit, its zones are
 * one, and GC has a zone for each. Other policies get no more of GC's.
 */
static void test_tenants(void)
{
	const struct znsage_policy *cgroup = zse_builtin_policy("cgroup");
	struct host h;
	struct zse_config cfg = config(&h);
	bool wide;

	cfg.zone_blocks = 1 << 16;
	for (wide = false;; wide = true) {
		cfg.wide = wide;
		cfg.nr_zones = 4096;
		must(zse_nr_streams(&cfg, cgroup) == 64);
		must(limits_gc_zones(&cfg, true) >= 64);
		must(limits_gc_zones(&cfg, false) <= 8);
		cfg.nr_zones = 1024;
		must(zse_nr_streams(&cfg, cgroup) == 16);
		if (wide)
			break;
	}
	cfg.max_active = 384;
	must(zse_nr_streams(&cfg, cgroup) == limits_gc_zones(&cfg, false));
	must(limits_gc_zones(&cfg, true) == limits_gc_zones(&cfg, false));
}

/*
 * Classes of lives need fewer zones than classes of survivors. Their number
 * follows from that of zones, within what the device opens.
 */
static void test_lives(void)
{
	const struct znsage_policy *heat = zse_builtin_policy("heat");
	struct host h;
	struct zse_config cfg = config(&h);

	cfg.zone_blocks = 480;
	cfg.nr_cpus = 8;
	cfg.max_active = 14;
	cfg.nr_zones = 292;
	must(limits_survivors(&cfg) == 1 && zse_nr_streams(&cfg, heat) == 4);
	cfg.nr_zones = 192;
	must(zse_nr_streams(&cfg, heat) == 3);
	cfg.nr_zones = 100;
	must(zse_nr_streams(&cfg, heat) == 1);
	cfg.nr_zones = 904;
	cfg.max_active = 4;
	must(zse_nr_streams(&cfg, heat) == 2);
	cfg.max_active = 1;
	must(zse_nr_streams(&cfg, heat) == 1);
	/* A zone takes one append at a time: streams have several lanes. */
	cfg.serial = true;
	cfg.max_active = 8;
	must(zse_lanes(&cfg, 1) == 3 && zse_nr_streams(&cfg, heat) == 1);
}

/*
 * Zones written at a time: one where the device opens few, unless it is told
 * otherwise or a zone takes one append at a time.
 */
static void test_lanes(void)
{
	struct host h;
	struct zse_config cfg = config(&h);

	cfg.nr_zones = 904;
	cfg.zone_blocks = 1077 << 8;
	cfg.nr_cpus = 4;
	cfg.max_active = 14;
	must(zse_lanes(&cfg, 1) == 1 && zse_gc_lanes(&cfg) == 1);
	cfg.stripe = 3;
	must(zse_lanes(&cfg, 1) == 3);
	cfg.stripe = 0;
	cfg.serial = true;
	must(zse_lanes(&cfg, 1) > 1 && zse_gc_lanes(&cfg) > 1);
	cfg.serial = false;
	cfg.max_active = 384;
	must(zse_lanes(&cfg, 1) > 1 && zse_gc_lanes(&cfg) > 1);
}

void test_limits(void)
{
	test_ranges();
	test_slots();
	test_cpus();
	test_tenants();
	test_lives();
	test_lanes();
}
