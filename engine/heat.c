// SPDX-License-Identifier: GPL-2.0
/*
 * Policy heat: pages go to streams by how long they will stay on the device.
 *
 * The best guess of how long a page will stay is how long it stayed the last
 * time. One stay is a noisy sign, so the page's history counts as well, and it
 * costs no memory: it is the stream that the page was in. A page that came
 * back sooner than is usual for its stream moves up one, one that came back
 * later moves down one. The usual life in stream i is the unit of the stream
 * below times SPREAD.
 */
#include "internal.h"

#define HEAT_STREAMS	4
/* Lives of neighbouring streams differ by this factor. */
#define SPREAD		2

/* Stream of a page of which nothing is known but what the kernel says. */
static u32 heat_of_new(const struct znsage_page *page, u32 nr)
{
	return page->workingset || page->active ? nr / 2 : nr - 1;
}

static u32 heat_place(struct zse_engine *e, const struct znsage_page *page)
{
	u32 nr = zp_load(&e->nr_streams);
	u64 life = e->usable_blocks / 4;
	u32 i;

	if (page->life == ZNSAGE_NONE || page->stream >= nr)
		return heat_of_new(page, nr);
	for (i = 0; i < nr - 1 && page->life > life; i++)
		life *= SPREAD;
	if (i < page->stream)
		return page->stream - 1;
	if (i > page->stream)
		return page->stream + 1;
	return i;
}

const struct znsage_policy policy_heat = {
	.name = "heat",
	.streams = HEAT_STREAMS,
	.place = heat_place,
};
