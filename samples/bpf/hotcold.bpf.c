// SPDX-License-Identifier: GPL-2.0
/*
 * ../hotcold.c in BPF: pages that come back soon go to one stream, all others
 * to another. A page is hot if it stayed on the device for less than half of
 * the usual life, or is new and in the working set.
 */
#include <znsage.bpf.h>

enum { COLD, HOT, NR_STREAMS };

/* Moving average of page lives, of all devices that use this. */
static volatile u32 usual;

ZNSAGE_PLACE(hotcold_place, dev, page)
{
	u32 life = page->life, stream = page->workingset ? HOT : COLD;

	if (life != ZNSAGE_NONE) {
		/* Concurrent CPUs may lose an update, which does no harm. */
		u32 average = usual;

		usual = average - average / 64 + life / 64;
		stream = life < average / 2 ? HOT : COLD;
	}
	return stream % znsage_streams(dev);
}

ZNSAGE_POLICY hotcold = {
	.name = "bpf-hotcold",
	.streams = NR_STREAMS,
	.place = (void *)hotcold_place,
};
