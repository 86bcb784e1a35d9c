/* SPDX-License-Identifier: GPL-2.0 */
/* The zones of the device below: what there are, and how they are used. */
#ifndef ZNSAGE_BACKEND_H
#define ZNSAGE_BACKEND_H

#include "znsage.h"

/* How a device is used, by what it offers and the settings. */
struct znsage_geometry {
	struct zse_config cfg;
	const struct znsage_backend *backend;
	u32 nr_all;		/* zones of the device */
	u32 zone_sectors;	/* from one to the next */
	u32 *zone_nr;		/* number on the device of each zone used */
	sector_t *starts;	/* of all virtual zones */
	unsigned long *dirty;	/* bitmap of all zones: not empty */
	unsigned long *active;	/* bitmap of all zones: open or closed */
	u32 nr_unused;	/* conventional, read-only, offline, small, surplus */
	u32 nr_writable;	/* those that a reset of the device resets */
	sector_t whole;		/* size of the device if all those are used */
};

/* What zones are on the device below: zoned.c, virtual.c. */
struct znsage_backend {
	/*
	 * Describe the device's zones in @geo. Sleeps; writes nothing. Returns
	 * 0, or an errno with a message.
	 */
	int (*report)(const char *name, const struct znsage_backing *b,
		      const struct znsage_settings *set,
		      struct znsage_geometry *geo);
	/* May the chosen zones be used? Sleeps; returns as report(). */
	int (*check)(const char *name, struct block_device *bdev,
		     const struct znsage_settings *set,
		     struct znsage_geometry *geo);
	/* Make @bio, which has no pages yet, the append of @zc. */
	void (*append)(struct znsage_chunk *zc, struct bio *bio);
	/*
	 * The page of its zone where the device says that an append begins;
	 * U32_MAX: in no page of it. Any context.
	 */
	u32 (*landed)(const struct znsage_chunk *zc, const struct bio *bio);
	/*
	 * Written pages of @nr zones from @zone on; U32_MAX: it is full, or the
	 * device does not say. Returns false if the device does not say of some.
	 * Sleeps, but never for memory. NULL: the device does not know.
	 */
	bool (*written)(const struct znsage_device *zd, u32 zone, u32 nr,
			u32 *pages);
	/* Reset and finish a zone without waiting. 0: by @erase; not at all. */
	blk_opf_t reset, finish;
	/* Empty the zones in a range. Sleeps; allocates without I/O. */
	int (*erase)(const struct znsage_device *zd, sector_t sector,
		     sector_t nr);
};

extern const struct znsage_backend znsage_zoned, znsage_virtual;

/* file.c */
int znsage_file_open(const char *name, const char *path,
		     struct znsage_backing *b);
void znsage_file_close(struct znsage_backing *b);

/* geometry.c */
int znsage_geometry_read(const char *name, const struct znsage_backing *b,
			 const struct znsage_settings *set,
			 const struct znsage_policy *policy,
			 struct znsage_geometry *geo);
void znsage_geometry_free(struct znsage_geometry *geo);

/* zoned.c */
int znsage_reset_dirty(struct znsage_device *zd,
		       const struct znsage_geometry *geo);
void znsage_reset_written(struct znsage_device *zd);

#endif /* ZNSAGE_BACKEND_H */
