// SPDX-License-Identifier: GPL-2.0
/*
 * Compression of pages, by the kernel's crypto API (acomp). Each page becomes a
 * record: a header, then the compressed page, or the page as it is if
 * compression gains nothing. Swap-in needs only the record, and GC moves
 * records as they are. With encryption, what follows the header is ciphertext.
 *
 * The header begins with the slot, where GC looks for it (engine/packed.c), and
 * has a checksum, which turns corruption on the way into an I/O error. It names
 * the algorithm, which may change while the device runs. An algorithm once used
 * stays until detach, for its records.
 *
 * Each CPU has a compressor with room for a page that grows. Attach allocates
 * them; I/O allocates nothing. Asynchronous compressors, which work on a
 * device, may need memory and are not used.
 */
#include <linux/bitmap.h>
#include <linux/cpumask.h>
#include <linux/crypto.h>
#include <linux/highmem.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/xxhash.h>
#include <crypto/acompress.h>

#include "znsage.h"

const char *const znsage_compress_names[ZNSAGE_NR_COMPRESS] = {
	[ZNSAGE_COMPRESS_OFF] = "off",
	[ZNSAGE_COMPRESS_LZ4] = "lz4",
	[ZNSAGE_COMPRESS_ZSTD] = "zstd",
};

MODULE_SOFTDEP("post: lz4 zstd");

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

/* Up to 6.8, a compressor may write twice as much as it is told. */
#define OUT_BYTES	(2 * PAGE_SIZE)

/* State to compress a page, one for each CPU. */
struct cpu_compressor {
	struct mutex lock;		/* the user may sleep and migrate */
	bool grew;			/* the last page did not shrink */
	u8 *out;			/* OUT_BYTES */
	/* Of each algorithm; NULL if it was never chosen. */
	struct crypto_acomp *tfm[ZNSAGE_NR_COMPRESS];
	struct acomp_req *req[ZNSAGE_NR_COMPRESS];
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

/*
 * Compress @page into @buffer, of @bytes, or decompress @bytes of @buffer to
 * it. Returns the number of bytes that come out, or an errno.
 */
static int run(struct acomp_req *req, struct page *page, const void *buffer,
	       u32 bytes, bool compress)
{
	struct scatterlist whole, packed;
	DECLARE_CRYPTO_WAIT(wait);
	int err;

	sg_init_table(&whole, 1);
	sg_set_page(&whole, page, PAGE_SIZE, 0);
	sg_init_one(&packed, buffer, bytes);
	acomp_request_set_callback(req, 0, crypto_req_done, &wait);
	if (compress)
		acomp_request_set_params(req, &whole, &packed, PAGE_SIZE,
					 PAGE_SIZE);
	else
		acomp_request_set_params(req, &packed, &whole, bytes,
					 PAGE_SIZE);
	err = crypto_wait_req(compress ? crypto_acomp_compress(req) :
			      crypto_acomp_decompress(req), &wait);
	return err ? err : (int)req->dlen;
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
 * Compress the page into c->out. Returns the number of bytes; PAGE_SIZE, and
 * nothing there, if @how is off or that gains nothing. Pages that do not shrink
 * come in runs: after one, a page that looks the same is not tried. With the
 * compressor's lock.
 */
static u32 shrink(struct znsage_device *zd, struct cpu_compressor *c,
		  enum znsage_compress how, struct page *page)
{
	u32 most = PAGE_SIZE - PAGE_SIZE / zd->page_blocks -
		   sizeof(struct record);
	int got;

	if (how == ZNSAGE_COMPRESS_OFF || (c->grew && looks_random(page)))
		return PAGE_SIZE;
	got = run(c->req[how], page, c->out, OUT_BYTES, true);
	c->grew = got <= 0 || got > most;
	if (c->grew)
		return PAGE_SIZE;
	memset(c->out + got, 0, ZNSAGE_CRYPT_LEAST);
	return got;
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
	int err = 0;

	mutex_lock(&c->lock);
	bytes = shrink(zd, c, how, page);
	stored = stored_bytes(zd, bytes);
	if (bytes == PAGE_SIZE)
		memcpy_from_page(zd->crypt ? c->out : (void *)(r + 1), page, 0,
				 PAGE_SIZE);
	if (zd->crypt)
		err = znsage_crypt_bytes(zd, c->out, stored, slot, true);
	if (zd->crypt || bytes < PAGE_SIZE)
		memcpy(r + 1, c->out, stored);
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
 * Decompress @bytes at @from, made by @how, to @page. Returns the number of
 * bytes there, or an errno. With the compressor's lock.
 */
static int expand(struct cpu_compressor *c, u32 how, const void *from,
		  u32 bytes, struct page *page)
{
	if (bytes == PAGE_SIZE) {
		memcpy_to_page(page, 0, from, PAGE_SIZE);
		return PAGE_SIZE;
	}
	if (how >= ZNSAGE_NR_COMPRESS || !c->req[how])
		return -EIO;
	return run(c->req[how], page, from, bytes, false);
}

/**
 * znsage_is_stored() - has a record the page as it is?
 * @zd:	  device that compresses
 * @from: what should be the record; znsage_decompress() tells if it is one
 *
 * Context: any. Return: true: znsage_decompress() does not sleep.
 */
bool znsage_is_stored(const struct znsage_device *zd, const void *from)
{
	return !zd->crypt && record_bytes(from) == PAGE_SIZE;
}

/**
 * znsage_decompress() - get the page out of a record
 * @zd:	  device that compresses
 * @from: record, in the kernel's direct map
 * @room: bytes that were read
 * @slot: whose record it must be
 * @page: gets the page; after an error, its contents are undefined
 *
 * Context: process; may sleep, but not for memory or I/O. Any if
 * znsage_is_stored().
 * Return: 0, or -EIO if it is not the record of the slot.
 */
int znsage_decompress(struct znsage_device *zd, const void *from, u32 room,
		      u32 slot, struct page *page)
{
	struct cpu_compressor *c = raw_cpu_ptr(zd->compressor->cpus);
	const struct record *r = from;
	const void *data = r + 1;
	u32 bytes, stored;
	int got = 0;

	if (!is_record(zd, r, room, slot))
		return -EIO;
	if (znsage_is_stored(zd, r)) {
		memcpy_to_page(page, 0, data, PAGE_SIZE);
		return 0;
	}
	bytes = record_bytes(r);
	stored = stored_bytes(zd, bytes);
	mutex_lock(&c->lock);
	if (zd->crypt) {
		/*
		 * Where a record ends up is not aligned. Some ciphers need
		 * that, and the crypto API then allocates memory for a copy.
		 */
		memcpy(c->out, data, stored);
		data = c->out;
		got = znsage_crypt_bytes(zd, c->out, stored, slot, false);
	}
	if (!got)
		got = expand(c, le16_to_cpu(r->how), data, bytes, page);
	mutex_unlock(&c->lock);
	cond_resched();
	return got == PAGE_SIZE ? 0 : -EIO;
}

static void remove_all(struct znsage_compressor *zc, enum znsage_compress how)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct cpu_compressor *c = per_cpu_ptr(zc->cpus, cpu);

		if (c->req[how])
			acomp_request_free(c->req[how]);
		if (c->tfm[how])
			crypto_free_acomp(c->tfm[how]);
		c->req[how] = NULL;
		c->tfm[how] = NULL;
	}
}

/* Make each CPU's compressor for an algorithm that is new, or none. */
static int add_all(struct znsage_compressor *zc, enum znsage_compress how)
{
	int cpu, err = 0;

	for_each_possible_cpu(cpu) {
		struct cpu_compressor *c = per_cpu_ptr(zc->cpus, cpu);
		struct crypto_acomp *tfm;

		tfm = crypto_alloc_acomp_node(znsage_compress_names[how], 0,
					      CRYPTO_ALG_ASYNC,
					      cpu_to_node(cpu));
		err = PTR_ERR_OR_ZERO(tfm);
		if (err)
			break;
		c->tfm[how] = tfm;
		c->req[how] = acomp_request_alloc(tfm);
		err = c->req[how] ? 0 : -ENOMEM;
		if (err)
			break;
	}
	if (err)
		remove_all(zc, how);
	return err;
}

/**
 * znsage_compress_set() - compress by another algorithm from now on
 * @zd:	 device
 * @how: algorithm, or ZNSAGE_COMPRESS_OFF: store pages as they are
 *
 * Context: sleeps; may load modules.
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
	    !per_cpu_ptr(zc->cpus, cpumask_first(cpu_possible_mask))->req[how])
		err = add_all(zc, how);
	if (!err) {
		/* Pairs with znsage_compress(), which uses its compressors. */
		smp_store_release(&zc->how, how);
	}
	mutex_unlock(&zc->lock);
	if (!err || err == -ENOMEM)
		return err;
	znsage_err(zd->name, "the kernel cannot compress by %s (%d)",
		   znsage_compress_names[how], err);
	return -ENOPKG;
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
		c->out = kmalloc_node(OUT_BYTES, GFP_KERNEL, cpu_to_node(cpu));
		if (!c->out)
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
			kfree(per_cpu_ptr(zc->cpus, cpu)->out);
	free_percpu(zc->cpus);
	kfree(zc);
	zd->compressor = NULL;
}
