// SPDX-License-Identifier: GPL-2.0
/*
 * No hibernation while a device is on: it would lose swapped memory. The image
 * has the maps of one moment, but GC goes on until power-off and resets zones
 * that these maps point to, and an attach before the image is read back resets
 * all of them. Attach is refused from the PREPARE notification until
 * hibernation is over, which takes long if user space writes the image. Suspend
 * loses nothing.
 */
#include <linux/notifier.h>
#include <linux/suspend.h>

#include "device.h"

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

/*
 * Refuse hibernation until znsage_hibernation_unblock(), since the device @name
 * is being attached. Returns 0, or -EAGAIN if hibernation has begun. Sleeps.
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
int znsage_hibernation_init(void)
{
	unsigned int flags = lock_system_sleep();
	int err = register_pm_notifier(&sleep_events);

	unlock_system_sleep(flags);
	return err;
}

void znsage_hibernation_exit(void)
{
	unregister_pm_notifier(&sleep_events);
}
