// SPDX-License-Identifier: GPL-2.0
/* The built-in policy cgroup: a stream for each memory cgroup, kept apart. */
#include <znsage.bpf.h>

/* The key of a page whose cgroup is not known. */
#define NOBODY	1

ZNSAGE_PLACE(cgroup_place, dev, page)
{
	return znsage_stream_of(dev, page->cgroup ? page->cgroup : NOBODY);
}

ZNSAGE_SURVIVOR(cgroup_survivor, dev, zone)
{
	struct znsage_levels levels = {};

	znsage_get_levels(dev, &levels);
	return levels.survivors ? zone->stream % levels.survivors : 0;
}

ZNSAGE_POLICY cgroup = {
	.name = "bpf-cgroup",
	.streams = ZNSAGE_NONE,
	.isolates = 1,
	.place = (void *)cgroup_place,
	.survivor = (void *)cgroup_survivor,
};
