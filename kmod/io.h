/* SPDX-License-Identifier: GPL-2.0 */
/* The layer of I/O: swap-out, swap-in and GC. */
#ifndef ZNSAGE_IO_H
#define ZNSAGE_IO_H

#include "backend.h"

/* chunk.c */
int znsage_chunks_alloc(struct znsage_device *zd, const struct zse_config *cfg);
void znsage_chunks_free(struct znsage_device *zd);

/* write.c */
void znsage_write_start(struct znsage_device *zd);
void znsage_write(struct znsage_device *zd, struct bio *bio);
void znsage_write_pending(struct znsage_device *zd);
void znsage_write_flush(struct znsage_device *zd);

/* wait.c */
void znsage_feed(struct znsage_device *zd, u32 stream);
void znsage_write_room(struct znsage_device *zd);
void znsage_slow_down(struct znsage_device *zd);
bool znsage_wait_for_room(struct znsage_device *zd, u32 stream, bool again);

/* append.c */
void znsage_append_start(struct znsage_device *zd);
void znsage_append_limit(struct znsage_device *zd);
void znsage_append(struct znsage_device *zd, const struct zse_op *op);
void znsage_end_pages(struct znsage_chunk *zc, u32 first, u32 nr,
		      blk_status_t status);
bool znsage_chunk_put(struct znsage_chunk *zc);
bool znsage_chunk_release(struct znsage_chunk *zc, int holds);
void znsage_charge(struct znsage_chunk *zc, struct bio *bio);
void znsage_charge_end(struct znsage_device *zd);

/* packed.c */
u32 znsage_packed_pages(const struct znsage_chunk *zc);
int znsage_pack(struct znsage_chunk *zc);
void znsage_packed_scan(struct znsage_chunk *zc);

/* read.c */
int znsage_read_init(void);
void znsage_read_exit(void);
int znsage_read_start(struct znsage_device *zd);
void znsage_read_end(struct znsage_device *zd);
void znsage_read(struct znsage_device *zd, struct bio *bio);

/* worker.c */
int znsage_worker_start(struct znsage_device *zd);
void znsage_quiesce(struct znsage_device *zd);

/* events.c */
void znsage_victim_begin(struct znsage_device *zd, u32 zone);
void znsage_victim_end(struct znsage_device *zd, u32 zone);
void znsage_zone_state(void *host, u32 zone, const char *from, const char *to);
void znsage_odd(void *host, u32 zone, enum zse_oddity odd, u32 at, u32 least);
bool znsage_look(struct znsage_device *zd, u32 zone);

/* hibernation.c */
void znsage_hibernation_watch(struct znsage_device *zd, struct gendisk *disk);
bool znsage_refuse(struct znsage_device *zd, struct bio *bio);
int znsage_hibernation_init(void);
void znsage_hibernation_exit(void);
int znsage_restore_block(const char *name);
void znsage_restore_unblock(void);

/*
 * The caller is about to change what is on the device below, until
 * znsage_change_end(). Returns false while the system hibernates; the work
 * items of the device run again afterwards. Context: any.
 */
static inline bool znsage_change_begin(struct znsage_device *zd)
{
	atomic_inc(&zd->changing);
	/* Pairs with freeze() in hibernation.c. */
	smp_mb__after_atomic();
	if (likely(!READ_ONCE(zd->asleep)))
		return true;
	atomic_dec(&zd->changing);
	return false;
}

static inline void znsage_change_end(struct znsage_device *zd)
{
	atomic_dec(&zd->changing);
}

#endif /* ZNSAGE_IO_H */
