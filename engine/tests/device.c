// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "device.h"

#define QUEUE	256

/**
 * struct device - see device.h
 *
 * Under @lock:
 * @queue, @nr_queued: requests in no order
 * @busy:     requests being completed
 * @failures: requests that the test made fail
 * @wp:	      write pointer of each zone
 * @appends:  in flight to each zone
 * @blocks:   blocks acknowledged
 * @faults:   commands that no device would have accepted
 */
struct device {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct request queue[QUEUE];
	u32 nr_queued;
	u32 busy;
	u32 failures;
	u32 faults;
	u32 *wp;
	u32 *appends;
	u64 blocks;
	bool stop;

	u32 zone_blocks;
	bool serial;
	u64 *content;
};

void *must_alloc(size_t bytes)
{
	void *p = calloc(1, bytes);

	if (!p)
		abort();
	return p;
}

struct device *device_create(const struct zse_config *cfg)
{
	struct device *d = must_alloc(sizeof(*d));

	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->cond, NULL);
	d->zone_blocks = cfg->zone_blocks;
	d->serial = cfg->serial;
	d->wp = must_alloc(cfg->nr_zones * sizeof(*d->wp));
	d->appends = must_alloc(cfg->nr_zones * sizeof(*d->appends));
	d->content = must_alloc((size_t)cfg->nr_zones * cfg->zone_blocks *
				sizeof(*d->content));
	return d;
}

void device_destroy(struct device *d)
{
	pthread_cond_destroy(&d->cond);
	pthread_mutex_destroy(&d->lock);
	free(d->content);
	free(d->appends);
	free(d->wp);
	free(d);
}

void device_submit(struct device *d, const struct request *rq)
{
	pthread_mutex_lock(&d->lock);
	if (d->nr_queued == QUEUE)
		abort();
	if (rq->kind == ZSE_OP_APPEND && d->appends[rq->zone]++ && d->serial) {
		fprintf(stderr, "two appends at a time to zone %u\n", rq->zone);
		d->faults++;
	}
	d->queue[d->nr_queued++] = *rq;
	pthread_cond_signal(&d->cond);
	pthread_mutex_unlock(&d->lock);
}

/* Take a random request; false if the device was stopped. */
bool device_next(struct device *d, u64 random, struct request *rq)
{
	bool got = false;

	pthread_mutex_lock(&d->lock);
	while (!d->nr_queued && !d->stop)
		pthread_cond_wait(&d->cond, &d->lock);
	if (d->nr_queued) {
		u32 i = (u32)(random % d->nr_queued);

		*rq = d->queue[i];
		d->queue[i] = d->queue[--d->nr_queued];
		d->busy++;
		got = true;
	}
	pthread_mutex_unlock(&d->lock);
	return got;
}

/* The request from device_next() was reported to the engine. */
void device_end(struct device *d)
{
	pthread_mutex_lock(&d->lock);
	d->busy--;
	pthread_mutex_unlock(&d->lock);
}

void device_stop(struct device *d)
{
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_cond_broadcast(&d->cond);
	pthread_mutex_unlock(&d->lock);
}

bool device_idle(struct device *d)
{
	bool idle;

	pthread_mutex_lock(&d->lock);
	idle = !d->nr_queued && !d->busy;
	pthread_mutex_unlock(&d->lock);
	return idle;
}

/* Claim one of @most failures. */
bool device_may_fail(struct device *d, u32 most)
{
	bool may;

	pthread_mutex_lock(&d->lock);
	may = d->failures < most;
	d->failures += may;
	pthread_mutex_unlock(&d->lock);
	return may;
}

static void store(struct device *d, u32 block, u64 page)
{
	__atomic_store_n(&d->content[block], page, __ATOMIC_RELAXED);
}

/* Write at the write pointer, even if the append is to be reported as failed. */
u32 device_append(struct device *d, u32 zone, const u64 *pages, u32 nr,
		  u32 padding, bool ok)
{
	u32 offset, i;

	pthread_mutex_lock(&d->lock);
	offset = d->wp[zone];
	if (offset + nr + padding > d->zone_blocks) {
		fprintf(stderr, "append beyond the end of zone %u\n", zone);
		d->faults++;
		offset = 0;
	}
	d->wp[zone] = offset + nr + padding;
	d->appends[zone]--;
	if (ok)
		d->blocks += nr + padding;
	pthread_mutex_unlock(&d->lock);

	for (i = 0; i < nr; i++)
		store(d, zone * d->zone_blocks + offset + i, pages[i]);
	for (i = nr; i < nr + padding; i++)
		store(d, zone * d->zone_blocks + offset + i, 0);
	return offset;
}

u64 device_read(struct device *d, u32 block)
{
	return __atomic_load_n(&d->content[block], __ATOMIC_RELAXED);
}

void device_reset(struct device *d, u32 zone)
{
	u32 i;

	for (i = 0; i < d->zone_blocks; i++)
		store(d, zone * d->zone_blocks + i, 0);
	pthread_mutex_lock(&d->lock);
	d->wp[zone] = 0;
	pthread_mutex_unlock(&d->lock);
}

u64 device_blocks(struct device *d)
{
	u64 blocks;

	pthread_mutex_lock(&d->lock);
	blocks = d->blocks;
	pthread_mutex_unlock(&d->lock);
	return blocks;
}

u32 device_faults(struct device *d)
{
	u32 faults;

	pthread_mutex_lock(&d->lock);
	faults = d->faults;
	pthread_mutex_unlock(&d->lock);
	return faults;
}
