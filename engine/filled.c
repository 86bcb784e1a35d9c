// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that repeat one word of 64 bits take no space on the device. Most of
 * them are zeros: their slots are empty. For others the forward map names a
 * word of a small table.
 *
 * A word enters the table with its first page, and stays: nothing counts its
 * slots. When the table has no room for a word, its pages are written like
 * others. Programs repeat few words (all ones, a colour, the poison of an
 * allocator), so the table holds those that matter if it holds the first ones.
 */
#include "map.h"

/* Places where a word may be, from the one that it hashes to. */
#define PLACES	8

/*
 * The forward map's value for @word, which is not 0, or ZSE_NONE. Several may
 * add words: a place changes once, from 0.
 */
static u32 value_of(struct zse_engine *e, u64 word)
{
	u32 hash = (u32)(word * 0x9e3779b97f4a7c15ULL >> 32), i;

	for (i = 0; i < PLACES; i++) {
		u32 at = (hash + i) % ZSE_WORDS;

		if (!atomic64_read(&e->words[at]))
			atomic64_cmpxchg(&e->words[at], 0, word);
		if ((u64)atomic64_read(&e->words[at]) == word)
			return ZSE_WORD_BASE + at;
	}
	return ZSE_NONE;
}

/**
 * zse_fill() - the kernel writes a page that repeats a word
 * @e:	  engine
 * @slot: below nr_slots; its old block becomes stale now
 * @word: the word, as it is in memory
 * @kick: set to true if zse_next_op() may have something new, else untouched
 *
 * Context: any; takes no lock.
 * Return: true: the page is stored. False: it is to be written like others.
 */
bool zse_fill(struct zse_engine *e, u32 slot, u64 word, bool *kick)
{
	u32 value;
	bool empty;

	if (word) {
		value = value_of(e, word);
		if (value == ZSE_NONE)
			return false;
		empty = map_write(e, slot, value);
	} else {
		empty = zse_free(e, slot);
	}
	if (empty)
		*kick = true;
	return true;
}

/* The word that a value of the forward map stands for; 0 for ZSE_NONE. */
u64 filled_word(const struct zse_engine *e, u32 value)
{
	return value == ZSE_NONE ? 0 : atomic64_read(&e->words[value -
							   ZSE_WORD_BASE]);
}
