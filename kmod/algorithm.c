// SPDX-License-Identifier: GPL-2.0
/*
 * The algorithms of compression, by the kernel's libraries. The crypto API has
 * them, too, but copies each page twice more, needs more memory as it does not
 * know that pages are small, and up to 6.13 does not run in interrupts.
 */
#include <linux/lz4.h>
#include <linux/zstd.h>

#include "znsage.h"

#if IS_ENABLED(CONFIG_LZ4_COMPRESS) && IS_ENABLED(CONFIG_LZ4_DECOMPRESS)
#define HAS_LZ4

static size_t lz4_work_bytes(void)
{
	return LZ4_MEM_COMPRESS;
}

static int lz4_compress(void *work, void *to, u32 most, const void *from)
{
	return LZ4_compress_default(from, to, PAGE_SIZE, most, work);
}

static int lz4_decompress(void *work, void *to, const void *from, u32 bytes)
{
	return LZ4_decompress_safe(from, to, bytes, PAGE_SIZE);
}
#endif

#if IS_ENABLED(CONFIG_ZSTD_COMPRESS) && IS_ENABLED(CONFIG_ZSTD_DECOMPRESS)
#define HAS_ZSTD
/* The library's default. */
#define ZSTD_LEVEL	3

struct zstd_work {
	zstd_parameters params;
	zstd_cctx *cctx;
	zstd_dctx *dctx;
	u64 space[];			/* of cctx, then of dctx */
};

static size_t zstd_cctx_bytes(zstd_parameters *params)
{
	*params = zstd_get_params(ZSTD_LEVEL, PAGE_SIZE);
	return round_up(zstd_cctx_workspace_bound(&params->cParams),
			sizeof(u64));
}

static size_t zstd_work_bytes(void)
{
	zstd_parameters params;

	return sizeof(struct zstd_work) + zstd_cctx_bytes(&params) +
	       zstd_dctx_workspace_bound();
}

static bool zstd_begin(void *work)
{
	struct zstd_work *z = work;
	size_t bytes = zstd_cctx_bytes(&z->params);

	z->cctx = zstd_init_cctx(z->space, bytes);
	z->dctx = zstd_init_dctx(z->space + bytes / sizeof(u64),
				 zstd_dctx_workspace_bound());
	return z->cctx && z->dctx;
}

static int zstd_compress(void *work, void *to, u32 most, const void *from)
{
	struct zstd_work *z = work;
	size_t got = zstd_compress_cctx(z->cctx, to, most, from, PAGE_SIZE,
					&z->params);

	return zstd_is_error(got) ? -EINVAL : (int)got;
}

static int zstd_decompress(void *work, void *to, const void *from, u32 bytes)
{
	struct zstd_work *z = work;
	size_t got = zstd_decompress_dctx(z->dctx, to, PAGE_SIZE, from, bytes);

	return zstd_is_error(got) ? -EINVAL : (int)got;
}
#endif

const struct znsage_algorithm znsage_algorithms[ZNSAGE_NR_COMPRESS] = {
#ifdef HAS_LZ4
	[ZNSAGE_COMPRESS_LZ4] = {
		.work_bytes = lz4_work_bytes,
		.compress = lz4_compress,
		.decompress = lz4_decompress,
		.quick = true,
	},
#endif
#ifdef HAS_ZSTD
	[ZNSAGE_COMPRESS_ZSTD] = {
		.work_bytes = zstd_work_bytes,
		.begin = zstd_begin,
		.compress = zstd_compress,
		.decompress = zstd_decompress,
	},
#endif
};
