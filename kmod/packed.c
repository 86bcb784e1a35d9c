// SPDX-License-Identifier: GPL-2.0
/*
 * Chunks of compressed pages: records (compress.c) of any length, one after the
 * other in the append of their chunk. engine/packed.c has the rules.
 *
 * Swap-out: the task that takes a chunk from its stream compresses its pages
 * into the chunk's buffer, which was allocated at attach.
 *
 * GC: the worker reads a stretch of the victim into the chunk's input, lets the
 * engine find the live records in it, and copies these to the chunk's buffer.
 */
#include <linux/highmem.h>
#include <linux/ratelimit.h>

#include "io.h"

/*
 * Pages of a chunk's buffer: of swap-out, as many as the chunk takes if no page
 * shrinks. GC's input is as large as its buffer, since a stretch reaches beyond
 * the chunk by the longest record, which lies in two pages.
 */
u32 znsage_packed_pages(const struct znsage_chunk *zc)
{
	const struct znsage_device *zd = zc->zd;

	return zc->core->gc ? zd->batch_pages + 2 :
	       DIV_ROUND_UP(zd->chunk_pages * (zd->page_blocks + 1),
			    zd->page_blocks);
}

/*
 * The buffer is filled. Clear the rest of its last page, which has contents of
 * other pages. CPUs whose caches go by virtual addresses must write back what
 * they have of the mapping.
 */
static void buffer_filled(struct znsage_chunk *zc)
{
	u32 bytes = zc->core->fill * (PAGE_SIZE / zc->zd->page_blocks);
	u32 end = PAGE_ALIGN(bytes);

	memset(zc->buffer + bytes, 0, end - bytes);
	flush_kernel_vmap_range(zc->buffer, end);
}

/* One message in 5 s, without the kernel's count of those left out. */
static struct ratelimit_state full_said =
	RATELIMIT_STATE_INIT_FLAGS(full_said, 5 * HZ, 1,
				   RATELIMIT_MSG_ON_RELEASE);

/**
 * znsage_pack() - compress the pages of a chunk
 * @zc: chunk of swap-out, taken from its stream and not started yet
 *
 * Context: process; may sleep, but not for memory or I/O.
 * Return: 0; -ENOSPC, with a message, if the device has no room for them; or
 * another errno if they cannot be encrypted.
 */
int znsage_pack(struct znsage_chunk *zc)
{
	struct znsage_device *zd = zc->zd;
	struct zse_chunk *c = zc->core;
	u32 block = PAGE_SIZE / zd->page_blocks, i;
	bool fits;
	int err = 0;

	for (i = 0; i < c->nr; i++) {
		void *to = zc->buffer + c->fill * block;
		u32 blocks;

		err = znsage_compress(zd, zc->pages[i], c->entries[i].slot, to,
				      &blocks) ?: err;
		zse_chunk_pack(zd->engine, c, i, blocks);
	}
	fits = zse_chunk_fits(zd->engine, c);
	znsage_write_room(zd);
	if (err)
		return err;
	buffer_filled(zc);
	if (fits)
		return 0;
	WRITE_ONCE(zd->full_since, ktime_get_ns());
	if (__ratelimit(&full_said))
		pr_warn("znsage: %s: swap-out of %u pages refused: device full; pages compress less than size= assumes\n",
			zd->name, c->nr);
	return -ENOSPC;
}

static u32 input_slot(void *host, u32 at)
{
	const struct znsage_chunk *zc = host;
	u32 block = PAGE_SIZE / zc->zd->page_blocks;

	return le32_to_cpu(*(const __le32 *)(zc->input + at * block));
}

static bool input_failed(void *host, u32 at)
{
	const struct znsage_chunk *zc = host;

	return test_bit(at / zc->zd->page_blocks, zc->unread);
}

/*
 * Go on with a chunk of GC whose stretch was read. Context: the worker, which
 * calls zse_next_op() next.
 */
void znsage_packed_scan(struct znsage_chunk *zc)
{
	const struct zse_span span = {
		.host = zc,
		.slot = input_slot,
		.failed = input_failed,
	};
	struct znsage_device *zd = zc->zd;
	struct zse_chunk *c = zc->core;
	u32 block = PAGE_SIZE / zd->page_blocks, i;

	invalidate_kernel_vmap_range(zc->input, zc->nr_pages * PAGE_SIZE);
	zse_gc_scan(zd->engine, c, &span);
	for (i = 0; i < c->nr; i++) {
		const struct zse_entry *entry = &c->entries[i];

		memcpy(zc->buffer + entry->at * block,
		       zc->input + entry->page * block, entry->len * block);
	}
	buffer_filled(zc);
	zse_gc_read_done(zd->engine, c);
}
