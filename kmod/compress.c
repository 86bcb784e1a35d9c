// SPDX-License-Identifier: GPL-2.0
/*
 * Compression of pages, by the kernel's lz4 or zstd. Each page
 * becomes a record: a header, then the compressed page, or the page as it is if
 * compression gains nothing. Swap-in needs only the record, and GC moves
 * records as they are. With encryption, what follows the header is ciphertext.
 *
 * The header begins with the slot, where GC looks for it (engine/packed.c), and
 * has a checksum, which turns corruption on the way into an I/O error. It names
 * the algorithm, which may change while the device runs. The memory of an
 * algorithm once used stays until detach, for its records.
 *
 * Each CPU has memory for an algorithm. Attach allocates it; I/O allocates
 * nothing.
 */
#include <linux/bitmap.h>
#include <linux/cpumask.h>
#include <linux/highmem.h>
#include <linux/slab.h>
#include <linux/xxhash.h>

#include "znsage.h"

const char *const znsage_compress_names[ZNSAGE_NR_COMPRESS] = {
	[ZNSAGE_COMPRESS_OFF] = "off",
	[ZNSAGE_COMPRESS_LZ4] = "lz4",
	[ZNSAGE_COMPRESS_ZSTD] = "zstd",
};

/* The header. */
struct record {
	__le32 slot;
	__le16 bytes;	/* see record_bytes() */
	__le16 how;	/* enum znsage_compress */
	__le32 sum;	/* of the fields before, and of what follows */
};

/* Bytes of the page; PAGE_SIZE: as it is. 0 stands for 64 KiB. */
static u32 record_bytes(const struct record *r)
{
	BUILD_BUG_ON(PAGE_SIZE > U16_MAX + 1);
	return le16_to_cpu(r->bytes) ?: PAGE_SIZE;
}

/* State to compress a page, one for each CPU. */
struct cpu_compressor {
	struct mutex lock;		/* the user may sleep and migrate */
	bool grew;			/* the last page did not shrink */
	u8 *plain;			/* a page before encryption, aligned */
	/* Memory of each algorithm; NULL if it was never chosen. */
	void *work[ZNSAGE_NR_COMPRESS];
};

/* How a device compresses. */
struct znsage_compressor {
	/* Of new records; stored with release when @cpus have it. */
	enum znsage_compress how;
	struct mutex lock;		/* held while @how changes */
	struct cpu_compressor __percpu *cpus;
};

/*
 * Every kernel that has zstd has xxHash, which is as quick as memory. Up to
 * 6.13, crc32c is slower without the crypto API, and in a module of its own.
 */
static u32 record_sum(const struct record *r, const void *page, u32 bytes)
{
	u64 seed = (u64)le32_to_cpu(r->slot) << 32 |
		   (u32)le16_to_cpu(r->bytes) << 16 | le16_to_cpu(r->how);

	return (u32)xxh64(page, bytes, seed);
}

/* Bytes after the header: those of the page, or more if it is encrypted. */
static u32 stored_bytes(const struct znsage_device *zd, u32 bytes)
{
	if (zd->crypt && bytes < ZNSAGE_CRYPT_LEAST)
		return ZNSAGE_CRYPT_LEAST;
	return bytes;
}

/*
 * Bytes of a sample, and how many different ones noise has: 57 on average, and
 * with a standard deviation of 2. Text has some 30.
 */
#define SAMPLE		64
#define NOISE		50

/* Does the page look as if it were compressed or encrypted already? */
static bool looks_random(struct page *page)
{
	const u8 *bytes = kmap_local_page(page);
	DECLARE_BITMAP(seen, U8_MAX + 1) = { };
	u32 i;

	/* Not the same byte of each word: words may be numbers or pointers. */
	for (i = 0; i < SAMPLE; i++)
		__set_bit(bytes[i * (PAGE_SIZE / SAMPLE) + i % sizeof(u64)],
			  seen);
	kunmap_local(bytes);
	return bitmap_weight(seen, U8_MAX + 1) >= NOISE;
}

/*
 * Compress the page to @to, so that at least a block is won. Returns the number
 * of bytes; PAGE_SIZE, and nothing of use there, if @how is off or that fails.
 * Pages that do not shrink come in runs: after one, a page that looks the same
 * is not tried. With the compressor's lock.
 */
static u32 shrink(struct znsage_device *zd, struct cpu_compressor *c,
		  enum znsage_compress how, struct page *page, void *to)
{
	u32 most = PAGE_SIZE - PAGE_SIZE / zd->page_blocks -
		   sizeof(struct record);
	const void *from;
	int got;

	if (how == ZNSAGE_COMPRESS_OFF || (c->grew && looks_random(page)))
		return PAGE_SIZE;
	from = kmap_local_page(page);
	got = znsage_algorithms[how].compress(c->work[how], to, most, from);
	kunmap_local(from);
	c->grew = got <= 0;
	return c->grew ? PAGE_SIZE : got;
}

/**
 * znsage_compress() - make the record of a page
 * @zd:	    device that compresses
 * @page:   page
 * @slot:   its slot
 * @to:	    where; has room for a record of a page as it is
 * @blocks: set to the blocks of the engine that the record takes, whose rest is
 *	    zero, even after an error
 *
 * Context: process; may sleep, but not for memory or I/O.
 * Return: 0, or an errno if the page could not be encrypted.
 */
int znsage_compress(struct znsage_device *zd, struct page *page, u32 slot,
		    void *to, u32 *blocks)
{
	/* Pairs with znsage_compress_set(). */
	enum znsage_compress how = smp_load_acquire(&zd->compressor->how);
	struct cpu_compressor *c = raw_cpu_ptr(zd->compressor->cpus);
	u32 block = PAGE_SIZE / zd->page_blocks, bytes, stored;
	struct record *r = to;
	u8 *data = zd->crypt ? c->plain : (u8 *)(r + 1);
	int err = 0;

	mutex_lock(&c->lock);
	bytes = shrink(zd, c, how, page, data);
	stored = stored_bytes(zd, bytes);
	if (bytes == PAGE_SIZE)
		memcpy_from_page(data, page, 0, PAGE_SIZE);
	if (zd->crypt) {
		memset(data + bytes, 0, stored - bytes);
		err = znsage_crypt_bytes(zd, data, stored, slot, true);
		memcpy(r + 1, data, stored);
	}
	mutex_unlock(&c->lock);
	*r = (struct record){
		.slot = cpu_to_le32(slot),
		.bytes = cpu_to_le16(bytes),
		.how = cpu_to_le16(how),
	};
	r->sum = cpu_to_le32(record_sum(r, r + 1, stored));
	*blocks = max_t(u32, DIV_ROUND_UP(sizeof(*r) + stored, block),
			zd->page_blocks / ZSE_LEAST_PART);
	memset((u8 *)(r + 1) + stored, 0,
	       *blocks * block - sizeof(*r) - stored);
	cond_resched();
	return err;
}

/* Is what was read the record of @slot? */
static bool is_record(const struct znsage_device *zd, const struct record *r,
		      u32 room, u32 slot)
{
	u32 bytes = record_bytes(r), stored = stored_bytes(zd, bytes);

	return le32_to_cpu(r->slot) == slot && bytes <= PAGE_SIZE &&
	       sizeof(*r) + stored <= room &&
	       le32_to_cpu(r->sum) == record_sum(r, r + 1, stored);
}

/*
 * Decompress @bytes at @from, made by @how, to @page. With the compressor's
 * lock, unless the algorithm is quick. Returns 0, or -EIO.
 */
static int expand(const struct cpu_compressor *c, u32 how, const void *from,
		  u32 bytes, struct page *page)
{
	void *to;
	int got;

	if (bytes == PAGE_SIZE) {
		memcpy_to_page(page, 0, from, PAGE_SIZE);
		return 0;
	}
	if (how >= ZNSAGE_NR_COMPRESS || !c->work[how])
		return -EIO;
	to = kmap_local_page(page);
	got = znsage_algorithms[how].decompress(c->work[how], to, from,
						bytes);
	kunmap_local(to);
	return got == PAGE_SIZE ? 0 : -EIO;
}

/**
 * znsage_decompress_needs_task() - must a task get the page out of a record?
 * @zd:	  device that compresses
 * @from: what should be the record; znsage_decompress() tells if it is one
 *
 * A switch to a task costs more than lz4 takes for a page.
 *
 * Context: any. Return: false: znsage_decompress() does not sleep.
 */
bool znsage_decompress_needs_task(const struct znsage_device *zd,
				  const void *from)
{
	const struct record *r = from;
	u32 how = le16_to_cpu(r->how);

	if (zd->crypt)
		return true;
	return record_bytes(r) < PAGE_SIZE && how < ZNSAGE_NR_COMPRESS &&
	       !znsage_algorithms[how].quick;
}

/**
 * znsage_decompress() - get the page out of a record
 * @zd:	  device that compresses
 * @from: record, in the kernel's direct map
 * @room: bytes that were read
 * @slot: whose record it must be
 * @page: gets the page; after an error, its contents are undefined
 *
 * Context: process; may sleep, but not for memory or I/O. Any if not
 * znsage_decompress_needs_task().
 * Return: 0, or -EIO if it is not the record of the slot.
 */
int znsage_decompress(struct znsage_device *zd, const void *from, u32 room,
		      u32 slot, struct page *page)
{
	struct cpu_compressor *c = raw_cpu_ptr(zd->compressor->cpus);
	const struct record *r = from;
	u32 how = le16_to_cpu(r->how), bytes = record_bytes(r), stored;
	int err = 0;

	if (!is_record(zd, r, room, slot))
		return -EIO;
	if (!znsage_decompress_needs_task(zd, r))
		return expand(c, how, r + 1, bytes, page);
	stored = stored_bytes(zd, bytes);
	mutex_lock(&c->lock);
	if (zd->crypt) {
		/*
		 * Where a record ends up is not aligned. Some ciphers need
		 * that, and the crypto API then allocates memory for a copy.
		 */
		memcpy(c->plain, r + 1, stored);
		err = znsage_crypt_bytes(zd, c->plain, stored, slot, false);
	}
	if (!err)
		err = expand(c, how, zd->crypt ? c->plain : (void *)(r + 1),
			     bytes, page);
	mutex_unlock(&c->lock);
	return err;
}

static void remove_all(struct znsage_compressor *zc, enum znsage_compress how)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct cpu_compressor *c = per_cpu_ptr(zc->cpus, cpu);

		kvfree(c->work[how]);
		c->work[how] = NULL;
	}
}

/* Give each CPU the memory of an algorithm that is new, or none. */
static int add_all(struct znsage_compressor *zc, enum znsage_compress how)
{
	const struct znsage_algorithm *a = &znsage_algorithms[how];
	int cpu;

	if (!a->compress)
		return -ENOPKG;
	for_each_possible_cpu(cpu) {
		void *work = kvmalloc_node(a->work_bytes(), GFP_KERNEL,
					   cpu_to_node(cpu));

		per_cpu_ptr(zc->cpus, cpu)->work[how] = work;
		if (!work || (a->begin && !a->begin(work))) {
			remove_all(zc, how);
			return -ENOMEM;
		}
	}
	return 0;
}

/**
 * znsage_compress_set() - compress by another algorithm from now on
 * @zd:	 device
 * @how: algorithm, or ZNSAGE_COMPRESS_OFF: store pages as they are
 *
 * Context: sleeps.
 * Return: 0, or an errno with a message: -EOPNOTSUPP if the device was attached
 * without compression.
 */
int znsage_compress_set(struct znsage_device *zd, enum znsage_compress how)
{
	struct znsage_compressor *zc = zd->compressor;
	int err = 0;

	if (!zc) {
		if (how == ZNSAGE_COMPRESS_OFF)
			return 0;
		znsage_err(zd->name, "compression can only be enabled at attach: power off, set compress, power on");
		return -EOPNOTSUPP;
	}
	mutex_lock(&zc->lock);
	/* All CPUs have it, or none. */
	if (how != ZNSAGE_COMPRESS_OFF &&
	    !per_cpu_ptr(zc->cpus, cpumask_first(cpu_possible_mask))->work[how])
		err = add_all(zc, how);
	if (!err) {
		/* Pairs with znsage_compress(), which uses its compressors. */
		smp_store_release(&zc->how, how);
	}
	mutex_unlock(&zc->lock);
	if (!err || err == -ENOMEM)
		return err;
	znsage_err(zd->name, "the kernel cannot compress by %s",
		   znsage_compress_names[how]);
	return err;
}

/*
 * Make the compressors of a device that is being attached. The caller calls
 * znsage_compress_end() even after an error. Context and return: as
 * znsage_compress_set().
 */
int znsage_compress_start(struct znsage_device *zd, enum znsage_compress how)
{
	struct cpu_compressor *c;
	int cpu;

	if (how == ZNSAGE_COMPRESS_OFF)
		return 0;
	/* Map entries then have 64 bits, which a CPU must read at once. */
	if (!IS_ENABLED(CONFIG_64BIT)) {
		znsage_err(zd->name, "compression needs a 64-bit kernel");
		return -EOPNOTSUPP;
	}
	zd->compressor = kzalloc(sizeof(*zd->compressor), GFP_KERNEL);
	if (!zd->compressor)
		return -ENOMEM;
	mutex_init(&zd->compressor->lock);
	zd->compressor->cpus = alloc_percpu(struct cpu_compressor);
	if (!zd->compressor->cpus)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		c = per_cpu_ptr(zd->compressor->cpus, cpu);
		mutex_init(&c->lock);
		c->plain = zd->crypt ? kmalloc_node(PAGE_SIZE, GFP_KERNEL,
						    cpu_to_node(cpu)) : NULL;
		if (zd->crypt && !c->plain)
			return -ENOMEM;
	}
	return znsage_compress_set(zd, how);
}

/* How the device compresses, for people. */
const char *znsage_compress_name(const struct znsage_device *zd)
{
	return znsage_compress_names[zd->compressor ?
				     READ_ONCE(zd->compressor->how) :
				     ZNSAGE_COMPRESS_OFF];
}

void znsage_compress_end(struct znsage_device *zd)
{
	struct znsage_compressor *zc = zd->compressor;
	int cpu, how;

	if (!zc)
		return;
	for (how = 0; zc->cpus && how < ZNSAGE_NR_COMPRESS; how++)
		remove_all(zc, how);
	for_each_possible_cpu(cpu)
		if (zc->cpus)
			kfree(per_cpu_ptr(zc->cpus, cpu)->plain);
	free_percpu(zc->cpus);
	kfree(zc);
	zd->compressor = NULL;
}
