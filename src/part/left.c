/* SPDX-License-Identifier: MIT
 * Implements left.h. Only what three questions answer is removed:
 *
 *   whose?   trust as in part.h. The owner of the directory above can give a name that looks like
 *            ours to any directory of this user: its lock or its journal must name its own inode,
 *            and it may contain nothing but what a copy makes.
 *   used?    the lock. On local storage it is also the lock of clients that a file server on this
 *            machine has.
 *   where?   Elsewhere another machine may hold a lock that this one cannot see, unless the copy
 *            was made in this boot of this machine.
 *
 * A temporary file has no lock: one more call for each file would slow down the only storage that
 * has such files, which is mostly remote, and locks prove nothing there.
 */
#define _GNU_SOURCE
#include "left.h"
#include "io/io.h"
#include "io/system.h"
#include "remove.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEPTH_MAX 32 /* each level needs a descriptor */

/* What a directory contains. */
enum {
	LEFT_LOCK = 1,
	LEFT_JOURNAL = 2,
	LEFT_DATA = 4,
	LEFT_ENTRY = 8,
	LEFT_SHARE = 16,
	LEFT_OLD = 32,
	LEFT_OTHER = 64
};

static bool left_unknown(struct left *l, const char *reason)
{
	l->state = FCOPY_LEFT_UNKNOWN;
	l->reason = reason;
	return false;
}

static int left_contents(int fd)
{
	_Alignas(8) char buffer[READER_SIZE];
	struct reader r = reader_open(fd, buffer, sizeof(buffer));
	int has = 0;
	for (const char *name; (name = reader_next(&r));)
		has |= strcmp(name, PRIVATE_LOCK) == 0    ? LEFT_LOCK
		       : strcmp(name, PART_JOURNAL) == 0  ? LEFT_JOURNAL
		       : strcmp(name, PART_DATA) == 0     ? LEFT_DATA
		       : strcmp(name, PRIVATE_ENTRY) == 0 ? LEFT_ENTRY
		       : strcmp(name, PRIVATE_OLD) == 0   ? LEFT_OLD
		       : strncmp(name, "share.", 6) == 0  ? LEFT_SHARE
							  : LEFT_OTHER;
	const int err = reader_close(&r);
	return err < 0 ? err : has;
}

static bool left_is_local(const struct left *l)
{
	return system_has(l->part.fd, SYSTEM_LOCAL) || major(l->st.st_dev) != 0;
}

/* flock(2) of a client of NFS or SMB is a POSIX lock of the server. */
static int left_take_lock(const struct left *l, int fd)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int r = private_take_lock(fd, LOCK_EX, NULL);
	if (r == 0 && left_is_local(l) && fcntl(fd, F_OFD_SETLK, &all) < 0)
		r = errno == EACCES || errno == EAGAIN ? -EWOULDBLOCK : -errno;
	return r;
}

/* Reads what the lock and the journal say; missing files say nothing. */
static int left_read(struct left *l, struct journal *lock)
{
	int r = 0, log = part_open_own(&l->part, PART_JOURNAL, O_RDONLY);
	*lock = (struct journal){.text = NULL};
	if (log >= 0) {
		struct stat st;
		r = journal_read(log, &l->part.journal, NULL, NULL);
		if (fstat(log, &st) == 0 && st.st_mtime > l->changed)
			l->changed = st.st_mtime;
		close(log);
	} else if (log != -ENOENT) {
		r = log;
	}
	if (r == 0 && l->part.lock >= 0)
		r = journal_read(l->part.lock, lock, NULL, NULL);
	return r;
}

/* Does the journal say that it has this name? */
static bool left_has_name(const struct left *l, const char *name)
{
	const struct journal_fact *f = &l->part.journal.name;
	char dst[JOURNAL_PATH], part[NAME_MAX + 1];
	if (journal_unescape(f->text, f->size, dst) > NAME_MAX)
		return false;
	part_make_name(part, -1, dst);
	if (strcmp(part, name) != 0) /* a shorter name may have been needed here */
		part_hash_name(part, dst);
	return strcmp(part, name) == 0;
}

/* Was it made by this program, and, as far as that is known, on this machine? */
static bool left_is_proved(struct left *l, const struct journal *lock, const char *name)
{
	struct journal_fact here;
	const bool header = part_has_header(&l->part);
	const struct journal_fact *run = header ? &l->part.journal.run : &lock->run;
	if (l->kind == FCOPY_LEFT_PART && (!header || !left_has_name(l, name)))
		return left_unknown(l, "its journal belongs to another directory");
	if (!header && (!lock->private.kind || lock->private.number != l->st.st_ino))
		return left_unknown(l,
				    "nothing in it shows that fcopy created it in this directory");
	private_here(l->part.fd, &here);
	if (left_is_local(l) || (here.boot[0] != '-' && strcmp(run->boot, here.boot) == 0))
		return true;
	return left_unknown(l, "another machine may be using it");
}

/* Does it hold no bytes of a copy? */
static bool left_is_bare(const struct left *l, int has)
{
	struct stat st;
	if (!(has & (LEFT_DATA | LEFT_ENTRY | LEFT_OLD)))
		return true;
	if (has & (LEFT_ENTRY | LEFT_OLD) ||
	    fstatat(l->part.fd, PART_DATA, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	return S_ISREG(st.st_mode) && st.st_size == 0;
}

/* Does it contain only what one copy makes? */
static bool left_is_plain(struct left *l, int *has)
{
	*has = left_contents(l->part.fd);
	if (*has < 0)
		return left_unknown(l, "it cannot be read");
	if (*has & LEFT_SHARE)
		return left_unknown(l, "it belongs to a copy in shards");
	if (*has & LEFT_OTHER || (*has & LEFT_OLD && l->kind != FCOPY_LEFT_DIRECTORY))
		return left_unknown(l, "it contains entries that fcopy did not make");
	return true;
}

int left_open_old(const struct left *l)
{
	int fd = openat(l->part.fd, PRIVATE_OLD, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd;
}

/* Which entry did a mirror replace? If it is gone, what is left is a mere temporary directory.
 * Returns false if that is unknown. */
static bool left_find_old(struct left *l)
{
	_Alignas(8) char buffer[2048];
	struct stat st;
	int fd = left_open_old(l);
	if (fd < 0)
		return left_unknown(l, "it cannot be read");
	struct reader r = reader_of(fd, buffer, sizeof(buffer));
	const char *name = reader_next(&r);
	if (name) {
		l->kind = FCOPY_LEFT_OLD;
		snprintf(l->old, sizeof(l->old), "%s", name);
		l->returns = fstatat(l->part.parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
			     errno == ENOENT;
	}
	const bool read = reader_close(&r) == 0;
	close(fd);
	return read || left_unknown(l, "it cannot be read");
}

static bool left_examine_content(struct left *l, const char *name)
{
	struct journal lock = {.text = NULL};
	struct part *p = &l->part;
	const bool hidden = l->kind == FCOPY_LEFT_DIRECTORY;
	int has;
	if (!left_is_plain(l, &has))
		return false;
	if (has & LEFT_LOCK) {
		p->lock = part_open_own(p, PRIVATE_LOCK, O_RDWR);
		int r = p->lock < 0 ? p->lock : left_take_lock(l, p->lock);
		if (r == -EWOULDBLOCK)
			l->state = FCOPY_LEFT_LIVE;
		if (r < 0)
			return r != -EWOULDBLOCK && left_unknown(l, "it cannot be locked");
		/* The first shard of a job may have come and gone while another one had the lock.
		 */
		if (!left_is_plain(l, &has))
			return false;
	} else if (!hidden || has & (LEFT_DATA | LEFT_ENTRY | LEFT_OLD)) {
		return left_unknown(l, "it has no lock");
	}
	l->retired = has == LEFT_JOURNAL;
	/* The maker of an empty directory has not locked it yet, and makes another one. */
	if (hidden && has == 0)
		return true;
	int r = left_read(l, &lock);
	bool proved = r == 0 && hidden && left_is_bare(l, has) && part_is_proved(p, &lock) &&
		      (p->lock < 0 || !private_locks_are_local(p->lock));
	if (r == 0 && !proved)
		proved = left_is_proved(l, &lock, name);
	journal_free(&lock);
	if (proved && p->published && part_is_receipt(p))
		l->kind = FCOPY_LEFT_RECEIPT;
	if (proved && has & LEFT_OLD)
		proved = left_find_old(l);
	return r < 0 ? left_unknown(l, "its journal cannot be read") : proved;
}

static void left_examine(struct left *l, int parent, const char *name)
{
	struct part *p = &l->part;
	l->state = FCOPY_LEFT_UNKNOWN;
	if (!S_ISDIR(l->st.st_mode)) {
		l->reason = l->kind == FCOPY_LEFT_PART
				? "an earlier version of fcopy, or another program, made it"
			    : l->st.st_uid != geteuid()
				? "it belongs to another user"
				: "a temporary file has no lock: a copy may still be writing it";
		return;
	}
	p->parent = parent;
	p->fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->fd < 0 || fstat(p->fd, &l->st) < 0) {
		l->reason = errno == EACCES ? "it belongs to another user" : "it cannot be opened";
		return;
	}
	if (!private_is_ours(parent, &l->st, &p->exposed)) {
		l->reason = l->st.st_uid != geteuid() ? "it belongs to another user"
						      : "it is open to other users";
		return;
	}
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->published = l->kind == FCOPY_LEFT_PART;
	if (left_examine_content(l, name))
		l->state = FCOPY_LEFT_DEAD;
}

static bool left_is_part(const char *name)
{
	const size_t length = strlen(name), suffix = sizeof(PART_SUFFIX) - 1;
	return length > suffix && strcmp(name + length - suffix, PART_SUFFIX) == 0;
}

/* Was it removed or renamed while it was examined, which may wait for a lock? */
static bool left_is_gone(struct left *l, int parent, const char *name)
{
	struct stat st;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	/* The next copy has made another one. */
	if (l->part.fd >= 0 && st.st_ino != l->st.st_ino)
		l->state = FCOPY_LEFT_LIVE;
	return false;
}

bool left_find(struct left *l, int parent, const char *name)
{
	const bool drawn = temporary_is_drawn(name);
	*l = (struct left){.part = {.fd = -1, .lock = -1, .log = -1}};
	if ((!drawn && !left_is_part(name)) ||
	    fstatat(parent, name, &l->st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISREG(l->st.st_mode) && !S_ISDIR(l->st.st_mode)))
		return false;
	l->kind = !drawn                   ? FCOPY_LEFT_PART
		  : S_ISDIR(l->st.st_mode) ? FCOPY_LEFT_DIRECTORY
					   : FCOPY_LEFT_FILE;
	l->changed = l->st.st_mtime;
	left_examine(l, parent, name);
	if (!left_is_gone(l, parent, name))
		return true;
	left_close(l);
	return false;
}

static bool left_is_mounted(int dir, int fd)
{
	struct journal_fact above, below;
	private_here(dir, &above);
	private_here(fd, &below);
	return above.mount != below.mount;
}

static int left_remove_data(const struct part *p)
{
	int r, fd = part_open_data(p, O_RDONLY | O_DIRECTORY);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return unlinkat(p->fd, PART_DATA, 0) < 0 ? -errno : 0;
	r = left_is_mounted(p->fd, fd) ? -EBUSY : remove_tree(fd, p->fd, PART_DATA, NULL);
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
	int r = left_remove_data(p);
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
		r = part_hide(p);
	/* What is unlocked was empty when it was looked at, and may be in use by now. */
	if (r == 0 && p->lock >= 0)
		r = left_remove_content(l);
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

void left_close(struct left *l)
{
	part_close(&l->part, false);
}

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
	char *buffer = depth < DEPTH_MAX ? malloc(READER_SIZE) : NULL;
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
	if (dir >= 0)
		close(dir);
}
