/* SPDX-License-Identifier: MIT
 * Asks a file system, before the first byte is copied, what it can rename, and whether a mode can
 * be set later: a copy that cannot get its name would be lost. Its answers, and what else is found
 * out about it on the way, are remembered in struct storage, which has a lock.
 */
#include "storage.h"
#include "endpoint.h"
#include "io/system.h"

#include <sys/random.h>

#define SECOND_NS ((int64_t)1000000000)

bool storage_is_known(int dir)
{
	return system_has(dir, SYSTEM_RENAMES);
}

int storage_draw(struct storage *s, char name[TEMPORARY_SIZE])
{
	int r = 0;
	pthread_mutex_lock(&s->lock);
	if (s->drawn < TEMPORARY_RANDOM) {
		const ssize_t n = getrandom(s->random, sizeof(s->random), 0);
		r = n < 0 ? -errno : 0;
		s->drawn = n < 0 ? 0 : (unsigned)n;
	}
	if (r == 0 && s->drawn < TEMPORARY_RANDOM)
		r = -EIO;
	if (r == 0) {
		s->drawn -= TEMPORARY_RANDOM;
		temporary_spell(s->random + s->drawn, name);
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* Two drawn names with which a file system is asked, and its answers. */
struct probe {
	int dir;
	char a[TEMPORARY_SIZE], b[TEMPORARY_SIZE];
	unsigned asked, able; /* sets of enum storage_ability */
	int left;             /* errno: the first of them that could not be removed */
};

/* Does this failure of a rename say that the storage lacks it? gcsfuse returns EMFILE for a
 * directory with too many files, small FUSE file systems EIO or EACCES, and EEXIST if they replace
 * no file. The owner of the directory, who sees the drawn names, can cause ENOTEMPTY, EEXIST and
 * EBUSY of directories. */
static bool probe_is_lack(int err, bool directory)
{
	return err == ENOSYS || err == EOPNOTSUPP || err == EINVAL || err == EXDEV ||
	       err == EPERM || err == EACCES || err == EIO || err == EMFILE ||
	       (err == EEXIST && !directory);
}

/* Returns whether *able is the answer of the storage. */
static bool probe_rename(const struct probe *p, const char *from, const char *to, bool directory,
			 bool *able)
{
	*able = renameat(p->dir, from, p->dir, to) == 0;
	return *able || probe_is_lack(errno, directory);
}

/* As probe_rename(), for a file that has just been closed, or for its directory. */
static bool probe_rename_closed(const struct probe *p, const char *from, const char *to,
				bool directory, bool *able)
{
	int ms = 1;
	bool learned = probe_rename(p, from, to, directory, able);
	while (!*able && private_await_release(errno, &ms))
		learned = probe_rename(p, from, to, directory, able);
	return learned;
}

/* Other processes may remove one. */
static void probe_remove(struct probe *p, int dir, const char *name, int flags)
{
	if (unlinkat(dir, name, flags) < 0 && errno != ENOENT && p->left == 0)
		p->left = errno;
}

/* signs: it is the lock of this directory. */
static bool probe_create(int dir, const char *name, bool signs)
{
	const int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	/* rclone creates an empty file after close(2), perhaps after its removal. */
	if (signs)
		(void)private_sign(dir, fd);
	else
		(void)!write(fd, "\n", 1);
	if (close(fd) == 0)
		return true;
	unlinkat(dir, name, 0);
	return false;
}

static bool probe_reads(int dir, const char *name)
{
	char byte;
	errno = 0;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	bool readable = fd >= 0 && read(fd, &byte, 1) == 1;
	io_close(fd);
	return readable;
}

/* Opens the new directory. Another user may own `dir`, and give its name to another directory, or
 * to a symlink: only one that no other user can enter is accepted. Without a handle at the server
 * (O_PATH), which would prevent the rename on SMB. Returns a descriptor or -1. */
static int probe_open(int dir, const char *name)
{
	struct stat st;
	bool exposed;
	int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || (fstat(fd, &st) == 0 && ((st.st_uid == geteuid() && !(st.st_mode & 077)) ||
					       private_is_ours(dir, &st, &exposed))))
		return fd;
	close(fd);
	return -1;
}

/* gcsfuse can be set up to rename only empty directories, and with its write cache rclone returns
 * EIO for the files of a renamed directory until it has uploaded them. The directory is `b`. Its
 * file is made, read and removed by its descriptor. By this lock, which nobody holds, fcopy --clean
 * recognises what a killed process leaves. */
static bool probe_full_directory(struct probe *p, bool *able)
{
	int fd = probe_open(p->dir, p->b);
	*able = false;
	if (fd < 0 || !probe_create(fd, PRIVATE_LOCK, true)) {
		io_close(fd);
		return false; /* the copy will fail, too */
	}
	bool learned = probe_rename_closed(p, p->b, p->a, true, able);
	/* Only under its first name does rclone forget the upload of the file. */
	if (*able && !probe_reads(fd, PRIVATE_LOCK)) {
		learned = errno != ENOENT; /* fcopy --clean has removed it */
		*able = false;
		(void)!renameat(p->dir, p->a, p->dir, p->b);
	}
	probe_remove(p, fd, PRIVATE_LOCK, 0);
	close(fd);
	return learned;
}

#define OF_FULL (STORAGE_RENAMES_DIRECTORIES | STORAGE_KEEPS_INODES)

/* full: also a directory that is not empty. A file system that renames directories renames files,
 * too. */
static void probe_directory(struct probe *p, bool full)
{
	struct stat before, after;
	bool able;
	if (mkdirat(p->dir, p->a, 0700) < 0)
		return;
	const bool known = full && fstatat(p->dir, p->a, &before, AT_SYMLINK_NOFOLLOW) == 0;
	bool learned = probe_rename(p, p->a, p->b, true, &able);
	const bool same = able && known &&
			  fstatat(p->dir, p->b, &after, AT_SYMLINK_NOFOLLOW) == 0 &&
			  before.st_ino == after.st_ino;
	if (able && full)
		learned = probe_full_directory(p, &able);
	probe_remove(p, p->dir, p->a, AT_REMOVEDIR);
	probe_remove(p, p->dir, p->b, AT_REMOVEDIR);
	if (learned)
		p->asked = (full ? OF_FULL : 0) | (able ? STORAGE_RENAMES_FILES : 0);
	if (able)
		p->able = p->asked & ~(unsigned)(same ? 0 : STORAGE_KEEPS_INODES);
}

static void probe_files(struct probe *p)
{
	bool renames, replaces = false;
	if (!probe_create(p->dir, p->a, false))
		return;
	bool learned = probe_rename_closed(p, p->a, p->b, false, &renames);
	if (renames)
		learned = probe_create(p->dir, p->a, false) &&
			  probe_rename_closed(p, p->a, p->b, false, &replaces);
	if (!replaces)
		probe_remove(p, p->dir, p->a, 0);
	if (renames)
		probe_remove(p, p->dir, p->b, 0);
	if (learned) {
		p->asked |= STORAGE_RENAMES_FILES | STORAGE_REPLACES_FILES;
		p->able |= (renames ? STORAGE_RENAMES_FILES : 0) |
			   (replaces ? STORAGE_REPLACES_FILES : 0);
	}
}

/* Fixed modes may be equal to those that are asked for: only a change proves that modes are stored.
 * Likewise owners. */
static void probe_modes(struct probe *p)
{
	struct stat first, second, third;
	int fd = openat(p->dir, p->a, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	(void)!write(fd, "\n", 1); /* as in probe_create */
	p->asked = STORAGE_CHANGES_MODES | STORAGE_CHANGES_OWNERS;
	if (fchmod(fd, 0640) == 0 && fstat(fd, &first) == 0 && fchmod(fd, 0600) == 0 &&
	    fstat(fd, &second) == 0 && (first.st_mode & 07777) == 0640 &&
	    (second.st_mode & 07777) == 0600)
		p->able |= STORAGE_CHANGES_MODES;
	if (fstat(fd, &first) == 0 && fchown(fd, first.st_uid + 1, first.st_gid + 1) == 0 &&
	    fstat(fd, &third) == 0 && third.st_uid == first.st_uid + 1 &&
	    third.st_gid == first.st_gid + 1)
		p->able |= STORAGE_CHANGES_OWNERS;
	close(fd);
	probe_remove(p, p->dir, p->a, 0);
}

static struct probe storage_probe(int dir, enum storage_ability wanted)
{
	struct probe p = {.dir = dir};
	const bool full = wanted & OF_FULL;
	if (temporary_draw(p.a) < 0 || temporary_draw(p.b) < 0)
		return p;
	if (wanted & (STORAGE_CHANGES_MODES | STORAGE_CHANGES_OWNERS)) {
		probe_modes(&p);
		return p;
	}
	if (wanted != STORAGE_REPLACES_FILES)
		probe_directory(&p, full);
	if (!(p.asked & wanted) && !full)
		probe_files(&p);
	return p;
}

/* Locks what is known, and returns the entry of this file system. More than STORAGE_SYSTEMS share
 * the last one. */
static struct fs *storage_lock(struct storage *s, dev_t dev)
{
	unsigned i = 0;
	pthread_mutex_lock(&s->lock);
	while (i < s->count && i < STORAGE_SYSTEMS - 1 && s->system[i].dev != dev)
		i++;
	if (i == s->count || s->system[i].dev != dev)
		s->system[i] = (struct fs){.dev = dev};
	if (i == s->count)
		__atomic_store_n(&s->count, i + 1, __ATOMIC_RELEASE);
	return &s->system[i];
}

/* Where no probe is possible. */
#define STORAGE_ASSUMED                                                                            \
	(STORAGE_RENAMES_FILES | STORAGE_REPLACES_FILES | STORAGE_RENAMES_DIRECTORIES |            \
	 STORAGE_CHANGES_MODES | STORAGE_CHANGES_OWNERS)

/* Its type is looked up once: with FUSE, fstatfs(2) is a request. */
static unsigned storage_type(struct fs *fs, int fd)
{
	if (!fs->typed)
		fs->type = system_type(fd);
	__atomic_store_n(&fs->typed, true, __ATOMIC_RELEASE);
	return fs->type;
}

/* has: what its type must have, or the storage is asked. */
static bool storage_ask(struct storage *s, int dir, enum storage_ability wanted,
			enum system_property has)
{
	struct storage once = STORAGE_INITIALIZER;
	struct stat st;
	if (fstatat(dir, "", &st, AT_EMPTY_PATH) < 0)
		return true;
	s = s ? s : &once;
	struct fs *fs = storage_lock(s, st.st_dev);
	const bool known = system_type_has(storage_type(fs, dir), has);
	if (!known && !(fs->asked & wanted)) {
		const struct probe p = storage_probe(dir, wanted);
		fs->asked |= p.asked;
		fs->able |= p.able;
		if (p.left) { /* more probes would leave more: the copy itself will show */
			fs->able |= STORAGE_ASSUMED & ~fs->asked;
			fs->asked |= STORAGE_ASSUMED | STORAGE_KEEPS_INODES;
			s->left = p.left;
		}
	}
	bool can = known || !(fs->asked & wanted) || fs->able & wanted;
	pthread_mutex_unlock(&s->lock);
	return can;
}

bool storage_can(struct storage *s, int dir, enum storage_ability wanted)
{
	return storage_ask(s, dir, wanted, SYSTEM_RENAMES);
}

bool storage_stores(struct storage *s, int dir, enum storage_ability wanted)
{
	return storage_ask(s, dir, wanted, SYSTEM_FAITHFUL);
}

/* The type, without the lock, which the threads of a tree would need for each file. Only the last
 * entry changes. NULL: it is not known yet. */
static const unsigned *storage_known_type(struct storage *s, dev_t dev)
{
	const unsigned count = __atomic_load_n(&s->count, __ATOMIC_ACQUIRE);
	for (unsigned i = 0; i < count && i < STORAGE_SYSTEMS - 1; i++)
		if (s->system[i].dev == dev)
			return __atomic_load_n(&s->system[i].typed, __ATOMIC_ACQUIRE)
				   ? &s->system[i].type
				   : NULL;
	return NULL;
}

/* Has the type of the file system `dev`, which has this open file, that property? */
static bool storage_has(struct storage *s, int fd, dev_t dev, enum system_property property)
{
	const unsigned *known = storage_known_type(s, dev);
	if (known)
		return system_type_has(*known, property);
	const bool has = system_type_has(storage_type(storage_lock(s, dev), fd), property);
	pthread_mutex_unlock(&s->lock);
	return has;
}

bool storage_is_served(struct storage *s, int dir, dev_t dev)
{
	return storage_has(s, dir, dev, SYSTEM_SERVED);
}

bool storage_keeps_attributes(struct storage *s, int fd, const struct stat *st)
{
	return s && st->st_dev ? storage_has(s, fd, st->st_dev, SYSTEM_FAITHFUL)
			       : system_has(fd, SYSTEM_FAITHFUL);
}

bool storage_lists_attributes(struct storage *s, int fd, dev_t dev)
{
	return s && storage_has(s, fd, dev, SYSTEM_LOCAL);
}

static struct fs storage_known(struct storage *s, dev_t dev)
{
	struct fs known = {.dev = dev};
	if (s && dev) {
		known = *storage_lock(s, dev);
		pthread_mutex_unlock(&s->lock);
	}
	return known;
}

enum storage_link storage_link_call(struct storage *s, dev_t dev, bool *listed)
{
	const struct fs known = storage_known(s, dev);
	*listed = known.listed;
	return known.link;
}

void storage_note_link(struct storage *s, dev_t dev, enum storage_link link, bool listed)
{
	if (!s || dev == 0)
		return;
	struct fs *fs = storage_lock(s, dev);
	fs->link = link;
	fs->listed = listed;
	pthread_mutex_unlock(&s->lock);
}

enum storage_close storage_at_close(struct storage *s, dev_t dev)
{
	return storage_known(s, dev).close;
}

void storage_note_close(struct storage *s, dev_t dev, bool keeps_times)
{
	if (!s || dev == 0)
		return;
	struct fs *fs = storage_lock(s, dev);
	/* A file that was not written may keep its time where others do not. */
	if (!keeps_times)
		fs->close = CLOSE_CHANGES_TIMES;
	else if (fs->close == CLOSE_UNKNOWN)
		fs->close = CLOSE_KEEPS_TIMES;
	pthread_mutex_unlock(&s->lock);
}

/* The steps that file systems have: Windows's, WebDAV's and others', seconds, and FAT's. */
static const int64_t time_steps[] = {100, 1000, SECOND_NS, 2 * SECOND_NS};

#define TIME_STEPS (sizeof(time_steps) / sizeof(*time_steps))

static struct timespec time_rounded_down(const struct timespec *time, int64_t step)
{
	struct timespec down = *time;
	down.tv_nsec = step < SECOND_NS ? time->tv_nsec - time->tv_nsec % step : 0;
	if (step > SECOND_NS)
		down.tv_sec &= ~(time_t)1;
	return down;
}

static bool time_is_rounded_down(const struct timespec *set, const struct timespec *stored,
				 int64_t step)
{
	return same_time(time_rounded_down(set, step), *stored);
}

bool storage_time_is_equal(const struct storage_times *t, const struct timespec *set,
			   const struct stat *stored)
{
	if (time_distance(*set, stored->st_mtim) <= t->window_ns)
		return true;
	for (size_t i = 0; t->window_ns == 0 && i < TIME_STEPS; i++)
		if (time_is_rounded_down(set, &stored->st_mtim, time_steps[i]) &&
		    (t->cached ||
		     time_is_rounded_down(&stored->st_ctim, &stored->st_ctim, time_steps[i])))
			return true;
	return false;
}

struct storage_times storage_times(struct storage *s, int fd, dev_t dev)
{
	struct storage once = STORAGE_INITIALIZER;
	s = s ? s : &once;
	struct fs *fs = storage_lock(s, dev);
	if (!fs->times.known) {
		const unsigned type = storage_type(fs, fd);
		fs->times = (struct storage_times){
		    .known = true,
		    .window_ns = system_type_time_step(type),
		    .cached = !system_type_has(type, SYSTEM_RENAMES)};
	}
	const struct storage_times known = fs->times;
	pthread_mutex_unlock(&s->lock);
	return known;
}
