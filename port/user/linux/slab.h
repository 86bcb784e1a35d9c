/* SPDX-License-Identifier: GPL-2.0 */
/* For policies in user space; see module.h. */
#ifndef ZNSAGE_USER_LINUX_SLAB_H
#define ZNSAGE_USER_LINUX_SLAB_H

#include <stdlib.h>

/* The flags make no difference here. */
#define GFP_KERNEL	0
#define GFP_NOWAIT	0

#define kzalloc(size, flags)	calloc(1, (size))
#define kcalloc(nr, size, flags) calloc((nr), (size))
#define kmalloc(size, flags)	malloc(size)
#define kvcalloc(nr, size, flags) calloc((nr), (size))
#define kfree(p)		free((void *)(p))
#define kvfree(p)		free((void *)(p))

#endif /* ZNSAGE_USER_LINUX_SLAB_H */
