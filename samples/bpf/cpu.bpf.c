// SPDX-License-Identifier: GPL-2.0
/* The built-in policy cpu: a stream for each CPU. */
#include <znsage.bpf.h>

ZNSAGE_PLACE(cpu_place, dev, page)
{
	return page->cpu % znsage_streams(dev);
}

ZNSAGE_POLICY cpu = {
	.name = "bpf-cpu",
	.place = (void *)cpu_place,
};
