// SPDX-License-Identifier: GPL-2.0
/*
 * Load and unload. Users make devices through configfs (config.c). Each
 * directory there pins the module, so no device is on when the module is
 * unloaded.
 */
#include <linux/module.h>

#include "device.h"

static int __init znsage_init(void)
{
	int err;

#if ZNSAGE_IS_UNTESTED
	pr_warn("znsage: this kernel is newer than " ZNSAGE_NEWEST_TESTED ", the newest that znsage was tested on: look for a newer znsage\n");
#endif
	znsage_debugfs_init();
	err = znsage_read_init();
	if (err)
		goto no_read;
	err = znsage_hibernation_init();
	if (err)
		goto no_hibernation;
	err = znsage_config_register();
	if (err)
		goto no_config;
	/* Last, since a program can be attached from here on. */
	znsage_bpf_init();
	return 0;

no_config:
	znsage_hibernation_exit();
no_hibernation:
	znsage_read_exit();
no_read:
	znsage_debugfs_exit();
	return err;
}

static void __exit znsage_exit(void)
{
	znsage_config_unregister();
	znsage_hibernation_exit();
	znsage_read_exit();
	znsage_debugfs_exit();
}

module_init(znsage_init);
module_exit(znsage_exit);

MODULE_DESCRIPTION("Swap on zoned block devices");
MODULE_AUTHOR("The znsage developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(ZNSAGE_VERSION);
