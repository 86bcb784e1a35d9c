// SPDX-License-Identifier: GPL-2.0
/*
 * Encryption of pages: AES-XTS by the kernel's crypto API, with a random key of
 * 512 bits for each attach, kept in memory only. docs/privacy.md says what that
 * protects from.
 *
 * Each page is encrypted by itself, with its slot as the tweak. So GC moves
 * ciphertext as it is, and a reader needs only the slot. (The block layer's
 * inline encryption numbers the pages of a bio in a row; those of a chunk have
 * any slots.)
 *
 * Out: whoever takes a chunk from its stream encrypts it once, into pages that
 * it has since attach. Appends in parts, and again, carry these. In: a page is
 * decrypted in place before its bio ends, by a workqueue, since reads end in
 * interrupt context, where a CPU's AES instructions may not be used. The work
 * item is part of the read: nothing here allocates after attach.
 *
 * The cipher is called asynchronous: on x86, 6.1 to 6.12, those that use AES
 * instructions for more than 16 bytes at a time are. In process context they
 * answer at once. Ciphers that allocate memory for a request, or need a device,
 * are not taken.
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

/* What it takes to encrypt a page, one for each CPU. */
struct znsage_cipher {
	struct mutex lock;		/* its user may sleep and migrate */
	struct skcipher_request *req;
	struct scatterlist from;
	struct scatterlist to;
	u8 tweak[TWEAK_BYTES] __aligned(TWEAK_BYTES);	/* or it is copied */
};

struct znsage_crypt {
	struct crypto_skcipher *tfm;	/* the expanded key */
	struct znsage_cipher __percpu *ciphers;
};

/* Encrypt or decrypt the page of a slot. Returns 0 or an errno. */
static int cipher_page(struct znsage_crypt *crypt, struct page *from,
		       struct page *to, u32 slot, bool encrypt)
{
	struct znsage_cipher *c = raw_cpu_ptr(crypt->ciphers);
	struct scatterlist *sg_to = from == to ? &c->from : &c->to;
	DECLARE_CRYPTO_WAIT(wait);
	__le64 tweak[] = { cpu_to_le64(slot), 0 };
	int err;

	BUILD_BUG_ON(sizeof(tweak) != TWEAK_BYTES);
	mutex_lock(&c->lock);
	memcpy(c->tweak, tweak, sizeof(tweak));
	sg_init_table(&c->from, 1);
	sg_set_page(&c->from, from, PAGE_SIZE, 0);
	sg_init_table(&c->to, 1);
	sg_set_page(&c->to, to, PAGE_SIZE, 0);
	/* Without MAY_SLEEP: it could wait for memory. */
	skcipher_request_set_callback(c->req, CRYPTO_TFM_REQ_MAY_BACKLOG,
				      crypto_req_done, &wait);
	skcipher_request_set_crypt(c->req, &c->from, sg_to, PAGE_SIZE,
				   c->tweak);
	err = crypto_wait_req(encrypt ? crypto_skcipher_encrypt(c->req) :
			      crypto_skcipher_decrypt(c->req), &wait);
	mutex_unlock(&c->lock);
	cond_resched();
	return err;
}

/*
 * Encrypt a chunk of swap-out. On an error the chunk must not be appended.
 * Context: process; may sleep, but not for memory or I/O.
 */
int znsage_encrypt(struct znsage_chunk *zc)
{
	const struct zse_chunk *core = zc->core;
	int err = 0;
	u32 i;

	for (i = 0; i < core->nr && !err; i++) {
		const struct zse_entry *entry = &core->entries[i];

		err = cipher_page(zc->zd->crypt, zc->pages[entry->page],
				  zc->encrypted[entry->page], entry->slot, true);
	}
	if (err)
		pr_err_ratelimited("znsage: %s: swap-out of %u pages failed: they cannot be encrypted (%d)\n",
				   zc->zd->name, core->nr, err);
	return err;
}

/**
 * znsage_decrypt() - decrypt pages that were read, in place
 * @zd:	  device that encrypts
 * @bio:  whose pages they are; whole pages only, as for swap-out
 * @iter: the first of them, by its slot's sector
 * @nr:	  how many
 *
 * Context: process; may sleep, but not for memory or I/O.
 */
blk_status_t znsage_decrypt(struct znsage_device *zd, struct bio *bio,
			    struct bvec_iter iter, u32 nr)
{
	int err = 0;

	for (; nr && !err; nr--) {
		struct bio_vec bv = bio_iter_iovec(bio, iter);

		err = bv.bv_len != PAGE_SIZE ? -EOPNOTSUPP :
		      cipher_page(zd->crypt, bv.bv_page, bv.bv_page,
				  iter.bi_sector / ZNSAGE_PAGE_SECTORS, false);
		bio_advance_iter(bio, &iter, PAGE_SIZE);
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
 * The modules with AES instructions register the whole name, but are only
 * loaded by the name of the part. Without the request_module(), the first
 * caller would get a combination of what happens to be loaded.
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
 * znsage_crypt_start() - make a key and what it takes to use it
 * @zd:	  device that is being built
 * @mode: how to encrypt
 *
 * znsage_crypt_end() is due in any case.
 *
 * Context: sleeps; may load modules, and wait for good random numbers after
 * boot.
 * Return: 0 or an errno, with a message; -ENOPKG if the kernel lacks the
 * cipher.
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

/* Forget the key. */
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
