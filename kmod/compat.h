/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the kernels that the module builds for, 6.1 to 7.3. Only
 * this file looks at the version, and at ZNSAGE_HAS_*, which features.c finds
 * out.
 */
#ifndef ZNSAGE_COMPAT_H
#define ZNSAGE_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/string.h>
#include <linux/swap.h>
#include <linux/sysfs.h>
#include <linux/version.h>
#include <linux/workqueue.h>

/*
 * The newest kernel that was tested. DKMS builds the module on later ones, too,
 * which may change what it looks at.
 */
#define ZNSAGE_NEWEST_TESTED	"7.3"
#define ZNSAGE_IS_UNTESTED \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(7, 4, 0))

/* Sectors of a block device. */
struct znsage_extent {
	sector_t start, nr;
};

/* A block device: opened exclusively, or below the file system of a file. */
struct znsage_backing {
	struct block_device *bdev;
#ifdef ZNSAGE_HAS_BDEV_FILE
	struct file *file;
#endif
	struct file *swap_file;		/* see file.c; or NULL */
	struct znsage_extent *extents;	/* where it lies */
	u32 nr_extents;
};

static inline int znsage_backing_open(struct znsage_backing *b,
				      const char *path, void *holder)
{
#ifdef ZNSAGE_HAS_BDEV_FILE
	struct file *file = bdev_file_open_by_path(path, BLK_OPEN_READ |
						   BLK_OPEN_WRITE, holder,
						   NULL);

	if (IS_ERR(file))
		return PTR_ERR(file);
	b->file = file;
	b->bdev = file_bdev(file);
#else
	struct block_device *bdev = blkdev_get_by_path(path, FMODE_READ |
						       FMODE_WRITE | FMODE_EXCL,
						       holder);

	if (IS_ERR(bdev))
		return PTR_ERR(bdev);
	b->bdev = bdev;
#endif
	return 0;
}

static inline void znsage_backing_close(struct znsage_backing *b)
{
#ifdef ZNSAGE_HAS_BDEV_FILE
	bdev_fput(b->file);
#else
	blkdev_put(b->bdev, FMODE_READ | FMODE_WRITE | FMODE_EXCL);
#endif
}

static inline int znsage_zone_reset(struct block_device *bdev, sector_t sector,
				    sector_t nr)
{
#ifdef ZNSAGE_HAS_ZONE_MGMT_NOIO
	return blkdev_zone_mgmt(bdev, REQ_OP_ZONE_RESET, sector, nr);
#else
	return blkdev_zone_mgmt(bdev, REQ_OP_ZONE_RESET, sector, nr,
				GFP_KERNEL);
#endif
}

/*
 * Does the kernel emulate zone append by writes, one at a time in a zone?
 * Before the block layer did (6.10), sd did, for SCSI disks.
 */
static inline bool znsage_append_is_emulated(struct block_device *bdev)
{
#ifdef ZNSAGE_HAS_EMULATED_APPEND
	return bdev_emulates_zone_append(bdev);
#else
	struct device *parent = disk_to_dev(bdev->bd_disk)->parent;

	return parent && parent->bus && !strcmp(parent->bus->name, "scsi");
#endif
}

/*
 * Longest zone append that the block layer does not split, in sectors: it would
 * warn and send it with a wrong count of segments. Before 6.12 it also splits
 * at max_sectors_kb, which root may change at any time, in physical blocks.
 */
static inline u32 znsage_append_sectors(struct block_device *bdev)
{
	u32 sectors = bdev_max_zone_append_sectors(bdev);
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
	u32 block = bdev_physical_block_size(bdev) >> SECTOR_SHIFT;

	sectors = min(sectors,
		      READ_ONCE(bdev_get_queue(bdev)->limits.max_sectors));
	if (sectors > block)
		sectors -= sectors % block;
#endif
	return sectors;
}

/*
 * Write streams of the device (FDP): the unit in which it reclaims them, or 0;
 * their number, 0 for a partition; and the stream of @bio, from 0.
 */
static inline u32 znsage_write_stream_granularity(struct block_device *bdev)
{
#ifdef ZNSAGE_HAS_WRITE_STREAMS
	return bdev_get_queue(bdev)->limits.write_stream_granularity;
#else
	return 0;
#endif
}

static inline u32 znsage_write_streams(struct block_device *bdev)
{
#ifdef ZNSAGE_HAS_WRITE_STREAMS
	return min_t(u32, bdev_max_write_streams(bdev), U8_MAX);
#else
	return 0;
#endif
}

static inline void znsage_set_write_stream(struct bio *bio, u8 nr)
{
#ifdef ZNSAGE_HAS_WRITE_STREAMS
	bio->bi_write_stream = nr + 1;
#endif
}

/* A kernel that tells of freed slots in another way needs a branch in disk.c. */
#ifndef ZNSAGE_HAS_SLOT_FREE_NOTIFY
#error "this kernel has no swap_slot_free_notify: look for a newer znsage"
#endif

/* block_device_operations.open: (gendisk, mode) since 6.5. */
#ifdef ZNSAGE_HAS_OPEN_DISK
#define ZNSAGE_OPEN_ARGS	struct gendisk *disk, blk_mode_t mode
#define ZNSAGE_OPEN_DISK	disk
#else
#define ZNSAGE_OPEN_ARGS	struct block_device *bdev, fmode_t mode
#define ZNSAGE_OPEN_DISK	(bdev->bd_disk)
#endif

/* Every distribution has these. */
#if !IS_ENABLED(CONFIG_MEMCG) || !IS_ENABLED(CONFIG_BLK_CGROUP) || \
	!(IS_ENABLED(CONFIG_CRYPTO_SKCIPHER) || \
	  IS_ENABLED(CONFIG_CRYPTO_SKCIPHER2))
#error "znsage needs CONFIG_MEMCG, CONFIG_BLK_CGROUP and CONFIG_CRYPTO_SKCIPHER"
#endif

/* Work that stays on its CPU. 7.x warns if it is missing. */
#ifdef ZNSAGE_HAS_WQ_PERCPU
#define ZNSAGE_WQ_PERCPU	WQ_PERCPU
#else
#define ZNSAGE_WQ_PERCPU	0
#endif

static inline void
znsage_hrtimer_setup(struct hrtimer *timer,
		     enum hrtimer_restart (*function)(struct hrtimer *))
{
#ifdef ZNSAGE_HAS_HRTIMER_SETUP
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer->function = function;
#endif
}

/*
 * Hold back new bios and wait for submissions in progress. The caller's
 * allocations start no I/O until znsage_unfreeze(): reclaim would wait for this
 * queue. Since 6.14 the kernel does that itself.
 */
static inline unsigned int znsage_freeze(struct gendisk *disk)
{
#ifdef ZNSAGE_HAS_FREEZE_NOIO
	return blk_mq_freeze_queue(disk->queue);
#else
	unsigned int flags = memalloc_noio_save();

	blk_mq_freeze_queue(disk->queue);
	return flags;
#endif
}

static inline void znsage_unfreeze(struct gendisk *disk, unsigned int flags)
{
#ifdef ZNSAGE_HAS_FREEZE_NOIO
	blk_mq_unfreeze_queue(disk->queue, flags);
#else
	blk_mq_unfreeze_queue(disk->queue);
	memalloc_noio_restore(flags);
#endif
}

/*
 * Count @sectors of @bio for iostat; they end by themselves. Returns the time
 * for znsage_io_end().
 */
static inline unsigned long znsage_io_start(const struct bio *bio, u32 sectors)
{
#ifdef ZNSAGE_HAS_IO_ACCT_AT_END
	return bdev_start_io_acct(bio->bi_bdev, bio_op(bio), jiffies);
#else
	return bdev_start_io_acct(bio->bi_bdev, sectors, bio_op(bio), jiffies);
#endif
}

static inline void znsage_io_end(const struct bio *bio, u32 sectors,
				 unsigned long start)
{
#ifdef ZNSAGE_HAS_IO_ACCT_AT_END
	bdev_end_io_acct(bio->bi_bdev, bio_op(bio), sectors, start);
#else
	bdev_end_io_acct(bio->bi_bdev, bio_op(bio), start);
#endif
}

/*
 * Largest discard or write of zeroes, in whole pages. Kernels before 6.11 split
 * a long range here, and a slot that lies in two requests is freed by neither.
 */
#define ZNSAGE_MAX_SECTORS	(rounddown(UINT_MAX, PAGE_SIZE) >> SECTOR_SHIFT)

/*
 * Allocate a disk for I/O in whole, aligned pages. It is not marked
 * synchronous, or swap would wait for each page. It has no write cache.
 */
static inline struct gendisk *znsage_alloc_disk(bool stable_writes)
{
#ifdef BLK_FEAT_STABLE_WRITES
	struct queue_limits lim = {
		.logical_block_size = PAGE_SIZE,
		.physical_block_size = PAGE_SIZE,
		.io_min = PAGE_SIZE,
		.dma_alignment = PAGE_SIZE - 1,
		.max_hw_discard_sectors = ZNSAGE_MAX_SECTORS,
		.max_write_zeroes_sectors = ZNSAGE_MAX_SECTORS,
		.discard_granularity = PAGE_SIZE,
		.features = stable_writes ? BLK_FEAT_STABLE_WRITES : 0,
	};

	return blk_alloc_disk(&lim, NUMA_NO_NODE);
#else
	struct gendisk *disk = blk_alloc_disk(NUMA_NO_NODE);

	if (!disk)
		return ERR_PTR(-ENOMEM);
	blk_queue_logical_block_size(disk->queue, PAGE_SIZE);
	blk_queue_physical_block_size(disk->queue, PAGE_SIZE);
	blk_queue_io_min(disk->queue, PAGE_SIZE);
	blk_queue_dma_alignment(disk->queue, PAGE_SIZE - 1);
	disk->queue->limits.discard_granularity = PAGE_SIZE;
	blk_queue_max_discard_sectors(disk->queue, ZNSAGE_MAX_SECTORS);
	blk_queue_max_write_zeroes_sectors(disk->queue, ZNSAGE_MAX_SECTORS);
	blk_queue_flag_set(QUEUE_FLAG_NONROT, disk->queue);
	blk_queue_flag_clear(QUEUE_FLAG_ADD_RANDOM, disk->queue);
	if (stable_writes)
		blk_queue_flag_set(QUEUE_FLAG_STABLE_WRITES, disk->queue);
	return disk;
#endif
}

/*
 * May an append that ended with @status work in a moment, in the same zone?
 * Until 6.9 one of these says that another write to the zone is in flight;
 * later kernels queue such appends.
 */
static inline bool znsage_is_transient(blk_status_t status)
{
	switch (status) {
#ifdef BLK_STS_ZONE_RESOURCE
	case BLK_STS_ZONE_RESOURCE:
#endif
	case BLK_STS_ZONE_OPEN_RESOURCE:
	case BLK_STS_ZONE_ACTIVE_RESOURCE:
	case BLK_STS_DEV_RESOURCE:
	case BLK_STS_RESOURCE:
	case BLK_STS_AGAIN:
		return true;
	default:
		return false;
	}
}

/* Modules can register struct_ops. */
#define ZNSAGE_HAS_STRUCT_OPS \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0))

#endif /* ZNSAGE_COMPAT_H */
