// SPDX-License-Identifier: GPL-2.0
/* A policy whose victims do not exist. */
#include <znsage.bpf.h>

ZNSAGE_PLACE(wrong_place, dev, page)
{
	return 0;
}

ZNSAGE_VICTIM(wrong_victim, dev, room)
{
	return 1000000;
}

ZNSAGE_POLICY wrong = {
	.name = "bpf-wrong",
	.streams = 2,
	.place = (void *)wrong_place,
	.victim = (void *)wrong_victim,
};
