/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the module share. The engine (../engine) knows maps,
 * zones and GC; the module turns bios into calls of the engine and what the
 * engine asks for into bios.
 *
 *	main.c		load and unload
 *	config.c	configfs: what is to be set up
 *	device.c	attach and detach
 *	geometry.c	the backing device's zones, and what is made of them
 *	disk.c		the disk in front: where bios and freed slots come in
 *	write.c		swap-out: chunks, plugs, deadline, appends
 *	read.c		swap-in
 *	worker.c	deferred work; GC reads, resets, finishes
 *	sysfs.c		statistics and settings of a running device
 *	trace.h		tracepoints
 */
#ifndef ZNSAGE_H
#define ZNSAGE_H

#include <linux/bio.h>
#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "engine.h"

#define ZNSAGE_PAGE_SECTORS	(PAGE_SIZE >> SECTOR_SHIFT)
#define ZNSAGE_MAX_PATH		256
#define ZNSAGE_MAX_DEADLINE_US	1000000

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
 * @deadline_us:       how long a page may wait for its chunk to fill
 * @policy:	       see enum zse_policy
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
	u32 deadline_us;
	enum zse_policy policy;
	bool force;
};

struct znsage_device;

/**
 * struct znsage_chunk - a chunk of the engine and what its I/O needs
 * @core:    the engine's part; its priv points back here
 * @zd:	     device
 * @pages:   of each entry; a GC chunk owns them
 * @parents: of each entry, the bio to end; not for GC chunks
 * @bio:     the append
 * @vecs:    its pages, as many as a chunk has
 * @first, @nr: entries in the append
 * @reads:   bios of a GC read that have not ended
 * @single:  GC reads block by block, after a larger read failed
 * @failed:  a GC read failed
 * @link:    on the device's retry list
 */
struct znsage_chunk {
	struct zse_chunk *core;
	struct znsage_device *zd;
	struct page **pages;
	struct bio **parents;
	struct bio bio;
	struct bio_vec *vecs;
	u32 first;
	u32 nr;
	atomic_t reads;
	bool single;
	bool failed;
	struct list_head link;
};

/**
 * struct znsage_device - a running device
 * @name:	of its configfs directory, for messages
 * @zone_nr:	number on the backing device of each zone of the engine
 * @zone_sectors: size of a zone of the backing device
 * @nr_unused:	zones of the backing device that are not used
 * @ref:	held by every bio and plug under way; the last one that goes
 *		lets detach free the device
 * @junk:	where GC reads dead blocks into, between live ones
 * @read_bios:	clones for swap-in
 * @worker_bios: GC reads, resets, finishes; the worker alone allocates, and
 *		each comes back without the worker's help
 * @flush:	the worker is to take unfilled chunks without waiting
 * @timer_on:	the deadline timer runs or is about to
 * @check_lock:	one check at a time; each holds back I/O and GC
 * @claimed:	detach has begun, under the disk's open_mutex
 *
 * Under @lock:
 * @pending:	swap-out bios (or the rest of them) that found no free chunk
 * @busy_reads:	swap-in bios of slots that are being written
 * @gc_retry:	GC chunks to be read block by block
 * @starved:	@pending waits for a chunk; written under @lock
 * @fed:	submitters wait here until it is false
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
	u32 deadline_us;
	enum zse_policy policy;

	struct znsage_chunk *chunks;
	u32 nr_chunks;
	struct page *junk;
	struct bio_set read_bios;
	struct bio_set worker_bios;

	struct percpu_ref ref;
	struct completion released;
	struct workqueue_struct *wq;
	struct work_struct work;
	struct hrtimer timer;
	atomic_t timer_on;
	atomic_t flush;

	spinlock_t lock;
	struct bio_list pending;
	struct bio_list busy_reads;
	struct list_head gc_retry;
	bool starved;
	wait_queue_head_t fed;

	struct mutex check_lock;
	bool claimed;
};

/**
 * struct znsage_geometry - what the backing device offers and settings want
 * @cfg:	for the engine; zone_caps is owned, see znsage_geometry_free()
 * @zone_nr:	number on the device of each zone used
 * @dirty:	bitmap over the zones used: not empty
 * @nr_unused:	zones left alone: conventional, read-only, offline, surplus
 */
struct znsage_geometry {
	struct zse_config cfg;
	u32 *zone_caps;
	u32 *zone_nr;
	unsigned long *dirty;
	u32 nr_dirty;
	u32 nr_unused;
};

/* main.c */
extern struct ida znsage_ida;
extern int znsage_major;

/* config.c */
extern const char *const znsage_policy_names[ZSE_NR_POLICIES];
int znsage_config_register(void);
void znsage_config_unregister(void);

/* device.c */
struct znsage_device *znsage_attach(const char *name,
				    const struct znsage_settings *set);
int znsage_detach(struct znsage_device *zd);
void znsage_quiesce(struct znsage_device *zd);

/* geometry.c */
int znsage_geometry_read(const char *name, struct block_device *bdev,
			 const struct znsage_settings *set,
			 struct znsage_geometry *geo);
void znsage_geometry_free(struct znsage_geometry *geo);

/* disk.c */
int znsage_disk_add(struct znsage_device *zd);
int znsage_disk_claim(struct znsage_device *zd);

/* write.c */
void znsage_write(struct znsage_device *zd, struct bio *bio);
void znsage_write_pending(struct znsage_device *zd);
void znsage_write_flush(struct znsage_device *zd);
void znsage_append(struct znsage_device *zd, const struct zse_op *op);
void znsage_end_pages(struct znsage_chunk *zc, u32 first, u32 nr,
		      blk_status_t status);
enum hrtimer_restart znsage_deadline(struct hrtimer *timer);

/* read.c */
extern const unsigned int znsage_read_pad;
void znsage_read(struct znsage_device *zd, struct bio *bio);
void znsage_read_busy(struct znsage_device *zd);

/* worker.c */
extern const unsigned int znsage_worker_pad;
void znsage_work(struct work_struct *work);

/* sysfs.c */
extern const struct attribute_group *znsage_disk_groups[];

/* Let the worker run; any context. */
static inline void znsage_kick(struct znsage_device *zd)
{
	queue_work(zd->wq, &zd->work);
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
