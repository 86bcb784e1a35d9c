/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of <linux/module.h> that a policy needs, for user space. So the same
 * source compiles to a kernel module and to a library for the simulator, which
 * calls znsage_policy_init().
 */
#ifndef ZNSAGE_USER_LINUX_MODULE_H
#define ZNSAGE_USER_LINUX_MODULE_H

#include <errno.h>
#include <string.h>

#include <zport.h>

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

/* These stand at file scope and have no effect here. */
#define ZPORT_NOTHING(line)	struct zport_nothing_##line
#define ZPORT_NOTHING_AT(line)	ZPORT_NOTHING(line)
#define MODULE_LICENSE(text)	ZPORT_NOTHING_AT(__LINE__)
#define MODULE_AUTHOR(text)	ZPORT_NOTHING_AT(__LINE__)
#define MODULE_DESCRIPTION(text) ZPORT_NOTHING_AT(__LINE__)
#define MODULE_VERSION(text)	ZPORT_NOTHING_AT(__LINE__)

#define min(a, b)	((a) < (b) ? (a) : (b))
#define max(a, b)	((a) > (b) ? (a) : (b))

#endif /* ZNSAGE_USER_LINUX_MODULE_H */
