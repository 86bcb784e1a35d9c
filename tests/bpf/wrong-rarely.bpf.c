// SPDX-License-Identifier: GPL-2.0
/* A policy that gives some wrong answers at first, and later one a second. */
#include <znsage.bpf.h>

#define AT_FIRST	90

static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;

u32 given;
u64 next;

ZNSAGE_PLACE(wrong_place, dev, page)
{
	u64 now = bpf_ktime_get_ns();

	if (given >= AT_FIRST && now < next)
		return 0;
	next = now + 1000000000ULL;
	__sync_fetch_and_add(&given, 1);
	return 1000;
}

ZNSAGE_POLICY wrong = {
	.name = "bpf-rare",
	.streams = 2,
	.place = (void *)wrong_place,
};
