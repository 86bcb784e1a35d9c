// SPDX-License-Identifier: GPL-2.0
/* The memory of chunks, allocated at attach. */

#include "io.h"

/* Also frees the array, and what pages_alloc() left after an error. */
static void pages_free(struct page **pages, u32 nr)
{
	u32 i;

	for (i = 0; pages && i < nr; i++)
		if (pages[i])
			__free_page(pages[i]);
	kvfree(pages);
}

/* An array of @nr pages in @pages, to be freed by pages_free() in any case. */
static int pages_alloc(struct page ***pages, u32 nr)
{
	u32 i;

	*pages = kvcalloc(nr, sizeof(**pages), GFP_KERNEL);
	if (!*pages)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		(*pages)[i] = alloc_page(GFP_KERNEL);
		if (!(*pages)[i])
			return -ENOMEM;
	}
	return 0;
}

static void chunk_free(struct znsage_chunk *zc)
{
	u32 nr = zc->nr_pages_owned;

	vunmap(zc->buffer);
	vunmap(zc->input);
	kvfree(zc->unread);
	pages_free(zc->packed, znsage_packed_pages(zc));
	/* The pages in a chunk of swap-out are the kernel's. */
	pages_free(zc->pages, zc->core->gc ? nr : 0);
	pages_free(zc->encrypted, nr);
	kvfree(zc->parents);
	kvfree(zc->vecs);
}

/* The buffer of @zc; if it is one of GC, it reads into @nr pages of its own. */
static int packed_alloc(struct znsage_chunk *zc, u32 nr)
{
	u32 packed = znsage_packed_pages(zc);

	if (pages_alloc(&zc->packed, packed))
		return -ENOMEM;
	zc->buffer = vmap(zc->packed, packed, VM_MAP, PAGE_KERNEL);
	if (!zc->buffer)
		return -ENOMEM;
	if (!zc->core->gc)
		return 0;
	zc->input = vmap(zc->pages, nr, VM_MAP, PAGE_KERNEL);
	zc->unread = kvcalloc(BITS_TO_LONGS(nr), sizeof(long), GFP_KERNEL);
	return zc->input && zc->unread ? 0 : -ENOMEM;
}

static int chunk_alloc(struct znsage_device *zd, const struct zse_config *cfg,
		       struct znsage_chunk *zc)
{
	u32 nr = zc->core->gc ? zd->batch_pages : zd->chunk_pages;
	int err = 0;

	zc->zd = zd;
	spin_lock_init(&zc->lock);
	zc->nr_vecs = nr;
	if (zd->compressor) {
		nr = max(nr, znsage_packed_pages(zc));
		/*
		 * A second append begins in the middle of a page, and the end
		 * of a zone or of a write unit is padded.
		 */
		zc->nr_vecs = nr + 1 + cfg->write_unit / zd->page_blocks;
	}
	zc->nr_pages_owned = nr;
	zc->vecs = kvcalloc(zc->nr_vecs, sizeof(*zc->vecs), GFP_KERNEL);
	if (!zc->vecs)
		return -ENOMEM;
	if (zc->core->gc) {
		err = pages_alloc(&zc->pages, nr);
	} else {
		zc->pages = kvcalloc(nr, sizeof(*zc->pages), GFP_KERNEL);
		zc->parents = kvcalloc(nr, sizeof(*zc->parents), GFP_KERNEL);
		if (!zc->pages || !zc->parents)
			return -ENOMEM;
	}
	if (!err && zd->compressor)
		err = packed_alloc(zc, nr);
	if (!err && zd->crypt && !zd->compressor && !zc->core->gc)
		err = pages_alloc(&zc->encrypted, nr);
	return err;
}

/* znsage_chunks_free() frees them, even after an error. Sleeps. */
int znsage_chunks_alloc(struct znsage_device *zd, const struct zse_config *cfg)
{
	u32 nr = cfg->nr_chunks + cfg->nr_gc_chunks, i;
	int err = 0;

	zd->chunks = kvcalloc(nr, sizeof(*zd->chunks), GFP_KERNEL);
	if (!zd->chunks)
		return -ENOMEM;
	zd->nr_chunks = nr;
	for (i = 0; i < nr && !err; i++) {
		struct zse_chunk *c = zse_chunk_get(zd->engine, i);

		c->priv = &zd->chunks[i];
		zd->chunks[i].core = c;
		err = chunk_alloc(zd, cfg, &zd->chunks[i]);
	}
	return err;
}

void znsage_chunks_free(struct znsage_device *zd)
{
	u32 i;

	for (i = 0; zd->chunks && i < zd->nr_chunks; i++)
		if (zd->chunks[i].zd)
			chunk_free(&zd->chunks[i]);
	kvfree(zd->chunks);
}
