// SPDX-License-Identifier: GPL-2.0
/*
 * Streams for keys. As long as there are streams, pages of one key share zones
 * with no other key.
 *
 * The table has a word for each key: a 58-bit hash above the stream's number.
 * It is read without a lock; a word is either right or absent. Among 1,000
 * keys, two have the same hash with a probability of 2^-39 and then share a
 * stream.
 *
 * A key that is not in the table gets a stream under the engine lock: a stream
 * without keys; else one whose keys wrote nothing for so long that most of
 * their pages are stale or cold; else the stream that recently got the fewest
 * pages, shared with other keys. The table has several times as many entries as
 * there are streams. So most keys that share a stream keep sharing it with the
 * same keys. A key that finds no free or silent entry in its part of the table
 * gets a stream by its hash, always the same one, and takes no lock.
 */
#include "api.h"

#define WAYS		4
#define BUCKETS		(ZSE_KEYS / WAYS)
#define STREAM_BITS	6	/* ZSE_MAX_STREAMS */
#define STREAM_MASK	((1ULL << STREAM_BITS) - 1)

/* Drop a silent key when 1/SILENT_SHARE of the device was swapped out since. */
#define SILENT_SHARE	4

/* Multiplicative hashing with 2^64 / golden ratio (Knuth, TAOCP 3, 6.4). */
static u64 key_hash(u64 key)
{
	key *= 0x9e3779b97f4a7c15ULL;
	return key ^ key >> 32;
}

/* The word of a key in stream 0; never 0, which marks a free entry. */
static u64 key_word(u64 key)
{
	u64 word = key_hash(key) & ~STREAM_MASK;

	return word ? word : STREAM_MASK + 1;
}

static struct zse_key *key_bucket(struct zse_engine *e, u64 word)
{
	return &e->placement.keys[(u32)(word >> 32) % BUCKETS * WAYS];
}

static struct zse_key *key_find(struct zse_engine *e, u64 word, u32 *stream)
{
	struct zse_key *k = key_bucket(e, word);
	u32 i;

	for (i = 0; i < WAYS; i++) {
		u64 found = READ_ONCE(k[i].word);

		if ((found & ~STREAM_MASK) != word)
			continue;
		*stream = found & STREAM_MASK;
		return &k[i];
	}
	return NULL;
}

static u32 blocks_since(const struct zse_engine *e, const struct zse_key *k)
{
	return (u32)READ_ONCE(e->clock) - READ_ONCE(k->used);
}

static u32 silent_blocks(const struct zse_engine *e)
{
	return (u32)(READ_ONCE(e->usable_blocks) / SILENT_SHARE);
}

/* May a new key not replace any of the keys in its part of the table? */
static bool bucket_is_full(struct zse_engine *e, u64 word)
{
	const struct zse_key *bucket = key_bucket(e, word);
	u32 i;

	for (i = 0; i < WAYS; i++)
		if (!READ_ONCE(bucket[i].word) ||
		    blocks_since(e, &bucket[i]) > silent_blocks(e))
			return false;
	return true;
}

/* The stream of a key that is not in the table. */
static u32 hashed_stream(struct zse_engine *e, u64 word)
{
	u32 nr = READ_ONCE(e->placement.nr_streams);
	u32 stream = (word >> 32) * nr >> 32;
	struct zse_stream *st = &e->streams[stream];

	if (!READ_ONCE(st->mixed))
		WRITE_ONCE(st->mixed, true);
	return stream;
}

static void key_drop(struct zse_engine *e, struct zse_key *k)
{
	struct zse_stream *st;

	if (!k->word)
		return;
	st = &e->streams[k->word & STREAM_MASK];
	WRITE_ONCE(st->nr_keys, st->nr_keys - 1);
	e->placement.nr_keys--;
	WRITE_ONCE(k->word, 0);
}

static void keys_drop_silent(struct zse_engine *e)
{
	u32 silent = silent_blocks(e), i;

	for (i = 0; i < ZSE_KEYS; i++) {
		struct zse_key *k = &e->placement.keys[i];

		if (k->word && blocks_since(e, k) > silent)
			key_drop(e, k);
	}
}

/* A stream without keys; else the least used one if @share, or ZSE_NONE. */
static u32 key_stream(struct zse_engine *e, bool share)
{
	u32 best = 0, i;

	for (i = 0; i < e->placement.nr_streams; i++) {
		if (!e->streams[i].nr_keys)
			return i;
		if (e->streams[i].recent < e->streams[best].recent)
			best = i;
	}
	return share ? best : ZSE_NONE;
}

static u32 key_assign(struct zse_engine *e, u64 key, u64 word)
{
	struct zse_key *bucket = key_bucket(e, word), *k = bucket;
	struct zse_stream *st;
	u32 stream, i;

	for (i = 1; i < WAYS && k->word; i++)
		if (!bucket[i].word ||
		    blocks_since(e, &bucket[i]) > blocks_since(e, k))
			k = &bucket[i];
	key_drop(e, k);
	stream = key_stream(e, false);
	if (stream == ZSE_NONE) {
		keys_drop_silent(e);
		stream = key_stream(e, true);
	}
	st = &e->streams[stream];
	WRITE_ONCE(st->mixed, st->nr_keys > 0);
	WRITE_ONCE(st->key, key);
	WRITE_ONCE(st->nr_keys, st->nr_keys + 1);
	e->placement.nr_keys++;
	WRITE_ONCE(k->used, (u32)e->clock);
	WRITE_ONCE(k->word, word | stream);
	return stream;
}

u32 znsage_stream_of(struct zse_engine *e, u64 key)
{
	u64 word = key_word(key);
	unsigned long flags;
	struct zse_key *k;
	u32 stream;

	k = key_find(e, word, &stream);
	if (!k && bucket_is_full(e, word)) {
		stream = hashed_stream(e, word);
	} else if (!k) {
		spin_lock_irqsave(&e->lock, flags);
		k = key_find(e, word, &stream);
		if (!k)
			stream = key_assign(e, key, word);
		spin_unlock_irqrestore(&e->lock, flags);
	} else if (blocks_since(e, k)) {
		WRITE_ONCE(k->used, (u32)READ_ONCE(e->clock));
	}
	return stream;
}

/* Number of keys that share their stream. With the engine lock. */
u32 keys_sharing(const struct zse_engine *e)
{
	u32 nr = 0, i;

	lockdep_assert_held(&e->lock);
	for (i = 0; i < e->max_streams; i++)
		if (e->streams[i].nr_keys > 1)
			nr += e->streams[i].nr_keys;
	return nr;
}

/* Forget all keys, since the policy changes. With the engine lock. */
void keys_clear(struct zse_engine *e)
{
	u32 i;

	lockdep_assert_held(&e->lock);
	for (i = 0; i < ZSE_KEYS; i++)
		key_drop(e, &e->placement.keys[i]);
	for (i = 0; i < e->max_streams; i++) {
		WRITE_ONCE(e->streams[i].key, 0);
		WRITE_ONCE(e->streams[i].mixed, false);
	}
}
