/* SPDX-License-Identifier: MIT
 * Removes what copies have left, the tree of a copy that failed, and what a mirror has put aside,
 * with few open directories whatever the depth: what is deeper than DEPTH levels is moved up to the
 * first. A full disk may refuse that (btrfs), but the levels above free some space.
 */
#include "io/io.h"
#include "io/libc.h"
#include "io/system.h"
#include "left.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH     16 /* 8 KiB of stack each */
#define DEPTH_MAX 64 /* where directories cannot be renamed */

#define MEASURED_MAX 32 /* levels: each needs a descriptor */

struct removal {
	int root;
	unsigned long moved; /* names directories that were moved up */
	int failure;         /* the last errno */
	uint64_t *count;     /* of removed entries, atomic; or NULL */
	bool progress;       /* something was removed since the start of this pass */
};

/* A directory may be read-only. Its owner, who may have had it open before it was closed to others,
 * can exchange its name at any moment: the mode is set by a descriptor. Returns one of O_PATH, or
 * -1 with errno. */
static int remove_admit(int dir, const char *name)
{
	const int path = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (path >= 0)
		(void)!io_chmod(path, 0700);
	return path;
}

static bool remove_move_up(struct removal *r, int dir, const char *name)
{
	char up[32];
	int result;
	const int path = remove_admit(dir, name); /* its .. changes */
	io_close(path);
	do {
		snprintf(up, sizeof(up), ".%lu", ++r->moved);
		result = renameat(dir, name, r->root, up);
	} while (result < 0 && (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR));
	return result == 0;
}

/* Returns a descriptor, or -1 with errno. */
static int remove_open(int dir, const char *name)
{
	const int path = remove_admit(dir, name);
	if (path < 0)
		return path;
	const int fd = openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = errno;
	close(path);
	errno = err;
	return fd;
}

static void remove_entries(struct removal *r, int dir, int depth);

static void remove_one(struct removal *r, int dir, const char *name, int depth)
{
	bool gone = unlinkat(dir, name, 0) == 0;
	int err = errno;
	if (!gone && (err == EISDIR || err == EPERM)) {
		gone = unlinkat(dir, name, AT_REMOVEDIR) == 0;
		if (!gone && errno != ENOTDIR) /* EPERM of an immutable file */
			err = errno;
		if (!gone && (err == ENOTEMPTY || err == EEXIST || err == EACCES)) {
			gone = depth >= DEPTH && remove_move_up(r, dir, name);
			int fd = !gone && depth < DEPTH_MAX ? remove_open(dir, name) : -1;
			if (fd >= 0) {
				remove_entries(r, fd, depth + 1);
				close(fd);
				gone = unlinkat(dir, name, AT_REMOVEDIR) == 0;
			} else if (!gone && depth > 0) {
				gone = remove_move_up(r, dir, name);
			}
			err = errno;
		}
	}
	r->progress |= gone;
	if (gone && r->count)
		__atomic_add_fetch(r->count, 1, __ATOMIC_RELAXED);
	if (!gone && (err != ENOTEMPTY || !r->failure)) /* what is in it has failed */
		r->failure = err;
}

static void remove_entries(struct removal *r, int dir, int depth)
{
	_Alignas(8) char buffer[8192];
	struct reader names = reader_of(dir, buffer, sizeof(buffer));
	for (const char *name; (name = reader_next(&names));)
		remove_one(r, dir, name, depth);
}

int remove_tree(int root, int dir, const char *name, uint64_t *count)
{
	struct removal r = {.root = root, .count = count};
	int result = 0;
	fchmod(root, 0700);
	do {
		r.progress = false;
		int again = io_reopen_directory(root);
		remove_entries(&r, again < 0 ? root : again, 0);
		io_close(again);
		result = unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
	} while (result < 0 && r.progress);
	return result < 0 && r.failure ? -r.failure : result;
}

int remove_entry(int dir, const char *name)
{
	if (unlinkat(dir, name, 0) == 0)
		return 0;
	int err = errno;
	if (err != EISDIR && err != EPERM)
		return -err;
	int fd = remove_open(dir, name);
	if (fd < 0)
		return errno == ENOTDIR ? -err : -errno; /* EPERM of an immutable file */
	int r = remove_tree(fd, dir, name, NULL);
	close(fd);
	return r;
}

/* What part_examine() has found. */

int part_remove_data(const struct part *p)
{
	int r, fd = part_open_data(p, O_RDONLY | O_DIRECTORY);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return unlinkat(p->fd, PART_DATA, 0) < 0 ? -errno : 0;
	r = system_is_mount_root(fd) > 0 ? -EBUSY : remove_tree(fd, p->fd, PART_DATA, NULL);
	close(fd);
	return r;
}

/* Another entry may have got the name since it was looked up: then the old one stays here. */
static int left_return(const struct left *l)
{
	int fd = left_open_old(l);
	if (fd < 0)
		return fd;
	int r = old_rename(fd, l->part.parent, l->old);
	close(fd);
	if (r == 0 && unlinkat(l->part.fd, PRIVATE_OLD, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

static int left_remove_content(struct left *l)
{
	const struct part *p = &l->part;
	int r = part_remove_data(p);
	if (r == 0 && (r = remove_entry(p->fd, PRIVATE_ENTRY)) == -ENOENT)
		r = 0;
	if (r == 0)
		r = l->returns ? left_return(l) : remove_entry(p->fd, PRIVATE_OLD);
	return r == -ENOENT && !l->returns ? 0 : r;
}

/* As a copy retires its part: no copy continues it under a hidden name, and a removal that is
 * interrupted can be continued, because the lock and the journal go last. */
int left_remove(struct left *l)
{
	struct part *p = &l->part;
	const bool locked = p->lock >= 0;
	int r = part_is_named(p) ? 0 : errno ? -errno : -ESTALE;
	if (r == 0 && p->published)
		r = part_hide_dead(p);
	/* What is unlocked was empty when it was looked at, and may be in use by now. */
	if (r == 0 && p->lock >= 0)
		r = left_remove_content(l);
	if (r == 0 && part_is_receipt(p))
		part_remove_shares(p);
	if (r == 0)
		r = part_discard(p, l->retired);
	if ((r == -ENOENT || r == -ESTALE) && !part_is_named(p) && (errno == 0 || errno == ENOENT))
		r = 0; /* another process has removed it */
	const bool used = !locked && (r == -ENOTEMPTY || r == -EEXIST);
	l->state = used         ? FCOPY_LEFT_LIVE
		   : r < 0      ? FCOPY_LEFT_FAILED
		   : l->returns ? FCOPY_LEFT_RETURNED
				: FCOPY_LEFT_REMOVED;
	return used ? 0 : r;
}

bool left_sweep(int parent, const char *name, int of)
{
	struct left l;
	bool gone = part_examine(&l, parent, name, false) && l.state == FCOPY_LEFT_DEAD &&
		    ((l.bare && (l.part.lock < 0 || !private_locks_are_local(l.part.lock))) ||
		     l.kind == FCOPY_LEFT_RECEIPT) &&
		    (of < 0 || private_has_name(of, parent, name)) && left_remove(&l) == 0 &&
		    l.state != FCOPY_LEFT_LIVE;
	left_close(&l);
	return gone;
}

/* Its size. */

static void left_measure_below(int fd, dev_t device, unsigned depth, struct left_size *size);

static void left_measure_entry(int fd, const char *name, dev_t device, unsigned depth,
			       struct left_size *size)
{
	struct stat st;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		size->partial |= errno != ENOENT;
		return;
	}
	/* What a removal frees: no holes, and of a file with other names its part. */
	if (S_ISREG(st.st_mode) && st.st_nlink > 0)
		size->bytes += (uint64_t)st.st_blocks * 512 / st.st_nlink;
	if (!S_ISDIR(st.st_mode) || st.st_dev != device)
		return;
	int below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	size->partial |= below < 0;
	if (below >= 0)
		left_measure_below(below, device, depth + 1, size);
}

/* Closes fd. */
static void left_measure_below(int fd, dev_t device, unsigned depth, struct left_size *size)
{
	char *buffer = depth < MEASURED_MAX ? malloc(READER_SIZE) : NULL;
	struct reader r = reader_of(fd, buffer, READER_SIZE);
	size->partial |= !buffer;
	for (const char *name; buffer && (name = reader_next(&r));) {
		if (size->entries == 0 ||
		    (size->cancel && __atomic_load_n(size->cancel, __ATOMIC_RELAXED))) {
			size->partial = true;
			break;
		}
		size->entries--;
		left_measure_entry(fd, name, device, depth, size);
	}
	size->partial |= reader_close(&r) < 0;
	free(buffer);
	close(fd);
}

void left_measure(int fd, struct left_size *size)
{
	struct stat st;
	int dir = io_reopen_directory(fd);
	if (dir >= 0 && fstat(dir, &st) == 0) {
		left_measure_below(dir, st.st_dev, 0, size);
		return;
	}
	size->partial = true;
	io_close(dir);
}

/* An entry of DST, mostly a directory, that must give up its name before the entry of another type
 * that replaces it can be made. */

/* Gives the owner of a directory the right to change its .. for one rename. */
static int old_rename_closed(int from, int to, const char *name)
{
	struct stat st;
	int r = -EACCES, fd = openat(from, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return r;

	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & S_IWUSR) &&
	    io_chmod(fd, (st.st_mode & 07777) | S_IWUSR) == 0) {
		r = private_rename(from, name, to, name);
		(void)!io_chmod(fd, st.st_mode & 07777);
	}
	close(fd);
	return r;
}

int old_rename(int from, int to, const char *name)
{
	const int r = private_rename(from, name, to, name);
	return r == -EACCES ? old_rename_closed(from, to, name) : r;
}

int old_take(struct old *o, int dir, const char *name)
{
	mode_t left;
	o->fd = -1;
	int r = private_make(&o->at, dir, NULL);
	if (r < 0)
		return r;
	o->fd = private_make_directory(o->at.fd, PRIVATE_OLD, 0700, false, false, &left, NULL);
	r = o->fd < 0 ? o->fd : old_rename(dir, o->fd, name);
	if (r < 0)
		old_end(o);
	return r;
}

int old_return(struct old *o, const char *name)
{
	return old_rename(o->fd, o->at.parent, name);
}

/* What holds the entry keeps its lock: by it the next mirror knows the directory. */
void old_end(struct old *o)
{
	io_close(o->fd);
	if (unlinkat(o->at.fd, PRIVATE_OLD, AT_REMOVEDIR) == 0 || errno == ENOENT) {
		private_end(&o->at);
		return;
	}
	close(o->at.lock);
	close(o->at.fd);
}
