// SPDX-License-Identifier: GPL-2.0
/*
 * Hibernation. The image has the map. So the device below must not change from
 * the snapshot until power-off, and must be where the map thinks it is once the
 * image is back.
 *
 * The kernel frees memory for the image, which swaps out, freezes kernel
 * threads, and then suspends all devices, the youngest first, a controller
 * after its disks. /dev/znsageN is younger than what it is on. When it is
 * suspended, by freeze(), all I/O still works, so freeze() can stop changes and
 * wait for those in flight. Tasks that wait for room are sent away, since the
 * worker stops as well. (A freezable worker would stop earlier, while kernel
 * threads in reclaim wait for it.)
 *
 * From then on only swap-in is done. A write fails, so an image that is to go
 * to /dev/znsageN does, and hibernation with it. Chunks that are filling, wait
 * or are to be submitted again stay as they are, in RAM and in the image. All
 * goes on when the kernel thaws its workqueues: after an error, or after the
 * image was read back.
 *
 * Suspend does nothing of this.
 */
#include <linux/blkdev.h>
#include <linux/delay.h>
#include <linux/notifier.h>
#include <linux/pm_domain.h>
#include <linux/suspend.h>

#include "io.h"

/* As the kernel waits for tasks to freeze. */
#define FREEZE_MS	20000
/* Zones in one question to the device. */
#define ZONES_A_LOOK	64

static DEFINE_MUTEX(sleep_lock);
static u32 nr_on;		/* devices that are on or being attached */
static bool restoring;		/* the kernel is about to read an image */

static struct znsage_device *zd_of(struct device *dev)
{
	return dev_to_disk(dev)->private_data;
}

static void wake_work(struct work_struct *work)
{
	struct znsage_device *zd = container_of(work, struct znsage_device,
						wake_work);

	WRITE_ONCE(zd->asleep, false);
	znsage_kick(zd);
	queue_work(zd->read_wq, &zd->look_work);
	queue_work(zd->wait_wq, &zd->erase_work);
}

/* The snapshot is next. Kernel threads are frozen, and this workqueue. */
static int freeze(struct device *dev)
{
	struct znsage_device *zd = zd_of(dev);
	u32 i, ms;

	WRITE_ONCE(zd->asleep, true);
	queue_work(system_freezable_wq, &zd->wake_work);
	/* Pairs with znsage_change_begin() and the wait for room. */
	smp_mb();
	for (i = 0; i < zd->nr_streams; i++)
		wake_up_all(&zd->chunk_wait[i]);
	for (ms = 0; atomic_read(&zd->changing) && ms < FREEZE_MS; ms++)
		usleep_range(1000, 1100);
	if (!atomic_read(&zd->changing))
		return 0;
	znsage_err(zd->name, "hibernation refused: %pg has not finished what was written to it",
		   zd->backing.bdev);
	return -EBUSY;
}

/*
 * Does the device say of @zone what the map does? After commands that failed,
 * it may have written more, and GC empties such a zone.
 */
static bool as_mapped(struct znsage_device *zd, u32 zone, u32 pages, bool exact)
{
	struct zse_zone_info zi;

	zse_get_zone(zd->engine, zone, &zi);
	if (!exact)
		return !zi.live || pages >= zi.written;
	if (pages == U32_MAX)
		return strcmp(zi.state, "open") && strcmp(zi.state, "empty");
	return pages == zi.written;
}

static bool has_changed(struct znsage_device *zd)
{
	u32 nr = zse_get_config(zd->engine)->nr_zones, pages[ZONES_A_LOOK];
	struct zse_stats st;
	u32 zone, some, i;

	zse_get_stats(zd->engine, &st);
	for (zone = 0; zone < nr; zone += some) {
		some = min_t(u32, nr - zone, ZONES_A_LOOK);
		if (!zd->backend->written(zd, zone, some, pages))
			return true;
		for (i = 0; i < some; i++)
			if (!as_mapped(zd, zone + i, pages[i],
				       !st.write_errors))
				return true;
	}
	return false;
}

/*
 * The image is back, and tasks are still frozen. If the device was used
 * meanwhile, or has forgotten its zones, nothing on it is to be trusted, and it
 * may belong to others: from now on all I/O to it fails (znsage_submit()), as
 * if it was unplugged. Virtual zones have nothing to compare.
 */
static int restore(struct device *dev)
{
	struct znsage_device *zd = zd_of(dev);

	if (!zd->backend->written || !has_changed(zd))
		return 0;
	znsage_err(zd->name, "%pg is not as it was at hibernation: it is not used any more, and reading what was swapped out to it fails; `znsage off` and `znsage on --force` start anew",
		   zd->backing.bdev);
	WRITE_ONCE(zd->gone, true);
	return 0;
}

/* Fail what is left of @bio if the device takes no writes. Context: any. */
bool znsage_refuse(struct znsage_device *zd, struct bio *bio)
{
	bool asleep = READ_ONCE(zd->asleep);

	if (likely(!asleep && !READ_ONCE(zd->gone)))
		return false;
	if (asleep)
		pr_err_ratelimited("znsage: %s: write refused while the system hibernates; for the image, name another swap area than %s in /sys/power/resume\n",
				   zd->name, zd->disk->disk_name);
	bio_io_error(bio);
	return true;
}

static struct dev_pm_domain sleep_domain = {
	.ops = {
		.freeze = freeze,
		.restore = restore,
	},
};

/* Have freeze() and restore() called for the disk, which is not added yet. */
void znsage_hibernation_watch(struct znsage_device *zd, struct gendisk *disk)
{
	INIT_WORK(&zd->wake_work, wake_work);
	dev_pm_domain_set(disk_to_dev(disk), &sleep_domain);
}

/*
 * An attach has reset the zones that the map in an image points to, so no image
 * is read back while a device is on.
 */
static int sleep_event(struct notifier_block *nb, unsigned long event,
		       void *unused)
{
	int err = 0;

	mutex_lock(&sleep_lock);
	if (event == PM_RESTORE_PREPARE && nr_on) {
		znsage_err("hibernation",
			   "an image is not read back, since a device is on: resume before `znsage on` (devices on: %u)",
			   nr_on);
		err = -EBUSY;
	} else if (event == PM_RESTORE_PREPARE) {
		restoring = true;
	} else if (event == PM_POST_RESTORE) {
		restoring = false;
	}
	mutex_unlock(&sleep_lock);
	return notifier_from_errno(err);
}

static struct notifier_block sleep_events = {
	.notifier_call = sleep_event,
};

/*
 * Read no image back until znsage_restore_unblock(), since the device @name is
 * being attached. Returns 0, or -EAGAIN if one is being read. Sleeps.
 */
int znsage_restore_block(const char *name)
{
	int err = 0;

	mutex_lock(&sleep_lock);
	if (restoring) {
		znsage_err(name, "the system is about to resume from hibernation");
		err = -EAGAIN;
	} else {
		nr_on++;
	}
	mutex_unlock(&sleep_lock);
	return err;
}

void znsage_restore_unblock(void)
{
	mutex_lock(&sleep_lock);
	nr_on--;
	mutex_unlock(&sleep_lock);
}

int znsage_hibernation_init(void)
{
	return register_pm_notifier(&sleep_events);
}

void znsage_hibernation_exit(void)
{
	unregister_pm_notifier(&sleep_events);
}
