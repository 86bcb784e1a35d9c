/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: what the kernel asks of the disk, in slots, and what the device
 * does for it. Names and fields are an interface, described in docs/monitor.md.
 * Zones have their numbers on the backing device, as in the kernel's log.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM znsage

#if !defined(ZNSAGE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ZNSAGE_TRACE_H

#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(znsage_slots,
	TP_PROTO(int disk, u32 slot, u32 nr), TP_ARGS(disk, slot, nr),
	TP_STRUCT__entry(
		__field(int, disk) __field(u32, slot) __field(u32, nr)
	),
	TP_fast_assign(
		__entry->disk = disk;
		__entry->slot = slot;
		__entry->nr = nr;
	),
	TP_printk("disk=%d slot=%u nr=%u", __entry->disk, __entry->slot,
		  __entry->nr)
);

/* A swap-out bio arrived, for the slots [slot, slot + nr). */
DEFINE_EVENT(znsage_slots, znsage_swap_out,
	TP_PROTO(int disk, u32 slot, u32 nr), TP_ARGS(disk, slot, nr));

/* A swap-in bio arrived. */
DEFINE_EVENT(znsage_slots, znsage_swap_in,
	TP_PROTO(int disk, u32 slot, u32 nr), TP_ARGS(disk, slot, nr));

/* The kernel freed these slots. */
DEFINE_EVENT(znsage_slots, znsage_slot_free,
	TP_PROTO(int disk, u32 slot, u32 nr), TP_ARGS(disk, slot, nr));

/* A swap-in read of [slot, slot + nr) from the device has ended. */
TRACE_EVENT(znsage_swap_in_end,
	TP_PROTO(int disk, u32 slot, u32 nr, int error, u64 us),
	TP_ARGS(disk, slot, nr, error, us),
	TP_STRUCT__entry(
		__field(int, disk) __field(u32, slot) __field(u32, nr)
		__field(int, error) __field(u64, us)
	),
	TP_fast_assign(
		__entry->disk = disk;
		__entry->slot = slot;
		__entry->nr = nr;
		__entry->error = error;
		__entry->us = us;
	),
	TP_printk("disk=%d slot=%u nr=%u error=%d us=%llu", __entry->disk,
		  __entry->slot, __entry->nr, __entry->error, __entry->us)
);

/* A task that swaps out begins to wait for a chunk, or has waited ns. */
TRACE_EVENT(znsage_wait,
	TP_PROTO(int disk, bool begin, u64 ns), TP_ARGS(disk, begin, ns),
	TP_STRUCT__entry(
		__field(int, disk) __field(bool, begin) __field(u64, ns)
	),
	TP_fast_assign(
		__entry->disk = disk;
		__entry->begin = begin;
		__entry->ns = ns;
	),
	TP_printk("disk=%d begin=%d ns=%llu", __entry->disk, __entry->begin,
		  __entry->ns)
);

/* An append goes to the device: nr pages and padding. */
TRACE_EVENT(znsage_chunk_submit,
	TP_PROTO(int disk, u32 chunk, bool gc, u32 zone, u32 nr, u32 padding),
	TP_ARGS(disk, chunk, gc, zone, nr, padding),
	TP_STRUCT__entry(
		__field(int, disk) __field(u32, chunk) __field(bool, gc)
		__field(u32, zone) __field(u32, nr) __field(u32, padding)
	),
	TP_fast_assign(
		__entry->disk = disk;
		__entry->chunk = chunk;
		__entry->gc = gc;
		__entry->zone = zone;
		__entry->nr = nr;
		__entry->padding = padding;
	),
	TP_printk("disk=%d chunk=%u gc=%d zone=%u nr=%u padding=%u",
		  __entry->disk, __entry->chunk, __entry->gc, __entry->zone,
		  __entry->nr, __entry->padding)
);

/* An append ended, us after the chunk's first page; for gc, its submission. */
TRACE_EVENT(znsage_chunk_complete,
	TP_PROTO(int disk, u32 chunk, bool gc, u32 zone, u32 nr, u32 padding,
		 int error, u64 us),
	TP_ARGS(disk, chunk, gc, zone, nr, padding, error, us),
	TP_STRUCT__entry(
		__field(int, disk) __field(u32, chunk) __field(bool, gc)
		__field(u32, zone) __field(u32, nr) __field(u32, padding)
		__field(int, error) __field(u64, us)
	),
	TP_fast_assign(
		__entry->disk = disk;
		__entry->chunk = chunk;
		__entry->gc = gc;
		__entry->zone = zone;
		__entry->nr = nr;
		__entry->padding = padding;
		__entry->error = error;
		__entry->us = us;
	),
	TP_printk("disk=%d chunk=%u gc=%d zone=%u nr=%u padding=%u error=%d us=%llu",
		  __entry->disk, __entry->chunk, __entry->gc, __entry->zone,
		  __entry->nr, __entry->padding, __entry->error, __entry->us)
);

/* GC begins to read a victim with live valid pages. */
TRACE_EVENT(znsage_gc_start,
	TP_PROTO(int disk, u32 zone, u32 live, u32 capacity),
	TP_ARGS(disk, zone, live, capacity),
	TP_STRUCT__entry(
		__field(int, disk) __field(u32, zone) __field(u32, live)
		__field(u32, capacity)
	),
	TP_fast_assign(
		__entry->disk = disk;
		__entry->zone = zone;
		__entry->live = live;
		__entry->capacity = capacity;
	),
	TP_printk("disk=%d zone=%u live=%u capacity=%u", __entry->disk,
		  __entry->zone, __entry->live, __entry->capacity)
);

/* A GC append copied pages; some may have become stale since its submission. */
TRACE_EVENT(znsage_gc_move,
	TP_PROTO(int disk, u32 from, u32 to, u32 nr),
	TP_ARGS(disk, from, to, nr),
	TP_STRUCT__entry(
		__field(int, disk) __field(u32, from) __field(u32, to)
		__field(u32, nr)
	),
	TP_fast_assign(
		__entry->disk = disk;
		__entry->from = from;
		__entry->to = to;
		__entry->nr = nr;
	),
	TP_printk("disk=%d from=%u to=%u nr=%u", __entry->disk, __entry->from,
		  __entry->to, __entry->nr)
);

/* A victim was reset, us after GC began to read it. */
TRACE_EVENT(znsage_gc_finish,
	TP_PROTO(int disk, u32 zone, u64 us), TP_ARGS(disk, zone, us),
	TP_STRUCT__entry(
		__field(int, disk) __field(u32, zone) __field(u64, us)
	),
	TP_fast_assign(
		__entry->disk = disk;
		__entry->zone = zone;
		__entry->us = us;
	),
	TP_printk("disk=%d zone=%u us=%llu", __entry->disk, __entry->zone,
		  __entry->us)
);

/* A zone goes from one state to another. */
TRACE_EVENT(znsage_zone_state,
	TP_PROTO(int disk, u32 zone, const char *from, const char *to),
	TP_ARGS(disk, zone, from, to),
	TP_STRUCT__entry(
		__field(int, disk) __field(u32, zone) __array(char, from, 12)
		__array(char, to, 12)
	),
	TP_fast_assign(
		__entry->disk = disk;
		__entry->zone = zone;
		strscpy(__entry->from, from, sizeof(__entry->from));
		strscpy(__entry->to, to, sizeof(__entry->to));
	),
	TP_printk("disk=%d zone=%u from=%s to=%s", __entry->disk, __entry->zone,
		  __entry->from, __entry->to)
);

#endif /* ZNSAGE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
