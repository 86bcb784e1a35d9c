// SPDX-License-Identifier: GPL-2.0
/*
 * Window. Pages in flight hold memory while memory is short, and they queue in
 * front of reads. A device gains nothing from more than keeps it busy: its
 * rate, times the time that an append takes which finds no queue (N. Cardwell
 * et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016).
 * The window is twice that, so that it finds out whether more in flight raises
 * the rate; three times where a zone takes one append at a time and the next
 * waits. Above it, swap-out gets no new chunk.
 *
 * An append measures both when it ends: what the device wrote since it was
 * sent, over the time since; and that time. The window holds for a round, in
 * which the device writes as much as the window. Once in a cycle of rounds the
 * window is at its least, so that the device's queue empties and the time can
 * be measured. The rate is the best of two cycles: a lull does not shrink the
 * window.
 */
#include "room.h"

/* Chunks in flight, at least. */
#define MIN_IN_FLIGHT	4
/* Rounds of a cycle, of which the first one empties the queue. */
#define CYCLE		16
/* Rates are in blocks a 2^RATE_SHIFT ns (17 ms): 1 GB/s is 4,096. */
#define RATE_SHIFT	24
/* An append that takes longer says nothing of the device: 4 s. */
#define MAX_NS		4000000000ULL

static u32 window_min(const struct zse_engine *e)
{
	u32 chunks = e->cfg.nr_chunks;

	return (chunks < MIN_IN_FLIGHT ? chunks : MIN_IN_FLIGHT) *
	       batch_blocks(&e->cfg);
}

/* Before anything else runs. */
void flow_init(struct zse_engine *e)
{
	e->flow.gc_on = true;
	e->flow.pace = e->cfg.pace;
	e->flow.low = e->flow.wanted_low = e->cfg.gc_low;
	e->flow.high = e->flow.wanted_high = e->cfg.gc_high;
	e->flow.window = window_min(e);
	e->flow.round_end = e->flow.window;
	e->flow.shortest = ZSE_NONE;
}

/*
 * May swap-out have one more chunk? Packing takes the CPU longer than the
 * device may take for an append, so each CPU may pack a chunk beside what the
 * window allows. Context: any, a hint.
 */
bool flow_window_open(const struct zse_engine *e)
{
	return flow_in_flight(e) < READ_ONCE(e->flow.window) &&
	       (u32)atomic_read(&e->flow.packing) < e->cfg.nr_cpus;
}

/* @c left its stream. What packed pages take is not known yet. Context: any. */
void flow_chunk_left(struct zse_engine *e, struct zse_chunk *c)
{
	c->nr_charged = e->cfg.pack ? 0 : c->nr;
	if (e->cfg.pack)
		atomic_inc_return(&e->flow.packing);
	else
		atomic_add_return(c->nr, &e->flow.in_flight);
}

/* The pages of @c are packed. A full barrier. Context: any. */
void flow_chunk_packed(struct zse_engine *e, struct zse_chunk *c)
{
	c->nr_charged = c->fill;
	atomic_add_return(c->fill, &e->flow.in_flight);
	atomic_dec_return(&e->flow.packing);
}

/**
 * flow_append_ended() - an append worked: measure the device
 * @e:	    engine
 * @c:	    its chunk
 * @blocks: written
 * @now:    ns
 *
 * Context: any, without a lock. An update that another CPU overwrites is
 * missed, which the next append makes good.
 */
void flow_append_ended(struct zse_engine *e, const struct zse_chunk *c,
		       u32 blocks, u64 now)
{
	struct zse_flow *f = &e->flow;
	u32 took, rate;

	atomic_add_return(blocks, &f->delivered);
	if (now <= c->sent || now - c->sent > MAX_NS)
		return;
	took = now - c->sent;
	blocks = atomic_read(&f->delivered) - c->delivered;
	rate = div_u64((u64)blocks << RATE_SHIFT, took);
	if (rate > READ_ONCE(f->rate))
		WRITE_ONCE(f->rate, rate);
	if (took < READ_ONCE(f->shortest))
		WRITE_ONCE(f->shortest, took);
}

/*
 * What keeps the device busy, and as much again, within what there are chunks
 * for. Where a zone takes one append at a time, as much waits for its end.
 */
static u32 window_for(const struct zse_engine *e, u32 rate, u32 shortest)
{
	u32 least = window_min(e);
	u64 most = (u64)e->cfg.nr_chunks * batch_blocks(&e->cfg);
	u64 busy = (u64)rate * shortest >> RATE_SHIFT;
	u64 window = (e->cfg.serial ? 3 : 2) * busy;

	if (window > most)
		window = most;
	return window > least ? (u32)window : least;
}

/* A round has ended: set the window for the next. */
static void round_begin(struct zse_engine *e)
{
	struct zse_flow *f = &e->flow;
	u32 rate = READ_ONCE(f->rate), shortest = READ_ONCE(f->shortest);
	u32 window = f->window;

	f->round = (f->round + 1) % CYCLE;
	if (rate < f->last_rate)
		rate = f->last_rate;
	if (f->round) {
		window = window_for(e, rate, shortest);
		f->round_end = atomic_read(&f->delivered) + window;
	} else {
		/*
		 * What is in flight has to end before anything can be measured.
		 */
		f->round_end = atomic_read(&f->delivered) + window + window_min(e);
		window = window_min(e);
		f->last_rate = READ_ONCE(f->rate);
		WRITE_ONCE(f->rate, 0);
		WRITE_ONCE(f->shortest, ZSE_NONE);
	}
	WRITE_ONCE(f->window, window);
}

/* @c goes to the device. */
void flow_append_sent(struct zse_engine *e, struct zse_chunk *c, u64 now)
{
	struct zse_flow *f = &e->flow;

	lockdep_assert_held(&e->lock);
	c->sent = now;
	c->delivered = atomic_read(&f->delivered);
	if ((s32)(c->delivered - f->round_end) >= 0 &&
	    READ_ONCE(f->shortest) != ZSE_NONE)
		round_begin(e);
}
