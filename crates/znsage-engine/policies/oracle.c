// SPDX-License-Identifier: GPL-2.0
/*
 * What placement can gain at most; in the simulator only, which alone knows the
 * future. It says in znsage_page.usual what is true, in place of a guess:
 *
 *	rate-oracle	the mean life of the page, from the rate at which the
 *			workload accesses it
 *	death-oracle	how long this block will live: until the page is next
 *			accessed
 *
 * A page goes to a class by that. The border of a class is SPREAD times that of
 * the one before. GC knows the class of a zone and the age of its pages: what
 * is moved has the same rate as before, and the later border of its class, less
 * its age, to live. The device's rule chooses victims.
 *
 * The simulator calls a policy from one thread at a time; so nothing here is
 * atomic.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <znsage.h>

#define RATES		8
#define DEATHS		12
#define SPREAD		2
/* Lives in the first class are up to this part of the device. */
#define RATE_SHARE	16
#define DEATH_SHARE	64

/**
 * struct oracle - what is known of a device
 * @blocks: that it has; 0 until a zone is full
 */
struct oracle {
	u64 blocks;
};

/* Blocks of the device, or 0. */
static u64 blocks_of(struct zse_engine *dev, const struct znsage_levels *levels)
{
	struct oracle *o = znsage_private(dev);
	struct znsage_zone z;
	u32 i;

	for (i = 0; !o->blocks && i < levels->zones; i++)
		if (znsage_get_zone(dev, i, &z))
			o->blocks = (u64)z.capacity * levels->zones;
	return o->blocks;
}

/* The class of @life, if those of the first class are at most @most. */
static u32 class_of(u64 life, u64 most, u32 nr)
{
	u32 class;

	for (class = 0; class < nr - 1 && life > most; class++)
		most *= SPREAD;
	return class;
}

static u32 place(struct zse_engine *dev, const struct znsage_page *page,
		 u32 share)
{
	struct znsage_levels levels;

	znsage_get_levels(dev, &levels);
	return class_of(page->usual, blocks_of(dev, &levels) / share,
			levels.streams);
}

/* If there are fewer classes of survivors, the first ones are one. */
static u32 survivors_of(const struct znsage_levels *levels, u32 class)
{
	u32 less = levels->streams > levels->survivors ?
		   levels->streams - levels->survivors : 0;

	return class > less ? class - less : 0;
}

static u32 rate_place(struct zse_engine *dev, const struct znsage_page *page)
{
	return place(dev, page, RATE_SHARE);
}

static u32 rate_survivor(struct zse_engine *dev, const struct znsage_zone *z)
{
	struct znsage_levels levels;

	znsage_get_levels(dev, &levels);
	return survivors_of(&levels, z->stream);
}

static u32 death_place(struct zse_engine *dev, const struct znsage_page *page)
{
	return place(dev, page, DEATH_SHARE);
}

static u32 death_survivor(struct zse_engine *dev, const struct znsage_zone *z)
{
	struct znsage_levels levels;
	u64 first, life;
	u32 i;

	znsage_get_levels(dev, &levels);
	first = blocks_of(dev, &levels) / DEATH_SHARE;
	life = first;
	for (i = 0; i < z->stream; i++)
		life *= SPREAD;
	life = life > z->age ? life - z->age : 0;
	return survivors_of(&levels, class_of(life, first, levels.streams));
}

static void *oracle_attach(struct zse_engine *dev)
{
	return kzalloc(sizeof(struct oracle), GFP_KERNEL);
}

static void oracle_detach(struct zse_engine *dev, void *private_data)
{
	kfree(private_data);
}

static struct znsage_policy rate_oracle = {
	.name = "rate-oracle",
	.streams = RATES,
	.place = rate_place,
	.survivor = rate_survivor,
	.attach = oracle_attach,
	.detach = oracle_detach,
};

static struct znsage_policy death_oracle = {
	.name = "death-oracle",
	.streams = DEATHS,
	.place = death_place,
	.survivor = death_survivor,
	.attach = oracle_attach,
	.detach = oracle_detach,
};

static int __init oracle_init(void)
{
	int err = znsage_register_policy(&rate_oracle);

	return err ? err : znsage_register_policy(&death_oracle);
}

static void __exit oracle_exit(void)
{
	znsage_unregister_policy(&death_oracle);
	znsage_unregister_policy(&rate_oracle);
}

module_init(oracle_init);
module_exit(oracle_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("The most that placement can gain, for comparison");
