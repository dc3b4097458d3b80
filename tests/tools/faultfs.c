/* SPDX-License-Identifier: MIT
 *
 * faultfs: a FUSE pass-through of one directory that fails on demand, also beneath a loop device.
 *
 *     faultfs DIR MOUNTPOINT [-o fault=OP:ERRNO[:OFFSET]] [-o rate=N] [-o short=N] [-o writeback]
 *             [-o sizeless] [-o stream]
 *
 * and, while it is mounted, setfattr -n user.fault -v OP:ERRNO[:OFFSET] MOUNTPOINT; OP:0 mends it.
 * A read or write fails from OFFSET on; faults.h has the names. O_TMPFILE is unsupported.
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults.h"

static struct {
	char *fault;
	unsigned long rate;       /* bytes a second; 0: as fast as it goes */
	unsigned long short_read; /* most bytes that a read(2) returns; 0: all */
	int writeback;            /* the kernel collects writes: errors show at flush or fsync */
	int stream;               /* files have no offsets */
	int sizeless;             /* stat tells of 0 bytes, as where nobody knows before the end */
} config;

static int backing; /* the working directory, once the daemon has left ours */

static void throttle(size_t size)
{
	if (config.rate)
		usleep(size * 1000000 / config.rate);
}

static const char *rel(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static off_t result(off_t ret)
{
	return ret < 0 ? -errno : ret;
}

static void *fs_init(struct fuse_conn_info *conn, struct fuse_config *cfg)
{
	if (fchdir(backing) < 0)
		exit(1);
	if (config.writeback)
		conn->want |= FUSE_CAP_WRITEBACK_CACHE;
	cfg->use_ino = 1;
	cfg->hard_remove = 1; /* an unlinked open file lives on in fi->fh */
	cfg->nullpath_ok = 1;
	/* The page cache would take a short read for the end of the file. */
	cfg->direct_io = config.short_read > 0 || config.sizeless;
	return NULL;
}

static int fs_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	int r = result(fi ? fstat(fi->fh, st) : lstat(rel(path), st));

	if (r == 0 && config.sizeless && S_ISREG(st->st_mode))
		st->st_size = 0;
	return r;
}

static int open_backing(const char *path, int flags, mode_t mode, struct fuse_file_info *fi)
{
	int fd;

	/* To fill its cache the kernel reads what was opened for writing only. */
	if (config.writeback && (flags & O_ACCMODE) == O_WRONLY)
		flags = (flags & ~O_ACCMODE) | O_RDWR;
	fd = open(rel(path), flags & ~(O_APPEND | O_DIRECT), mode);
	if (fd < 0)
		return -errno;
	fi->fh = fd;
	fi->nonseekable = config.stream;
	return 0;
}

static int fs_open(const char *path, struct fuse_file_info *fi)
{
	return open_backing(path, fi->flags, 0, fi);
}

static int fs_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	return faults_at(FAULT_CREATE, 0, 0) ?: open_backing(path, fi->flags | O_CREAT, mode, fi);
}

static int fs_read(const char *path, char *buf, size_t size, off_t offset,
		   struct fuse_file_info *fi)
{
	int err = faults_at(FAULT_READ, size, offset);

	(void)path;
	if (err)
		return err;
	if (config.short_read && size > config.short_read)
		size = config.short_read;
	throttle(size);
	return result(pread(fi->fh, buf, size, offset));
}

static int fs_write(const char *path, const char *buf, size_t size, off_t offset,
		    struct fuse_file_info *fi)
{
	int err = faults_at(FAULT_WRITE, size, offset);

	(void)path;
	if (err)
		return err;
	throttle(size);
	return result(pwrite(fi->fh, buf, size, offset));
}

static int fs_flush(const char *path, struct fuse_file_info *fi)
{
	(void)path, (void)fi;
	return faults_at(FAULT_FLUSH, 0, 0);
}

static int fs_fsync(const char *path, int datasync, struct fuse_file_info *fi)
{
	(void)path, (void)datasync;
	return faults_at(FAULT_FSYNC, 0, 0) ?: result(fsync(fi->fh));
}

static int fs_release(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	close(fi->fh);
	return faults_at(FAULT_RELEASE, 0, 0);
}

static int fs_fallocate(const char *path, int mode, off_t offset, off_t length,
			struct fuse_file_info *fi)
{
	(void)path;
	return faults_at(FAULT_FALLOCATE, 0, 0) ?: result(fallocate(fi->fh, mode, offset, length));
}

static off_t fs_lseek(const char *path, off_t offset, int whence, struct fuse_file_info *fi)
{
	(void)path;
	return result(lseek(fi->fh, offset, whence));
}

static int fs_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	return faults_at(FAULT_TRUNCATE, 0, 0)
		   ?: result(fi ? ftruncate(fi->fh, size) : truncate(rel(path), size));
}

static int fs_link(const char *from, const char *to)
{
	return faults_at(FAULT_LINK, 0, 0) ?: result(link(rel(from), rel(to)));
}

static int fs_rename(const char *from, const char *to, unsigned flags)
{
	return faults_at(FAULT_RENAME, 0, 0)
		   ?: result(renameat2(AT_FDCWD, rel(from), AT_FDCWD, rel(to), flags));
}

static int fs_unlink(const char *path)
{
	return faults_at(FAULT_UNLINK, 0, 0) ?: result(unlink(rel(path)));
}

static int fs_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
		      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	DIR *dir = fdopendir(dup(fi->fh));

	(void)path, (void)offset, (void)flags;
	if (!dir)
		return -errno;
	rewinddir(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		fill(buf, entry->d_name, NULL, 0, 0);
	closedir(dir);
	return 0;
}

static int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	return result(fi ? fchmod(fi->fh, mode) : chmod(rel(path), mode));
}

static int fs_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
	return result(fi ? fchown(fi->fh, uid, gid) : lchown(rel(path), uid, gid));
}

static int fs_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *fi)
{
	if (fi)
		return result(futimens(fi->fh, times));
	return result(utimensat(AT_FDCWD, rel(path), times, AT_SYMLINK_NOFOLLOW));
}

static int fs_statfs(const char *path, struct statvfs *st)
{
	(void)path;
	return result(fstatvfs(backing, st));
}

static int fs_setxattr(const char *path, const char *name, const char *value, size_t size,
		       int flags)
{
	char text[64];

	(void)flags;
	if (strcmp(path, "/") != 0 || strcmp(name, "user.fault") != 0 || size >= sizeof(text))
		return -EOPNOTSUPP;
	memcpy(text, value, size);
	text[size] = '\0';
	return faults_set(text);
}

static const struct fuse_operations operations = {
    .init = fs_init,
    .getattr = fs_getattr,
    .open = fs_open,
    .create = fs_create,
    .read = fs_read,
    .write = fs_write,
    .flush = fs_flush,
    .fsync = fs_fsync,
    .release = fs_release,
    .fallocate = fs_fallocate,
    .lseek = fs_lseek,
    .truncate = fs_truncate,
    .link = fs_link,
    .rename = fs_rename,
    .unlink = fs_unlink,
    .opendir = fs_open,
    .readdir = fs_readdir,
    .releasedir = fs_release,
    .chmod = fs_chmod,
    .chown = fs_chown,
    .utimens = fs_utimens,
    .statfs = fs_statfs,
    .setxattr = fs_setxattr,
};

static const struct fuse_opt options[] = {
    {"fault=%s", offsetof(typeof(config), fault), 0},
    {"rate=%lu", offsetof(typeof(config), rate), 0},
    {"short=%lu", offsetof(typeof(config), short_read), 0},
    {"writeback", offsetof(typeof(config), writeback), 1},
    {"sizeless", offsetof(typeof(config), sizeless), 1},
    {"stream", offsetof(typeof(config), stream), 1},
    FUSE_OPT_END,
};

/* The first operand is ours, the second is libfuse's. */
static int take_operand(void *data, const char *arg, int key, struct fuse_args *args)
{
	(void)data, (void)args;
	if (key != FUSE_OPT_KEY_NONOPT || backing)
		return 1;
	backing = open(arg, O_PATH | O_DIRECTORY);
	if (backing < 0) {
		perror(arg);
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct fuse_args args = FUSE_ARGS_INIT(argc, argv);

	if (fuse_opt_parse(&args, &config, options, take_operand) < 0)
		return 2;
	if (!backing || (config.fault && faults_set(config.fault) < 0)) {
		fputs("usage: faultfs DIR MOUNTPOINT [-o fault=OP:ERRNO[:OFFSET]]\n", stderr);
		return 2;
	}
	umask(0);
	/* libfuse 3.14 complains of its own default. */
	fuse_opt_add_arg(&args, "-omax_idle_threads=10");
	return fuse_main(args.argc, args.argv, &operations, NULL);
}
