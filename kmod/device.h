/* SPDX-License-Identifier: GPL-2.0 */
/* The top layer: attach and detach, and who asks for them. */
#ifndef ZNSAGE_DEVICE_H
#define ZNSAGE_DEVICE_H

#include "disk.h"

/* device.c */
struct znsage_device *znsage_attach(const char *name,
				    const struct znsage_settings *set);
int znsage_detach(struct znsage_device *zd);

/* config.c */
int znsage_config_register(void);
void znsage_config_unregister(void);

#endif /* ZNSAGE_DEVICE_H */
