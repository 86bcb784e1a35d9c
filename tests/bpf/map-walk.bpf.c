// SPDX-License-Identifier: GPL-2.0
/* A policy that looks at all of a map to place a page. */
#include <znsage.bpf.h>

#define BPF_MAP_TYPE_ARRAY	2

struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*max_entries)[2];
	u32 *key;
	u32 *value;
} map SEC(".maps");

static long (*const bpf_for_each_map_elem)(void *map, void *step, void *context,
					   u64 flags) = (void *)164;

static long step(void *map, u32 *key, u32 *value, void *context)
{
	return 0;
}

ZNSAGE_PLACE(walk_place, dev, page)
{
	bpf_for_each_map_elem(&map, step, 0, 0);
	return 0;
}

ZNSAGE_POLICY walk = {
	.name = "bpf-wrong",
	.streams = 2,
	.place = (void *)walk_place,
};
