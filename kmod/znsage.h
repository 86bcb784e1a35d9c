/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The lowest layer: what the module's files share, and what they do to single
 * pages. The engine (../engine) knows maps, zones and GC; the module turns bios
 * into calls of the engine and the engine's operations into bios.
 * docs/dev/design.md has the layers.
 */
#ifndef ZNSAGE_H
#define ZNSAGE_H

#include <linux/bio.h>
#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/mempool.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "engine.h"

#define ZNSAGE_PAGE_SECTORS	(PAGE_SIZE >> SECTOR_SHIFT)
#define ZNSAGE_MAX_PATH		256
/* Bounds of the deadline. A shorter one would be a storm of timers. */
#define ZNSAGE_MIN_DEADLINE_US	100
#define ZNSAGE_MAX_DEADLINE_US	1000000

/* How pages are encrypted on the backing device; see crypt.c. */
enum znsage_encrypt {
	ZNSAGE_ENCRYPT_OFF,
	ZNSAGE_ENCRYPT_AES_XTS,
	ZNSAGE_NR_ENCRYPTS
};

/* How pages are compressed on the backing device; see compress.c. */
enum znsage_compress {
	ZNSAGE_COMPRESS_OFF,
	ZNSAGE_COMPRESS_LZ4,
	ZNSAGE_COMPRESS_ZSTD,
	ZNSAGE_NR_COMPRESS
};

/* Of a device whose settings name none, or whose policy ended. */
#define ZNSAGE_DEFAULT_POLICY	"heat"

extern const char *const znsage_encrypt_names[ZNSAGE_NR_ENCRYPTS];
extern const char *const znsage_compress_names[ZNSAGE_NR_COMPRESS];

/* What configfs collects and power=1 uses. */
struct znsage_settings {
	char backing[ZNSAGE_MAX_PATH];	/* the device below, or a file */
	u64 size;		/* bytes; 0: from over_provisioning */
	u64 zone_size;		/* bytes, of virtual zones; 0: the default */
	u32 over_provisioning;	/* percent of the usable blocks held back */
	u32 chunk;		/* bytes; 0: the device's preferred size */
	u32 write_unit;		/* bytes; 0: a page */
	u32 reserve;		/* these as in struct zse_config */
	u32 stripe;
	u32 gc_low;
	u32 gc_high;
	u32 pace;
	enum zse_victim victim;
	u32 deadline_us;	/* most that a page waits for its chunk */
	char policy[ZNSAGE_POLICY_NAME];
	enum znsage_encrypt encrypt;
	enum znsage_compress compress;
	bool force;		/* reset zones that are not empty */
	bool keep_slots;	/* add a filler; see filler.c */
	bool discard;		/* discard virtual zones */
};

/* What is timed. */
enum znsage_time {
	ZNSAGE_SWAP_OUT,	/* an append, since the chunk's first page */
	ZNSAGE_SWAP_IN,		/* a read of the device */
	ZNSAGE_GC,		/* a victim, from its first read to its reset */
	ZNSAGE_NR_TIMES
};

struct seq_file;
struct znsage_times;
struct znsage_device;
struct znsage_crypt;
struct znsage_compressor;

/* A chunk of the engine and what its I/O needs. */
struct znsage_chunk {
	struct zse_chunk *core;		/* its priv points back here */
	struct znsage_device *zd;
	struct page **pages;	/* of each entry; GC's chunks own theirs */
	struct bio bio;			/* the append */
	struct bio_vec *vecs;		/* its pages */
	u32 nr_vecs;
	u32 nr_pages_owned;		/* of @pages, if it is one of GC */
	u32 first, nr;			/* entries in the append */
	u32 from, nr_pages;	/* of @packed; pages in it, or of GC's input */
	u64 since;	/* ns: when its wait for a zone, or GC append, began */
	u64 retried_since;	/* ns: first transient status, or 0 */
	struct list_head link;	/* on retries, gc_look or gc_ready */

	/* Chunks of swap-out. */
	unsigned long ticks;		/* of the first page; znsage_io_end() */
	struct bio **parents;		/* the bio that each entry came from */
	/* What is appended instead of the pages, or NULL: */
	struct page **encrypted;	/* ciphertext of each entry */
	struct page **packed;		/* packed pages; GC's chunks, too */
	void *buffer;			/* ... as they are mapped */
	/*
	 * Users of @parents: one for what is left to append, and one for each
	 * append whose bios are being ended. The last one puts the chunk.
	 */
	atomic_t holds;
	spinlock_t lock;	/* held to copy a page before its bio ends */

	/* Chunks of GC. */
	atomic_t reads;			/* bios in flight */
	bool single;			/* read block by block after an error */
	bool failed;			/* a read failed */
	bool is_read;			/* all reads have ended for good */
	void *input;			/* @pages as they are mapped */
	unsigned long *unread;		/* bitmap of @pages: a read failed */
};

/* Who pays for a stream's I/O; see append.c. */
struct znsage_payer {
	struct cgroup_subsys_state *css; /* block cgroup, with a ref, or NULL */
	u64 key;			/* of its pages */
};

/* What the last check of the maps found. */
struct znsage_check {
	struct mutex lock;	/* one check at a time; guards the rest */
	bool done;
	u32 more;		/* violations that @text has no room for */
	size_t len;
	char text[3072];
	struct lockdep_map frozen;	/* held while the queue is frozen */
};

/* A running device. */
struct znsage_device {
	char name[64];			/* of its configfs directory */
	int index;			/* N of znsageN */
	struct gendisk *disk;
	struct znsage_backing backing;
	const struct znsage_backend *backend;
	struct zse_engine *engine;
	u32 *zone_nr;		/* number on the device of each engine zone */
	sector_t *starts;	/* of the zones of the device; NULL: in a row */
	sector_t zone_sectors;
	u32 nr_unused;			/* zones of the device */
	u32 nr_all;			/* zones of the device at attach */
	sector_t whole;			/* see struct znsage_geometry */
	unsigned long *to_reset;	/* of nr_all; see zoned.c */
	u32 chunk_pages;		/* the longest append */
	u32 batch_pages;		/* of a full chunk, unless it grows */
	u32 write_unit;			/* pages */
	u32 append_sectors;		/* the limit that the engine knows */
	bool append_fits;		/* some append is as short as that */
	u32 page_blocks;		/* blocks of the engine in a page */
	u32 nr_write_streams;		/* of the device below, with FDP */
	u32 nr_slots;
	/*
	 * Slot 0, mkswap's header, which the kernel never swaps to. On the
	 * device below, tools would find the UUID and type of the swap area a
	 * second time.
	 */
	struct page *header;
	u32 nr_streams;			/* the most that a policy gets */
	u32 deadline_us;
	bool claimed;		/* detach has begun; under disk->open_mutex */
	struct gendisk *filler;		/* or NULL; see filler.c */
	struct page *filler_header;
	bool filler_claimed;		/* under filler->open_mutex */

	struct znsage_chunk *chunks;
	u32 nr_chunks;
	struct page *junk;		/* GC reads stale blocks into it */
	struct bio_set read_bios;	/* swap-in's reads */
	struct bio_set worker_bios;	/* only the worker allocates from it */

	/* Each bio and plug in flight has a ref; detach waits for all. */
	struct percpu_ref ref;
	struct completion released;
	struct workqueue_struct *wq;
	struct work_struct work;	/* the worker; see worker.c */
	struct work_struct look_work;	/* looks at zones for it */
	unsigned long *looked;	/* of each victim: was it looked at? */
	struct delayed_work retry;	/* see append.c */
	/* Ends reads; the worker may wait for a bio of one. */
	struct workqueue_struct *read_wq;
	/* Its items may wait for those of the other two, and for I/O. */
	struct workqueue_struct *wait_wq;
	bool discard;			/* discard virtual zones */
	unsigned long *to_erase;	/* zones of the engine; atomic bits */
	struct work_struct erase_work;	/* backend->erase() of these */
	struct hrtimer timer;		/* the deadline */
	atomic_t timer_on;
	atomic64_t flush;		/* streams whose chunk is to be sent */
	bool quiescing;			/* the worker sends all, with padding */
	bool asleep;			/* see hibernation.c */
	bool gone;			/* others have written the device */
	atomic_t changing;		/* see znsage_change_begin() */
	struct work_struct wake_work;	/* ends @asleep */

	u32 *frames;			/* see owner.c; or NULL */
	u32 nr_frames;			/* a power of two */
	struct znsage_crypt *crypt;	/* NULL: pages are not encrypted */
	struct znsage_compressor *compressor;	/* NULL: not compressed */
	mempool_t records;	/* memory that a record is read into */
	u64 full_since;			/* ns: the last refusal, or 0 */
	struct bio_list read_later;	/* bios without memory; under @lock */
	struct work_struct read_work;	/* goes on with these */

	/* Under znsage_policy_lock. */
	const struct znsage_policy *policy;	/* held */
	struct list_head policy_user;	/* on the list of a loaded policy */
	char ejected[128];	/* why the last loaded policy ended, or empty */
	bool wants_owners;		/* the policy looks at pages' owners */
	bool isolates;			/* the policy isolates streams */

	spinlock_t lock;		/* guards these: */
	struct bio_list pending[ZSE_MAX_STREAMS]; /* found no chunk */
	struct list_head gc_ready;	/* chunks for gc_go_on() */
	struct list_head gc_look;	/* chunks whose zones are looked at */
	struct list_head finish_look;	/* zones to finish after a look */
	struct list_head retries;	/* chunks to append again */
	u64 starved;			/* streams with pending bios */
	struct znsage_payer payers[ZSE_MAX_STREAMS];

	wait_queue_head_t chunk_wait[ZSE_MAX_STREAMS];	/* tasks without room */
	atomic_t nr_waiting;		/* in all of these */

	struct znsage_check check;
	struct znsage_times __percpu *times;	/* since attach */
	bool time_reads;		/* time swap-in */
	u64 *gc_since;		/* ns: when GC began to read each zone, or 0 */
	atomic64_t stall_ns[ZSE_MAX_STREAMS];	/* chunks waiting for zones */
	struct dentry *debugfs;		/* or an ERR_PTR */
};

/* owner.c */
#define ZNSAGE_PLACED	32	/* what swap-out puts into a bio since 7.3 */
/* Where the next pages of a swap-out bio go. */
struct znsage_placed {
	u32 nr;				/* pages that were placed */
	u32 at;				/* the first that was not written */
	u8 stream[ZNSAGE_PLACED];
	u8 past[ZNSAGE_PLACED];		/* for zse_chunk_add() */
};

void znsage_place(struct znsage_device *zd, struct bio *bio, u32 cpu,
		  struct znsage_placed *p);
void znsage_frames_alloc(struct znsage_device *zd);
void znsage_frames_note(struct znsage_device *zd, struct page *page, u32 slot,
			u32 block);
void znsage_frames_forget(struct znsage_device *zd, struct page *page);

/* crypt.c */
#define ZNSAGE_CRYPT_LEAST	16	/* bytes: a block of AES */
int znsage_crypt_start(struct znsage_device *zd, enum znsage_encrypt mode);
void znsage_crypt_end(struct znsage_device *zd);
int znsage_crypt_bytes(struct znsage_device *zd, void *data, u32 bytes,
		       u32 slot, bool encrypt);
int znsage_encrypt(struct znsage_chunk *zc);
blk_status_t znsage_decrypt(struct znsage_device *zd, struct bio *bio,
			    struct bvec_iter iter, u32 nr);

/*
 * algorithm.c: how a page is compressed. Functions run on one page, in any
 * context; they allocate nothing. @work is memory that no one else uses
 * meanwhile.
 */
struct znsage_algorithm {
	size_t (*work_bytes)(void);
	bool (*begin)(void *work);	/* may be NULL */
	/* To at most @most bytes. Returns how many; <= 0: it does not fit. */
	int (*compress)(void *work, void *to, u32 most, const void *from);
	/* Safe for any bytes. Returns those of the page; < 0: not compressed */
	int (*decompress)(void *work, void *to, const void *from, u32 bytes);
	/* Decompression does not use @work, and takes 1 to 2 us a page. */
	bool quick;
};

/* Of OFF, and of what the kernel lacks, the functions are NULL. */
extern const struct znsage_algorithm znsage_algorithms[ZNSAGE_NR_COMPRESS];

/* compress.c */
int znsage_compress_start(struct znsage_device *zd, enum znsage_compress how);
int znsage_compress_set(struct znsage_device *zd, enum znsage_compress how);
void znsage_compress_end(struct znsage_device *zd);
const char *znsage_compress_name(const struct znsage_device *zd);
int znsage_compress(struct znsage_device *zd, struct page *page, u32 slot,
		    void *to, u32 *blocks);
bool znsage_decompress_needs_task(const struct znsage_device *zd,
				  const void *from);
int znsage_decompress(struct znsage_device *zd, const void *from, u32 room,
		      u32 slot, struct page *page);

/* latency.c */
int znsage_latency_init(struct znsage_device *zd);
void znsage_timed(struct znsage_device *zd, enum znsage_time what, u64 ns);
int znsage_latency_show(struct seq_file *m, void *v);

/* Has the stream bios that found no chunk? A hint. */
static inline bool znsage_is_starved(const struct znsage_device *zd, u32 stream)
{
	return READ_ONCE(zd->starved) & BIT_ULL(stream);
}

/* Wake the worker. Context: any. */
static inline void znsage_kick(struct znsage_device *zd)
{
	queue_work(zd->wq, &zd->work);
}

/* First sector of a zone of the device. */
static inline sector_t znsage_nr_start(const struct znsage_device *zd, u32 nr)
{
	return zd->starts ? zd->starts[nr] : nr * zd->zone_sectors;
}

/* First sector of a zone of the engine. */
static inline sector_t znsage_zone_start(const struct znsage_device *zd,
					 u32 zone)
{
	return znsage_nr_start(zd, zd->zone_nr[zone]);
}

/* Sector of the page that has a block. */
static inline sector_t znsage_block_sector(const struct znsage_device *zd,
					   u32 block)
{
	return znsage_zone_start(zd, zse_block_zone(zd->engine, block)) +
	       (sector_t)(zse_block_offset(zd->engine, block) /
			  zd->page_blocks) * ZNSAGE_PAGE_SECTORS;
}

/* Submit @bio to the device below. Context: as submit_bio_noacct(). */
static inline void znsage_submit(struct znsage_device *zd, struct bio *bio)
{
	if (unlikely(READ_ONCE(zd->gone)))
		bio_io_error(bio);
	else
		submit_bio_noacct(bio);
}

/* Count a page of @bio that needs no I/O. */
static inline void znsage_io_now(const struct bio *bio)
{
	znsage_io_end(bio, ZNSAGE_PAGE_SECTORS,
		      znsage_io_start(bio, ZNSAGE_PAGE_SECTORS));
}

#define znsage_info(name, fmt, ...)					\
	pr_info("znsage: %s: " fmt "\n", name, ##__VA_ARGS__)
#define znsage_err(name, fmt, ...)					\
	pr_err("znsage: %s: " fmt "\n", name, ##__VA_ARGS__)

#endif /* ZNSAGE_H */
