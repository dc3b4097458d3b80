/* SPDX-License-Identifier: MIT
 *
 * faultfs: a FUSE pass-through of one directory that fails, shortens and delays operations by rule;
 * it also works beneath a loop device.
 *
 *     faultfs DIR MOUNTPOINT [-o fault=RULE]... [-o rate=BYTES] [-o latency=US] [-o direct_io] [-o
 * writeback]
 *             [-o sizeless] [-o stream] [-o modeless] [-o caseless] [-o sequential] [-o xattrs]
 *             [-o busy] [-o fmode=OCTAL] [-o dmode=OCTAL] [-o steps=SECONDS] [-o grain=NS]
 *             [-o touch] [-o norewind] [-o renumber] [-o unaligned] [-o blind] [-o blockless]
 *             [-o pairs] [-o targets] [-o unowned] [-o linkless]
 *
 * While it is mounted, `setfattr -n user.fault -v RULE MOUNTPOINT` adds a rule, and
 * `getfattr --only-values -n user.faults MOUNTPOINT` prints how many operations rules have changed.
 *
 *     RULE:   OP:ACTION[:OFFSET[:TIMES]], or OP:0, which removes the rules of OP
 *     OP:     read, write, flush, fsync, release, create, fallocate, truncate, link, rename,
 * unlink, chmod, chown, utimens, symlink, mknod, mkdir, statfs, lseek, setxattr, getxattr,
 *             listxattr; of rename, only that of a directory (renamedir), of one that has entries
 * (renamefull), onto a name that exists (renameover), or of a file that is open for writing
 * (renameopen) ACTION: ERRNO        fail with this error, such as EPERM short=BYTES  read or write
 * at most that many bytes (1 or more) delay=MS     sleep for milliseconds first OFFSET: a read or
 * write is affected if it has bytes at or past OFFSET (0) TIMES:  how many operations are affected;
 * without it, all
 *
 * An operation has one rule for each kind of action: read:delay=20, read:short=5000 and
 * read:EIO:1048576 apply together, and a read that is shortened to end before OFFSET succeeds.
 * read:EAGAIN:4096:3 fails three reads, later ones succeed.
 *
 * With latency, lookups, opens, reads, writes, flushes, new directories and new times take that
 * many microseconds longer; many requests wait at once with -o max_threads=64 or more.
 *
 * direct_io opens files without the page cache. So does a rule read:short, for files opened from
 * then on: the page cache would take a short read for the end of the file. With sequential, as in
 * object stores, a write must start where the file ends. With busy, as on SMB, no directory is
 * renamed (EACCES) while a file in it is open for writing. With norewind a second read of an open
 * directory finds no names. With unaligned a file that was opened with O_DIRECT cannot be read
 * (EINVAL). With namemax=N, longer names are refused (ENAMETOOLONG); with namemute, statfs does not
 * say so. With drawn, a remount gives inodes other numbers, in the order in which they are met.
 * With xattrs the files have the extended attributes of DIR. O_TMPFILE is unsupported. An operation
 * that always fails with ENOSYS is one that the file system lacks: the kernel does not ask again
 * for some of them.
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "faults.h"

static struct {
	unsigned long rate;    /* bytes a second; 0: unlimited */
	unsigned latency;      /* microseconds until a request is answered, as on a network */
	int direct_io;         /* no page cache */
	int writeback;         /* the kernel collects writes: errors show at flush or fsync */
	int stream;            /* files have no offsets */
	int sizeless;          /* stat reports 0 bytes, like a file whose length is unknown */
	int modeless;          /* each file has mode 0777, and chmod fails with EPERM */
	int busy;              /* no directory is renamed while a file in it is open for writing */
	int sequential;        /* a write elsewhere than at the end of the file fails with EINVAL */
	int norewind;          /* an open directory can be read once, as with sshfs */
	int xattrs;            /* pass extended attributes through */
	unsigned fmode, dmode; /* each file or directory has this mode, and chmod has no effect */
	int unaligned;         /* no read of a file opened with O_DIRECT */
	unsigned grain;        /* the same in ns, below a second */
	unsigned steps;        /* seconds: stat reports a modification time that is a multiple */
	int touch; /* a written file gets the current time at close, a directory when it is renamed
		    */
	int caseless;  /* upper and lower case name the same file, also of Latin letters in UTF-8;
			* use -o entry_timeout=0, too */
	int oversize;  /* stat reports 100 bytes more than reads return */
	int half;      /* stat reports half of the bytes that reads return */
	int blind;     /* SEEK_DATA finds no data */
	int blockless; /* stat reports no blocks */
	int unowned;   /* chown has no effect */
	int linkless;  /* stat reports that a file has no name, as servers that do not count */
	int targets;   /* chown and utimens of a symlink change its target, as with sshfs */
	int pairs;     /* utimensat with one time has no effect, as with libfuse before 3.15 */
	int renumber;  /* each stat of a file reports another inode number; use attr_timeout=0, too
			*/
	int phantom;   /* each directory lists a name that does not exist */
	int twice;     /* each directory lists each name twice */
	int drawn;     /* libfuse numbers the inodes, other than after a remount */
	unsigned namemax; /* longer names are refused; 0: no limit but that of DIR */
	int namemute;     /* ... and statfs reports another limit */
} config;

#define WRITERS_MAX 256
static atomic_ulong writers[WRITERS_MAX]; /* inodes that are open for writing; 0: no entry */

/* Replaces one entry by another. */
static void exchange_writer(unsigned long from, unsigned long to)
{
	for (int i = 0; i < WRITERS_MAX; i++) {
		unsigned long expected = from;
		if (atomic_compare_exchange_strong(&writers[i], &expected, to))
			return;
	}
}

static void note_writer(const struct fuse_file_info *fi, bool opened)
{
	struct stat st;
	if ((fi->flags & O_ACCMODE) != O_RDONLY && fstat(fi->fh, &st) == 0)
		exchange_writer(opened ? 0 : st.st_ino, opened ? st.st_ino : 0);
}

static bool is_written(ino_t inode)
{
	int i = 0;
	while (i < WRITERS_MAX && writers[i] != inode)
		i++;
	return i < WRITERS_MAX;
}

static int backing; /* the working directory, once the daemon has left ours */

static void throttle(size_t size)
{
	if (config.rate)
		usleep(size * 1000000 / config.rate);
}

static const char *rel(const char *path)
{
	for (unsigned char *c = (unsigned char *)path; config.caseless && *c; c++)
		if (c[0] == 0xc3 && c[1] >= 0x80 && c[1] <= 0x9e)
			*++c += 0x20;
		else
			*c = (unsigned char)tolower(*c);
	return path[1] ? path + 1 : ".";
}

static void wait_latency(void)
{
	if (config.latency)
		usleep(config.latency);
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
	conn->want &= ~FUSE_CAP_ASYNC_DIO; /* io_uring then sees each short count */
	cfg->use_ino = !config.drawn;
	cfg->hard_remove = 1; /* an unlinked open file lives on in fi->fh */
	cfg->nullpath_ok = 1;
	return NULL;
}

static atomic_uint numbers; /* that -o renumber has given */

static int fs_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	const char *name = path ? strrchr(path, '/') : NULL;

	wait_latency();
	if (config.namemax && name && strlen(name + 1) > config.namemax)
		return -ENAMETOOLONG;
	int r = result(fi ? fstat(fi->fh, st) : lstat(rel(path), st));

	if (r == 0 && config.renumber && !S_ISDIR(st->st_mode))
		st->st_ino = (ino_t)1 << 32 | atomic_fetch_add(&numbers, 1);
	if (r == 0 && config.sizeless && S_ISREG(st->st_mode))
		st->st_size = 0;
	if (r == 0 && config.oversize && S_ISREG(st->st_mode))
		st->st_size += 100;
	if (r == 0 && config.half && S_ISREG(st->st_mode))
		st->st_size /= 2;
	if (r == 0 && config.blockless)
		st->st_blocks = 0;
	if (r == 0 && config.linkless && S_ISREG(st->st_mode))
		st->st_nlink = 0;
	if (r == 0 && config.modeless)
		st->st_mode |= 0777;
	if (r == 0 && config.fmode && S_ISREG(st->st_mode))
		st->st_mode = S_IFREG | config.fmode;
	if (r == 0 && config.dmode && S_ISDIR(st->st_mode))
		st->st_mode = S_IFDIR | config.dmode;
	if (r == 0 && config.grain)
		st->st_mtim.tv_nsec -= st->st_mtim.tv_nsec % config.grain;
	if (r == 0 && config.steps)
		st->st_mtim = (struct timespec){
		    st->st_mtim.tv_sec - st->st_mtim.tv_sec % config.steps, 0};
	return r;
}

static int open_backing(const char *path, int flags, mode_t mode, struct fuse_file_info *fi)
{
	int fd;

	wait_latency();
	/* To fill its cache the kernel reads what was opened for writing only. */
	if (config.writeback && (flags & O_ACCMODE) == O_WRONLY)
		flags = (flags & ~O_ACCMODE) | O_RDWR;
	fd = open(rel(path), flags & ~(O_APPEND | O_DIRECT), mode);
	if (fd < 0)
		return -errno;
	fi->fh = fd;
	note_writer(fi, true);
	fi->nonseekable = config.stream;
	fi->direct_io = config.direct_io || config.sizeless || config.oversize || config.half ||
			faults_shorten(FAULT_READ);
	return 0;
}

static int fs_open(const char *path, struct fuse_file_info *fi)
{
	return open_backing(path, fi->flags, 0, fi);
}

static int fs_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	return faults_at(FAULT_CREATE, NULL, 0)
		   ?: open_backing(path, fi->flags | O_CREAT, mode, fi);
}

static int fs_read(const char *path, char *buf, size_t size, off_t offset,
		   struct fuse_file_info *fi)
{
	int err = faults_at(FAULT_READ, &size, offset);

	(void)path;
	if (!err && config.unaligned && fi->flags & O_DIRECT)
		err = -EINVAL;
	if (err)
		return err;
	wait_latency();
	throttle(size);
	return result(pread(fi->fh, buf, size, offset));
}

static int fs_write(const char *path, const char *buf, size_t size, off_t offset,
		    struct fuse_file_info *fi)
{
	int err = faults_at(FAULT_WRITE, &size, offset);

	(void)path;
	if (err)
		return err;
	if (config.sequential && lseek(fi->fh, 0, SEEK_END) != offset)
		return -EINVAL;
	wait_latency();
	throttle(size);
	return result(pwrite(fi->fh, buf, size, offset));
}

static int fs_flush(const char *path, struct fuse_file_info *fi)
{
	(void)path, (void)fi;
	return faults_at(FAULT_FLUSH, NULL, 0);
}

static int fs_fsync(const char *path, int datasync, struct fuse_file_info *fi)
{
	(void)path, (void)datasync;
	wait_latency();
	return faults_at(FAULT_FSYNC, NULL, 0) ?: result(fsync(fi->fh));
}

static int fs_release(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	int err = faults_at(FAULT_RELEASE, NULL, 0); /* a delay: the file is open until then */
	if (config.touch && (fi->flags & O_ACCMODE) != O_RDONLY)
		futimens(fi->fh, NULL);
	note_writer(fi, false);
	close(fi->fh);
	return err;
}

static int fs_fallocate(const char *path, int mode, off_t offset, off_t length,
			struct fuse_file_info *fi)
{
	(void)path;
	return faults_at(FAULT_FALLOCATE, NULL, 0)
		   ?: result(fallocate(fi->fh, mode, offset, length));
}

static off_t fs_lseek(const char *path, off_t offset, int whence, struct fuse_file_info *fi)
{
	(void)path;
	const int err = faults_at(FAULT_LSEEK, NULL, 0);
	if (err == 0 && config.blind && whence == SEEK_DATA)
		return -ENXIO;
	return err ?: result(lseek(fi->fh, offset, whence));
}

static int fs_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	return faults_at(FAULT_TRUNCATE, NULL, 0)
		   ?: result(fi ? ftruncate(fi->fh, size) : truncate(rel(path), size));
}

static int fs_link(const char *from, const char *to)
{
	return faults_at(FAULT_LINK, NULL, 0) ?: result(link(rel(from), rel(to)));
}

static bool is_full(const char *directory)
{
	DIR *dir = opendir(directory);
	int entries = 0;

	while (dir && readdir(dir))
		entries++;
	if (dir)
		closedir(dir);
	return entries > 2; /* . and .. */
}

static bool is_busy(const char *directory)
{
	DIR *dir = opendir(directory);
	bool busy = false;

	for (struct dirent *entry; dir && !busy && (entry = readdir(dir));)
		busy = is_written(entry->d_ino);
	if (dir)
		closedir(dir);
	return busy;
}

static int fs_rename(const char *from, const char *to, unsigned flags)
{
	struct stat st;
	bool directory = lstat(rel(from), &st) == 0 && S_ISDIR(st.st_mode);
	int err = faults_at(FAULT_RENAME, NULL, 0);

	if (!err && directory)
		err = faults_at(FAULT_RENAMEDIR, NULL, 0);
	if (!err && directory && is_full(rel(from)))
		err = faults_at(FAULT_RENAMEFULL, NULL, 0);
	if (!err && directory && config.busy && is_busy(rel(from)))
		err = -EACCES;
	if (!err && !directory && is_written(st.st_ino))
		err = faults_at(FAULT_RENAMEOPEN, NULL, 0);
	if (!err && lstat(rel(to), &st) == 0)
		err = faults_at(FAULT_RENAMEOVER, NULL, 0);
	err = err ?: result(renameat2(AT_FDCWD, rel(from), AT_FDCWD, rel(to), flags));
	if (!err && directory && config.touch)
		utimensat(AT_FDCWD, rel(to), NULL, 0);
	return err;
}

static int fs_unlink(const char *path)
{
	return faults_at(FAULT_UNLINK, NULL, 0) ?: result(unlink(rel(path)));
}

static int fs_mkdir(const char *path, mode_t mode)
{
	wait_latency();
	return faults_at(FAULT_MKDIR, NULL, 0) ?: result(mkdir(rel(path), mode));
}

static int fs_rmdir(const char *path)
{
	return result(rmdir(rel(path)));
}

static int fs_mknod(const char *path, mode_t mode, dev_t device)
{
	return faults_at(FAULT_MKNOD, NULL, 0) ?: result(mknod(rel(path), mode, device));
}

static int fs_symlink(const char *target, const char *path)
{
	return faults_at(FAULT_SYMLINK, NULL, 0) ?: result(symlink(target, rel(path)));
}

static int fs_readlink(const char *path, char *target, size_t size)
{
	ssize_t n = readlink(rel(path), target, size - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return 0;
}

/* Types are not reported: d_type is DT_UNKNOWN. */
static int fs_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
		      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	DIR *dir = fdopendir(dup(fi->fh));

	(void)path, (void)offset, (void)flags;
	if (!dir)
		return -errno;
	if (!config.norewind)
		rewinddir(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		for (int i = 0; i <= config.twice; i++)
			fill(buf, entry->d_name, NULL, 0, 0);
	if (config.phantom)
		fill(buf, "phantom", NULL, 0, 0);
	closedir(dir);
	return 0;
}

static int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	if (config.modeless)
		return -EPERM;
	return faults_at(FAULT_CHMOD, NULL, 0)
		   ?: config.fmode || config.dmode
		      ? 0
		      : (int)result(fi ? fchmod(fi->fh, mode) : chmod(rel(path), mode));
}

static int fs_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
	const int flag = config.targets ? 0 : AT_SYMLINK_NOFOLLOW;

	return faults_at(FAULT_CHOWN, NULL, 0)
		   ?: config.unowned ? 0
				     : result(fi ? fchown(fi->fh, uid, gid)
						 : fchownat(AT_FDCWD, rel(path), uid, gid, flag));
}

static int fs_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *fi)
{
	wait_latency();
	int err = faults_at(FAULT_UTIMENS, NULL, 0);

	if (err ||
	    (config.pairs && (times[0].tv_nsec == UTIME_OMIT || times[1].tv_nsec == UTIME_OMIT)))
		return err;
	if (fi)
		return result(futimens(fi->fh, times));
	return result(
	    utimensat(AT_FDCWD, rel(path), times, config.targets ? 0 : AT_SYMLINK_NOFOLLOW));
}

static int fs_statfs(const char *path, struct statvfs *st)
{
	(void)path;
	const int err = faults_at(FAULT_STATFS, NULL, 0) ?: result(fstatvfs(backing, st));
	if (err == 0 && config.namemax && !config.namemute)
		st->f_namemax = config.namemax;
	return err;
}

static int fs_setxattr(const char *path, const char *name, const char *value, size_t size,
		       int flags)
{
	char text[64];

	if (strcmp(path, "/") != 0 || strcmp(name, "user.fault") != 0 || size >= sizeof(text))
		return faults_at(FAULT_SETXATTR, NULL, 0)
			   ?: !config.xattrs
			      ? -EOPNOTSUPP
			      : (int)result(lsetxattr(rel(path), name, value, size, flags));
	memcpy(text, value, size);
	text[size] = '\0';
	return faults_set(text);
}

static int fs_getxattr(const char *path, const char *name, char *value, size_t size)
{
	char text[24];
	int length;

	if (strcmp(path, "/") != 0 || strcmp(name, "user.faults") != 0)
		return faults_at(FAULT_GETXATTR, NULL, 0)
			   ?: !config.xattrs ? -EOPNOTSUPP
					     : (int)result(lgetxattr(rel(path), name, value, size));
	length = snprintf(text, sizeof(text), "%llu", faults_applied());
	if (size > 0 && size < (size_t)length)
		return -ERANGE;
	if (size > 0)
		memcpy(value, text, (size_t)length);
	return length;
}

static int fs_listxattr(const char *path, char *list, size_t size)
{
	return faults_at(FAULT_LISTXATTR, NULL, 0)
		   ?: !config.xattrs ? -EOPNOTSUPP
				     : (int)result(llistxattr(rel(path), list, size));
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
    .mkdir = fs_mkdir,
    .rmdir = fs_rmdir,
    .mknod = fs_mknod,
    .symlink = fs_symlink,
    .readlink = fs_readlink,
    .opendir = fs_open,
    .readdir = fs_readdir,
    .releasedir = fs_release,
    .chmod = fs_chmod,
    .chown = fs_chown,
    .utimens = fs_utimens,
    .statfs = fs_statfs,
    .setxattr = fs_setxattr,
    .getxattr = fs_getxattr,
    .listxattr = fs_listxattr,
};

#define KEY_FAULT 1

static const struct fuse_opt options[] = {
    {"rate=%lu", offsetof(typeof(config), rate), 0},
    {"latency=%u", offsetof(typeof(config), latency), 0},
    {"direct_io", offsetof(typeof(config), direct_io), 1},
    {"writeback", offsetof(typeof(config), writeback), 1},
    {"sizeless", offsetof(typeof(config), sizeless), 1},
    {"stream", offsetof(typeof(config), stream), 1},
    FUSE_OPT_KEY("fault=%s", KEY_FAULT),
    {"modeless", offsetof(typeof(config), modeless), 1},
    {"caseless", offsetof(typeof(config), caseless), 1},
    {"oversize", offsetof(typeof(config), oversize), 1},
    {"half", offsetof(typeof(config), half), 1},
    {"blind", offsetof(typeof(config), blind), 1},
    {"blockless", offsetof(typeof(config), blockless), 1},
    {"unowned", offsetof(typeof(config), unowned), 1},
    {"linkless", offsetof(typeof(config), linkless), 1},
    {"targets", offsetof(typeof(config), targets), 1},
    {"pairs", offsetof(typeof(config), pairs), 1},
    {"renumber", offsetof(typeof(config), renumber), 1},
    {"phantom", offsetof(typeof(config), phantom), 1},
    {"twice", offsetof(typeof(config), twice), 1},
    {"drawn", offsetof(typeof(config), drawn), 1},
    {"namemax=%u", offsetof(typeof(config), namemax), 0},
    {"namemute", offsetof(typeof(config), namemute), 1},
    {"sequential", offsetof(typeof(config), sequential), 1},
    {"norewind", offsetof(typeof(config), norewind), 1},
    {"busy", offsetof(typeof(config), busy), 1},
    {"xattrs", offsetof(typeof(config), xattrs), 1},
    {"fmode=%o", offsetof(typeof(config), fmode), 0},
    {"dmode=%o", offsetof(typeof(config), dmode), 0},
    {"steps=%u", offsetof(typeof(config), steps), 0},
    {"unaligned", offsetof(typeof(config), unaligned), 1},
    {"grain=%u", offsetof(typeof(config), grain), 0},
    {"touch", offsetof(typeof(config), touch), 1},
    FUSE_OPT_END,
};

/* Takes the rules and the first operand; the second operand is libfuse's. */
static int take_argument(void *data, const char *arg, int key, struct fuse_args *args)
{
	(void)data, (void)args;
	if (key == KEY_FAULT) {
		if (faults_set(arg + strlen("fault=")) == 0)
			return 0;
		fprintf(stderr, "faultfs: not a rule: %s\n", arg);
		return -1;
	}
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

	if (fuse_opt_parse(&args, &config, options, take_argument) < 0)
		return 2;
	if (!backing) {
		fputs("usage: faultfs DIR MOUNTPOINT [-o fault=RULE]...\n", stderr);
		return 2;
	}
	umask(0);
	/* libfuse 3.14 complains about its default. */
	fuse_opt_add_arg(&args, "-omax_idle_threads=10");
	return fuse_main(args.argc, args.argv, &operations, NULL);
}
