// SPDX-License-Identifier: GPL-2.0
/*
 * Appends that the device cannot take just now.
 *
 * Before 6.10, sd emulates zone append and writes to a zone one request at a
 * time. If the disk has no I/O scheduler that queues the next one, the block
 * layer returns it. Likewise, a drive may have as many zones open as it can,
 * because another program writes to some. Before 6.12, root may lower
 * max_sectors_kb below what an append needs. The zone is not to blame. So the same
 * append is submitted again, to the same zone, when another append of the
 * device has ended or after a delay; to the engine, it is still under way.
 *
 * An append that is refused for too long ends with its status, as an error like
 * others: the engine writes the pages elsewhere, and nobody waits forever.
 *
 * Nothing is allocated. The append keeps its reference of the device, so detach
 * waits for it.
 */
#include "znsage.h"

/* Less than people bear to wait, more than a drive needs to close a zone. */
#define REFUSED_NS	(10ULL * NSEC_PER_SEC)
#define DELAY_MS	10

/**
 * znsage_retry() - submit an append again, later
 * @zc: chunk, whose append has ended with a transient status
 *
 * Context: the append's end. Return: false if it was refused for too long; then
 * it is still the caller's.
 */
bool znsage_retry(struct znsage_chunk *zc)
{
	struct znsage_device *zd = zc->zd;
	u64 now = ktime_get_ns();
	unsigned long flags;

	if (!zc->refused)
		zc->refused = now;
	if (now - zc->refused > REFUSED_NS)
		return false;
	bio_uninit(&zc->bio);
	spin_lock_irqsave(&zd->lock, flags);
	list_add_tail(&zc->link, &zd->refused);
	spin_unlock_irqrestore(&zd->lock, flags);
	queue_delayed_work(zd->wq, &zd->retry, msecs_to_jiffies(DELAY_MS));
	return true;
}

/**
 * znsage_retry_now() - an append has ended, so refused ones may work
 * @zd: device
 *
 * One that is refused at the same time may be overlooked; it waits for the
 * delay.
 *
 * Context: the append's end.
 */
void znsage_retry_now(struct znsage_device *zd)
{
	if (!list_empty(&zd->refused))
		mod_delayed_work(zd->wq, &zd->retry, 0);
}

/*
 * The oldest first: of several appends to a zone, the first to be submitted is
 * taken, and the others come back in their order.
 */
void znsage_retry_work(struct work_struct *work)
{
	struct znsage_device *zd = container_of(to_delayed_work(work),
						struct znsage_device, retry);
	struct znsage_chunk *zc, *next;
	LIST_HEAD(list);

	spin_lock_irq(&zd->lock);
	list_splice_init(&zd->refused, &list);
	spin_unlock_irq(&zd->lock);
	list_for_each_entry_safe(zc, next, &list, link)
		znsage_append_submit(zc);
}
