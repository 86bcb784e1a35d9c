// SPDX-License-Identifier: GPL-2.0
/*
 * SepBIT's rule, to compare others with; in the simulator only.
 *
 * Q. Wang, J. Li, P. P. C. Lee, T. Ouyang, C. Shi, L. Huang: "Separating Data
 * via Block Invalidation Time Inference for Write Amplification Reduction in
 * Log-Structured Storage", USENIX FAST 2022. Six classes: a written block goes
 * to class 1 if the block that it replaces lived shorter than ell, the mean
 * life of the last 16 segments of class 1 that were collected; else to class 2.
 * What GC moves goes to class 3 out of class 1, else by its age to class 4, 5
 * or 6, with the borders 4 ell and 16 ell. The victim is the segment with the
 * largest dead * age / live, age being the time since it was filled.
 *
 * For swap, what a page replaces is its last stay on the device. Different from
 * the original: ages and lives are those of a zone's pages on average, and not
 * of each block. With fewer than four classes of survivors, the last ones are
 * one.
 *
 * The simulator calls a policy from one thread at a time; so nothing here is
 * atomic.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <znsage.h>

#define SHORT		0	/* stream of class 1; class 2 is the next one */
#define LIVES		16	/* of segments, that ell is the mean of */

/**
 * struct sepbit - what is known of a device
 * @ell:    mean life of segments of class 1; none yet: U64_MAX
 * @sum:    of the lives since @ell was found
 * @nr:     how many
 * @filled: of each zone, when it was first seen to be full; 0: it was not
 */
struct sepbit {
	u64 ell;
	u64 sum;
	u32 nr;
	u64 filled[];
};

static u32 sepbit_place(struct zse_engine *dev, const struct znsage_page *page)
{
	struct sepbit *s = znsage_private(dev);

	if (page->life != ZNSAGE_NONE && page->life < s->ell)
		return SHORT;
	return SHORT + 1;
}

/* A segment of class 1 is collected. */
static void sepbit_collected(struct sepbit *s, u64 life)
{
	s->sum += life;
	if (++s->nr < LIVES)
		return;
	s->ell = s->sum / LIVES;
	s->sum = 0;
	s->nr = 0;
}

static bool is_short(const struct znsage_zone *z)
{
	return z->stream == SHORT && !z->moves;
}

/* Class of survivors 0 is the paper's class 3. */
static u32 sepbit_survivor(struct zse_engine *dev, const struct znsage_zone *z)
{
	struct sepbit *s = znsage_private(dev);
	struct znsage_levels levels;
	u32 class;

	if (is_short(z)) {
		sepbit_collected(s, z->age);
		return 0;
	}
	if (s->ell == (u64)-1 || z->age < 4 * s->ell)
		class = 1;
	else if (z->age < 16 * s->ell)
		class = 2;
	else
		class = 3;
	znsage_get_levels(dev, &levels);
	return class < levels.survivors ? class : levels.survivors - 1;
}

/* A zone without live blocks is reset without GC. */
static void sepbit_freed(struct zse_engine *dev, u32 zone)
{
	struct znsage_zone z;

	if (znsage_get_zone(dev, zone, &z) && !z.live && is_short(&z))
		sepbit_collected(znsage_private(dev), z.age);
}

static u32 sepbit_victim(struct zse_engine *dev, u32 room)
{
	struct sepbit *s = znsage_private(dev);
	u32 best = ZNSAGE_NONE, i;
	struct znsage_levels levels;
	double most = -1;

	znsage_get_levels(dev, &levels);
	for (i = 0; i < levels.zones; i++) {
		struct znsage_zone z;
		double score;

		if (!znsage_get_zone(dev, i, &z)) {
			s->filled[i] = 0;
			continue;
		}
		/* GC looks often enough for that. */
		if (!s->filled[i])
			s->filled[i] = levels.clock + 1;
		/* What the engine would refuse; a write unit is a block. */
		if (z.live > room || z.live >= z.capacity)
			continue;
		score = (double)(z.capacity - z.live) *
			(levels.clock + 2 - s->filled[i]) / (z.live + 1);
		if (score > most) {
			most = score;
			best = i;
		}
	}
	return best;
}

static void *sepbit_attach(struct zse_engine *dev)
{
	struct znsage_levels levels;
	struct sepbit *s;

	znsage_get_levels(dev, &levels);
	s = kzalloc(sizeof(*s) + sizeof(*s->filled) * levels.zones, GFP_KERNEL);
	if (s)
		s->ell = (u64)-1;
	return s;
}

static void sepbit_detach(struct zse_engine *dev, void *private_data)
{
	kfree(private_data);
}

static struct znsage_policy sepbit = {
	.name = "sepbit",
	.streams = 2,
	.place = sepbit_place,
	.victim = sepbit_victim,
	.survivor = sepbit_survivor,
	.freed = sepbit_freed,
	.attach = sepbit_attach,
	.detach = sepbit_detach,
};

static int __init sepbit_init(void)
{
	return znsage_register_policy(&sepbit);
}

static void __exit sepbit_exit(void)
{
	znsage_unregister_policy(&sepbit);
}

module_init(sepbit_init);
module_exit(sepbit_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("SepBIT's placement, for comparison");
