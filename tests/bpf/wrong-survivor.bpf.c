// SPDX-License-Identifier: GPL-2.0
/* A policy whose classes of survivors do not exist. */
#include <znsage.bpf.h>

ZNSAGE_PLACE(wrong_place, dev, page)
{
	return 0;
}

ZNSAGE_SURVIVOR(wrong_survivor, dev, zone)
{
	return 1000;
}

ZNSAGE_POLICY wrong = {
	.name = "bpf-wrong",
	.streams = 2,
	.place = (void *)wrong_place,
	.survivor = (void *)wrong_survivor,
};
