/* SPDX-License-Identifier: MIT
 * Implements left.h, but for the removal. Only what three questions answer is removed:
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
#include "left.h"
#include "io/io.h"
#include "io/system.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

/* What a directory contains. */
enum {
	LEFT_LOCK = 1,
	LEFT_JOURNAL = 2,
	LEFT_DATA = 4,
	LEFT_ENTRY = 8,
	LEFT_SHARE = 16,
	LEFT_OLD = 32,
	LEFT_NFS = 64, /* a file that is open and removed */
	LEFT_OTHER = 128
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
		has |= strcmp(name, PRIVATE_LOCK) == 0                      ? LEFT_LOCK
		       : strcmp(name, PART_JOURNAL) == 0                    ? LEFT_JOURNAL
		       : strcmp(name, PART_DATA) == 0                       ? LEFT_DATA
		       : strcmp(name, PRIVATE_ENTRY) == 0                   ? LEFT_ENTRY
		       : strcmp(name, PRIVATE_OLD) == 0                     ? LEFT_OLD
		       : strncmp(name, ".nfs", 4) == 0                      ? LEFT_NFS
		       : strncmp(name, PART_SHARE, strlen(PART_SHARE)) == 0 ? LEFT_SHARE
									    : LEFT_OTHER;
	const int err = reader_close(&r);
	return err < 0 ? err : has;
}

static bool left_is_local(const struct left *l)
{
	return system_has(l->part.fd, SYSTEM_LOCAL) || major(l->st.st_dev) != 0;
}

/* flock(2) of a client of NFS or SMB is a POSIX lock of the server. */
static int left_take_lock(const struct left *l, bool waits)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	const int fd = l->part.lock;
	int r = waits ? private_take_lock(fd, LOCK_EX, NULL) : private_flock(fd, LOCK_EX);
	if (r == 0 && left_is_local(l) && fcntl(fd, F_OFD_SETLK, &all) < 0)
		r = errno == EACCES || errno == EAGAIN ? -EWOULDBLOCK : -errno;
	return r;
}

/* Reads the journal; a missing one says nothing. */
static int left_read_journal(struct left *l)
{
	struct stat st;
	const int log = part_open_own(&l->part, PART_JOURNAL, O_RDONLY);
	journal_free(&l->part.journal);
	l->part.journal = (struct journal){.text = NULL};
	if (log < 0)
		return log == -ENOENT ? 0 : log;
	const int r = journal_read(log, &l->part.journal, NULL, NULL);
	if (fstat(log, &st) == 0 && st.st_mtime > l->changed)
		l->changed = st.st_mtime;
	close(log);
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

/* Was it made by this program, and, as far as that is known, on this machine? A process that was
 * killed just after it had created the lock has written nothing: then no other user may be able to
 * give a name to a directory here. */
static bool left_is_proved(struct left *l, const struct journal *lock, const char *name)
{
	const struct part *p = &l->part;
	const bool header = part_has_header(p), sign = part_is_signed(p, lock);
	const struct journal_fact *run = header ? &p->journal.run : &lock->run;
	struct journal_fact here;
	struct stat above;
	if (l->kind == FCOPY_LEFT_PART && (!header || !left_has_name(l, name)))
		return left_unknown(l, "its journal belongs to another directory");
	if (!sign && (!l->bare || fstat(p->parent, &above) < 0 || private_is_shared(&above)))
		return left_unknown(l,
				    "nothing in it shows that fcopy created it in this directory");
	private_here(p->fd, &here);
	if (left_is_local(l) || (here.boot[0] != '-' && strcmp(run->boot, here.boot) == 0) ||
	    (l->bare && (p->lock < 0 || !private_locks_are_local(p->lock))))
		return true;
	return left_unknown(l, "another machine may be using it");
}

static bool left_is_empty(const struct left *l, const char *name)
{
	int fd = openat(l->part.fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const bool empty = fd >= 0 && private_is_empty(fd) == 1;
	io_close(fd);
	return empty;
}

/* Does it hold no bytes of a copy, nor what was put aside? */
static bool left_is_bare(const struct left *l, int has)
{
	struct stat st;
	if (l->part.published)
		return false;
	if (has & LEFT_ENTRY || (has & LEFT_OLD && !left_is_empty(l, PRIVATE_OLD)))
		return false;
	if (!(has & LEFT_DATA))
		return true;
	if (fstatat(l->part.fd, PART_DATA, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	return S_ISREG(st.st_mode) ? st.st_size == 0 : left_is_empty(l, PART_DATA);
}

/* Does it contain only what one copy makes? What shards add is a receipt's rest; other clients may
 * have it open. */
static bool left_is_plain(struct left *l, int *has)
{
	*has = left_contents(l->part.fd);
	if (*has < 0)
		return left_unknown(l, "it cannot be read");
	if (*has & LEFT_SHARE && !part_is_receipt(&l->part))
		return left_unknown(
		    l, "it belongs to a copy in shards: if none runs, remove it with rm -r");
	if (*has & LEFT_OTHER || (*has & LEFT_NFS && !part_is_receipt(&l->part)) ||
	    (*has & LEFT_OLD && l->kind != FCOPY_LEFT_DIRECTORY))
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

/* Takes the lock. Returns 1; 0: there is none; or -errno, with the state set. */
static int left_lock(struct left *l, int has, bool waits)
{
	struct part *p = &l->part;
	const bool hidden = l->kind == FCOPY_LEFT_DIRECTORY;
	if (!(has & LEFT_LOCK)) {
		if (hidden && !(has & (LEFT_DATA | LEFT_ENTRY | LEFT_OLD)))
			return 0;
		left_unknown(l, "it has no lock");
		return -ENOENT;
	}
	p->lock = part_open_own(p, PRIVATE_LOCK, O_RDWR);
	int r = p->lock < 0 ? p->lock : left_take_lock(l, waits);
	if (r == -EWOULDBLOCK)
		l->state = FCOPY_LEFT_LIVE;
	else if (r < 0)
		left_unknown(l, "it cannot be locked");
	return r < 0 ? r : 1;
}

/* Is it dead, and may it be removed? */
static bool left_examine_content(struct left *l, const char *name, bool waits)
{
	struct journal lock = {.text = NULL};
	struct part *p = &l->part;
	int has, r = left_read_journal(l);
	if (!left_is_plain(l, &has))
		return false;
	const int locked = left_lock(l, has, waits);
	if (locked < 0)
		return false;
	/* The first shard of a job may have come and gone while another one had the lock. */
	if (locked && ((r = left_read_journal(l)), !left_is_plain(l, &has)))
		return false;
	l->retired = has == LEFT_JOURNAL;
	l->bare = left_is_bare(l, has);
	/* The maker of an empty directory has not locked it yet, and makes another one. */
	if (l->kind == FCOPY_LEFT_DIRECTORY && has == 0)
		return true;
	if (r == 0)
		r = part_find_number(p);
	if (r == 0 && locked)
		r = journal_read(p->lock, &lock, NULL, NULL);
	bool proved = r == 0 && left_is_proved(l, &lock, name);
	journal_free(&lock);
	if (proved && p->published && part_is_receipt(p))
		l->kind = FCOPY_LEFT_RECEIPT;
	if (proved && has & LEFT_OLD)
		proved = left_find_old(l);
	return r < 0 ? left_unknown(l, "its journal cannot be read") : proved;
}

/* A tree that is built beside its final name has locked the directory itself. */
static bool left_is_locked(int fd)
{
	if (private_flock(fd, LOCK_SH) == -EWOULDBLOCK)
		return true;
	flock(fd, LOCK_UN);
	const int lock = openat(fd, PRIVATE_LOCK, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const bool locked = lock >= 0 && private_flock(lock, LOCK_SH) == -EWOULDBLOCK;
	io_close(lock);
	return locked;
}

static void left_examine(struct left *l, const char *name, bool waits)
{
	const bool part = l->kind == FCOPY_LEFT_PART;
	l->state = FCOPY_LEFT_UNKNOWN;
	if (!S_ISDIR(l->st.st_mode)) {
		l->reason = part ? "an earlier version of fcopy, or another program, made it"
			    : l->st.st_uid != geteuid()
				? "it belongs to another user"
				: "a temporary file has no lock: a copy may still be writing it";
		return;
	}
	switch (part_whose(&l->part, name, &l->st)) {
	case PART_OURS: break;
	case PART_OTHER_USER: l->reason = "it belongs to another user"; return;
	case PART_OPEN_TO_OTHERS:
		l->reason = "it is open to other users";
		if (left_is_locked(l->part.fd))
			l->state = FCOPY_LEFT_LIVE;
		return;
	default: l->reason = "it cannot be opened"; return;
	}
	l->part.published = part;
	if (!part && left_is_locked(l->part.fd))
		l->state = FCOPY_LEFT_LIVE;
	else if (left_examine_content(l, name, waits))
		l->state = FCOPY_LEFT_DEAD;
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

bool part_examine(struct left *l, int parent, const char *name, bool waits)
{
	const bool drawn = temporary_is_drawn(name);
	*l = (struct left){.part = {.parent = parent, .fd = -1, .lock = -1, .log = -1}};
	if ((!drawn && !part_is_name(name)) ||
	    fstatat(parent, name, &l->st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISREG(l->st.st_mode) && !S_ISDIR(l->st.st_mode)))
		return false;
	l->kind = !drawn                   ? FCOPY_LEFT_PART
		  : S_ISDIR(l->st.st_mode) ? FCOPY_LEFT_DIRECTORY
					   : FCOPY_LEFT_FILE;
	l->changed = l->st.st_mtime;
	left_examine(l, name, waits);
	if (!left_is_gone(l, parent, name))
		return true;
	left_close(l);
	return false;
}

void left_close(struct left *l)
{
	part_close(&l->part, false);
}
