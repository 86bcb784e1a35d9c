/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A zoned device in memory for the stress test. Requests wait in a queue, from which
 * the completion threads take them at random; an append gets its place when it
 * completes. Content is one word a block: (slot, version).
 *
 * Content is read and written by relaxed atomics: it stands for what is behind the
 * block layer, so it must neither order anything for ThreadSanitizer nor look like a
 * race. If the engine resets a zone under a read, the reader sees it: a reset leaves
 * zeros, which are no page of any slot.
 */
#ifndef ZNSAGE_TEST_DEVICE_H
#define ZNSAGE_TEST_DEVICE_H

#include "engine.h"

/* Work of a completion thread; fields as in struct zse_op. */
struct request {
	enum zse_op_kind kind;
	struct zse_chunk *chunk;
	u32 zone;
	u32 first;
	u32 nr;
	u32 from;
	u32 blocks;
	u32 padding;
};

struct device;

/* Slot 0 is 1 in a page, so that no page is 0. */
static inline u64 make_page(u32 slot, u32 version)
{
	return (u64)(slot + 1) << 32 | version;
}

static inline u32 page_slot(u64 page)
{
	return (u32)(page >> 32) - 1;
}

static inline u32 page_version(u64 page)
{
	return (u32)page;
}

void *must_alloc(size_t bytes);

struct device *device_create(const struct zse_config *cfg);
void device_destroy(struct device *d);
void device_submit(struct device *d, const struct request *rq);
bool device_next(struct device *d, u64 random, struct request *rq);
void device_end(struct device *d);
void device_stop(struct device *d);
bool device_idle(struct device *d);
bool device_may_fail(struct device *d, u32 most);

u32 device_append(struct device *d, u32 zone, const u64 *pages, u32 nr,
		  u32 padding, bool ok);
u64 device_read(struct device *d, u32 block);
void device_reset(struct device *d, u32 zone);

u64 device_blocks(struct device *d);
u32 device_faults(struct device *d);

#endif /* ZNSAGE_TEST_DEVICE_H */
