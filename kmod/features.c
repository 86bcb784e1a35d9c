// SPDX-License-Identifier: GPL-2.0
/*
 * What kernels have or lack: not a part of the module. Kbuild compiles this, and
 * ZNSAGE_HAS_NAME is defined for each NAME below whose line compiles. Versions
 * would not tell, since distributions backport much.
 */
#include <linux/blkdev.h>
#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <linux/workqueue.h>

#define HAS(_thing)		_Static_assert(sizeof(_thing), "")
#define IS(_thing, _type)						\
	_Static_assert(__builtin_types_compatible_p(typeof(_thing), _type), "")
#define OPS			((struct block_device_operations *)0)

#line 1 "SLOT_FREE_NOTIFY"
HAS(OPS->swap_slot_free_notify);
#line 1 "BDEV_FILE"
HAS(&bdev_file_open_by_path);
#line 1 "ZONE_MGMT_NOIO"
IS(blkdev_zone_mgmt, int (struct block_device *, enum req_op, sector_t, sector_t));
#line 1 "EMULATED_APPEND"
HAS(&bdev_emulates_zone_append);
#line 1 "WRITE_STREAMS"
HAS(&bdev_max_write_streams);
#line 1 "OPEN_DISK"
IS(OPS->open, int (*)(struct gendisk *, blk_mode_t));
#line 1 "WQ_PERCPU"
HAS(WQ_PERCPU);
#line 1 "HRTIMER_SETUP"
HAS(&hrtimer_setup);
#line 1 "FREEZE_NOIO"
IS(blk_mq_freeze_queue, unsigned int (struct request_queue *));
#line 1 "IO_ACCT_AT_END"
IS(bdev_start_io_acct, unsigned long (struct block_device *, enum req_op, unsigned long));
