// SPDX-License-Identifier: GPL-2.0
/* A policy that gives no valid answer. */
#include <znsage.bpf.h>

ZNSAGE_PLACE(wrong_place, dev, page)
{
	return 1000;
}

ZNSAGE_POLICY wrong = {
	.name = "bpf-wrong",
	.streams = 2,
	.place = (void *)wrong_place,
};
