// SPDX-License-Identifier: GPL-2.0
/*
 * The rule `greedy` for victims: the zone with the fewest live blocks. One that
 * has only live blocks is no victim. Pages are placed by CPU.
 */
#include <znsage.bpf.h>

struct search {
	struct zse_engine *dev;
	u32 least;		/* live blocks of the best zone */
	u32 best;
};

static long look(u32 zone, struct search *s)
{
	struct znsage_zone z = {};

	if (znsage_get_zone(s->dev, zone, &z) && z.live < s->least &&
	    z.live < z.capacity) {
		s->least = z.live;
		s->best = zone;
	}
	return 0;
}

ZNSAGE_VICTIM(greedy_victim, dev, room)
{
	struct search s = { dev, room, ZNSAGE_NONE };
	struct znsage_levels levels = {};

	znsage_get_levels(dev, &levels);
	bpf_loop(levels.zones, look, &s, 0);
	return s.best;
}

ZNSAGE_PLACE(greedy_place, dev, page)
{
	return page->cpu % znsage_streams(dev);
}

ZNSAGE_POLICY greedy = {
	.name = "bpf-greedy",
	.place = (void *)greedy_place,
	.victim = (void *)greedy_victim,
};
