/* SPDX-License-Identifier: MIT
 * The table of known file systems.
 */
#include "system.h"
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define EXFAT_MAGIC    0x2011bab0 /* not in linux/magic.h before 5.7 */
#define NTFS3_MAGIC    0x7366746e
#define NTFS_MAGIC     0x5346544e
#define HFS_MAGIC      0x4244
#define HFSPLUS_MAGIC  0x482b
#define ZFS_MAGIC      0x2fc12fc1
#define BCACHEFS_MAGIC 0xca451a4e

#define SOUND (SYSTEM_RENAMES | SYSTEM_FAITHFUL)
#define OWN   (SOUND | SYSTEM_LOCAL | SYSTEM_NAMES)
#define FAR   (SYSTEM_REMOTE | SYSTEM_ORDERED)
#define SMB   (SYSTEM_RENAMES | FAR | SYSTEM_LOCKS_MANDATORY)
#define SMB2  (SMB | SYSTEM_RENUMBERS | SYSTEM_BLIND)
/* Threads: measured on 6.18. Its writer has to reserve space. Before Linux 6.15 it does not log a
 * file whose link count is 0 (btrfs_log_inode_parent() in fs/btrfs/tree-log.c). f_bfree: see
 * btrfs_statfs() in fs/btrfs/super.c. */
#define BTRFS (SYSTEM_ONE_WRITER | SYSTEM_OVERSTATES | SYSTEM_UNLOGGED)

/* FAT, NFS, SMB and FUSE store what they can of the attributes, and report no error. On FUSE with
 * direct_io and in procfs, st_size need not be the end.
 *
 * SYSTEM_BLIND: FUSE_SYNCFS is sent to virtiofs and to block devices only (fs/fuse/inode.c),
 * SMB2_FLUSH and 9P's Tfsync by fsync(2) only. eCryptfs has no sync_fs operation. That of overlayfs
 * flushes the file system of the upper directory, but returns no write error of it (ovl_sync_fs()
 * in fs/overlayfs/super.c). On NFS it fails for any file of the mount whose write failed, for
 * example one that another client has removed.
 *
 * SYSTEM_ALLOCATES: XFS and btrfs gain nothing (measured on 6.18), and tmpfs would clear all pages
 * in one thread. SYSTEM_ONE_WRITER: the writer of tmpfs has to allocate and clear pages.
 * SYSTEM_READS_WRONG: F2FS keeps a small file in its inode. */
static const struct system {
	unsigned type;
	unsigned has;         /* enum system_property */
	int64_t time_step_ns; /* s_time_gran in fs/ of the kernel; 0: 1, or unknown */
} systems[] = {
    {EXT4_SUPER_MAGIC, OWN | SYSTEM_RECOVERS | SYSTEM_ALLOCATES, 0},
    {XFS_SUPER_MAGIC, OWN, 0},
    {BTRFS_SUPER_MAGIC, OWN | BTRFS, 0},
    {F2FS_SUPER_MAGIC, OWN | SYSTEM_READS_WRONG, 0},
    {TMPFS_MAGIC, OWN | SYSTEM_ONE_WRITER, 0},
    {RAMFS_MAGIC, SOUND, 0},
    {HUGETLBFS_MAGIC, SOUND | SYSTEM_NO_WRITE, 0},
    {OVERLAYFS_SUPER_MAGIC, SOUND | SYSTEM_BLIND | SYSTEM_SYNCS_ALL, 0},
    {ZFS_MAGIC, SOUND, 0},
    {BCACHEFS_MAGIC, SOUND | SYSTEM_NAMES, 0},
    {ECRYPTFS_SUPER_MAGIC, SYSTEM_RENAMES | SYSTEM_BLIND, 0},
    {NFS_SUPER_MAGIC, SYSTEM_RENAMES | FAR | SYSTEM_BLIND, 0},
    {CEPH_SUPER_MAGIC, SYSTEM_RENAMES | FAR, 0},
    {SMB_SUPER_MAGIC, SMB, 100},
    {CIFS_SUPER_MAGIC, SMB2, 100},
    {SMB2_SUPER_MAGIC, SMB2, 100},
    {FUSE_SUPER_MAGIC, FAR | SYSTEM_RENUMBERS | SYSTEM_SERVED | SYSTEM_BLIND, 0},
    {V9FS_MAGIC, SYSTEM_ORDERED | SYSTEM_BLIND, 0},
    {AFS_FS_MAGIC, SYSTEM_ORDERED, 0},
    {MSDOS_SUPER_MAGIC, SYSTEM_RENAMES | SYSTEM_DRAWS, 2000000000},
    {EXFAT_MAGIC, SYSTEM_RENAMES | SYSTEM_DRAWS, 10000000},
    {NTFS3_MAGIC, SYSTEM_RENAMES, 100},
    {NTFS_MAGIC, 0, 100},
    {HFS_MAGIC, 0, 1000000000},
    {HFSPLUS_MAGIC, 0, 1000000000},
    {MINIX_SUPER_MAGIC, 0, 1000000000},
    {MINIX2_SUPER_MAGIC, 0, 1000000000},
    {MINIX3_SUPER_MAGIC, 0, 1000000000},
    {JFFS2_SUPER_MAGIC, 0, 1000000000},
    {REISERFS_SUPER_MAGIC, 0, 1000000000},
};

unsigned system_type(int fd)
{
	struct statfs fs;
	return (fd == AT_FDCWD ? statfs(".", &fs) : fstatfs(fd, &fs)) < 0 ? 0 : (unsigned)fs.f_type;
}

/* NULL: it is not known. */
static const struct system *system_find(unsigned type)
{
	for (size_t i = 0; i < sizeof(systems) / sizeof(*systems); i++)
		if (systems[i].type == type)
			return &systems[i];
	return NULL;
}

bool system_type_has(unsigned type, enum system_property property)
{
	const struct system *s = system_find(type);
	return s && s->has & property;
}

bool system_has(int fd, enum system_property property)
{
	return system_type_has(system_type(fd), property);
}

bool system_folds(int dir)
{
	int flags = 0;
	return ioctl(dir, FS_IOC_GETFLAGS, &flags) == 0 ? flags & FS_CASEFOLD_FL : errno == EBADF;
}

bool system_numbers_last(int fd)
{
	const unsigned type = system_type(fd);
	return (system_type_has(type, SYSTEM_RENAMES) || system_type_has(type, SYSTEM_LOCAL)) &&
	       !system_type_has(type, SYSTEM_DRAWS) && !system_type_has(type, SYSTEM_RENUMBERS);
}

int64_t system_type_time_step(unsigned type)
{
	const struct system *s = system_find(type);
	return s ? s->time_step_ns : 0;
}

#define EXT_ROOT 2 /* inode number of the top of ext2, ext3 and ext4 */

bool system_is_lost_found(int dir, const char *name)
{
	struct stat st;
	return strcmp(name, "lost+found") == 0 && fstat(dir, &st) == 0 && st.st_ino == EXT_ROOT &&
	       system_has(dir, SYSTEM_RECOVERS);
}

int system_is_mount_root(int fd)
{
	struct statx sx;
	if (statx(fd, "", AT_EMPTY_PATH, 0, &sx) < 0 ||
	    !(sx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
		return -1;
	return !!(sx.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* sshfs asks statfs(2) of a symlink about its target, which may be missing: unknown. `name` is the
 * start of the type of the mount. */
static bool system_is_mounted_as(int fd, const char *name)
{
	struct mount_list list;
	struct mount m;
	const unsigned type = system_type(fd);
	if (type != 0 && !system_type_has(type, SYSTEM_SERVED))
		return false;
	const bool is = mount_find(&list, fd, &m) && strncmp(m.type, name, strlen(name)) == 0;
	mount_close(&list);
	return is;
}

/* With FUSE syncfs(2) fails with ESTALE for files that were removed since they were written, and
 * has written the others back (Linux 6.18, writeback_cache). */
int system_sync(int fd)
{
	const int err = syncfs(fd) < 0 ? errno : 0;
	return err == ESTALE && system_is_mounted_as(fd, "fuse") ? 0 : -err;
}

bool system_is_rclone(int fd)
{
	return system_is_mounted_as(fd, "fuse.rclone");
}

bool system_is_sshfs(int fd)
{
	return system_is_mounted_as(fd, "fuse.sshfs");
}
