// SPDX-License-Identifier: GPL-2.0
/*
 * No hibernation while a device is on. An image of memory holds the maps as
 * they were at one moment; GC goes on until the power is off and resets zones
 * that these maps still point to, and whoever attaches the device before the
 * image is read back resets them all. So the kernel is told that it cannot
 * hibernate, and how it could. Suspend, to RAM or idle, loses nothing and is
 * none of this file's business.
 *
 * The other way round, nothing is attached between the kernel's question and
 * the end of hibernation, which for user space that writes images itself
 * (/dev/snapshot) can be long.
 */
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/suspend.h>

#include "znsage.h"

static DEFINE_MUTEX(lock);
/* Under @lock: devices that are on, or about to be; an image may be taken. */
static u32 nr_on;
static bool hibernating;

static int prepare(void)
{
	lockdep_assert_held(&lock);
	if (nr_on) {
		znsage_err("hibernation",
			   "refused, as what is swapped out would be lost; `znsage off` or swapoff and power=0 first (devices on: %u)",
			   nr_on);
		return -EBUSY;
	}
	hibernating = true;
	return 0;
}

static int sleep_event(struct notifier_block *nb, unsigned long event,
		       void *unused)
{
	int err = 0;

	mutex_lock(&lock);
	if (event == PM_HIBERNATION_PREPARE)
		err = prepare();
	else if (event == PM_POST_HIBERNATION)
		hibernating = false;
	mutex_unlock(&lock);
	return notifier_from_errno(err);
}

static struct notifier_block sleep_events = {
	.notifier_call = sleep_event,
};

/**
 * znsage_awake_get() - no hibernation from now on
 * @name: of the device that is to be attached, for messages
 *
 * Context: sleeps.
 * Return: 0, or -EAGAIN if hibernation has begun.
 */
int znsage_awake_get(const char *name)
{
	int err = 0;

	mutex_lock(&lock);
	if (hibernating) {
		znsage_err(name, "the system is about to hibernate");
		err = -EAGAIN;
	} else {
		nr_on++;
	}
	mutex_unlock(&lock);
	return err;
}

/**
 * znsage_awake_put() - a device is gone, or was not attached after all
 *
 * Context: sleeps.
 */
void znsage_awake_put(void)
{
	mutex_lock(&lock);
	nr_on--;
	mutex_unlock(&lock);
}

/**
 * znsage_hibernate_init() - from now on, be asked before hibernation
 *
 * Who is loaded while the kernel hibernates waits until it is over: it was
 * not asked. Only an image that user space had begun before that goes unseen.
 *
 * Context: sleeps.
 * Return: 0 or an errno.
 */
int znsage_hibernate_init(void)
{
	unsigned int flags = lock_system_sleep();
	int err = register_pm_notifier(&sleep_events);

	unlock_system_sleep(flags);
	return err;
}

/**
 * znsage_hibernate_exit() - be asked no more; no device is on
 *
 * Context: sleeps.
 */
void znsage_hibernate_exit(void)
{
	unregister_pm_notifier(&sleep_events);
}
