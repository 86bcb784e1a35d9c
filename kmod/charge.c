// SPDX-License-Identifier: GPL-2.0
/*
 * Whose I/O it is. With a policy that isolates streams, what swap-out appends
 * and what GC reads and appends is charged to the block cgroup of the pages, so
 * that io.stat shows it there, and io.max and io.cost hold it back.
 *
 * The kernel has given each swap-out bio the block cgroup of its page. An
 * append takes over that of its first page; each stream remembers the last one
 * it had, with the key that its pages had, for GC, which has only keys. What
 * belongs to no stream's key any more is charged to nobody, as is all of it
 * with other policies: the I/O of many, in one bio, is nobody's.
 */
#include <linux/bio.h>
#include <linux/blk-cgroup.h>
#include <linux/cgroup.h>

#include "znsage.h"

#ifdef CONFIG_BLK_CGROUP

/* @stream's pages are @css's; the reference that it had goes to @old. */
static void remember(struct znsage_device *zd, u32 stream, u64 key,
		     struct cgroup_subsys_state *css)
{
	struct znsage_payer *payer = &zd->payers[stream];
	struct cgroup_subsys_state *old = NULL;
	unsigned long flags;

	if (READ_ONCE(payer->css) == css && READ_ONCE(payer->key) == key)
		return;
	if (!css_tryget(css))
		return;
	spin_lock_irqsave(&zd->lock, flags);
	old = payer->css;
	WRITE_ONCE(payer->css, css);
	WRITE_ONCE(payer->key, key);
	spin_unlock_irqrestore(&zd->lock, flags);
	if (old)
		css_put(old);
}

/* Who pays for pages of @key that @stream wrote; held; or NULL. */
static struct cgroup_subsys_state *payer_get(struct znsage_device *zd,
					     u32 stream, u64 key)
{
	struct znsage_payer *payer = &zd->payers[stream];
	struct cgroup_subsys_state *css = NULL;
	unsigned long flags;

	spin_lock_irqsave(&zd->lock, flags);
	if (payer->css && payer->key == key && css_tryget(payer->css))
		css = payer->css;
	spin_unlock_irqrestore(&zd->lock, flags);
	return css;
}

/**
 * znsage_charge() - charge a bio of a chunk to who pays for it
 * @zc:	 chunk
 * @bio: append of it, or read of GC; initialised and not submitted
 *
 * Context: process.
 */
void znsage_charge(struct znsage_chunk *zc, struct bio *bio)
{
	struct znsage_device *zd = zc->zd;
	struct zse_chunk *c = zc->core;
	struct cgroup_subsys_state *css;

	if (!READ_ONCE(zd->isolates))
		return;
	if (c->gc) {
		css = payer_get(zd, c->stream, c->key);
		if (!css)
			return;
		bio_associate_blkg_from_css(bio, css);
		css_put(css);
		return;
	}
	if (!zc->parents[zc->first]->bi_blkg)
		return;
	bio_clone_blkg_association(bio, zc->parents[zc->first]);
	remember(zd, c->stream, c->key,
		 bio_blkcg_css(zc->parents[zc->first]));
}

/* The device ends, or another policy begins: nobody pays any more. */
void znsage_charge_end(struct znsage_device *zd)
{
	u32 i;

	for (i = 0; i < ZSE_MAX_STREAMS; i++) {
		struct cgroup_subsys_state *css;

		spin_lock_irq(&zd->lock);
		css = zd->payers[i].css;
		zd->payers[i].css = NULL;
		spin_unlock_irq(&zd->lock);
		if (css)
			css_put(css);
	}
}

#else /* CONFIG_BLK_CGROUP */

void znsage_charge(struct znsage_chunk *zc, struct bio *bio)
{
}

void znsage_charge_end(struct znsage_device *zd)
{
}

#endif
