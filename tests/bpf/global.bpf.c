// SPDX-License-Identifier: GPL-2.0
/*
 * A policy that never places a page: the verifier looks at a global function
 * once, so it does not see how often a loop in a loop in a loop turns.
 */
#include <znsage.bpf.h>

#define TURNS	20000

#define LEVEL(_name, _body)						\
__attribute__((noinline)) u32 _name(u32 x)				\
{									\
	u32 i;								\
									\
	for (i = 0; i < TURNS; i++) {					\
		_body;							\
		asm volatile("" : "+r"(x));				\
	}								\
	return x;							\
}

LEVEL(inner, x++)
LEVEL(middle, x += inner(x))
LEVEL(outer, x += middle(x))

ZNSAGE_PLACE(global_place, dev, page)
{
	return outer(page->cpu) & 1;
}

ZNSAGE_POLICY global = {
	.name = "bpf-wrong",
	.streams = 2,
	.place = (void *)global_place,
};
