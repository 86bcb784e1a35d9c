// SPDX-License-Identifier: GPL-2.0
/*
 * The write window: how many swap-out chunks may be in use at once.
 *
 * Pages of a chunk under way hold memory and, while memory is short, that is
 * memory the kernel cannot use; they also stand before whatever is read. A
 * device gains nothing from more chunks than keep it busy. So the window is
 * as wide as the time that chunks take allows: with more than enough under
 * way, that time grows with their number (Little's law), be it for the device
 * or for GC, which makes room.
 *
 * The window shrinks at most once in the time that a chunk takes, because
 * chunks sent before it shrank tell of the wider one, and at most by half. It
 * grows by one when as many chunks as it is wide were in time and found it used
 * up; with each of them, until it has shrunk for the first time: it begins
 * narrow, since nothing is known of the device yet.
 */
#include "internal.h"

/* Long enough to keep any SSD busy: 25 ms at 1 GB/s are 25 MB. */
#define LATENCY		25000000ULL
/* Under way beside the chunks that fill in the streams. */
#define MIN_UNDER_WAY	4

static u32 window_min(const struct zse_engine *e)
{
	u32 min = e->max_streams + MIN_UNDER_WAY;

	return min < e->cfg.nr_chunks ? min : e->cfg.nr_chunks;
}

void window_init(struct zse_engine *e)
{
	e->window = window_min(e);
}

/* May one more chunk be in use? Wants the engine lock. */
bool window_open(const struct zse_engine *e)
{
	return e->nr_used_chunks < e->window;
}

/* A chunk of swap-out has ended. Wants the engine lock. */
void window_update(struct zse_engine *e, u64 sent, u64 now)
{
	u64 took = now - sent;
	u32 min = window_min(e), window;

	if (!sent || now < sent)
		return;
	if (took <= LATENCY) {
		if (window_open(e) ||
		    (e->window_cut && ++e->window_in_time < e->window))
			return;
		e->window_in_time = 0;
		if (e->window < e->cfg.nr_chunks)
			e->window++;
		return;
	}
	if (sent < e->window_cut)
		return;
	window = e->window - e->window / (took < 2 * LATENCY ? 4 : 2);
	e->window = window > min ? window : min;
	e->window_cut = now;
	e->window_in_time = 0;
}
