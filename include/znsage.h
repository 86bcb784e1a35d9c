/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policies for znsage: to which stream a swapped-out page goes, and which zone
 * GC cleans next.
 *
 * A policy is a table of functions, like a TCP congestion control. A module
 * registers it; a device uses it once its name is written to
 * /sys/block/znsageN/znsage/policy. The same source runs in the simulator:
 * `znsage sim run --policy-source FILE.c`. samples/ has one to begin with.
 *
 * Words. A *stream* writes zones of its own, so pages of one stream die
 * together if they live equally long. A *key* names what pages belong to. The
 * *clock* counts blocks swapped out since attach; lives and ages are measured
 * by it, since swapping wears zones out, not time.
 *
 * Context. Unless stated otherwise, a function of a policy is called in any
 * context, by several CPUs at once, under rcu_read_lock(). It must not sleep,
 * may allocate with GFP_NOWAIT only, and should take a microsecond or two,
 * victim() a tenth of a millisecond.
 */
#ifndef _ZNSAGE_POLICY_H
#define _ZNSAGE_POLICY_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <zport.h>
#endif

#define ZNSAGE_POLICY_NAME	16

/* No zone; no stream; a life that is not known. */
#define ZNSAGE_NONE		((u32)~0U)

struct module;
struct zse_engine;		/* a device, opaque */

/**
 * struct znsage_page - a page to be swapped out
 * @process:	key of a mapping and its copies by fork; 0: unknown. Shared
 *		memory of a cgroup counts as one mapping, and so do its pages
 *		that KSM merged.
 * @mapping:	key of its mapping (vma); 0: unknown. Likewise.
 * @cgroup:	number of its memory cgroup, as `stat -c %i` shows of the
 *		cgroup's directory; 0: unknown
 * @cpu:	that swaps it out
 * @life:	blocks swapped out while it was on the device the last time;
 *		ZNSAGE_NONE: it was not, or that was forgotten
 * @stream:	where it was the last time, or ZNSAGE_NONE
 * @workingset:	it came back soon after its last eviction (PG_workingset)
 * @active:	it is on the active list; rarely, since reclaim takes it off
 */
struct znsage_page {
	u64 process;
	u64 mapping;
	u64 cgroup;
	u32 cpu;
	u32 life;
	u32 stream;
	bool workingset;
	bool active;
};

/**
 * struct znsage_zone - a full zone
 * @capacity:	blocks it holds
 * @live:	blocks in it that are live
 * @stream:	stream that wrote it; for survivors of GC that of their zone
 * @moves:	times that GC moved its contents; 0: written by swap-out
 * @reads:	blocks of it that swap-in has read; the live ones of these may
 *		be in the swap cache
 * @age:	of its blocks, on average, by the clock
 * @key:	of its pages, as given to znsage_stream_of(); 0: none
 * @mixed:	it holds pages of other keys, too
 * @failed:	an append to it failed; GC cleans it anyway
 */
struct znsage_zone {
	u32 capacity;
	u32 live;
	u32 stream;
	u32 moves;
	u32 reads;
	u64 age;
	u64 key;
	bool mixed;
	bool failed;
};

/**
 * struct znsage_levels - how much room a device has, in zones
 * @zones:	  all of them
 * @empty:	  that are empty
 * @reserve:	  that only GC may open
 * @gc_low, @gc_high: GC begins below the first and ends at the second
 * @streams:	  streams; place() answers less than that
 * @survivors:	  classes of survivors; survivor() answers less than that
 * @clock:	  blocks swapped out
 */
struct znsage_levels {
	u32 zones;
	u32 empty;
	u32 reserve;
	u32 gc_low;
	u32 gc_high;
	u32 streams;
	u32 survivors;
	u64 clock;
};

/**
 * struct znsage_policy - a policy; all but @name and @place are optional
 * @name:	letters, digits, - and _
 * @owner:	THIS_MODULE
 * @streams:	streams wanted. 0: one for each CPU; ZNSAGE_NONE: as many as the
 *		device has zones to open, for znsage_stream_of(). There may be
 *		fewer.
 * @isolates:	streams do not disturb each other: survivors go to zones of
 *		their stream, and a stream above its share of the zones waits
 *		until GC has cleaned zones of its own
 * @place:	stream of @page
 * @victim:	the full zone to clean next, of at most @room live blocks; or
 *		ZNSAGE_NONE to leave it to the device's setting. Called by one
 *		CPU at a time, and not while swap-out waits for a zone.
 * @survivor:	class of what is live in zone @z when it is cleaned; classes
 *		are written to zones of their own. Like @victim.
 * @freed:	a block of @zone died. Keep it short: it is called under locks
 *		of mm/. It may be left out for blocks that GC moves out of a
 *		zone; then there is only @cleaning.
 * @cleaning:	GC begins (@begins) or has ended cleaning @zone. Must not call
 *		znsage_stream_of(): both take the same lock.
 *
 * Before any of these is called on a device, and after the last one:
 * @attach:	may sleep; returns what znsage_private() is to return, or NULL
 *		on failure
 * @detach:	may sleep
 *
 * The engine checks what place(), victim() and survivor() return: if it is out
 * of range, or the victim is not full or has more live blocks than @room, the
 * default is used and counted in policy_refused.
 */
struct znsage_policy {
	char name[ZNSAGE_POLICY_NAME];
	struct module *owner;
	u32 streams;
	bool isolates;
	u32 (*place)(struct zse_engine *dev, const struct znsage_page *page);
	u32 (*victim)(struct zse_engine *dev, u32 room);
	u32 (*survivor)(struct zse_engine *dev, const struct znsage_zone *z);
	void (*freed)(struct zse_engine *dev, u32 zone);
	void (*cleaning)(struct zse_engine *dev, u32 zone, bool begins);
	void *(*attach)(struct zse_engine *dev);
	void (*detach)(struct zse_engine *dev, void *private_data);
};

/**
 * znsage_register_policy() - make a policy known by its name
 * @policy: stays until znsage_unregister_policy()
 *
 * Context: sleeps. Return: 0; -EINVAL: no name or no place(); -EEXIST: there
 * is one of that name; -ENOMEM.
 */
int znsage_register_policy(struct znsage_policy *policy);

/**
 * znsage_unregister_policy() - forget a policy
 * @policy: registered
 *
 * Called by the module's exit, which cannot run while a device uses the policy:
 * the device holds the module.
 *
 * Context: sleeps.
 */
void znsage_unregister_policy(struct znsage_policy *policy);

/* What a policy can call, in any context; but see @cleaning above. */

/**
 * znsage_stream_of() - a stream for each key, as long as there are streams
 * @dev: device
 * @key: not 0
 *
 * A key keeps its stream while pages come with it. If there are more keys than
 * streams, a new one shares the stream that is used least; the statistics keys
 * and keys_sharing tell.
 */
u32 znsage_stream_of(struct zse_engine *dev, u64 key);

/**
 * znsage_get_levels() - free zones, watermarks, the clock
 * @dev:    device
 * @levels: filled in
 */
void znsage_get_levels(struct zse_engine *dev, struct znsage_levels *levels);

/**
 * znsage_get_zone() - look at a zone
 * @dev:  device
 * @zone: below levels.zones
 * @z:	  filled in when true
 *
 * Return: true if the zone is full, so that it can be a victim.
 */
bool znsage_get_zone(struct zse_engine *dev, u32 zone, struct znsage_zone *z);

/* What attach() returned for this device; not from within attach(). */
void *znsage_private(struct zse_engine *dev);

#endif /* _ZNSAGE_POLICY_H */
