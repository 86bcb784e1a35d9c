// SPDX-License-Identifier: GPL-2.0
/*
 * Attach and detach. The backing device holds nothing of value before attach
 * and after detach: both reset the zones that are used.
 */
#include <linux/idr.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "device.h"

static const char *const refusals[] = {
	[ZSE_OK] = "",
	[ZSE_NO_MEMORY] = "not enough memory for the maps",
	[ZSE_BAD_CHUNK] = "the chunk is larger than a zone, or zone or chunk is no multiple of the write unit",
	[ZSE_TOO_FEW_ZONES] = "too few zones for streams, GC and the reserve",
	[ZSE_TOO_MANY_BLOCKS] = "the device is too large",
	[ZSE_TOO_MANY_SLOTS] = "the size leaves too little over-provisioning",
	[ZSE_TOO_MANY_CHUNKS] = "the chunk is too large",
	[ZSE_BAD_SETTING] = "a watermark is out of range (reserve + GC's zones <= gc_low < gc_high < zones)",
};

static DEFINE_IDA(device_ids);

static void ref_release(struct percpu_ref *ref)
{
	struct znsage_device *zd = container_of(ref, struct znsage_device, ref);

	complete(&zd->released);
}

static int open_backing(struct znsage_device *zd, const char *path)
{
	int err = znsage_backing_open(&zd->backing, path, zd);

	if (err == -ENOTBLK)
		return znsage_file_open(zd->name, path, &zd->backing);
	if (err == -EBUSY)
		znsage_err(zd->name, "%s is in use", path);
	else if (err)
		znsage_err(zd->name, "%s cannot be opened (%d)", path, err);
	return err;
}

static int make_engine(struct znsage_device *zd, struct znsage_geometry *geo)
{
	enum zse_refusal why;

	geo->cfg.host = zd;
	geo->cfg.zone_event = znsage_zone_state;
	geo->cfg.odd = znsage_odd;
	zd->page_blocks = max(geo->cfg.pack, 1U);
	zd->engine = zse_create(&geo->cfg, &why);
	if (!zd->engine) {
		znsage_err(zd->name, "%s", refusals[why]);
		return why == ZSE_NO_MEMORY ? -ENOMEM :
		       why == ZSE_TOO_FEW_ZONES ? -ENOSPC : -EINVAL;
	}
	zd->zone_nr = geo->zone_nr;
	geo->zone_nr = NULL;
	zd->starts = geo->starts;
	geo->starts = NULL;
	zd->backend = geo->backend;
	zd->zone_sectors = geo->zone_sectors;
	zd->nr_unused = geo->nr_unused;
	zd->nr_all = geo->nr_all;
	zd->whole = geo->whole;
	zd->to_reset = kvcalloc(BITS_TO_LONGS(zd->nr_all), sizeof(long),
				GFP_KERNEL);
	if (!zd->to_reset)
		return -ENOMEM;
	zd->chunk_pages = geo->cfg.chunk_pages;
	zd->batch_pages = geo->cfg.batch_pages;
	zd->write_unit = geo->cfg.write_unit / zd->page_blocks;
	zd->nr_write_streams = znsage_write_streams(zd->backing.bdev);
	zd->nr_slots = geo->cfg.nr_slots;
	zd->nr_streams = zse_max_streams(&geo->cfg);
	return znsage_chunks_alloc(zd, &geo->cfg);
}

/* Allocate what I/O needs besides the engine. */
static int make_io(struct znsage_device *zd)
{
	u32 nr;
	int err;

	zd->junk = alloc_page(GFP_KERNEL);
	zd->header = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!zd->junk || !zd->header)
		return -ENOMEM;
	znsage_write_start(zd);
	znsage_append_start(zd);
	err = znsage_read_start(zd);
	if (!err)
		err = znsage_worker_start(zd);
	if (!err)
		err = znsage_latency_init(zd);
	if (err)
		return err;
	zd->time_reads = true;
	nr = zse_get_config(zd->engine)->nr_zones;
	zd->looked = kvcalloc(BITS_TO_LONGS(nr), sizeof(long), GFP_KERNEL);
	zd->gc_since = kvcalloc(nr, sizeof(*zd->gc_since), GFP_KERNEL);
	zd->to_erase = kvcalloc(BITS_TO_LONGS(nr), sizeof(long), GFP_KERNEL);
	if (!zd->looked || !zd->gc_since || !zd->to_erase)
		return -ENOMEM;
	/*
	 * The worker has no higher priority than reclaim, whose pages it
	 * writes: GC's work would keep tasks that swap in from the CPU.
	 */
	zd->wq = alloc_workqueue("znsage/%s", WQ_MEM_RECLAIM |
				 WQ_UNBOUND, 1, zd->name);
	zd->read_wq = alloc_workqueue("znsage-in/%s", WQ_MEM_RECLAIM |
				      WQ_HIGHPRI | ZNSAGE_WQ_PERCPU, 0,
				      zd->name);
	zd->wait_wq = alloc_workqueue("znsage-wait/%s", WQ_MEM_RECLAIM |
				      WQ_UNBOUND, 0, zd->name);
	return zd->wq && zd->read_wq && zd->wait_wq ? 0 : -ENOMEM;
}

/* Free a device without a disk and without I/O, perhaps half built. */
static void device_free(struct znsage_device *zd)
{
	znsage_filler_remove(zd);
	znsage_policy_end(zd);
	if (zd->wq)
		destroy_workqueue(zd->wq);
	if (zd->read_wq)
		destroy_workqueue(zd->read_wq);
	if (zd->wait_wq)
		destroy_workqueue(zd->wait_wq);
	kvfree(zd->frames);
	znsage_read_end(zd);
	bioset_exit(&zd->worker_bios);
	if (zd->junk)
		__free_page(zd->junk);
	if (zd->header)
		__free_page(zd->header);
	znsage_chunks_free(zd);
	znsage_crypt_end(zd);
	znsage_compress_end(zd);
	zse_destroy(zd->engine);
	kvfree(zd->zone_nr);
	kvfree(zd->starts);
	kvfree(zd->to_reset);
	kvfree(zd->to_erase);
	kvfree(zd->gc_since);
	kvfree(zd->looked);
	free_percpu(zd->times);
	if (zd->backing.swap_file)
		znsage_file_close(&zd->backing);
	else if (zd->backing.bdev)
		znsage_backing_close(&zd->backing);
	if (zd->index >= 0)
		ida_free(&device_ids, zd->index);
	percpu_ref_exit(&zd->ref);
	kfree(zd);
}

static struct znsage_device *device_alloc(const char *name,
					  const struct znsage_settings *set)
{
	struct znsage_device *zd = kzalloc(sizeof(*zd), GFP_KERNEL);
	static struct lock_class_key frozen_key;
	u32 i;

	if (!zd)
		return NULL;
	strscpy(zd->name, name, sizeof(zd->name));
	zd->deadline_us = set->deadline_us;
	zd->discard = set->discard;
	spin_lock_init(&zd->lock);
	for (i = 0; i < ZSE_MAX_STREAMS; i++) {
		bio_list_init(&zd->pending[i]);
		init_waitqueue_head(&zd->chunk_wait[i]);
	}
	mutex_init(&zd->check.lock);
	lockdep_init_map(&zd->check.frozen, "znsage_frozen", &frozen_key, 0);
	init_completion(&zd->released);
	if (percpu_ref_init(&zd->ref, ref_release, 0, GFP_KERNEL)) {
		kfree(zd);
		return NULL;
	}
	zd->index = ida_alloc(&device_ids, GFP_KERNEL);
	return zd;
}

static int device_build_with(struct znsage_device *zd,
			     const struct znsage_settings *set,
			     const struct znsage_policy *policy)
{
	struct znsage_geometry geo;
	int err = znsage_geometry_read(zd->name, &zd->backing, set, policy, &geo);

	if (!err)
		err = znsage_crypt_start(zd, set->encrypt);
	if (!err)
		err = znsage_compress_start(zd, set->compress);
	if (!err)
		err = make_engine(zd, &geo);
	if (!err)
		err = make_io(zd);
	/* Only now is anything written. */
	if (!err)
		err = znsage_reset_dirty(zd, &geo);
	znsage_geometry_free(&geo);
	if (!err)
		err = znsage_policy_start(zd, policy);
	return err;
}

static int device_build(struct znsage_device *zd,
			const struct znsage_settings *set)
{
	const struct znsage_policy *policy;
	int err;

	if (zd->index < 0)
		return zd->index;
	err = open_backing(zd, set->backing);
	if (err)
		return err;
	policy = znsage_policy_get(set->policy);
	if (!policy) {
		znsage_err(zd->name, "there is no policy %s", set->policy);
		return -EINVAL;
	}
	err = device_build_with(zd, set, policy);
	if (err) {
		znsage_policy_put(policy);
		return err;
	}
	znsage_frames_alloc(zd);
	err = set->keep_slots ? znsage_filler_add(zd) : 0;
	return err ? err : znsage_disk_add(zd);
}

/**
 * znsage_attach() - start a device
 * @name: for messages
 * @set:  settings
 *
 * Context: sleeps, for as long as resetting the zones takes.
 * Return: the device, or an ERR_PTR with a message.
 */
struct znsage_device *znsage_attach(const char *name,
				    const struct znsage_settings *set)
{
	struct znsage_device *zd;
	struct zse_stats st;
	int err = znsage_restore_block(name);

	if (err)
		return ERR_PTR(err);
	zd = device_alloc(name, set);
	err = zd ? device_build(zd, set) : -ENOMEM;
	if (err) {
		if (zd)
			device_free(zd);
		znsage_restore_unblock();
		return ERR_PTR(err);
	}
	znsage_debugfs_add(zd);
	zse_get_stats(zd->engine, &st);
	znsage_info(name, "%s on %s: %llu MiB in %llu zones, policy %s, %u streams, chunk %lu KiB, maps %llu KiB",
		    zd->disk->disk_name, set->backing,
		    (u64)zd->nr_slots * PAGE_SIZE >> 20, st.zones_total,
		    set->policy, (u32)st.streams,
		    zd->batch_pages * PAGE_SIZE >> 10, st.map_bytes >> 10);
	return zd;
}

/**
 * znsage_detach() - stop a device
 * @zd: device; freed on success
 *
 * Context: sleeps, for as long as resetting the zones takes.
 * Return: 0, or -EBUSY if the disk is open; the device then goes on running.
 */
int znsage_detach(struct znsage_device *zd)
{
	int err = znsage_disk_claim(zd);

	if (err)
		return err;
	znsage_debugfs_remove(zd);
	del_gendisk(zd->disk);
	flush_work(&zd->wake_work);
	znsage_policy_end(zd);
	znsage_quiesce(zd);
	percpu_ref_kill(&zd->ref);
	wait_for_completion(&zd->released);
	cancel_delayed_work_sync(&zd->retry);
	hrtimer_cancel(&zd->timer);
	cancel_work_sync(&zd->look_work);
	cancel_work_sync(&zd->work);
	cancel_work_sync(&zd->read_work);
	cancel_work_sync(&zd->erase_work);
	put_disk(zd->disk);
	if (!zd->gone)
		znsage_reset_written(zd);
	znsage_info(zd->name, "detached");
	device_free(zd);
	znsage_restore_unblock();
	return 0;
}
