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
