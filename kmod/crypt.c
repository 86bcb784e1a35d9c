// SPDX-License-Identifier: GPL-2.0
/*
 * Encryption of pages: AES-XTS by the kernel's crypto API. Each attach makes a
 * random key of 512 bits, kept in memory only. docs/dev/privacy.md says what
 * that protects against.
 *
 * Each page is encrypted by itself, with its slot as the tweak. So GC moves
 * ciphertext unchanged, and a reader needs only the slot. (The block layer's
 * inline encryption numbers the pages of a bio consecutively, but the slots in
 * a chunk are arbitrary.)
 *
 * Swap-out: the task that takes a chunk from its stream encrypts it once, into
 * pages allocated at attach. A compressed page is encrypted afterwards
 * (compress.c). Swap-in: a work item decrypts in place, since reads end in
 * interrupt context, where AES instructions may not be used. Nothing here
 * allocates after attach.
 *
 * The cipher may be asynchronous: on x86, up to 6.12, every cipher is that uses
 * AES instructions for more than 16 bytes at a time. In process context these
 * ciphers complete at once. Ciphers that allocate memory for a request, or need
 * a device, are not used.
 */
#include <linux/crypto.h>
#include <linux/kmod.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <crypto/skcipher.h>

#include "znsage.h"

const char *const znsage_encrypt_names[ZNSAGE_NR_ENCRYPTS] = {
	[ZNSAGE_ENCRYPT_OFF] = "off",
	[ZNSAGE_ENCRYPT_AES_XTS] = "aes-xts",
};

MODULE_SOFTDEP("pre: aes xts");

#define CIPHER		"xts(aes)"
#define EXCLUDED	(CRYPTO_ALG_ALLOCATES_MEMORY | \
			 CRYPTO_ALG_KERN_DRIVER_ONLY)
/* Two keys of AES-256. */
#define KEY_BYTES	64

/* State to encrypt a page, one for each CPU. */
struct znsage_cipher {
	struct mutex lock;		/* the user may sleep and migrate */
	struct skcipher_request *req;
	/* The API copies a tweak that is not aligned. */
	__le64 tweak[2] __aligned(16);
};

struct znsage_crypt {
	struct crypto_skcipher *tfm;	/* has the key */
	struct znsage_cipher __percpu *ciphers;
};

/* Encrypt or decrypt @bytes of @from to @to. Returns 0 or an errno. */
static int cipher_run(struct znsage_crypt *crypt, struct scatterlist *from,
		      struct scatterlist *to, u32 bytes, u32 slot, bool encrypt)
{
	struct znsage_cipher *c = raw_cpu_ptr(crypt->ciphers);
	DECLARE_CRYPTO_WAIT(wait);
	int err;

	mutex_lock(&c->lock);
	c->tweak[0] = cpu_to_le64(slot);
	c->tweak[1] = 0;
	/* No MAY_SLEEP: the cipher could wait for memory. */
	skcipher_request_set_callback(c->req, CRYPTO_TFM_REQ_MAY_BACKLOG,
				      crypto_req_done, &wait);
	skcipher_request_set_crypt(c->req, from, to, bytes, c->tweak);
	err = crypto_wait_req(encrypt ? crypto_skcipher_encrypt(c->req) :
			      crypto_skcipher_decrypt(c->req), &wait);
	mutex_unlock(&c->lock);
	/* The cipher's queue is full: to callers, ENOSPC is a full device. */
	return err == -ENOSPC ? -EIO : err;
}

/* Encrypt or decrypt the page of a slot. Returns 0 or an errno. */
static int cipher_page(struct znsage_crypt *crypt, struct page *from,
		       struct page *to, u32 slot, bool encrypt)
{
	struct scatterlist src, dst;
	int err;

	sg_init_table(&src, 1);
	sg_set_page(&src, from, PAGE_SIZE, 0);
	sg_init_table(&dst, 1);
	sg_set_page(&dst, to, PAGE_SIZE, 0);
	err = cipher_run(crypt, &src, from == to ? &src : &dst, PAGE_SIZE, slot,
			 encrypt);
	cond_resched();
	return err;
}

/*
 * Encrypt or decrypt @data, from kmalloc(), in place: the compressed page of a
 * slot, of at least ZNSAGE_CRYPT_LEAST bytes. Returns 0 or an errno. Context:
 * process; may sleep, but not for memory or I/O.
 */
int znsage_crypt_bytes(struct znsage_device *zd, void *data, u32 bytes,
		       u32 slot, bool encrypt)
{
	struct scatterlist sg;

	sg_init_one(&sg, data, bytes);
	return cipher_run(zd->crypt, &sg, &sg, bytes, slot, encrypt);
}

/*
 * Encrypt a chunk of swap-out. After an error it must not be appended. Context:
 * process; may sleep, but not for memory or I/O.
 */
int znsage_encrypt(struct znsage_chunk *zc)
{
	const struct zse_chunk *core = zc->core;
	int err = 0;
	u32 i;

	for (i = 0; i < core->nr && !err; i++) {
		const struct zse_entry *entry = &core->entries[i];

		err = cipher_page(zc->zd->crypt, zc->pages[entry->page],
				  zc->encrypted[entry->page], entry->slot,
				  true);
	}
	return err;
}

/*
 * Decrypt @nr pages of @bio from @iter on, in place. Context: process; may
 * sleep, but not for memory or I/O.
 */
blk_status_t znsage_decrypt(struct znsage_device *zd, struct bio *bio,
			    struct bvec_iter iter, u32 nr)
{
	int err = 0;

	for (; nr && !err; nr--) {
		struct bio_vec bv = bio_iter_iovec(bio, iter);

		/* Swap-in has whole pages; other users of the disk may not. */
		err = bv.bv_len != PAGE_SIZE ? -EOPNOTSUPP :
		      cipher_page(zd->crypt, bv.bv_page, bv.bv_page,
				  iter.bi_sector / ZNSAGE_PAGE_SECTORS, false);
		bio_advance_iter(bio, &iter, PAGE_SIZE);
	}
	if (!err)
		return BLK_STS_OK;
	pr_err_ratelimited("znsage: %s: cannot decrypt a page (%d)\n", zd->name,
			   err);
	return BLK_STS_IOERR;
}

/*
 * Modules with AES instructions provide xts(aes), but their only alias is
 * crypto-aes. Without request_module() the first caller would get whatever
 * happens to be loaded.
 */
static struct crypto_skcipher *find_cipher(const char *name)
{
	struct crypto_skcipher *tfm;

	request_module("crypto-aes");
	tfm = crypto_alloc_skcipher(CIPHER, 0, EXCLUDED);
	if (!IS_ERR(tfm))
		return tfm;
	znsage_err(name, "the kernel has no cipher %s (%ld)",
		   CIPHER, PTR_ERR(tfm));
	return PTR_ERR(tfm) == -ENOMEM ? tfm : ERR_PTR(-ENOPKG);
}

/**
 * znsage_crypt_start() - make a random key and the ciphers that use it
 * @zd:	  device that is being attached
 * @mode: how to encrypt
 *
 * Context: sleeps; may load modules, and wait for good random numbers after
 * boot.
 * Return: 0 or an errno, with a message; -ENOPKG if the kernel lacks the
 * cipher. znsage_crypt_end() frees what there is, even after an error.
 */
int znsage_crypt_start(struct znsage_device *zd, enum znsage_encrypt mode)
{
	struct znsage_crypt *crypt;
	struct crypto_skcipher *tfm;
	u8 key[KEY_BYTES];
	int err, cpu;

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
	/* Afterwards, only @tfm has the key. */
	err = get_random_bytes_wait(key, sizeof(key)) ?:
	      crypto_skcipher_setkey(tfm, key, sizeof(key));
	memzero_explicit(key, sizeof(key));
	if (err) {
		znsage_err(zd->name, "cannot set an encryption key (%d)", err);
		return err;
	}
	crypt->ciphers = alloc_percpu(struct znsage_cipher);
	if (!crypt->ciphers)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct znsage_cipher *c = per_cpu_ptr(crypt->ciphers, cpu);

		mutex_init(&c->lock);
		c->req = skcipher_request_alloc(tfm, GFP_KERNEL);
		if (!c->req)
			return -ENOMEM;
	}
	znsage_info(zd->name, "pages are encrypted by %s",
		    crypto_skcipher_driver_name(tfm));
	return 0;
}

/* Forget the key. */
void znsage_crypt_end(struct znsage_device *zd)
{
	struct znsage_crypt *crypt = zd->crypt;
	int cpu;

	if (!crypt)
		return;
	if (crypt->ciphers)
		for_each_possible_cpu(cpu)
			skcipher_request_free(per_cpu_ptr(crypt->ciphers,
							  cpu)->req);
	free_percpu(crypt->ciphers);
	/* This overwrites the key. */
	crypto_free_skcipher(crypt->tfm);
	kfree(crypt);
	zd->crypt = NULL;
}
