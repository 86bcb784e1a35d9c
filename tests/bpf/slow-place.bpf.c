// SPDX-License-Identifier: GPL-2.0
/* A policy that takes a millisecond or more to place a page. */
#include <znsage.bpf.h>

#define STEPS	30000

static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;

ZNSAGE_PLACE(slow_place, dev, page)
{
	u32 i;

	for (i = 0; i < STEPS; i++)
		bpf_ktime_get_ns();
	return 0;
}

ZNSAGE_POLICY slow = {
	.name = "bpf-wrong",
	.streams = 2,
	.place = (void *)slow_place,
};
