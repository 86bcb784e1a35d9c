// SPDX-License-Identifier: GPL-2.0
/* A policy that repeats a step to choose a class of survivors. */
#include <znsage.bpf.h>

static long step(u32 i, void *context)
{
	return 0;
}

ZNSAGE_PLACE(loop_place, dev, page)
{
	return 0;
}

ZNSAGE_SURVIVOR(loop_survivor, dev, zone)
{
	bpf_loop(2, step, 0, 0);
	return 0;
}

ZNSAGE_POLICY loop = {
	.name = "bpf-wrong",
	.streams = 2,
	.place = (void *)loop_place,
	.survivor = (void *)loop_survivor,
};
