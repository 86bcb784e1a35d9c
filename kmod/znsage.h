/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the module share. The engine (../engine) knows maps,
 * zones and GC; the module turns bios into calls of the engine and what the
 * engine asks for into bios.
 *
 *	main.c		load and unload
 *	config.c	configfs: what is to be set up
 *	device.c	attach and detach
 *	hibernate.c	not while a device is on
 *	geometry.c	the backing device's zones, and what is made of them
 *	disk.c		the disk in front: where bios and freed slots come in
 *	write.c		swap-out: chunks, plugs, deadline, appends
 *	wait.c		... when there is no chunk
 *	charge.c	whose I/O it is
 *	crypt.c		encryption of what is swapped out
 *	read.c		swap-in
 *	policy.c	policies by name; changing a device's policy
 *	owner.c		what a page belongs to
 *	frames.c	what is remembered of a frame between swap-in and swap-out
 *	cached.c	is a slot's page in memory, so that GC can drop its block?
 *	worker.c	deferred work; GC reads, resets, finishes
 *	sysfs.c		statistics and settings of a running device
 *	latency.c	histograms of how long things take
 *	events.c	what is worth timing or tracing, as it happens
 *	tables.c	zones, in debugfs and in numbers
 *	trace.h		tracepoints
 */
#ifndef ZNSAGE_H
#define ZNSAGE_H

#include <linux/bio.h>
#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/siphash.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "engine.h"
#include "latency.h"

#define ZNSAGE_PAGE_SECTORS	(PAGE_SIZE >> SECTOR_SHIFT)
#define ZNSAGE_MAX_PATH		256
/* A page may wait so long for its chunk to fill; less is a storm of timers. */
#define ZNSAGE_MIN_DEADLINE_US	100
#define ZNSAGE_MAX_DEADLINE_US	1000000

/* How pages are encrypted on the backing device; see crypt.c. */
enum znsage_encrypt {
	ZNSAGE_ENCRYPT_OFF,
	ZNSAGE_ENCRYPT_AES_XTS,
	ZNSAGE_NR_ENCRYPTS
};

extern const char *const znsage_encrypt_names[ZNSAGE_NR_ENCRYPTS];

/**
 * struct znsage_settings - what configfs collects and power=1 uses
 * @backing:	       path of the zoned device
 * @size:	       bytes, 0: from @over_provisioning
 * @over_provisioning: percent of the usable blocks that are held back
 * @chunk:	       bytes of an append, 0: the device's preferred size
 * @write_unit:	       bytes, appends are padded to a multiple; 0: a page
 * @reserve:	       zones that only GC may open
 * @stripe:	       zones that each stream writes at a time, 0: default
 * @gc_low, @gc_high:  watermarks in empty zones, 0: default
 * @pace:	       see zse_set_pace()
 * @deadline_us:       how long a page may wait for its chunk to fill
 * @policy:	       name of the policy
 * @victim:	       how GC chooses a zone if the policy does not
 * @encrypt:	       how pages are encrypted
 * @force:	       reset zones that are not empty
 */
struct znsage_settings {
	char backing[ZNSAGE_MAX_PATH];
	u64 size;
	u32 over_provisioning;
	u32 chunk;
	u32 write_unit;
	u32 reserve;
	u32 stripe;
	u32 gc_low;
	u32 gc_high;
	u32 pace;
	u32 deadline_us;
	char policy[ZNSAGE_POLICY_NAME];
	enum zse_victim victim;
	enum znsage_encrypt encrypt;
	bool force;
};

struct znsage_device;
struct znsage_frames;
struct znsage_crypt;

/**
 * struct znsage_chunk - a chunk of the engine and what its I/O needs
 * @core:    the engine's part; its priv points back here
 * @zd:	     device
 * @pages:   of each entry; a GC chunk owns them
 * @encrypted: of each entry, where its page is encrypted to, and appended from;
 *	     NULL if it is not, and for GC chunks, which hold what is on the device
 * @parents: of each entry, the bio to end; not for GC chunks
 * @bio:     the append
 * @vecs:    its pages, as many as a chunk has
 * @first, @nr: entries in the append
 * @since:   when what it is doing began, in ns: a wait for a zone, a read or an
 *	     append of GC
 * @holds:   who needs @parents as they are: one for what is left to append, and
 *	     one for each append whose pages are being ended; the last gives the
 *	     chunk back. Not for GC chunks
 * @reads:   bios of a GC read that have not ended
 * @single:  GC reads block by block, after a larger read failed
 * @failed:  a GC read failed
 * @link:    on the device's retry list
 */
struct znsage_chunk {
	struct zse_chunk *core;
	struct znsage_device *zd;
	struct page **pages;
	struct page **encrypted;
	struct bio **parents;
	struct bio bio;
	struct bio_vec *vecs;
	u32 first;
	u32 nr;
	u64 since;
	atomic_t holds;
	atomic_t reads;
	bool single;
	bool failed;
	struct list_head link;
};

/**
 * struct znsage_payer - who pays for a stream's I/O, see charge.c
 * @css: block cgroup, held, or NULL
 * @key: of the pages that are its
 */
struct znsage_payer {
	struct cgroup_subsys_state *css;
	u64 key;
};

/* What the last check of the maps found. */
struct znsage_check {
	struct mutex lock;	/* one check at a time; guards the rest */
	bool done;
	u32 more;		/* violations that @text has no room for */
	size_t len;
	char text[3072];
};

/**
 * struct znsage_device - a running device
 * @name:	of its configfs directory, for messages
 * @zone_nr:	number on the backing device of each zone of the engine
 * @zone_sectors: size of a zone of the backing device
 * @nr_unused:	zones of the backing device that are not used
 * @nr_streams:	that there can be, whatever the policy
 * @ref:	held by every bio and plug under way; the last one that goes
 *		lets detach free the device
 * @junk:	where GC reads dead blocks into, between live ones
 * @read_bios:	clones for swap-in
 * @worker_bios: GC reads, resets, finishes; the worker alone allocates, and
 *		each comes back without the worker's help
 * @flush:	bitmap of streams: the worker appends their chunks, unless these
 *		need padding
 * @quiescing:	the worker appends all chunks
 * @irq_kick:	lets the worker run, from where no lock may be taken
 * @timer_on:	the deadline timer runs or is about to
 * @frames:	see frames.c; may be NULL
 * @crypt:	see crypt.c; NULL if pages are not encrypted
 * @key_secret:	keys that come from pointers are hashed with it
 * @swap_type:	of the swap area that the disk is, if known; see cached.c
 * @wants_owners: the policy looks at what a page belongs to
 * @policy_lock: guards @policy, which is held, and @policy_private
 * @isolates:	the policy isolates streams
 * @claimed:	detach has begun, under the disk's open_mutex
 * @latency:	how long things took
 * @time_reads:	swap-in is timed, too
 * @gc_since:	of each zone, when GC began to read it, in ns; 0: it did not
 * @stall_ns:	of each stream, what its chunks waited for zones
 * @debugfs:	directory there, or an error
 *
 * Under @lock:
 * @payers:	of each stream, who pays for its I/O
 * @pending:	of each stream, swap-out bios (or the rest of them) that found
 *		no chunk
 * @busy_reads:	swap-in bios of slots that are being written
 * @gc_retry:	GC chunks to be read block by block
 * @starved:	bitmap of streams with pending bios; written under @lock
 * @fed:	submitters wait here until their stream's bit is clear
 */
struct znsage_device {
	char name[64];
	int index;
	struct gendisk *disk;
	struct znsage_backing backing;
	struct zse_engine *engine;
	u32 *zone_nr;
	sector_t zone_sectors;
	u32 nr_unused;
	u32 chunk_blocks;
	u32 write_unit;
	u32 nr_slots;
	u32 nr_streams;
	u32 deadline_us;

	struct znsage_chunk *chunks;
	u32 nr_chunks;
	struct page *junk;
	struct bio_set read_bios;
	struct bio_set worker_bios;

	struct percpu_ref ref;
	struct completion released;
	struct workqueue_struct *wq;
	/* Not the worker's, which may wait for a read to give back its clone. */
	struct workqueue_struct *read_wq;
	struct work_struct work;
	struct hrtimer timer;
	atomic_t timer_on;
	atomic64_t flush;
	bool quiescing;
	struct irq_work irq_kick;

	bool wants_owners;
	struct znsage_frames *frames;
	struct znsage_crypt *crypt;
	siphash_key_t key_secret;
	u32 swap_type;

	struct mutex policy_lock;
	const struct znsage_policy *policy;
	void *policy_private;

	spinlock_t lock;
	struct bio_list pending[ZSE_MAX_STREAMS];
	struct bio_list busy_reads;
	struct list_head gc_retry;
	u64 starved;
	wait_queue_head_t fed;

	bool isolates;
	struct znsage_payer payers[ZSE_MAX_STREAMS];

	struct znsage_check check;
	bool claimed;

	struct znsage_latency latency;
	bool time_reads;
	u64 *gc_since;
	atomic64_t stall_ns[ZSE_MAX_STREAMS];
	struct dentry *debugfs;
};

/**
 * struct znsage_geometry - what the backing device offers and settings want
 * @cfg:	for the engine
 * @zone_nr:	number on the device of each zone used
 * @dirty:	bitmap over the zones of the device: not empty
 * @active:	likewise: open or closed
 * @nr_unused:	zones left alone: conventional, read-only, offline, smaller than
 *		the others, surplus
 */
struct znsage_geometry {
	struct zse_config cfg;
	u32 *zone_nr;
	unsigned long *dirty;
	unsigned long *active;
	u32 nr_dirty;
	u32 nr_unused;
};

/* main.c */
extern struct ida znsage_ida;
extern int znsage_major;

/* config.c */
int znsage_config_register(void);
void znsage_config_unregister(void);

/* device.c */
struct znsage_device *znsage_attach(const char *name,
				    const struct znsage_settings *set);
int znsage_detach(struct znsage_device *zd);
void znsage_quiesce(struct znsage_device *zd);

/* hibernate.c */
int znsage_awake_get(const char *name);
void znsage_awake_put(void);
int znsage_hibernate_init(void);
void znsage_hibernate_exit(void);

/* policy.c */
const struct znsage_policy *znsage_policy_get(const char *name);
void znsage_policy_put(const struct znsage_policy *policy);
ssize_t znsage_policy_names(char *buf);
int znsage_policy_start(struct znsage_device *zd,
			const struct znsage_policy *policy);
int znsage_policy_switch(struct znsage_device *zd, const char *name);
void znsage_policy_end(struct znsage_device *zd);

/* owner.c */
u64 znsage_cgroup_of(struct folio *folio);
void znsage_page_owner(struct znsage_device *zd, struct page *page, u32 cpu,
		       struct znsage_page *owner);

/* frames.c */
void znsage_frames_alloc(struct znsage_device *zd);
void znsage_frames_free(struct znsage_device *zd);
void znsage_frames_note(struct znsage_device *zd, struct page *page, u32 slot,
			u32 block);
void znsage_frames_recall(struct znsage_device *zd, struct page *page,
			  struct znsage_page *owner);
void znsage_frames_forget(struct znsage_device *zd, struct page *page);
bool znsage_frames_where(struct znsage_device *zd, u32 slot,
			 unsigned long *pfn);

/* cached.c */
void znsage_cached_forget(struct znsage_device *zd);
void znsage_cached_learn(struct znsage_device *zd, struct folio *folio);
bool znsage_in_memory(void *host, u32 slot);

/* geometry.c */
int znsage_geometry_read(const char *name, struct block_device *bdev,
			 const struct znsage_settings *set,
			 const struct znsage_policy *policy,
			 struct znsage_geometry *geo);
void znsage_geometry_free(struct znsage_geometry *geo);

/* disk.c */
int znsage_disk_add(struct znsage_device *zd);
int znsage_disk_claim(struct znsage_device *zd);

/* write.c */
enum znsage_written {
	ZNSAGE_ALL,		/* of the bio; it may be gone */
	ZNSAGE_MORE,		/* another owner's pages are left of it */
	ZNSAGE_NO_CHUNK,	/* chunks ran out; some of it is left */
};
void znsage_write(struct znsage_device *zd, struct bio *bio);
u32 znsage_place(struct znsage_device *zd, struct bio *bio, u32 cpu);
enum znsage_written znsage_write_head(struct znsage_device *zd,
				      struct bio *bio, u32 stream);
void znsage_write_flush(struct znsage_device *zd);
void znsage_append(struct znsage_device *zd, const struct zse_op *op);
void znsage_end_pages(struct znsage_chunk *zc, u32 first, u32 nr,
		      blk_status_t status);
bool znsage_chunk_let_go(struct znsage_chunk *zc, int holds, u64 now);
enum hrtimer_restart znsage_deadline(struct hrtimer *timer);

/* charge.c */
void znsage_charge(struct znsage_chunk *zc, struct bio *bio);
void znsage_charge_end(struct znsage_device *zd);

/* crypt.c */
int znsage_crypt_start(struct znsage_device *zd, enum znsage_encrypt mode);
void znsage_crypt_end(struct znsage_device *zd);
int znsage_encrypt(struct znsage_chunk *zc);
blk_status_t znsage_decrypt(struct znsage_device *zd, struct bio *bio,
			    struct bvec_iter iter, u32 nr);

/* wait.c */
void znsage_write_pending(struct znsage_device *zd);
void znsage_wait_bio(struct znsage_device *zd, struct bio *bio, u32 stream);
bool znsage_wait_until_fed(struct znsage_device *zd, u32 stream);

/* read.c */
extern const unsigned int znsage_read_pad;
void znsage_read(struct znsage_device *zd, struct bio *bio);
void znsage_read_busy(struct znsage_device *zd);

/* worker.c */
extern const unsigned int znsage_worker_pad;
void znsage_work(struct work_struct *work);

/* sysfs.c */
extern const struct attribute_group *znsage_disk_groups[];

/* events.c */
void znsage_saw_place(struct znsage_device *zd, const struct bio *bio,
		      u32 stream);
void znsage_saw_append(struct znsage_chunk *zc, const struct zse_op *op);
void znsage_saw_append_end(struct znsage_chunk *zc, bool ok, u64 now);
void znsage_saw_stall(struct znsage_chunk *zc);
void znsage_saw_stall_end(struct znsage_chunk *zc);
u64 znsage_saw_wait(struct znsage_device *zd);
void znsage_saw_wait_end(struct znsage_device *zd, u64 since);
u64 znsage_saw_read(struct znsage_device *zd);
void znsage_saw_read_end(struct znsage_device *zd, u32 slot, u32 nr,
			 blk_status_t status, u64 since);
void znsage_saw_gc(struct znsage_device *zd, u32 zone);
void znsage_saw_gc_read_end(struct znsage_chunk *zc);
void znsage_saw_gc_end(struct znsage_device *zd, u32 zone);
void znsage_saw_zone_state(void *host, u32 zone, const char *from,
			   const char *to);

/* tables.c */
ssize_t znsage_zone_states(struct znsage_device *zd, char *buf);
ssize_t znsage_live_histogram(struct znsage_device *zd, char *buf);
size_t znsage_stream_table(struct znsage_device *zd, char *buf, u32 from,
			   size_t count);
void znsage_debugfs_add(struct znsage_device *zd);
void znsage_debugfs_remove(struct znsage_device *zd);
void znsage_debugfs_init(void);
void znsage_debugfs_exit(void);

/* Let the worker run; any context. */
static inline void znsage_kick(struct znsage_device *zd)
{
	queue_work(zd->wq, &zd->work);
}

/* Are there bios that wait for a chunk of a stream? */
static inline bool znsage_is_starved(const struct znsage_device *zd, u32 stream)
{
	return READ_ONCE(zd->starved) & BIT_ULL(stream);
}

/* First sector of a zone of the engine on the backing device. */
static inline sector_t znsage_zone_start(const struct znsage_device *zd,
					 u32 zone)
{
	return zd->zone_nr[zone] * zd->zone_sectors;
}

/* Sector of a block on the backing device. */
static inline sector_t znsage_block_sector(const struct znsage_device *zd,
					   u32 block)
{
	return znsage_zone_start(zd, zse_block_zone(zd->engine, block)) +
	       (sector_t)zse_block_offset(zd->engine, block) *
	       ZNSAGE_PAGE_SECTORS;
}

#define znsage_info(name, fmt, ...)					\
	pr_info("znsage: %s: " fmt "\n", name, ##__VA_ARGS__)
#define znsage_err(name, fmt, ...)					\
	pr_err("znsage: %s: " fmt "\n", name, ##__VA_ARGS__)

#endif /* ZNSAGE_H */
