// SPDX-License-Identifier: GPL-2.0
/*
 * Submitters that wait. If as much is in flight as keeps the device busy, a
 * task that swaps out waits, as for a request of any other device; otherwise
 * reclaim would put all of memory under writeback before it noticed that the
 * device is slow. Chunks come back when appends end or GC has made room;
 * neither needs the submitter. The end of an append wakes one task of each
 * stream, and a task that found room wakes the next one if there is more. A task
 * that others overtook then waits at the head.
 */
#include <linux/oom.h>
#include <linux/sched/signal.h>

#include "trace.h"
#include "io.h"

/* For so long after a refused page, submitters wait at each bio. */
#define FULL_NS		(100 * NSEC_PER_MSEC)
#define FULL_DELAY	msecs_to_jiffies(20)

/* Could a page of the stream be added? A hint. */
static bool has_room(struct znsage_device *zd, u32 stream)
{
	return zse_stream_born(zd->engine, stream) ||
	       zse_has_chunk(zd->engine, stream);
}

/* Wake a task that waits for the stream. It wakes the next one. */
void znsage_feed(struct znsage_device *zd, u32 stream)
{
	if (waitqueue_active(&zd->chunk_wait[stream]) && has_room(zd, stream))
		wake_up(&zd->chunk_wait[stream]);
}

/* A chunk was given back: wake tasks of any stream. Context: any. */
void znsage_write_room(struct znsage_device *zd)
{
	u32 i;

	/* Pairs with pending_resume() and set_current_state() of a waiter. */
	smp_mb();
	for (i = 0; atomic_read(&zd->nr_waiting) && i < zd->nr_streams; i++)
		znsage_feed(zd, i);
}

/* May the task wait? Not if bios that it submitted have not gone out. */
static bool may_wait(void)
{
	const struct bio_list *list = current->bio_list;

	return !list || (bio_list_empty(&list[0]) && bio_list_empty(&list[1]));
}

/*
 * Pages were refused a moment ago, and this one may be as well: reclaim would
 * use up the CPU, and the kernel would log each page. `znsage guard`, which
 * keeps the kernel from getting here, may be behind and in reclaim itself; it
 * is excepted, by its protection from the OOM killer.
 */
void znsage_slow_down(struct znsage_device *zd)
{
	u64 since = READ_ONCE(zd->full_since);

	if (since && ktime_get_ns() - since < FULL_NS && may_wait() &&
	    current->signal->oom_score_adj != OOM_SCORE_ADJ_MIN)
		schedule_timeout_killable(FULL_DELAY);
}

/*
 * Wait for room in the stream, behind pending bios, or until the system
 * hibernates; @again if it waited before and found none. Returns false if the
 * task must not wait.
 */
bool znsage_wait_for_room(struct znsage_device *zd, u32 stream, bool again)
{
	DEFINE_WAIT(wait);
	u64 since;

	if (!may_wait())
		return false;
	trace_znsage_wait(zd->index, true, 0);
	since = ktime_get_ns();
	atomic_inc(&zd->nr_waiting);
	for (;;) {
		/* Those that are not exclusive are at the head, and all woken. */
		if (again)
			prepare_to_wait(&zd->chunk_wait[stream], &wait,
					TASK_UNINTERRUPTIBLE);
		else
			prepare_to_wait_exclusive(&zd->chunk_wait[stream],
						  &wait, TASK_UNINTERRUPTIBLE);
		if ((!znsage_is_starved(zd, stream) && has_room(zd, stream)) ||
		    READ_ONCE(zd->asleep))
			break;
		io_schedule();
		again = true;
	}
	finish_wait(&zd->chunk_wait[stream], &wait);
	atomic_dec(&zd->nr_waiting);
	trace_znsage_wait(zd->index, false, ktime_get_ns() - since);
	return true;
}
