/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The benchmark's host: everything that it calls of the engine. Its device answers
 * at once, in the thread that asks, and keeps no content.
 */
#ifndef ZNSAGE_BENCH_HOST_H
#define ZNSAGE_BENCH_HOST_H

#include "meter.h"

/**
 * struct host - an engine and its device
 * @e:	     engine
 * @cfg:     its configuration
 * @wp:	     write pointer of each zone; atomic
 * @working: @worker runs
 * @worker:  does what zse_next_op() says
 * @locks:   that the last worker has taken
 * @lock:    guards @kicked and @stop, with @cond for the worker
 */
struct host {
	struct zse_engine *e;
	struct zse_config cfg;
	u32 *wp;
	bool working;
	pthread_t worker;
	struct meter locks;

	pthread_mutex_t lock;
	pthread_cond_t cond;
	u32 kicked;
	u32 stop;
};

struct host *host_create(u32 streams, u32 percent, u32 zone_blocks);
void host_destroy(struct host *h);

/* Pages. */
bool host_write(struct host *h, u32 stream, u32 slot);
void host_flush(struct host *h, u32 stream);
bool host_read(struct host *h, u32 slot);
void host_free(struct host *h, u32 slot);

/* GC. */
void host_open_victim(struct host *h);
void host_start_worker(struct host *h);
void host_stop_worker(struct host *h);

#endif /* ZNSAGE_BENCH_HOST_H */
