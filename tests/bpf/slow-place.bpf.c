// SPDX-License-Identifier: GPL-2.0
/* A policy that takes its time to place a page: a call is many million steps. */
#include <znsage.bpf.h>

#define STEPS	(1 << 23)	/* the most that the kernel's loop does */
#define TURNS	4

static long step(u32 i, void *context)
{
	return 0;
}

ZNSAGE_PLACE(slow_place, dev, page)
{
	int i;

	for (i = 0; i < TURNS; i++)
		bpf_loop(STEPS, step, 0, 0);
	return 0;
}

ZNSAGE_POLICY slow = {
	.name = "bpf-wrong",
	.streams = 2,
	.place = (void *)slow_place,
};
