// SPDX-License-Identifier: GPL-2.0
/*
 * Encryption of what is swapped out: AES-XTS by the kernel's crypto API, with a
 * random key of 512 bits for each attach that is in no file and on no disk.
 * docs/privacy.md says what that is good for, and what not.
 *
 * Each page is for itself, and its tweak is its slot. So GC moves ciphertext as
 * it is and needs neither key nor time for that, and who reads a slot knows all
 * that it takes. (The block layer's inline encryption will not do: it numbers
 * the pages of a bio one after the other, and those of a chunk have any slots.)
 *
 * Out: a chunk is encrypted once, by who takes it from its stream, into pages
 * that it has for that since attach. Appends that are made in parts, or again,
 * write these. In: the page that was read into is decrypted before its bio ends.
 * Where a read ends, in interrupt context, a CPU's AES instructions may not be
 * used; a workqueue does it, with a work item that comes with the read. Nothing
 * here allocates memory once the device is attached.
 *
 * The cipher is asynchronous by name: on x86, 6.1 to 6.12, those that use the
 * CPU's instructions for more than 16 bytes at a time are. Asked in process
 * context, as here, they answer at once. Those that would allocate memory for a
 * request, or need a device, are not taken.
 */
#include <linux/bio.h>
#include <linux/crypto.h>
#include <linux/kmod.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <crypto/skcipher.h>

#include "znsage.h"

const char *const znsage_encrypt_names[ZNSAGE_NR_ENCRYPTS] = {
	[ZNSAGE_ENCRYPT_OFF] = "off",
	[ZNSAGE_ENCRYPT_AES_XTS] = "aes-xts",
};

#if IS_ENABLED(CONFIG_CRYPTO_SKCIPHER)

MODULE_SOFTDEP("pre: aes xts");

#define CIPHER		"xts(aes)"
#define NOT_TAKEN	(CRYPTO_ALG_ALLOCATES_MEMORY | CRYPTO_ALG_KERN_DRIVER_ONLY)
/* Two keys of AES-256. */
#define KEY_BYTES	64
#define TWEAK_BYTES	16

/**
 * struct znsage_cipher - what it takes to encrypt a page, one for each CPU
 * @lock:  its user may sleep, and go on elsewhere
 * @req:   request
 * @from:  the page
 * @to:    where it goes, which may be itself
 * @tweak: its slot; aligned as ciphers like it, or they would copy it
 */
struct znsage_cipher {
	struct mutex lock;
	struct skcipher_request *req;
	struct scatterlist from;
	struct scatterlist to;
	u8 tweak[TWEAK_BYTES] __aligned(TWEAK_BYTES);
};

/**
 * struct znsage_crypt - of a device that encrypts
 * @tfm:     the key, expanded
 * @ciphers: for each CPU
 */
struct znsage_crypt {
	struct crypto_skcipher *tfm;
	struct znsage_cipher __percpu *ciphers;
};

static struct znsage_cipher *cipher_get(struct znsage_crypt *crypt)
{
	struct znsage_cipher *c = raw_cpu_ptr(crypt->ciphers);

	mutex_lock(&c->lock);
	return c;
}

static void cipher_put(struct znsage_cipher *c)
{
	mutex_unlock(&c->lock);
}

/* Encrypt or decrypt the page of a slot. Returns 0 or an errno. */
static int cipher_page(struct znsage_cipher *c, struct page *from,
		       struct page *to, u32 slot, bool encrypt)
{
	struct scatterlist *sg_to = from == to ? &c->from : &c->to;
	DECLARE_CRYPTO_WAIT(wait);
	__le64 tweak[] = { cpu_to_le64(slot), 0 };

	BUILD_BUG_ON(sizeof(tweak) != TWEAK_BYTES);
	memcpy(c->tweak, tweak, sizeof(tweak));
	sg_init_table(&c->from, 1);
	sg_set_page(&c->from, from, PAGE_SIZE, 0);
	sg_init_table(&c->to, 1);
	sg_set_page(&c->to, to, PAGE_SIZE, 0);
	/* It may not sleep: with that it could wait for memory. */
	skcipher_request_set_callback(c->req, CRYPTO_TFM_REQ_MAY_BACKLOG,
				      crypto_req_done, &wait);
	skcipher_request_set_crypt(c->req, &c->from, sg_to, PAGE_SIZE,
				   c->tweak);
	return crypto_wait_req(encrypt ? crypto_skcipher_encrypt(c->req) :
			       crypto_skcipher_decrypt(c->req), &wait);
}

/**
 * znsage_encrypt() - encrypt the pages of a chunk into those that it has for it
 * @zc: chunk of swap-out; the caller's, not appended yet
 *
 * Context: process; may sleep, but not for memory or I/O.
 * Return: 0 or an errno; then nothing of the chunk may be appended.
 */
int znsage_encrypt(struct znsage_chunk *zc)
{
	const struct zse_chunk *core = zc->core;
	struct znsage_cipher *c;
	int err = 0;
	u32 i;

	for (i = 0; i < core->nr && !err; i++) {
		const struct zse_entry *entry = &core->entries[i];

		c = cipher_get(zc->zd->crypt);
		err = cipher_page(c, zc->pages[entry->page],
				  zc->encrypted[entry->page], entry->slot, true);
		cipher_put(c);
		cond_resched();
	}
	if (err)
		pr_err_ratelimited("znsage: %s: swap-out of %u pages failed: they cannot be encrypted (%d)\n",
				   zc->zd->name, core->nr, err);
	return err;
}

/* Whole pages only, as for swap-out: so nothing has to be put together. */
static int decrypt_at(struct znsage_cipher *c, struct bio *bio,
		      struct bvec_iter iter)
{
	struct bio_vec bv = bio_iter_iovec(bio, iter);
	u32 slot = iter.bi_sector / ZNSAGE_PAGE_SECTORS;

	if (bv.bv_len != PAGE_SIZE)
		return -EOPNOTSUPP;
	return cipher_page(c, bv.bv_page, bv.bv_page, slot, false);
}

/**
 * znsage_decrypt() - decrypt pages that were read, in place
 * @zd:	  device that encrypts
 * @bio:  whose pages they are
 * @iter: the first of them, by its slot's sector
 * @nr:	  how many
 *
 * Context: process; may sleep, but not for memory or I/O.
 * Return: BLK_STS_OK, or BLK_STS_IOERR if the cipher failed or a page is in
 * pieces.
 */
blk_status_t znsage_decrypt(struct znsage_device *zd, struct bio *bio,
			    struct bvec_iter iter, u32 nr)
{
	struct znsage_cipher *c;
	int err = 0;

	while (nr-- && !err) {
		c = cipher_get(zd->crypt);
		err = decrypt_at(c, bio, iter);
		cipher_put(c);
		bio_advance_iter(bio, &iter, PAGE_SIZE);
		cond_resched();
	}
	if (!err)
		return BLK_STS_OK;
	pr_err_ratelimited("znsage: %s: a page cannot be decrypted (%d)\n",
			   zd->name, err);
	return BLK_STS_IOERR;
}

static int ciphers_alloc(struct znsage_crypt *crypt)
{
	int cpu;

	crypt->ciphers = alloc_percpu(struct znsage_cipher);
	if (!crypt->ciphers)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct znsage_cipher *c = per_cpu_ptr(crypt->ciphers, cpu);

		mutex_init(&c->lock);
		c->req = skcipher_request_alloc(crypt->tfm, GFP_KERNEL);
		if (!c->req)
			return -ENOMEM;
	}
	return 0;
}

static void ciphers_free(struct znsage_crypt *crypt)
{
	int cpu;

	if (!crypt->ciphers)
		return;
	for_each_possible_cpu(cpu)
		skcipher_request_free(per_cpu_ptr(crypt->ciphers, cpu)->req);
	free_percpu(crypt->ciphers);
}

/* The key is nowhere but in @tfm from here on. */
static int set_random_key(struct crypto_skcipher *tfm)
{
	u8 key[KEY_BYTES];
	int err = get_random_bytes_wait(key, sizeof(key));

	if (!err)
		err = crypto_skcipher_setkey(tfm, key, sizeof(key));
	memzero_explicit(key, sizeof(key));
	return err;
}

/*
 * What uses the CPU's instructions registers under the whole name, but is only
 * looked for by the name of its part. Without that the first to ask would get
 * what can be put together from what happens to be loaded.
 */
static struct crypto_skcipher *find_cipher(const char *name)
{
	struct crypto_skcipher *tfm;

	request_module("crypto-aes");
	tfm = crypto_alloc_skcipher(CIPHER, 0, NOT_TAKEN);
	if (!IS_ERR(tfm))
		return tfm;
	znsage_err(name, "the kernel offers no %s to encrypt with (%ld)",
		   CIPHER, PTR_ERR(tfm));
	return PTR_ERR(tfm) == -ENOMEM ? tfm : ERR_PTR(-ENOPKG);
}

/**
 * znsage_crypt_start() - make a key and all that it takes to use it
 * @zd:	  device that is being built
 * @mode: how to encrypt
 *
 * Context: sleeps; may load modules, and waits for the kernel's random numbers
 * to be good after boot.
 * Return: 0 or an errno, and then the log says why; -ENOPKG if the kernel lacks
 * the cipher. znsage_crypt_end() is due in any case.
 */
int znsage_crypt_start(struct znsage_device *zd, enum znsage_encrypt mode)
{
	struct znsage_crypt *crypt;
	struct crypto_skcipher *tfm;
	int err;

	if (mode == ZNSAGE_ENCRYPT_OFF)
		return 0;
	crypt = kzalloc(sizeof(*crypt), GFP_KERNEL);
	if (!crypt)
		return -ENOMEM;
	zd->crypt = crypt;
	tfm = find_cipher(zd->name);
	if (IS_ERR(tfm))
		return PTR_ERR(tfm);
	crypt->tfm = tfm;
	err = set_random_key(tfm);
	if (err) {
		znsage_err(zd->name, "no key to encrypt with (%d)", err);
		return err;
	}
	err = ciphers_alloc(crypt);
	if (err)
		return err;
	znsage_info(zd->name, "pages are encrypted by %s",
		    crypto_skcipher_driver_name(tfm));
	return 0;
}

/* Forget the key. Accepts what znsage_crypt_start() left half done. */
void znsage_crypt_end(struct znsage_device *zd)
{
	struct znsage_crypt *crypt = zd->crypt;

	if (!crypt)
		return;
	ciphers_free(crypt);
	/* It overwrites the expanded key. */
	crypto_free_skcipher(crypt->tfm);
	kfree(crypt);
	zd->crypt = NULL;
}

#else /* CONFIG_CRYPTO_SKCIPHER */

int znsage_crypt_start(struct znsage_device *zd, enum znsage_encrypt mode)
{
	if (mode == ZNSAGE_ENCRYPT_OFF)
		return 0;
	znsage_err(zd->name, "the kernel was built without ciphers to encrypt with");
	return -ENOPKG;
}

void znsage_crypt_end(struct znsage_device *zd)
{
}

/* Not called: no device encrypts. */
int znsage_encrypt(struct znsage_chunk *zc)
{
	return -ENOPKG;
}

blk_status_t znsage_decrypt(struct znsage_device *zd, struct bio *bio,
			    struct bvec_iter iter, u32 nr)
{
	return BLK_STS_IOERR;
}

#endif
