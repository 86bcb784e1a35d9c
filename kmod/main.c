// SPDX-License-Identifier: GPL-2.0
/*
 * Load and unload, and the ban on hibernation. Users make devices through
 * configfs (config.c). Each directory there pins the module, so no device is on
 * when the module is unloaded.
 *
 * Hibernation would lose swapped memory. The image has the maps of one moment,
 * but GC goes on until power-off and resets zones that these maps point to, and
 * an attach before the image is read back resets all of them. So hibernation is
 * refused while a device is on. Attach is refused from the PREPARE notification
 * until hibernation is over, which takes long if user space writes the image.
 * Suspend loses nothing.
 */
#include <linux/blkdev.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/suspend.h>

#include "znsage.h"

DEFINE_IDA(znsage_ida);
int znsage_major;

static DEFINE_MUTEX(sleep_lock);
static u32 nr_on;		/* devices that are on or being attached */
static bool hibernating;	/* the kernel may take an image */

static int sleep_event(struct notifier_block *nb, unsigned long event,
		       void *unused)
{
	int err = 0;

	mutex_lock(&sleep_lock);
	if (event == PM_HIBERNATION_PREPARE && nr_on) {
		znsage_err("hibernation",
			   "refused, since swapped-out memory would be lost; run `znsage off`, or swapoff and power=0, first (devices on: %u)",
			   nr_on);
		err = -EBUSY;
	} else if (event == PM_HIBERNATION_PREPARE) {
		hibernating = true;
	} else if (event == PM_POST_HIBERNATION) {
		hibernating = false;
	}
	mutex_unlock(&sleep_lock);
	return notifier_from_errno(err);
}

static struct notifier_block sleep_events = {
	.notifier_call = sleep_event,
};

/**
 * znsage_hibernation_block() - refuse hibernation while a device is on
 * @name: name of the device to attach, for messages
 *
 * In force until znsage_hibernation_unblock().
 *
 * Context: sleeps. Return: 0, or -EAGAIN if hibernation has begun.
 */
int znsage_hibernation_block(const char *name)
{
	int err = 0;

	mutex_lock(&sleep_lock);
	if (hibernating) {
		znsage_err(name, "the system is about to hibernate");
		err = -EAGAIN;
	} else {
		nr_on++;
	}
	mutex_unlock(&sleep_lock);
	return err;
}

void znsage_hibernation_unblock(void)
{
	mutex_lock(&sleep_lock);
	nr_on--;
	mutex_unlock(&sleep_lock);
}

/*
 * Waits for a hibernation in progress, which was not announced to the module.
 * It does not notice an image that user space has already begun to write.
 */
static int register_sleep_events(void)
{
	unsigned int flags = lock_system_sleep();
	int err = register_pm_notifier(&sleep_events);

	unlock_system_sleep(flags);
	return err;
}

static int __init znsage_init(void)
{
	int err;

#if ZNSAGE_IS_UNTESTED
	pr_warn("znsage: this kernel is newer than " ZNSAGE_NEWEST_TESTED ", the newest that znsage was tested on: look for a newer znsage\n");
#endif
	znsage_major = register_blkdev(0, "znsage");
	if (znsage_major < 0)
		return znsage_major;
	znsage_debugfs_init();
	err = register_sleep_events();
	if (err)
		goto out;
	err = znsage_config_register();
	if (!err) {
		/* Last, since a program can be attached from here on. */
		znsage_bpf_init();
		return 0;
	}
	unregister_pm_notifier(&sleep_events);
out:
	znsage_debugfs_exit();
	unregister_blkdev(znsage_major, "znsage");
	return err;
}

static void __exit znsage_exit(void)
{
	znsage_config_unregister();
	unregister_pm_notifier(&sleep_events);
	znsage_debugfs_exit();
	unregister_blkdev(znsage_major, "znsage");
	ida_destroy(&znsage_ida);
}

module_init(znsage_init);
module_exit(znsage_exit);

MODULE_DESCRIPTION("Swap on zoned block devices");
MODULE_AUTHOR("The znsage developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(ZNSAGE_VERSION);
