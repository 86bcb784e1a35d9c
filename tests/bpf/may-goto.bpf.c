// SPDX-License-Identifier: GPL-2.0
/* A policy that places a page after as many turns as may_goto allows. */
#include <znsage.bpf.h>

ZNSAGE_PLACE(may_goto_place, dev, page)
{
	/* A may_goto over a jump back to it; not all compilers know it. */
	asm volatile(".byte 0xe5, 0, 1, 0, 0, 0, 0, 0;"
		     ".byte 0x05, 0, 0xfe, 0xff, 0, 0, 0, 0");
	return 0;
}

ZNSAGE_POLICY may_goto = {
	.name = "bpf-wrong",
	.streams = 2,
	.place = (void *)may_goto_place,
};
