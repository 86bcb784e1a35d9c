// SPDX-License-Identifier: GPL-2.0
/*
 * Load and unload. Devices are made through configfs, see config.c; each
 * directory there holds the module, so nothing runs when it goes.
 */
#include <linux/blkdev.h>
#include <linux/idr.h>
#include <linux/module.h>

#include "znsage.h"

DEFINE_IDA(znsage_ida);
int znsage_major;

static int __init znsage_init(void)
{
	int err;

	znsage_major = register_blkdev(0, "znsage");
	if (znsage_major < 0)
		return znsage_major;
	znsage_debugfs_init();
	err = znsage_hibernate_init();
	if (err)
		goto out;
	err = znsage_config_register();
	if (!err)
		return 0;
	znsage_hibernate_exit();
out:
	znsage_debugfs_exit();
	unregister_blkdev(znsage_major, "znsage");
	return err;
}

static void __exit znsage_exit(void)
{
	znsage_config_unregister();
	znsage_hibernate_exit();
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
