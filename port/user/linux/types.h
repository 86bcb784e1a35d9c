/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's integer types, for a policy in the simulator. */
#include <zport.h>
