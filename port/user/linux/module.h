/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For policies in user space: as much of <linux/module.h> as one needs, so
 * that the same source is a module of the kernel and a library of the
 * simulator, which calls znsage_policy_init().
 */
#ifndef ZNSAGE_USER_LINUX_MODULE_H
#define ZNSAGE_USER_LINUX_MODULE_H

#include <errno.h>
#include <string.h>

#include <zport.h>

#define THIS_MODULE	((struct module *)NULL)

#define __init
#define __exit

#define module_init(fn)							\
	int znsage_policy_init(void);					\
	int znsage_policy_init(void)					\
	{								\
		return fn();						\
	}
#define module_exit(fn)							\
	void znsage_policy_exit(void);					\
	void znsage_policy_exit(void)					\
	{								\
		fn();							\
	}

/* At file scope; what they say is of no use here. */
#define ZP_NOTHING(line)	struct zp_nothing_##line
#define ZP_NOTHING_AT(line)	ZP_NOTHING(line)
#define MODULE_LICENSE(text)	ZP_NOTHING_AT(__LINE__)
#define MODULE_AUTHOR(text)	ZP_NOTHING_AT(__LINE__)
#define MODULE_DESCRIPTION(text) ZP_NOTHING_AT(__LINE__)
#define MODULE_VERSION(text)	ZP_NOTHING_AT(__LINE__)

#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

#define min(a, b)	((a) < (b) ? (a) : (b))
#define max(a, b)	((a) > (b) ? (a) : (b))

#endif /* ZNSAGE_USER_LINUX_MODULE_H */
