// SPDX-License-Identifier: GPL-2.0
/*
 * Which cgroup pays for I/O. With a policy that isolates streams, appends and
 * GC reads are charged to the block cgroup of their pages: io.stat shows them
 * there, and io.max throttles GC. Swap-out appends are marked as swap, like the
 * kernel's own. Since 6.12 the kernel charges these but does not throttle them,
 * because a reclaiming task waits for them.
 *
 * The kernel gives each swap-out bio the block cgroup of its page. An append
 * takes that of its first page. Each stream remembers the last one, with the
 * key of its pages, because GC only knows keys. Everything else is charged to
 * the root: GC for keys that lost their stream, and all I/O of other policies,
 * whose chunks mix pages of many cgroups. Otherwise the task that happened to
 * fill a chunk would pay for all of it, and its limits would hold up the
 * others.
 */
#include <linux/bio.h>
#include <linux/blk-cgroup.h>
#include <linux/cgroup.h>

#include "znsage.h"

#ifdef CONFIG_BLK_CGROUP

/* Remember key and cgroup of the last pages of @stream. */
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

/* The payer of @stream's pages of @key, with a reference; or NULL. */
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

/* Charge GC's I/O for pages of a stream. Returns false if nobody pays. */
static bool charge_gc(struct znsage_chunk *zc, struct bio *bio)
{
	struct zse_chunk *c = zc->core;
	struct cgroup_subsys_state *css = payer_get(zc->zd, c->stream, c->key);

	if (!css)
		return false;
	bio_associate_blkg_from_css(bio, css);
	css_put(css);
	return true;
}

/* Charge an append of swap-out. Returns false if nobody pays. */
static bool charge_swap_out(struct znsage_chunk *zc, struct bio *bio)
{
	struct bio *parent = zc->parents[zc->first];

	if (!parent->bi_blkg)
		return false;
	bio_clone_blkg_association(bio, parent);
	remember(zc->zd, zc->core->stream, zc->core->key,
		 bio_blkcg_css(parent));
	return true;
}

/* Charge an append or a read of a chunk, before it is submitted. */
void znsage_charge(struct znsage_chunk *zc, struct bio *bio)
{
	bool paid = false;

	if (!zc->core->gc)
		bio->bi_opf |= zc->parents[zc->first]->bi_opf & REQ_SWAP;
	if (READ_ONCE(zc->zd->isolates))
		paid = zc->core->gc ? charge_gc(zc, bio) :
				      charge_swap_out(zc, bio);
	if (!paid)
		bio_associate_blkg_from_css(bio, blkcg_root_css);
}

/* Drop all payers: the device detaches, or its policy changes. */
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
