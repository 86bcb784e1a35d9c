// SPDX-License-Identifier: GPL-2.0
/*
 * The worker does GC's I/O, and work that interrupt context and submit_bio()
 * leave to it. Each device has one work item, so zse_next_op() has one caller.
 *
 * The worker never waits for memory. Its bios come from their own set, and
 * return to it without the worker's help; GC's pages were allocated at attach;
 * the workqueue has a rescuer. Discards, which may wait for the device, are for
 * another queue.
 *
 * One bio reads live blocks of a victim that are close together; the few stale
 * blocks between them go to a junk page. If such a bio fails, the worker reads
 * its chunk again, block by block. A block that fails again stays where it is
 * until the engine gives it up.
 *
 * Another program may have reset a zone. GC would move the zeros in it, and a
 * finish would hide that it is not written. So before both, another work item
 * compares what the device says of the zone with what was written.
 */
#include <linux/blk-integrity.h>
#include <linux/delay.h>

#include "trace.h"
#include "io.h"

/* Reading this many stale blocks is cheaper than starting another read. */
#define READ_OVER	8
/* Bios kept ready; more are allocated while there is memory. */
#define BIO_POOL	64
/* Operations of the engine between two looks at swap-out. */
#define OPS_A_BATCH	8
/* Pages in one read of GC. */
#define READ_MAX	BIO_MAX_VECS

/* A GC read, a reset or a finish. */
struct worker_bio {
	struct znsage_device *zd;	/* with a ref */
	struct znsage_chunk *zc;	/* chunk to read into, or NULL */
	u32 first;			/* entry or page of it, or the zone */
	bool reset;		/* a reset of the zone, else a finish */
	struct list_head link;		/* on finish_look */
	struct bio bio;			/* must be last, for the bio_set */
};

static struct worker_bio *worker_bio_alloc(struct znsage_device *zd, u32 vecs,
					   blk_opf_t op)
{
	struct bio *bio = bio_alloc_bioset(zd->backing.bdev, vecs, op, GFP_NOIO,
					   &zd->worker_bios);
	struct worker_bio *wb = container_of(bio, struct worker_bio, bio);

	percpu_ref_get(&zd->ref);
	wb->zd = zd;
	wb->zc = NULL;
	return wb;
}

/* Submit a reset or a finish. Within a change, so that it is not refused. */
static void change_submit(struct worker_bio *wb)
{
	atomic_inc(&wb->zd->changing);
	znsage_submit(wb->zd, &wb->bio);
}

static void worker_bio_put(struct worker_bio *wb)
{
	struct znsage_device *zd = wb->zd;

	bio_put(&wb->bio);
	percpu_ref_put(&zd->ref);
}

/*
 * Sets @zone to the next zone that @zc, a chunk of GC, is to read from and that
 * nobody has looked at since it is a victim. Returns false if there is none.
 */
static bool to_look_at(const struct znsage_chunk *zc, u32 *zone)
{
	struct znsage_device *zd = zc->zd;
	const struct zse_chunk *c = zc->core;
	u32 i;

	if (!zd->backend->written)
		return false;
	*zone = zse_block_zone(zd->engine, c->low);
	if (zc->packed)
		return !test_bit(*zone, zd->looked);
	for (i = 0; i < c->nr; i++) {
		*zone = zse_block_zone(zd->engine, c->entries[i].expect);
		if (!test_bit(*zone, zd->looked))
			return true;
	}
	return false;
}

static void list_add_locked(struct znsage_device *zd, struct list_head *link,
			    struct list_head *list)
{
	unsigned long flags;

	spin_lock_irqsave(&zd->lock, flags);
	list_add_tail(link, list);
	spin_unlock_irqrestore(&zd->lock, flags);
}

static void list_take_locked(struct znsage_device *zd, struct list_head *from,
			     struct list_head *to)
{
	spin_lock_irq(&zd->lock);
	list_splice_init(from, to);
	spin_unlock_irq(&zd->lock);
}

/*
 * Look at the zones that GC is to read from, for the worker to read, and at
 * those that are to be finished. Allocates nothing, and needs no help of the
 * worker.
 */
static void look_work(struct work_struct *work)
{
	struct znsage_device *zd = container_of(work, struct znsage_device,
						look_work);
	struct worker_bio *wb, *next_wb;
	struct znsage_chunk *zc, *next;
	LIST_HEAD(finishes);
	LIST_HEAD(chunks);
	u32 zone;

	if (!znsage_change_begin(zd))
		return;
	list_take_locked(zd, &zd->finish_look, &finishes);
	list_for_each_entry_safe(wb, next_wb, &finishes, link) {
		znsage_look(zd, wb->first);
		change_submit(wb);
	}
	list_take_locked(zd, &zd->gc_look, &chunks);
	list_for_each_entry_safe(zc, next, &chunks, link) {
		while (to_look_at(zc, &zone)) {
			znsage_look(zd, zone);
			set_bit(zone, zd->looked);
		}
		list_add_locked(zd, &zc->link, &zd->gc_ready);
		znsage_kick(zd);
	}
	znsage_change_end(zd);
}

/* Drop one of zc->reads. The last one ends the chunk's read. */
static void gc_read_put(struct znsage_chunk *zc)
{
	struct znsage_device *zd = zc->zd;

	if (!atomic_dec_and_test(&zc->reads))
		return;
	zc->is_read = !zc->failed || zc->single;
	if (zc->is_read && !zc->packed)
		zse_gc_read_done(zd->engine, zc->core);
	else
		list_add_locked(zd, &zc->link, &zd->gc_ready);
	znsage_kick(zd);
}

static void gc_read_end_io(struct bio *bio)
{
	struct worker_bio *wb = container_of(bio, struct worker_bio, bio);
	struct znsage_chunk *zc = wb->zc;

	if (bio->bi_status) {
		zc->failed = true;
		if (zc->single && zc->packed)
			set_bit(wb->first, zc->unread);
		else if (zc->single &&
		    zse_gc_entry_failed(wb->zd->engine, zc->core, wb->first))
			pr_err_ratelimited("znsage: %s: a page is lost: GC could not read it for a long time\n",
					   wb->zd->name);
	}
	gc_read_put(zc);
	worker_bio_put(wb);
}

/*
 * Entries from @first on that one bio reads. Sets @pages to their number with
 * the stale blocks between them.
 */
static u32 gc_read_span(const struct znsage_chunk *zc, u32 first, u32 *pages)
{
	struct zse_engine *e = zc->zd->engine;
	const struct zse_entry *entry = zc->core->entries;
	u32 zone = zse_block_zone(e, entry[first].expect), over = READ_OVER, i;

	/* The junk page keeps only one block, so checksums would not match. */
	if (bdev_get_integrity(zc->zd->backing.bdev))
		over = 0;
	*pages = 1;
	if (zc->single)
		return 1;
	for (i = first + 1; i < zc->core->nr; i++) {
		u32 step = entry[i].expect - entry[i - 1].expect;

		if (zse_block_zone(e, entry[i].expect) != zone ||
		    step > over + 1 || *pages + step > READ_MAX)
			break;
		*pages += step;
	}
	return i - first;
}

/* A bio that is to read @pages from @block on, for entry or page @first. */
static struct worker_bio *read_bio(struct znsage_chunk *zc, u32 first,
				   u32 block, u32 pages)
{
	struct znsage_device *zd = zc->zd;
	struct worker_bio *wb = worker_bio_alloc(zd, pages, REQ_OP_READ);

	znsage_victim_begin(zd, zse_block_zone(zd->engine, block));
	wb->zc = zc;
	wb->first = first;
	wb->bio.bi_iter.bi_sector = znsage_block_sector(zd, block);
	wb->bio.bi_end_io = gc_read_end_io;
	/* One bad block would fail all of a merged request. */
	if (zc->single)
		wb->bio.bi_opf |= REQ_NOMERGE;
	return wb;
}

static void read_submit(struct worker_bio *wb)
{
	atomic_inc(&wb->zc->reads);
	znsage_charge(wb->zc, &wb->bio);
	znsage_submit(wb->zd, &wb->bio);
}

static void gc_read_bio(struct znsage_chunk *zc, u32 first, u32 nr, u32 pages)
{
	const struct zse_entry *entry = &zc->core->entries[first];
	u32 block = entry->expect, i;
	struct worker_bio *wb = read_bio(zc, first, block, pages);

	for (i = 0; i < nr; i++, block++) {
		for (; block < entry[i].expect; block++)
			__bio_add_page(&wb->bio, zc->zd->junk, PAGE_SIZE, 0);
		__bio_add_page(&wb->bio, zc->pages[entry[i].page], PAGE_SIZE,
			       0);
	}
	read_submit(wb);
}

/* Read pages [@first, @first + @nr) of the stretch of a packed victim. */
static void input_read_bio(struct znsage_chunk *zc, u32 first, u32 nr)
{
	u32 block = zc->core->low + first * zc->zd->page_blocks, i;
	struct worker_bio *wb = read_bio(zc, first, block, nr);

	for (i = first; i < first + nr; i++)
		__bio_add_page(&wb->bio, zc->pages[i], PAGE_SIZE, 0);
	read_submit(wb);
}

/* Read the blocks of @zc; @single: once more, block by block. */
static void gc_read(struct znsage_chunk *zc, bool single)
{
	u32 at = single ? 1 : READ_MAX, first = 0, nr, pages;

	zc->single = single;
	zc->failed = false;
	atomic_set(&zc->reads, 1);
	if (zc->packed)
		bitmap_zero(zc->unread, zc->nr_pages);
	while (zc->packed && first < zc->nr_pages) {
		nr = min(at, zc->nr_pages - first);
		input_read_bio(zc, first, nr);
		first += nr;
	}
	while (!zc->packed && first < zc->core->nr) {
		nr = gc_read_span(zc, first, &pages);
		gc_read_bio(zc, first, nr, pages);
		first += nr;
	}
	gc_read_put(zc);
}

/* Go on with the chunks that the worker is to read, or whose input was read. */
static void gc_go_on(struct znsage_device *zd)
{
	struct znsage_chunk *zc, *next;
	LIST_HEAD(list);

	list_take_locked(zd, &zd->gc_ready, &list);
	list_for_each_entry_safe(zc, next, &list, link) {
		if (zc->is_read)
			znsage_packed_scan(zc);
		else
			gc_read(zc, zc->failed);
		cond_resched();
	}
}

/* Do a ZSE_OP_READ, perhaps after a look at its zones. */
static void gc_read_first(struct znsage_chunk *zc)
{
	struct znsage_device *zd = zc->zd;
	u32 zone;

	if (!to_look_at(zc, &zone)) {
		gc_read(zc, false);
		return;
	}
	zc->failed = false;
	zc->is_read = false;
	list_add_locked(zd, &zc->link, &zd->gc_look);
	queue_work(zd->read_wq, &zd->look_work);
}

/* A reset or a finish of @zone has ended. Context: any. */
static void zone_ended(struct znsage_device *zd, u32 zone, bool reset, int err)
{
	if (err)
		pr_warn_ratelimited("znsage: %s: %s of zone %u failed (%d)\n",
				    zd->name, reset ? "reset" : "finish",
				    zd->zone_nr[zone], err);
	if (reset && !err)
		znsage_victim_end(zd, zone);
	if (reset)
		zse_reset_done(zd->engine, zone, !err);
	else
		zse_finish_done(zd->engine, zone, !err);
	znsage_kick(zd);
}

static void zone_end_io(struct bio *bio)
{
	struct worker_bio *wb = container_of(bio, struct worker_bio, bio);

	zone_ended(wb->zd, wb->first, wb->reset,
		   blk_status_to_errno(bio->bi_status));
	znsage_change_end(wb->zd);
	worker_bio_put(wb);
}

/*
 * Reset zones in a way that may wait, one after the other, for the device's
 * sake. The engine does not name a zone again before its reset has ended. Each
 * bit of to_erase has a reference of the device. Context: wait_wq.
 */
static void erase_work(struct work_struct *work)
{
	struct znsage_device *zd = container_of(work, struct znsage_device,
						erase_work);
	u32 nr = zse_get_config(zd->engine)->nr_zones, zone;

	for_each_set_bit(zone, zd->to_erase, nr) {
		if (!znsage_change_begin(zd))
			return;
		clear_bit(zone, zd->to_erase);
		zone_ended(zd, zone, true,
			   zd->backend->erase(zd, znsage_zone_start(zd, zone),
					      zd->zone_sectors));
		znsage_change_end(zd);
		percpu_ref_put(&zd->ref);
		cond_resched();
	}
}

/* Reset @zone, or finish it. */
static void zone_end(struct znsage_device *zd, u32 zone, bool reset)
{
	blk_opf_t op = reset ? zd->backend->reset : zd->backend->finish;
	struct worker_bio *wb;

	if (!op && reset) {
		percpu_ref_get(&zd->ref);
		set_bit(zone, zd->to_erase);
		/* If a run is past this bit, the next one sees it. */
		queue_work(zd->wait_wq, &zd->erase_work);
		return;
	}
	if (!op) {
		zone_ended(zd, zone, false, 0);
		return;
	}
	wb = worker_bio_alloc(zd, 0, op);
	wb->first = zone;
	wb->reset = reset;
	wb->bio.bi_iter.bi_sector = znsage_zone_start(zd, zone);
	wb->bio.bi_end_io = zone_end_io;
	if (reset || !zd->backend->written) {
		change_submit(wb);
		return;
	}
	list_add_locked(zd, &wb->link, &zd->finish_look);
	queue_work(zd->read_wq, &zd->look_work);
}

static void fail_chunk(struct znsage_device *zd, const struct zse_op *op)
{
	pr_err_ratelimited("znsage: %s: swap-out of %u pages failed: no zone can be written\n",
			   zd->name, op->nr);
	znsage_end_pages(op->chunk->priv, op->first, op->nr,
			 op->no_room ? BLK_STS_NOSPC : BLK_STS_IOERR);
	if (znsage_chunk_release(op->chunk->priv, 1))
		znsage_kick(zd);
}

static void do_op(struct znsage_device *zd, const struct zse_op *op)
{
	struct znsage_chunk *zc;

	switch (op->kind) {
	case ZSE_OP_APPEND:
		zc = op->chunk->priv;
		/* A chunk of swap-out waited for a zone, or is tried again. */
		if (!zc->core->gc)
			atomic64_add(ktime_get_ns() - zc->since,
				     &zd->stall_ns[zc->core->stream]);
		znsage_append(zd, op);
		break;
	case ZSE_OP_READ:
		zc = op->chunk->priv;
		zc->nr_pages = op->blocks / zd->page_blocks;
		gc_read_first(zc);
		break;
	case ZSE_OP_RESET:
	case ZSE_OP_FINISH:
		zone_end(zd, op->zone, op->kind == ZSE_OP_RESET);
		break;
	case ZSE_OP_FAIL:
		fail_chunk(zd, op);
		break;
	case ZSE_OP_NONE:
		break;
	}
}

/* Between two batches of the engine's work, the worker looks at swap-out. */
static void worker(struct work_struct *work)
{
	struct znsage_device *zd = container_of(work, struct znsage_device,
						work);
	struct zse_op op;
	u32 done;

	if (!znsage_change_begin(zd))
		return;
	do {
		gc_go_on(zd);
		znsage_write_pending(zd);
		znsage_write_flush(zd);
		znsage_append_limit(zd);
		for (done = 0; done < OPS_A_BATCH; done++) {
			if (!zse_next_op(zd->engine, &op, ktime_get_ns()))
				break;
			do_op(zd, &op);
			cond_resched();
		}
	} while (done == OPS_A_BATCH && !READ_ONCE(zd->asleep));
	znsage_change_end(zd);
}

/* The caller frees worker_bios, even after an error. */
int znsage_worker_start(struct znsage_device *zd)
{
	INIT_LIST_HEAD(&zd->gc_ready);
	INIT_LIST_HEAD(&zd->gc_look);
	INIT_LIST_HEAD(&zd->finish_look);
	INIT_WORK(&zd->work, worker);
	INIT_WORK(&zd->look_work, look_work);
	INIT_WORK(&zd->erase_work, erase_work);
	return bioset_init(&zd->worker_bios, BIO_POOL,
			   offsetof(struct worker_bio, bio),
			   BIOSET_NEED_BVECS);
}

/*
 * Wait until nothing is in flight, while nothing is submitted. GC is off
 * afterwards, until zse_set_gc(). The device must be idle twice with a run of
 * the worker in between, since an I/O that ended just before may have left the
 * worker a zone to reset. Context: sleeps.
 */
void znsage_quiesce(struct znsage_device *zd)
{
	bool idle = false, was_idle;

	zse_set_gc(zd->engine, false);
	WRITE_ONCE(zd->quiescing, true);
	do {
		if (!idle)
			usleep_range(200, 1000);
		znsage_kick(zd);
		flush_work(&zd->work);
		was_idle = idle;
		idle = !READ_ONCE(zd->starved) && zse_idle(zd->engine);
	} while (!idle || !was_idle);
	WRITE_ONCE(zd->quiescing, false);
}
