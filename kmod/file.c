// SPDX-License-Identifier: GPL-2.0
/*
 * A regular file instead of a block device: the module asks the file system
 * once where the file lies, and then writes there without it. The open file
 * keeps the file system mounted and writable. S_SWAPFILE keeps the file where
 * it is: the VFS and the file systems refuse to write, truncate, unlink, clone
 * or move it.
 *
 * The file system's swap_activate() tells the extents, as it tells swapon, in a
 * private swap_info_struct that the swap code never sees. In all kernels that
 * the module builds for, it uses only the structure's device, number of pages
 * and tree of extents. It takes extents that were allocated but not written, as
 * fallocate() leaves them, refuses holes, extents shared with other files and
 * other devices, writes the file's metadata to the device first, and trims
 * extents to whole pages of the device. bmap() does none of that: an unwritten
 * extent looks like a hole.
 *
 * On ext4 and XFS swap_activate() leaves nothing to undo. Others need
 * swap_deactivate(), have their own I/O for swap, or move blocks of a file.
 */
#include <linux/file.h>
#include <linux/magic.h>
#include <linux/pagemap.h>
#include <linux/rbtree.h>
#include <linux/slab.h>

#include "backend.h"

static int check_file(const char *name, const char *path, struct inode *inode)
{
	struct super_block *sb = inode->i_sb;

	if (!S_ISREG(inode->i_mode)) {
		znsage_err(name, "%s is neither a block device nor a regular file",
			   path);
		return -ENOTBLK;
	}
	if ((sb->s_magic != EXT4_SUPER_MAGIC &&
	     sb->s_magic != XFS_SUPER_MAGIC) ||
	    !sb->s_bdev || !inode->i_mapping->a_ops->swap_activate) {
		znsage_err(name, "%s is on %s: the file must be on ext4 or XFS; take another one, or a partition",
			   path, sb->s_type->name);
		return -EOPNOTSUPP;
	}
	if (IS_ENCRYPTED(inode)) {
		znsage_err(name, "%s is encrypted by the file system, which would not encrypt swap: take another file, and set encrypt",
			   path);
		return -EOPNOTSUPP;
	}
	if (IS_DAX(inode)) {
		znsage_err(name, "%s is in memory without a page cache (DAX): take another file",
			   path);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Nobody can write the file any more; the page cache must not, either. */
static int drain(struct inode *inode)
{
	int err;

	inode_dio_wait(inode);
	err = filemap_write_and_wait(inode->i_mapping);
	return err ? err : invalidate_inode_pages2(inode->i_mapping);
}

/* Copy the @nr extents of the tree to an array. */
static int copy_extents(struct znsage_backing *b, const struct rb_root *root,
			u32 nr)
{
	struct rb_node *node;
	u32 i = 0;

	b->extents = kvcalloc(nr, sizeof(*b->extents), GFP_KERNEL);
	if (!b->extents)
		return -ENOMEM;
	for (node = rb_first(root); node && i < nr; node = rb_next(node), i++) {
		const struct swap_extent *se = rb_entry(node,
							struct swap_extent,
							rb_node);

		b->extents[i].start = se->start_block * ZNSAGE_PAGE_SECTORS;
		b->extents[i].nr = (sector_t)se->nr_pages * ZNSAGE_PAGE_SECTORS;
	}
	b->nr_extents = i;
	return 0;
}

static int take_extents(struct znsage_backing *b, struct inode *inode)
{
	struct swap_info_struct *sis = kzalloc(sizeof(*sis), GFP_KERNEL);
	struct swap_extent *se, *next;
	sector_t span;
	int err;

	if (!sis)
		return -ENOMEM;
	sis->bdev = inode->i_sb->s_bdev;
	sis->max = min_t(u64, i_size_read(inode) >> PAGE_SHIFT, UINT_MAX);
	sis->swap_extent_root = RB_ROOT;
	err = inode->i_mapping->a_ops->swap_activate(sis, b->swap_file, &span);
	if (err >= 0)
		err = copy_extents(b, &sis->swap_extent_root, err);
	/* On XFS, this may be the realtime device. */
	b->bdev = sis->bdev;
	rbtree_postorder_for_each_entry_safe(se, next, &sis->swap_extent_root,
					     rb_node)
		kfree(se);
	kfree(sis);
	return err;
}

/* Under the inode's lock, as swapon. */
static int take_file(const char *name, const char *path,
		     struct znsage_backing *b, struct inode *inode)
{
	int err;

	if (IS_SWAPFILE(inode)) {
		znsage_err(name, "%s is in use as swap", path);
		return -EBUSY;
	}
	inode_set_flags(inode, S_SWAPFILE, S_SWAPFILE);
	err = drain(inode);
	if (err) {
		znsage_err(name, "%s has pages in the page cache that cannot be dropped (%d)",
			   path, err);
		goto undo;
	}
	err = take_extents(b, inode);
	if (err) {
		znsage_err(name, "%s has holes, or shares blocks with another file, or cannot be read (%d): make another one by fallocate",
			   path, err);
		goto undo;
	}
	if (!bdev_is_zoned(b->bdev))
		return 0;
	znsage_err(name, "%s is on %pg, which has zones: take the device itself",
		   path, b->bdev);
	err = -EOPNOTSUPP;
undo:
	inode_set_flags(inode, 0, S_SWAPFILE);
	return err;
}

/**
 * znsage_file_open() - use a regular file instead of a block device
 * @name: for messages
 * @path: path of the file
 * @b:    filled in; znsage_file_close() ends the use
 *
 * Context: sleeps, for as long as writing the file's pages back takes.
 * Return: 0, or an errno with a message.
 */
int znsage_file_open(const char *name, const char *path,
		     struct znsage_backing *b)
{
	struct file *file = filp_open(path, O_RDWR | O_LARGEFILE, 0);
	struct inode *inode;
	int err;

	if (IS_ERR(file)) {
		znsage_err(name, "%s cannot be opened (%ld)", path,
			   PTR_ERR(file));
		return PTR_ERR(file);
	}
	b->swap_file = file;
	inode = file_inode(file);
	err = check_file(name, path, inode);
	if (!err) {
		inode_lock(inode);
		err = take_file(name, path, b, inode);
		inode_unlock(inode);
	}
	if (err) {
		fput(file);
		kvfree(b->extents);
		memset(b, 0, sizeof(*b));
	}
	return err;
}

/* The file is a file again. Sleeps; no I/O may be in flight. */
void znsage_file_close(struct znsage_backing *b)
{
	struct inode *inode = file_inode(b->swap_file);

	inode_lock(inode);
	inode_set_flags(inode, 0, S_SWAPFILE);
	inode_unlock(inode);
	fput(b->swap_file);
	kvfree(b->extents);
}
