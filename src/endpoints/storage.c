/* SPDX-License-Identifier: MIT
 * Asks a file system, before the first byte is copied, what it can rename, and whether a
 * mode can be set later: afterwards a copy that cannot get its name would be lost.
 */
#define _GNU_SOURCE
#include "storage.h"
#include "endpoint.h"
#include "io/system.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

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

static bool rename_hidden(int dir, const char *from, const char *to, bool *able)
{
	*able = renameat(dir, from, dir, to) == 0;
	return *able || !private_is_of_disk(errno);
}

/* The same of a file that has just been closed, or of its directory. */
static bool rename_closed(int dir, const char *from, const char *to, bool *able)
{
	int ms = 1;
	bool learned = rename_hidden(dir, from, to, able);
	while (!*able && private_await_release(errno, &ms))
		learned = rename_hidden(dir, from, to, able);
	return learned;
}

/* err: of the first hidden name that could not be removed. Other processes may remove one. */
static void remove_hidden(int dir, const char *name, int flags, int *err)
{
	if (unlinkat(dir, name, flags) < 0 && errno != ENOENT && *err == 0)
		*err = errno;
}

static bool create_hidden(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	/* rclone creates an empty file after close(2), perhaps after its removal. */
	if (fd >= 0)
		(void)!write(fd, "\n", 1);
	if (fd >= 0 && close(fd) == 0)
		return true;
	if (fd >= 0)
		unlinkat(dir, name, 0);
	return false;
}

static bool is_readable(int dir, const char *name)
{
	char byte;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	bool readable = fd >= 0 && read(fd, &byte, 1) == 1;
	if (fd >= 0)
		close(fd);
	return readable;
}

/* Opens the new directory. Another user may own `dir`, and give its name to another directory, or
 * to a symlink: only one that no other user can enter is accepted. Without a handle at the server
 * (O_PATH), which would prevent the rename on SMB. Returns a descriptor or -1. */
static int open_hidden(int dir, const char *name)
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
 * EIO for the files of a renamed directory until it has uploaded them. The file is made, read and
 * removed by the descriptor of its directory. */
static bool probe_full_directory(int dir, const char *from, const char *to, bool *readable,
				 int *left)
{
	const char *const file = "f";
	bool able;
	int fd = open_hidden(dir, from);
	if (fd < 0 || !create_hidden(fd, file)) {
		if (fd >= 0)
			close(fd);
		return false; /* the copy will fail, too */
	}
	const bool learned = rename_closed(dir, from, to, &able);
	*readable = able && is_readable(fd, file);
	/* Only under its first name does rclone forget the upload of the file. */
	if (able && !*readable)
		able = renameat(dir, to, dir, from) < 0;
	remove_hidden(fd, file, 0, left);
	close(fd);
	remove_hidden(dir, able ? to : from, AT_REMOVEDIR, left);
	return learned;
}

/* Each probe returns false if nothing was learned. full: also a directory that is not empty. */
static bool probe_directory(int dir, const char *a, const char *b, bool full, bool *able,
			    bool *same, int *left)
{
	struct stat before, after;
	if (mkdirat(dir, a, 0700) < 0)
		return false;
	bool known = full && fstatat(dir, a, &before, AT_SYMLINK_NOFOLLOW) == 0;
	bool learned = rename_hidden(dir, a, b, able);
	*same = *able && known && fstatat(dir, b, &after, AT_SYMLINK_NOFOLLOW) == 0 &&
		before.st_ino == after.st_ino;
	if (*able && full)
		learned = probe_full_directory(dir, b, a, able, left);
	remove_hidden(dir, a, AT_REMOVEDIR, left);
	remove_hidden(dir, b, AT_REMOVEDIR, left);
	return learned;
}

static bool probe_files(int dir, const char *a, const char *b, bool *renames, bool *replaces,
			int *left)
{
	if (!create_hidden(dir, a))
		return false;
	bool learned = rename_closed(dir, a, b, renames);
	if (!*renames) {
		remove_hidden(dir, a, 0, left);
		return learned;
	}
	bool both = create_hidden(dir, a);
	learned = both && rename_closed(dir, a, b, replaces);
	if (both && !*replaces)
		remove_hidden(dir, a, 0, left);
	remove_hidden(dir, b, 0, left);
	return learned;
}

/* Fixed modes may be equal to those that are asked for: only a change proves that modes are stored.
 * Likewise owners. */
static bool probe_modes(int dir, const char *name, bool *able, bool *owners, int *left)
{
	struct stat first, second, third;
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	(void)!write(fd, "\n", 1); /* as in create_hidden */
	*able = fchmod(fd, 0640) == 0 && fstat(fd, &first) == 0 && fchmod(fd, 0600) == 0 &&
		fstat(fd, &second) == 0 && (first.st_mode & 07777) == 0640 &&
		(second.st_mode & 07777) == 0600;
	*owners = fstat(fd, &first) == 0 && fchown(fd, first.st_uid + 1, first.st_gid + 1) == 0 &&
		  fstat(fd, &third) == 0 && third.st_uid == first.st_uid + 1 &&
		  third.st_gid == first.st_gid + 1;
	close(fd);
	remove_hidden(dir, name, 0, left);
	return true;
}

/* A file system that renames directories renames files, too. Returns what was learned. */
static unsigned storage_probe(int dir, enum storage_ability wanted, unsigned *able, int *left)
{
	char a[TEMPORARY_SIZE], b[TEMPORARY_SIZE];
	bool renames = false, replaces = false, directories = false, modes = false, same = false;
	bool owners = false;
	unsigned asked = 0;
	if (temporary_draw(a) < 0 || temporary_draw(b) < 0)
		return 0;
	if (wanted & (STORAGE_CHANGES_MODES | STORAGE_CHANGES_OWNERS)) {
		if (!probe_modes(dir, a, &modes, &owners, left))
			return 0;
		*able = (modes ? STORAGE_CHANGES_MODES : 0) | (owners ? STORAGE_CHANGES_OWNERS : 0);
		return STORAGE_CHANGES_MODES | STORAGE_CHANGES_OWNERS;
	}
	const unsigned of_full = STORAGE_RENAMES_DIRECTORIES | STORAGE_KEEPS_INODES;
	const bool full = wanted & of_full;
	if (wanted != STORAGE_REPLACES_FILES &&
	    probe_directory(dir, a, b, full, &directories, &same, left))
		asked = (full ? of_full : 0) | (directories ? STORAGE_RENAMES_FILES : 0);
	*able = directories ? asked & ~(same ? 0 : STORAGE_KEEPS_INODES) : 0;
	if (asked & wanted || full || !probe_files(dir, a, b, &renames, &replaces, left))
		return asked;
	*able |= (renames ? STORAGE_RENAMES_FILES : 0) | (replaces ? STORAGE_REPLACES_FILES : 0);
	return asked | STORAGE_RENAMES_FILES | STORAGE_REPLACES_FILES;
}

/* The entry of this file system; the caller holds the lock. More than STORAGE_SYSTEMS share the
 * last one. */
static unsigned storage_find(struct storage *s, dev_t dev)
{
	unsigned i = 0;
	while (i < s->count && s->system[i].dev != dev)
		i++;
	if (i == STORAGE_SYSTEMS)
		i = STORAGE_SYSTEMS - 1;
	if (i == s->count || s->system[i].dev != dev)
		s->system[i] = (struct fs){.dev = dev};
	if (i == s->count)
		__atomic_store_n(&s->count, i + 1, __ATOMIC_RELEASE);
	return i;
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
	unsigned able = 0;
	if (fstatat(dir, "", &st, AT_EMPTY_PATH) < 0)
		return true;
	s = s ? s : &once;
	pthread_mutex_lock(&s->lock);
	struct fs *fs = &s->system[storage_find(s, st.st_dev)];
	const bool known = system_type_has(storage_type(fs, dir), has);
	if (!known && !(fs->asked & wanted)) {
		int left = 0;
		fs->asked |= storage_probe(dir, wanted, &able, &left);
		fs->able |= able;
		if (left) { /* more probes would leave more: the copy itself will show */
			fs->able |= STORAGE_ASSUMED & ~fs->asked;
			fs->asked |= STORAGE_ASSUMED | STORAGE_KEEPS_INODES;
			s->left = left;
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

/* The same of the file system with this open file. */
static bool storage_has(struct storage *s, int fd, dev_t dev, enum system_property property)
{
	const unsigned *known = storage_known_type(s, dev);
	if (known)
		return system_type_has(*known, property);
	pthread_mutex_lock(&s->lock);
	const bool has = system_type_has(storage_type(&s->system[storage_find(s, dev)], fd),
					 property);
	pthread_mutex_unlock(&s->lock);
	return has;
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

enum storage_link storage_link_call(struct storage *s, dev_t dev, bool *listed)
{
	if (!s || dev == 0)
		return LINK_UNKNOWN;
	pthread_mutex_lock(&s->lock);
	const struct fs *fs = &s->system[storage_find(s, dev)];
	const enum storage_link link = fs->link;
	*listed = fs->listed;
	pthread_mutex_unlock(&s->lock);
	return link;
}

void storage_note_link(struct storage *s, dev_t dev, enum storage_link link, bool listed)
{
	if (!s || dev == 0)
		return;
	pthread_mutex_lock(&s->lock);
	struct fs *fs = &s->system[storage_find(s, dev)];
	fs->link = link;
	fs->listed = listed;
	pthread_mutex_unlock(&s->lock);
}

enum storage_close storage_at_close(struct storage *s, dev_t dev)
{
	if (!s)
		return CLOSE_UNKNOWN;
	pthread_mutex_lock(&s->lock);
	const unsigned i = storage_find(s, dev);
	enum storage_close known = !(s->system[i].asked & STORAGE_KEEPS_TIMES) ? CLOSE_UNKNOWN
				   : s->system[i].able & STORAGE_KEEPS_TIMES   ? CLOSE_KEEPS_TIMES
									     : CLOSE_CHANGES_TIMES;
	pthread_mutex_unlock(&s->lock);
	return known;
}

void storage_note_close(struct storage *s, dev_t dev, bool keeps_times)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	const unsigned i = storage_find(s, dev);
	/* A file that was not written may keep its time where others do not. */
	if (!keeps_times)
		s->system[i].able &= ~(unsigned)STORAGE_KEEPS_TIMES;
	else if (!(s->system[i].asked & STORAGE_KEEPS_TIMES))
		s->system[i].able |= STORAGE_KEEPS_TIMES;
	s->system[i].asked |= STORAGE_KEEPS_TIMES;
	pthread_mutex_unlock(&s->lock);
}

int64_t storage_time_difference(const struct timespec *a, const struct timespec *b)
{
	const int64_t s = a->tv_sec - b->tv_sec;
	if (s > INT64_MAX / (2 * SECOND_NS) || s < -(INT64_MAX / (2 * SECOND_NS)))
		return INT64_MAX;
	const int64_t ns = s * SECOND_NS + (a->tv_nsec - b->tv_nsec);
	return ns < 0 ? -ns : ns;
}

/* The steps that file systems have: Windows's, WebDAV's and others', seconds, and FAT's. */
static const int64_t time_steps[] = {100, 1000, SECOND_NS, 2 * SECOND_NS};

#define TIME_STEPS (sizeof(time_steps) / sizeof(*time_steps))

static struct timespec rounded_down(const struct timespec *time, int64_t step)
{
	struct timespec down = *time;
	down.tv_nsec = step < SECOND_NS ? time->tv_nsec - time->tv_nsec % step : 0;
	if (step > SECOND_NS)
		down.tv_sec &= ~(time_t)1;
	return down;
}

static bool is_rounded_down(const struct timespec *set, const struct timespec *stored, int64_t step)
{
	const struct timespec down = rounded_down(set, step);
	return down.tv_sec == stored->tv_sec && down.tv_nsec == stored->tv_nsec;
}

bool storage_time_is_equal(const struct storage_times *t, const struct timespec *set,
			   const struct stat *stored)
{
	if (storage_time_difference(set, &stored->st_mtim) <= t->window_ns)
		return true;
	for (size_t i = 0; t->window_ns == 0 && i < TIME_STEPS; i++)
		if (is_rounded_down(set, &stored->st_mtim, time_steps[i]) &&
		    (t->cached ||
		     is_rounded_down(&stored->st_ctim, &stored->st_ctim, time_steps[i])))
			return true;
	return false;
}

struct storage_times storage_times(struct storage *s, int fd, dev_t dev)
{
	struct storage once = STORAGE_INITIALIZER;
	s = s ? s : &once;
	pthread_mutex_lock(&s->lock);
	struct fs *fs = &s->system[storage_find(s, dev)];
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
