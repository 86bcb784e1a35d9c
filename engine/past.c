// SPDX-License-Identifier: GPL-2.0
/*
 * What is remembered of a page: how long it usually stays on the device, in a
 * byte for each slot. Swap-out leaves the byte with the page's slot. When the
 * page is read, the host gets the byte back with the life that is ending in it,
 * and keeps it until the page is swapped out again, perhaps to another slot.
 *
 * A life is the number of blocks swapped out meanwhile. If a page is accessed
 * at random, its lives differ a lot (as exponential variates do), and the best
 * estimate of its rate is their mean. So the byte has a mean, of all lives at
 * first and of the last ones later:
 *
 *	mean += (life - mean) / n
 *
 *	bits 0-5  the mean, in units of 1/512 of the device, as a float with 3
 *		  bits of exponent and 3 of mantissa; 0: nothing is known
 *	bits 6-7  how many lives are in it: a row of weights[]
 *
 * Both are rounded at random, up or down, so that a step that is smaller than
 * the float's is not lost, but taken now and then: the mean has no bias. A hash
 * of the clock and the slot takes the place of random numbers.
 *
 * The byte is a hint, read and written without a lock. If the host has lost
 * that of a page, its slot says that nothing is known. The bytes are there from
 * the first policy on that may look at them.
 *
 * Pasts tell nothing where all pages live equally long, or where lives have
 * nothing to do with those before. Classes of lives would then be mixtures of
 * the same pages, and their open zones only room in which no stale blocks
 * gather. So when a life ends, it is compared with the mean of those before, in
 * levels of the float, of which eight are a factor of two. If a page's lives
 * vary about a mean of its own, their covariance is the variance of pages'
 * means. If that is large, a policy gets its classes, and else one stream for
 * all.
 */
#include "api.h"

#define UNITS		512	/* of a device */
#define MANTISSA	3	/* bits */
#define LEVEL_BITS	6
#define LEVELS		(1u << LEVEL_BITS)
#define LARGEST		(15u << 6)	/* that the float can be, in units */
#define FRACTION	8	/* bits of a mean that is not rounded yet */

/* One in this many lives is compared: CPUs share what that writes to. */
#define COMPARED	8
/* Lives that the means go over: old ones count less and less. */
#define AVERAGED		1024
#define LEVEL_FRACTION	16	/* bits of means of levels */
/*
 * Above this covariance, in levels squared, pasts tell lives apart, below the
 * other they no longer do: a spread of 5 levels is a factor of 1.5. Random
 * access to all pages alike has -13 to 2 in the simulator, to half of them
 * alike 67 and more.
 */
#define APART		24
#define TOGETHER	12

/*
 * The next life has a weight of 1/@n. One in @rows of the lives advances the
 * mean to the next row; 0: none.
 */
static const struct {
	u8 n;
	u8 rows;
} weights[] = {
	{ 2, 1 },		/* of one life */
	{ 3, 2 },		/* two, or three */
	{ 5, 4 },		/* some four to seven */
	{ 16, 0 },		/* more */
};

static u32 unit(const struct zse_engine *e)
{
	u32 pages = e->nr_blocks / page_blocks(&e->cfg) / UNITS;

	return pages ? pages : 1;
}

/* 32 bits that look random; Steele, Lea, Flood: SplitMix (OOPSLA 2014). */
static u32 random_bits(const struct zse_engine *e, u32 slot)
{
	u64 x = READ_ONCE(e->clock) * 0x9e3779b97f4a7c15ULL + slot;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x >> 32;
}

/* The mean of a level, in units. */
static u32 mean_of(u32 level)
{
	u32 exponent = level >> MANTISSA, m = level % (1u << MANTISSA);

	return exponent ? (1u << MANTISSA | m) << (exponent - 1) : m;
}

/* The level of a mean with FRACTION bits below a unit; at least 1. */
static u32 level_of(u32 mean, u32 random)
{
	u32 shift = FRACTION, level;

	while (mean >> (shift + MANTISSA + 1))
		shift++;
	mean += random % (1u << shift);
	/* Rounding up may reach the next power of 2, which needs no shift. */
	level = (mean >> shift) + ((shift - FRACTION) << MANTISSA);
	if (level >= LEVELS)
		return LEVELS - 1;
	return level ? level : 1;
}

/* @life with FRACTION bits below a unit, as far as the float goes. */
static u32 in_units(const struct zse_engine *e, u32 life)
{
	u64 units = div_u64((u64)life << FRACTION, unit(e));

	return units < LARGEST << FRACTION ? (u32)units : LARGEST << FRACTION;
}

/* @past of a page, after one more @life. */
static u8 past_add(const struct zse_engine *e, u8 past, u32 life, u32 random)
{
	u32 row = past >> LEVEL_BITS, level = past % LEVELS, mean, new, n;

	new = in_units(e, life);
	if (!level)
		return level_of(new, random);
	mean = mean_of(level) << FRACTION;
	n = weights[row].n;
	if (new > mean)
		mean += (new - mean) / n;
	else
		mean -= (mean - new) / n;
	/* Other bits than those that round. */
	if (weights[row].rows && !((random >> 24) % weights[row].rows))
		row++;
	return row << LEVEL_BITS | level_of(mean, random);
}

/*
 * May @policy look at usual lives? Of the built-in ones, only heat does, if the
 * device has several streams for it; what others do is not known.
 */
static bool looks_at_lives(const struct zse_engine *e,
			   const struct znsage_policy *policy)
{
	if (zse_builtin_policy(policy->name) != policy)
		return true;
	return policy->streams == ZNSAGE_LIVES &&
	       zse_nr_streams(&e->cfg, policy) > 1;
}

/**
 * zse_prepare() - allocate what a policy looks at
 * @e:	    engine
 * @policy: that the host is about to give to zse_set_policy()
 *
 * The memory stays until zse_destroy(), so that it can be read without a lock.
 * Without it, znsage_page.usual stays unknown. zse_create() prepares for the
 * configuration's policy.
 *
 * Context: sleeps; one caller at a time.
 * Return: false, with nothing changed, if there is no memory.
 */
bool zse_prepare(struct zse_engine *e, const struct znsage_policy *policy)
{
	u8 *past;

	if (e->past || !looks_at_lives(e, policy))
		return true;
	past = zport_alloc(sizeof(*past) * e->cfg.nr_slots);
	if (!past)
		return false;
	smp_store_release(&e->past, past);
	WRITE_ONCE(e->map_bytes, e->map_bytes +
		   sizeof(*past) * (u64)e->cfg.nr_slots);
	return true;
}

/* @mean, after one more @value, which counts for 1/@n. */
static s32 moved(s32 mean, s32 value, s32 n)
{
	return mean + (value - mean) / n;
}

/*
 * Compare @life, which ends now, with the @past before it. Without a lock: CPUs
 * that do this at the same time lose one of their lives.
 */
static void compare(struct zse_engine *e, u8 past, u32 life, u32 random)
{
	struct zse_told *t = &e->told;
	u32 level = past % LEVELS;
	s32 before, after, n, cov;
	bool apart = READ_ONCE(t->apart);

	if (!level || random % COMPARED)
		return;
	n = READ_ONCE(t->nr);
	if (n < AVERAGED)
		WRITE_ONCE(t->nr, ++n);
	before = level << LEVEL_FRACTION;
	after = level_of(in_units(e, life), random >> 3) << LEVEL_FRACTION;
	/* The products of both differences, the second from the new mean. */
	before -= (s32)READ_ONCE(t->before);
	WRITE_ONCE(t->before, READ_ONCE(t->before) + before / n);
	WRITE_ONCE(t->after, moved(READ_ONCE(t->after), after, n));
	after -= (s32)READ_ONCE(t->after);
	cov = (before >> LEVEL_FRACTION / 2) * (after >> LEVEL_FRACTION / 2);
	cov = moved(READ_ONCE(t->covariance), cov, n);
	WRITE_ONCE(t->covariance, cov);
	if (n < AVERAGED)
		return;
	if (apart ? cov < TOGETHER << LEVEL_FRACTION :
		    cov > APART << LEVEL_FRACTION)
		zse_lives_apart(e, !apart);
}

/**
 * zse_past() - what to remember of a page that is read
 * @e:	   engine
 * @slot:  slot of the page
 * @block: its block, returned by zse_read_begin() and not yet ended
 *
 * Return: for zse_chunk_add(), when the page is swapped out again; 0 only if
 * no policy has wanted it yet. The life that ends counts. If the page is read
 * again before that, what this returned the first time is superseded.
 */
u8 zse_past(struct zse_engine *e, u32 slot, u32 block)
{
	const u8 *pasts = smp_load_acquire(&e->past);
	u32 life, random;
	u8 past;

	if (!pasts)
		return 0;
	past = READ_ONCE(pasts[slot]);
	life = zse_block_life(e, block);
	random = random_bits(e, slot);
	compare(e, past, life, random);
	return past_add(e, past, life, random);
}

/**
 * zse_usual_life() - what the past of a page says
 * @e:	  engine
 * @past: from zse_past(), or 0
 *
 * Return: blocks swapped out while the page was on the device, on average over
 * its lives, at most twice the blocks of the device; ZNSAGE_NONE if @past is 0.
 */
u32 zse_usual_life(const struct zse_engine *e, u8 past)
{
	u64 life = (u64)mean_of(past % LEVELS) * unit(e);

	if (!life)
		return ZNSAGE_NONE;
	return life < ZNSAGE_NONE ? (u32)life : ZNSAGE_NONE - 1;
}
