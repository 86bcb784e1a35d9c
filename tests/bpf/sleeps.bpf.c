// SPDX-License-Identifier: GPL-2.0
/* A policy that may sleep while it places a page. */
#include <znsage.bpf.h>

SEC("struct_ops.s/place")
u32 sleepy_place(u64 *args)
{
	return 0;
}

ZNSAGE_POLICY sleepy = {
	.name = "bpf-wrong",
	.streams = 2,
	.place = (void *)sleepy_place,
};
