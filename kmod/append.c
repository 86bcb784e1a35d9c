// SPDX-License-Identifier: GPL-2.0
/*
 * Appends of chunks, by swap-out (write.c) and by GC (worker.c). An append has
 * the chunk, or as much of it as its zone has room for. It carries the pages
 * themselves, their ciphertext, or the records that they were compressed into.
 *
 * Transient errors. Before 6.10, sd emulates zone append and writes to a zone
 * one request at a time; without an I/O scheduler, the block layer returns the
 * next one. A drive may have no zone left to open, because another program
 * writes to some. Before 6.12, root may lower max_sectors_kb below what an
 * append needs. So an append with a transient status is submitted again, to the
 * same zone, when another append has ended or after a delay; to the engine, it
 * is still in flight. After RETRY_NS it fails, and the engine writes its pages
 * elsewhere. Nothing is allocated. The append keeps its reference of the
 * device, so detach waits for it.
 *
 * Who pays. With a policy that isolates streams, appends and GC reads are
 * charged to the block cgroup of their pages: io.stat shows them there, and
 * io.max throttles GC. Swap-out appends are marked as swap, like the kernel's
 * own. Since 6.12 the kernel charges these but does not throttle them, because
 * a reclaiming task waits for them.
 *
 * An append takes the block cgroup of its first bio, which the kernel gave it.
 * Each stream remembers the last one, with the key of its pages, because GC
 * only knows keys. Everything else is charged to the root: GC for keys that
 * lost their stream, and all I/O of other policies, whose chunks mix pages of
 * many cgroups. Otherwise the task that fills a chunk would pay for all of it.
 */
#include <linux/blk-cgroup.h>
#include <linux/cgroup.h>

#include "trace.h"
#include "io.h"

/* Less than people bear to wait, more than a drive needs to close a zone. */
#define RETRY_NS	(10ULL * NSEC_PER_SEC)
#define DELAY_MS	10

/* Remember key and cgroup of the last pages of @stream. */
static void remember(struct znsage_device *zd, u32 stream, u64 key,
		     struct cgroup_subsys_state *css)
{
	struct znsage_payer *payer = &zd->payers[stream];
	struct cgroup_subsys_state *old = NULL;
	unsigned long flags;

	if (READ_ONCE(payer->css) == css && READ_ONCE(payer->key) == key)
		return;
	if (!css_tryget(css))
		return;
	spin_lock_irqsave(&zd->lock, flags);
	old = payer->css;
	WRITE_ONCE(payer->css, css);
	WRITE_ONCE(payer->key, key);
	spin_unlock_irqrestore(&zd->lock, flags);
	if (old)
		css_put(old);
}

/* Charge GC's I/O for pages of a stream. Returns false if nobody pays. */
static bool charge_gc(struct znsage_chunk *zc, struct bio *bio)
{
	struct znsage_device *zd = zc->zd;
	struct znsage_payer *payer = &zd->payers[zc->core->stream];
	struct cgroup_subsys_state *css = NULL;
	unsigned long flags;

	spin_lock_irqsave(&zd->lock, flags);
	if (payer->css && payer->key == zc->core->key &&
	    css_tryget(payer->css))
		css = payer->css;
	spin_unlock_irqrestore(&zd->lock, flags);
	if (!css)
		return false;
	bio_associate_blkg_from_css(bio, css);
	css_put(css);
	return true;
}

/* Charge an append of swap-out. Returns false if nobody pays. */
static bool charge_swap_out(struct znsage_chunk *zc, struct bio *bio)
{
	struct bio *parent = zc->parents[zc->first];

	if (!parent->bi_blkg)
		return false;
	bio_clone_blkg_association(bio, parent);
	remember(zc->zd, zc->core->stream, zc->core->key,
		 bio_blkcg_css(parent));
	return true;
}

/* Charge an append or a read of a chunk, before it is submitted. */
void znsage_charge(struct znsage_chunk *zc, struct bio *bio)
{
	bool paid = false;

	if (!zc->core->gc)
		bio->bi_opf |= zc->parents[zc->first]->bi_opf & REQ_SWAP;
	if (READ_ONCE(zc->zd->isolates))
		paid = zc->core->gc ? charge_gc(zc, bio) :
				      charge_swap_out(zc, bio);
	if (!paid)
		bio_associate_blkg_from_css(bio, blkcg_root_css);
}

/* Drop all payers: the device detaches, or its policy changes. */
void znsage_charge_end(struct znsage_device *zd)
{
	u32 i;

	for (i = 0; i < ZSE_MAX_STREAMS; i++) {
		struct cgroup_subsys_state *css;

		spin_lock_irq(&zd->lock);
		css = zd->payers[i].css;
		zd->payers[i].css = NULL;
		spin_unlock_irq(&zd->lock);
		if (css)
			css_put(css);
	}
}

/*
 * End the pages [first, first + nr) of a swap-out chunk, which the map has no
 * tag of any more. A reader that copies one of them found the tag and holds the
 * chunk's lock: wait for it. A later reader finds no tag. Context: any.
 */
void znsage_end_pages(struct znsage_chunk *zc, u32 first, u32 nr,
		      blk_status_t status)
{
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&zc->lock, flags);
	spin_unlock_irqrestore(&zc->lock, flags);
	for (i = first; i < first + nr; i++) {
		struct bio *bio = zc->parents[i];

		if (status)
			bio->bi_status = status;
		znsage_io_end(bio, ZNSAGE_PAGE_SECTORS, zc->ticks);
		bio_endio(bio);
	}
}

/*
 * Give a chunk without an append in flight back to the engine. Returns true if
 * the worker has something to do. Context: any.
 */
bool znsage_chunk_put(struct znsage_chunk *zc)
{
	struct znsage_device *zd = zc->zd;
	bool more = zse_chunk_put(zd->engine, zc->core);

	znsage_write_room(zd);
	return more || READ_ONCE(zd->starved);
}

/*
 * Drop holds of a swap-out chunk. The last one gives the chunk back to the
 * engine. Returns true if the worker has something to do. Context: any.
 */
bool znsage_chunk_release(struct znsage_chunk *zc, int holds)
{
	return atomic_sub_and_test(holds, &zc->holds) && znsage_chunk_put(zc);
}

/* A chunk of GC may hold pages of several victims, one after the other. */
static void trace_moves(struct znsage_chunk *zc)
{
	struct znsage_device *zd = zc->zd;
	const struct zse_entry *entry = zc->core->entries;
	u32 i = zc->first, end = zc->first + zc->nr;

	while (i < end) {
		u32 zone = zse_block_zone(zd->engine, entry[i].expect);
		u32 nr = 1;

		while (i + nr < end &&
		       zse_block_zone(zd->engine, entry[i + nr].expect) == zone)
			nr++;
		trace_znsage_gc_move(zd->index, zd->zone_nr[zone],
				     zd->zone_nr[zc->core->zone], nr);
		i += nr;
	}
}

/* Time and trace an append, before the engine is told of its end. */
static void trace_append_end(struct znsage_chunk *zc, bool ok, u64 now)
{
	struct znsage_device *zd = zc->zd;
	const struct zse_chunk *c = zc->core;
	u64 ns = now - (c->gc ? zc->since : c->born);

	if (ok && !c->gc)
		znsage_timed(zd, ZNSAGE_SWAP_OUT, ns);
	if (trace_znsage_chunk_complete_enabled())
		trace_znsage_chunk_complete(zd->index, c->id, c->gc,
					    zd->zone_nr[c->zone], zc->nr,
					    c->nr_padding, ok ? 0 : -EIO,
					    div_u64(ns, NSEC_PER_USEC));
	if (ok && c->gc && trace_znsage_gc_move_enabled())
		trace_moves(zc);
	/* If entries are left to append, they wait for a zone from now on. */
	zc->since = now;
}

static void append_later(struct znsage_chunk *zc)
{
	struct znsage_device *zd = zc->zd;
	unsigned long flags;

	spin_lock_irqsave(&zd->lock, flags);
	list_add_tail(&zc->link, &zd->retries);
	spin_unlock_irqrestore(&zd->lock, flags);
	queue_delayed_work(zd->wq, &zd->retry, msecs_to_jiffies(DELAY_MS));
}

/*
 * Submit an append with a transient status again, later. Returns false if that
 * has gone on for too long. Context: the append's end.
 */
static bool append_again(struct znsage_chunk *zc)
{
	u64 now = ktime_get_ns();

	if (!zc->retried_since)
		zc->retried_since = now;
	if (now - zc->retried_since > RETRY_NS)
		return false;
	bio_uninit(&zc->bio);
	append_later(zc);
	znsage_change_end(zc->zd);
	return true;
}

static void append_end_io(struct bio *bio)
{
	struct znsage_chunk *zc = bio->bi_private;
	struct znsage_device *zd = zc->zd;
	struct zse_chunk *c = zc->core;
	u32 first = zc->first, nr = zc->nr, at = U32_MAX;
	bool gc = c->gc, ok = !bio->bi_status, more, finished;
	u64 now = ktime_get_ns();

	if (znsage_is_transient(bio->bi_status) && append_again(zc))
		return;
	if (bio->bi_status)
		pr_warn_ratelimited("znsage: %s: append to zone %u failed (%d)\n",
				    zd->name, zd->zone_nr[c->zone],
				    blk_status_to_errno(bio->bi_status));
	if (ok)
		at = zd->backend->landed(zc, bio);
	/* The engine says what is wrong with such a place. */
	if (at < zse_get_config(zd->engine)->zone_blocks / zd->page_blocks)
		at *= zd->page_blocks;
	bio_uninit(bio);
	trace_append_end(zc, ok, now);
	/*
	 * If the chunk is not finished, the worker may append the rest before
	 * the bios of this append have ended. The hold keeps the parents until
	 * then. A chunk of GC has no parents.
	 */
	if (!gc)
		atomic_inc(&zc->holds);
	more = zse_append_done(zd->engine, c, &ok, at, now, &finished);
	if (ok && !gc)
		znsage_end_pages(zc, first, nr, BLK_STS_OK);
	if (!gc)
		more |= znsage_chunk_release(zc, finished ? 2 : 1);
	else if (finished)
		more |= znsage_chunk_put(zc);
	if (more)
		znsage_kick(zd);
	/* One that is added now may be overlooked, and waits for the delay. */
	if (!list_empty(&zd->retries))
		mod_delayed_work(zd->wq, &zd->retry, 0);
	znsage_change_end(zd);
	percpu_ref_put(&zd->ref);
}

/*
 * Tell the engine how long an append may be now, before asking it for one.
 * Context: any.
 */
void znsage_append_limit(struct znsage_device *zd)
{
	struct block_device *bdev = zd->backing.bdev;
	u32 sectors;
	bool fits;

	if (!bdev_is_zoned(bdev))
		return;
	sectors = znsage_append_sectors(bdev);
	if (likely(sectors == READ_ONCE(zd->append_sectors)))
		return;
	WRITE_ONCE(zd->append_sectors, sectors);
	fits = zse_limit_append(zd->engine, sectors / ZNSAGE_PAGE_SECTORS *
				zd->page_blocks);
	WRITE_ONCE(zd->append_fits, fits);
	if (!fits)
		znsage_err(zd->name, "max_sectors_kb of %pg is too low for an append: swap-out waits, and fails after 10 s; raise it",
			   bdev);
}

/*
 * Is @bio longer than the block layer takes, because the limit has dropped
 * since the engine was told of it? Once @bio has failed, the engine makes
 * shorter ones. If none is short enough, @bio waits for the limit to rise.
 */
static bool append_too_long(struct znsage_device *zd, struct bio *bio)
{
	if (bio_op(bio) != REQ_OP_ZONE_APPEND ||
	    bio_sectors(bio) <= znsage_append_sectors(zd->backing.bdev))
		return false;
	znsage_append_limit(zd);
	bio->bi_status = READ_ONCE(zd->append_fits) ? BLK_STS_IOERR :
						      BLK_STS_AGAIN;
	return true;
}

/*
 * Submit an append, for the first time or again. Context: as znsage_append().
 */
static void append_submit(struct znsage_chunk *zc)
{
	struct page **pages = zc->encrypted ? zc->encrypted : zc->pages;
	struct znsage_device *zd = zc->zd;
	const struct zse_chunk *c = zc->core;
	struct bio *bio = &zc->bio;
	u32 i;

	if (unlikely(!znsage_change_begin(zd))) {
		append_later(zc);
		return;
	}
	bio_init(bio, zd->backing.bdev, zc->vecs, zc->nr_vecs, REQ_OP_WRITE);
	zd->backend->append(zc, bio);
	bio->bi_private = zc;
	bio->bi_end_io = append_end_io;
	for (i = zc->first; !zc->packed && i < zc->first + zc->nr; i++)
		__bio_add_page(bio, pages[c->entries[i].page], PAGE_SIZE, 0);
	for (i = zc->from; zc->packed && i < zc->from + zc->nr_pages; i++)
		__bio_add_page(bio, zc->packed[i], PAGE_SIZE, 0);
	for (i = 0; i < c->nr_padding / zd->page_blocks; i++)
		__bio_add_page(bio, ZERO_PAGE(0), PAGE_SIZE, 0);
	znsage_charge(zc, bio);
	if (unlikely(append_too_long(zd, bio)))
		bio_endio(bio);
	else
		znsage_submit(zd, bio);
}

/*
 * Do a ZSE_OP_APPEND. Context: process; may sleep for a request of the backing
 * device, but not under submit_bio().
 */
void znsage_append(struct znsage_device *zd, const struct zse_op *op)
{
	struct znsage_chunk *zc = op->chunk->priv;

	percpu_ref_get(&zd->ref);
	zc->first = op->first;
	zc->nr = op->nr;
	zc->from = op->from / zd->page_blocks;
	zc->nr_pages = op->blocks / zd->page_blocks;
	zc->retried_since = 0;
	if (zc->core->gc)
		zc->since = ktime_get_ns();
	trace_znsage_chunk_submit(zd->index, zc->core->id, zc->core->gc,
				  zd->zone_nr[op->zone], op->nr, op->padding);
	append_submit(zc);
}

/*
 * The oldest first: of several appends to a zone, the device takes the first,
 * and the others come back in their order.
 */
static void retry_work(struct work_struct *work)
{
	struct znsage_device *zd = container_of(to_delayed_work(work),
						struct znsage_device, retry);
	struct znsage_chunk *zc, *next;
	LIST_HEAD(list);

	spin_lock_irq(&zd->lock);
	list_splice_init(&zd->retries, &list);
	spin_unlock_irq(&zd->lock);
	list_for_each_entry_safe(zc, next, &list, link)
		append_submit(zc);
}

void znsage_append_start(struct znsage_device *zd)
{
	INIT_LIST_HEAD(&zd->retries);
	INIT_DELAYED_WORK(&zd->retry, retry_work);
}
