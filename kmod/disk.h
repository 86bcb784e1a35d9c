/* SPDX-License-Identifier: GPL-2.0 */
/* The layer of disks, /dev/znsageN and its filler, and their files. */
#ifndef ZNSAGE_DISK_H
#define ZNSAGE_DISK_H

#include "policy.h"

/* disk.c */
int znsage_make_disk(struct znsage_device *zd, struct gendisk **disk,
		     const char *suffix, u64 slots,
		     const struct block_device_operations *fops,
		     const struct attribute_group **groups);
int znsage_disk_add(struct znsage_device *zd);
int znsage_disk_claim(struct znsage_device *zd);

/* filler.c */
int znsage_filler_add(struct znsage_device *zd);
void znsage_filler_remove(struct znsage_device *zd);

/* sysfs.c */
extern const struct attribute_group *znsage_disk_groups[];

/* debugfs.c */
void znsage_debugfs_add(struct znsage_device *zd);
void znsage_debugfs_remove(struct znsage_device *zd);
void znsage_debugfs_init(void);
void znsage_debugfs_exit(void);

#endif /* ZNSAGE_DISK_H */
