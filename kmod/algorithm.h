/* SPDX-License-Identifier: GPL-2.0 */
/* How a page is compressed and decompressed (algorithm.c). */
#ifndef ZNSAGE_ALGORITHM_H
#define ZNSAGE_ALGORITHM_H

#include "znsage.h"

/*
 * Functions run on one page, in any context; they allocate nothing. @work is
 * memory that no one else uses meanwhile.
 */
struct znsage_algorithm {
	size_t (*work_bytes)(void);
	bool (*begin)(void *work);	/* may be NULL */
	/* To at most @most bytes. Returns how many; <= 0: it does not fit. */
	int (*compress)(void *work, void *to, u32 most, const void *from);
	/* Safe for any bytes. Returns those of the page; < 0: not compressed */
	int (*decompress)(void *work, void *to, const void *from, u32 bytes);
	/* Decompression does not use @work, and takes 1 to 2 us a page. */
	bool quick;
};

/* Of OFF, and of what the kernel lacks, the functions are NULL. */
extern const struct znsage_algorithm znsage_algorithms[ZNSAGE_NR_COMPRESS];

#endif
