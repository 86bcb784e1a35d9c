// SPDX-License-Identifier: GPL-2.0
/*
 * What the engine tells the module of zones, how long GC takes for a victim,
 * and a look at what the device says of a zone.
 */
#include "trace.h"
#include "io.h"

/* GC reads from @zone, perhaps not for the first time. */
void znsage_victim_begin(struct znsage_device *zd, u32 zone)
{
	struct zse_zone_info zi;

	if (zd->gc_since[zone])
		return;
	zd->gc_since[zone] = ktime_get_ns();
	if (trace_znsage_gc_start_enabled() &&
	    zse_get_zone(zd->engine, zone, &zi))
		trace_znsage_gc_start(zd->index, zd->zone_nr[zone], zi.live,
				      zi.capacity);
}

/* @zone was reset; the engine has not been told yet. */
void znsage_victim_end(struct znsage_device *zd, u32 zone)
{
	u64 ns;

	if (!zd->gc_since[zone])
		return;
	ns = ktime_get_ns() - zd->gc_since[zone];
	zd->gc_since[zone] = 0;
	znsage_timed(zd, ZNSAGE_GC, ns);
	trace_znsage_gc_finish(zd->index, zd->zone_nr[zone],
			       div_u64(ns, NSEC_PER_USEC));
}

/* The engine's zone_event. Context: any, under the engine lock. */
void znsage_zone_state(void *host, u32 zone, const char *from, const char *to)
{
	struct znsage_device *zd = host;

	trace_znsage_zone_state(zd->index, zd->zone_nr[zone], from, to);
	/* GC could not empty this victim. */
	if (zd->gc_since[zone] && !strcmp(to, "full"))
		zd->gc_since[zone] = 0;
	if (!strcmp(to, "victim"))
		clear_bit(zone, zd->looked);
}

/* The engine's odd. Context: any. */
void znsage_odd(void *host, u32 zone, enum zse_oddity odd, u32 at, u32 least)
{
	const struct znsage_device *zd = host;
	u32 nr = zd->zone_nr[zone];

	switch (odd) {
	case ZSE_WAS_RESET:
		pr_err_ratelimited("znsage: %s: zone %u was reset by another program: it had %u pages, the device says %u. Pages in it are lost: reading them fails\n",
				   zd->name, nr, least, at);
		break;
	case ZSE_OVERLAP:
		pr_err_ratelimited("znsage: %s: zone %u has two appends in one place, so it was probably reset by another program. Pages in it are lost: reading them fails\n",
				   zd->name, nr);
		break;
	case ZSE_BEYOND:
		pr_err_ratelimited("znsage: %s: the device says that an append to zone %u is not in that zone: its pages are written again\n",
				   zd->name, nr);
		break;
	}
}

/*
 * Compare what the device says of a zone with what was written. Returns true if
 * the pages in the zone were found lost; the log has it. Sleeps for the device,
 * but never for memory.
 */
bool znsage_look(struct znsage_device *zd, u32 zone)
{
	struct zse_look look;
	u32 pages;

	if (!zd->backend->written || READ_ONCE(zd->gone) ||
	    !zse_look_begin(zd->engine, zone, &look))
		return false;
	zd->backend->written(zd, zone, 1, &pages);
	if (zse_look_end(zd->engine, &look, pages == U32_MAX,
			 pages == U32_MAX ? 0 : pages * zd->page_blocks))
		znsage_kick(zd);
	return look.lost;
}
