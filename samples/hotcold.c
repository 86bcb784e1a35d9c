// SPDX-License-Identifier: GPL-2.0
/*
 * A policy to start from: pages that come back soon go to one stream, all
 * others to another. README.md says how to simulate it.
 *
 * A page that was on the device before has a life, the number of blocks swapped
 * out meanwhile. It is hot if that is less than half of the usual life. A new
 * page is hot if the kernel counts it in the working set.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <znsage.h>

enum { COLD, HOT, NR_STREAMS };

/* State of a device. */
struct hotcold {
	u32 usual;	/* moving average of page lives */
};

static bool is_hot(struct hotcold *hc, const struct znsage_page *page)
{
	u32 usual = READ_ONCE(hc->usual), life = page->life;

	if (life == ZNSAGE_NONE)
		return page->workingset;
	/* Concurrent CPUs may lose an update, which does no harm. */
	WRITE_ONCE(hc->usual, usual - usual / 64 + life / 64);
	return life < usual / 2;
}

static u32 hotcold_place(struct zse_engine *dev, const struct znsage_page *page)
{
	struct znsage_levels levels;
	u32 stream = is_hot(znsage_private(dev), page) ? HOT : COLD;

	/* A device that opens few zones has fewer streams. */
	znsage_get_levels(dev, &levels);
	return stream < levels.streams ? stream : 0;
}

static void *hotcold_attach(struct zse_engine *dev)
{
	return kzalloc(sizeof(struct hotcold), GFP_KERNEL);
}

static void hotcold_detach(struct zse_engine *dev, void *private_data)
{
	kfree(private_data);
}

static struct znsage_policy hotcold = {
	.name = "hotcold",
	.streams = NR_STREAMS,
	.place = hotcold_place,
	.attach = hotcold_attach,
	.detach = hotcold_detach,
};

static int __init hotcold_init(void)
{
	return znsage_register_policy(&hotcold);
}
module_init(hotcold_init);

static void __exit hotcold_exit(void)
{
	znsage_unregister_policy(&hotcold);
}
module_exit(hotcold_exit);

MODULE_DESCRIPTION("Sample policy for znsage: short lives apart from long ones");
MODULE_LICENSE("GPL");
