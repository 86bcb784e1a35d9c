/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policies for znsage. A policy decides which stream a swapped-out page goes
 * to, and which zone GC cleans next.
 *
 * A policy is a table of functions, like a TCP congestion control. A device
 * uses the one whose name was last written to /sys/block/znsageN/znsage/policy.
 * You can write a policy in BPF (<znsage.bpf.h>), or in C for the simulator
 * only: `znsage-sim run --policy-source FILE`. samples/ has some to start from.
 *
 * Terms. A *stream* writes zones of its own. If the pages of a stream live
 * equally long, they become stale together and GC has little to move. A *key*
 * names what a page belongs to. The *clock* counts blocks swapped out since
 * attach. It measures lives and ages, since swapping makes pages stale, not
 * time.
 *
 * Context. Unless stated otherwise, the functions of a policy are called in any
 * context, by several CPUs at once, under rcu_read_lock(). They must not sleep
 * and may allocate only with GFP_NOWAIT. They should take a microsecond or two,
 * victim() a tenth of a millisecond. A BPF policy that takes ten times as long
 * on average, or whose answers are wrong more than once a second, is ejected;
 * docs/dev/policies.md has the limits.
 */
#ifndef _ZNSAGE_POLICY_H
#define _ZNSAGE_POLICY_H

#ifdef __KERNEL__
#include <linux/types.h>
#elif !defined(__bpf__)		/* there <znsage.bpf.h> has the types */
#include <zport.h>
#endif

#define ZNSAGE_POLICY_NAME	16

/* No zone, no stream, an unknown life. */
#define ZNSAGE_NONE		((u32)~0U)
/* As many streams as there are classes of lives worth keeping apart. */
#define ZNSAGE_LIVES		((u32)~1U)

struct zse_engine;		/* a device, opaque */

/**
 * struct znsage_page - a page to be swapped out
 * @cgroup:	number of its memory cgroup, as `stat -c %i` shows it for the
 *		cgroup's directory; 0: unknown
 * @cpu:	CPU that swaps it out
 * @life:	blocks swapped out while it was last on the device;
 *		ZNSAGE_NONE: unknown, or it never was
 * @usual:	the mean of its last lives, including @life, at most about twice
 *		the device's blocks; ZNSAGE_NONE: unknown
 * @workingset:	it came back soon after its last eviction (PG_workingset)
 * @active:	it is on the active list, which is rare: reclaim takes it off
 */
struct znsage_page {
	u64 cgroup;
	u32 cpu;
	u32 life;
	u32 usual;
	bool workingset;
	bool active;
};

/**
 * struct znsage_zone - a full zone
 * @capacity:	blocks that it can hold
 * @live:	live blocks in it
 * @stream:	stream that wrote it; for survivors of GC, the stream of the
 *		zone they came from
 * @moves:	how often GC moved its contents; 0: written by swap-out
 * @reads:	blocks of it that swap-in has read; those still live may be in
 *		the swap cache
 * @age:	average age of its blocks, by the clock
 * @key:	key of its pages, as given to znsage_stream_of(); 0: none
 * @mixed:	it also holds pages of other keys
 * @failed:	an append to it failed; GC cleans it before others
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
 * @zones:	  all zones
 * @empty:	  empty zones
 * @reserve:	  empty zones that only GC may open
 * @gc_low, @gc_high: GC starts below the first and stops at the second
 * @streams:	  number of streams; place() returns less
 * @survivors:	  classes of survivors; survivor() returns less
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
 * @streams:	streams wanted. 0: one for each CPU; ZNSAGE_NONE: as many as the
 *		device has zones to open, for znsage_stream_of(); ZNSAGE_LIVES:
 *		a few, for classes of lives. There may be fewer.
 * @isolates:	keep streams apart: survivors go to zones of their stream, and
 *		a stream above its share of the zones waits until GC has
 *		cleaned zones of its own
 * @place:	stream of @page
 * @victim:	the full zone to clean next, of at most @room live blocks; or
 *		ZNSAGE_NONE: the device's setting decides. Called by one CPU at
 *		a time, and not while swap-out waits for a zone.
 * @survivor:	class of the live blocks of @z when GC cleans it. Each class
 *		is written to zones of its own. Called like @victim.
 * @freed:	a block of @zone became stale. Keep it short: it is called
 *		under mm locks. Calls may be missing for blocks that GC moves
 *		out of a zone; @cleaning tells of those.
 * @cleaning:	GC begins (@begins) to clean @zone, or has ended. Must not call
 *		znsage_stream_of(), which takes a lock that is held.
 *
 * In the simulator, before any of these is called on a device, and after the
 * last one:
 * @attach:	may sleep; returns what znsage_private() is to return, or NULL
 *		on failure
 * @detach:	may sleep
 *
 * The engine checks what place(), victim() and survivor() return. If it is out
 * of range, or the victim is not full or has more live blocks than @room, the
 * engine uses the default and counts it in policy_refused.
 */
struct znsage_policy {
	char name[ZNSAGE_POLICY_NAME];
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

/*
 * What a policy in BPF fills in: some members of the above, in an order that
 * stays.
 */
struct znsage_bpf_policy {
	u32 (*place)(struct zse_engine *dev, const struct znsage_page *page);
	u32 (*survivor)(struct zse_engine *dev, const struct znsage_zone *zone);
	u32 (*victim)(struct zse_engine *dev, u32 room);
	char name[ZNSAGE_POLICY_NAME];
	u32 streams;
	u32 isolates;
};

#ifndef __KERNEL__
/**
 * znsage_register_policy() - register a policy under its name
 * @policy: must stay valid until znsage_unregister_policy()
 *
 * Return: 0; -EINVAL: no valid name or no place(); -EEXIST: the name is taken;
 * -ENOMEM.
 */
int znsage_register_policy(struct znsage_policy *policy);

/**
 * znsage_unregister_policy() - forget a policy
 * @policy: registered
 */
void znsage_unregister_policy(struct znsage_policy *policy);
#endif

/* A policy can call these in any context; see @cleaning above. */

/**
 * znsage_stream_of() - a stream for each key, as long as there are streams
 * @dev: device
 * @key: not 0
 *
 * A key keeps its stream as long as pages with it arrive. If there are more
 * keys than streams, a new key shares the least used stream (statistics `keys`,
 * `keys_sharing`). Of more than some 200 keys that are in use, the others share
 * streams by a hash, and are not counted.
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

/* What attach() returned for this device. Not for use in attach(). */
void *znsage_private(struct zse_engine *dev);

#endif /* _ZNSAGE_POLICY_H */
