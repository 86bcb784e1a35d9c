/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: what the kernel asks of the disk, in slots. `znsage bench
 * --trace` and trace/ read them; the names and fields are an interface.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM znsage

#if !defined(ZNSAGE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ZNSAGE_TRACE_H

#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(znsage_slots,
	TP_PROTO(int disk, u32 slot, u32 nr),
	TP_ARGS(disk, slot, nr),
	TP_STRUCT__entry(
		__field(int, disk)
		__field(u32, slot)
		__field(u32, nr)
	),
	TP_fast_assign(
		__entry->disk = disk;
		__entry->slot = slot;
		__entry->nr = nr;
	),
	TP_printk("disk=%d slot=%u nr=%u", __entry->disk, __entry->slot,
		  __entry->nr)
);

/* A bio of swap-out came in; its slots are [slot, slot + nr). */
DEFINE_EVENT(znsage_slots, znsage_swap_out,
	TP_PROTO(int disk, u32 slot, u32 nr), TP_ARGS(disk, slot, nr));

/* A bio of swap-in came in. */
DEFINE_EVENT(znsage_slots, znsage_swap_in,
	TP_PROTO(int disk, u32 slot, u32 nr), TP_ARGS(disk, slot, nr));

/* The kernel needs the content of these slots no more. */
DEFINE_EVENT(znsage_slots, znsage_slot_free,
	TP_PROTO(int disk, u32 slot, u32 nr), TP_ARGS(disk, slot, nr));

#endif /* ZNSAGE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
