/* SPDX-License-Identifier: MIT
 *
 * A part: the private directory in which a copy is built until its commit, if it is to be continued
 * after a failure.
 *
 *     NAME.fcopy-part/     a hash in place of NAME if that is too long
 *         data             the file or tree, under construction
 *         journal          what data is a copy of, and what of it is complete: journal.h
 *         lock             locked by the process that uses the part, or that share it
 *         share.*          what shards add: src/shard/job.h
 *
 * Publish: the directory is made under a hidden name, and gets its own name when its journal has a
 * header: a visible part is always complete. Retire: it is renamed to a hidden name first, and then
 * removed. A kill between these steps leaves a hidden directory that left_sweep() recognises.
 *
 * Acquire: part_acquire() is the one place that decides whether a copy continues the part of an
 * earlier run, begins a new one, or may not touch what is there. What is left of killed copies is
 * examined by part_examine() (left.h), which removes nothing and continues nothing.
 *
 * Trust: a part is opened only if no other user can have written to it: it is a directory of this
 * user with mode 0700, and its journal, with one link and mode 0600, has the part's own number. Uid
 * and mode alone are too weak: the owner of the directory above can give the name of the part to
 * any directory of this user that he can move. The number is that of its inode. Where the next
 * mount may show another one, a random number in `lock` takes its place.
 */
#ifndef PART_PART_H
#define PART_PART_H

#include "fcopy.h"
#include "io/hash.h"
#include "journal.h"
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PART_JOURNAL "journal"
#define PART_SHARE   "share." /* the names of what shards add begin so */
#define PART_EXPOSED                                                                               \
	"other users may reach the unfinished copy: the storage shows another owner or mode than " \
	"a new directory should have"
#define PART_REPLACED "its .fcopy-part was moved or replaced during the copy"

/* Until it is made or acquired, fd is -1, and only the names are known. After that, `name` is its
 * name in `parent`: `public` if it is published, and otherwise a hidden one. The lock is open as
 * long as this process uses the part, and the log from part_describe(), or from the acquisition, to
 * part_close(). What this process notes in the log does not change `journal`. */
struct part {
	int parent;                /* the caller's; must outlive it */
	int fd, lock, log;         /* the directory, its lock and its journal; -1: none */
	char name[NAME_MAX + 1];   /* of the directory, now */
	char public[NAME_MAX + 1]; /* NAME.fcopy-part */
	uint64_t number;           /* see above */
	bool published;
	bool exposed;     /* the storage has no owners or modes: other users may enter it */
	uint64_t differs; /* bits of the options: for them data was removed; 0: it was not */
	bool unflushed;   /* a flush of data failed: its pages may hold what the storage lacks */
	int lost;         /* the errno of an append that failed: nothing more is noted; atomic */
	struct journal journal; /* of an earlier run */
	/* Why the last call failed: a reason and an advice, or a system call; and its errno. */
	const char *reason, *call;
	int err;
	enum fcopy_advice advice;
	char stuck[TEMPORARY_SIZE]; /* what could not be removed, and why */
	int stuck_err;
};

/* Sets the names; opens nothing. dst: the name of the copy in the open directory `parent`. */
void part_init(struct part *, int parent, const char *dst);

/* Makes a new one under a hidden name. Returns 0 or -errno. */
int part_make(struct part *);
/* Can a directory be moved from it to the directory above? Landlock, project quotas and some FUSE
 * file systems refuse that. Returns 0 or -errno. */
int part_can_move(struct part *);
/* Writes the first lines of the journal; data: the open copy in the part; mode: what it gets last.
 * Returns 0 or -errno. */
int part_describe(struct part *, const char *dst, const struct journal_fact *source,
		  uint64_t options, int data, mode_t mode);
/* What the journal notes of an open source, or of one that has no descriptor (-1). */
struct journal_fact part_source(int fd, const struct stat *);
/* Gives it its name; data: the open copy in the part, which may be opened again, or is negative
 * after a failure. Returns 0; -EEXIST: something has the name already; or -errno. */
int part_publish(struct part *, int *data);

/* acquire.c: who asks for the part of DST. */
struct part_claim {
	const char *dst; /* the name of the copy, as for part_init */
	enum part_user { PART_OF_FILE, PART_OF_TREE, PART_OF_SHARDS } of;
	bool resumes;     /* --resume, and shards: an earlier run is to be continued */
	uint64_t options; /* as part_describe notes them; shards compare them themselves */
	/* DST exists: only what an earlier run renamed to it counts. NULL: it does not. */
	const struct stat *committed;
	const volatile int *cancel;
};

enum part_state {
	/* There is none: part_make() may make one. What nobody can continue was removed: a receipt;
	 * a part without data, which was committed, and DST was moved away since; of a file one
	 * that other options began. With claim->committed: none that DST came from. */
	PART_FRESH,
	PART_CONTINUED, /* of the same user, name and options */
	PART_COMMITTED, /* without data: DST has it */
	PART_RECEIPT,   /* of shards, which have committed; only for PART_OF_SHARDS */
	PART_BUSY,      /* another process uses it: p->reason */
	PART_REFUSED,   /* p->reason and p->advice, or p->call, say why; p->err */
};

/* Finds the part of a copy. After CONTINUED, COMMITTED and RECEIPT it is open and locked, and its
 * journal was read; shards share the lock, flush nothing, and wait until the shard that has locked
 * it to commit has ended; without locks that other machines see, they are refused. Otherwise
 * nothing is open. */
enum part_state part_acquire(struct part *, const struct part_claim *);
/* Shares the lock of a part that was made and described, and reads its journal. Returns 0;
 * -EAGAIN if another process has just removed it: it was hidden; or -errno, also where locks do not
 * reach other machines. */
int part_share(struct part *);
/* Removes an open part that nobody may continue, with `data`, a file. Returns 0 or -errno: then it
 * stays under a hidden name, or its own. Closes it. */
int part_retire(struct part *);
/* Removes what shards have added. */
void part_remove_shares(const struct part *);
/* Is there something with the name of the part? */
bool part_exists(const struct part *);
/* May there be data? If that is unknown, errno says why, and else is 0. */
bool part_has_data(const struct part *);
/* Opens `data`; flags as for openat(2). Returns a descriptor or -errno. */
int part_open_data(const struct part *, int flags);
/* Has data, or any other file, the inode that the journal names? */
bool part_is_data(const struct part *, const struct stat *);
/* Is this source, of part_source(), the one that the journal names? Of a tree only its number
 * counts. */
bool part_same_source(const struct part *, const struct journal_fact *source, uint64_t options);

/* Adds lines to the journal. A failure never fails the copy: it only ends the journal. */
void part_append(struct part *, const char *lines, size_t size);
static inline void part_lose(struct part *p, int err)
{
	__atomic_store_n(&p->lost, err, __ATOMIC_RELAXED);
}
void part_note(struct part *, const struct journal_fact *);
/* Starts a run that continues `data`, of which so many bytes are known to be complete. */
void part_note_run(struct part *, off_t prefix);
/* Starts such a run with another source than the journal names. Returns 0 if that is on the
 * storage. Or -errno: what earlier runs noted may still count, so no byte of this source may be
 * written. */
int part_note_source(struct part *, const struct journal_fact *source, off_t prefix);
/* Everything that was noted is on the storage now: the caller has flushed data. */
void part_note_flushed(struct part *);
/* The opposite: the flush has failed, and what data contains is unknown. */
void part_note_lost(struct part *);
/* Notes durably that the entry is copied again, whatever was noted before. If that fails, removes
 * the journal: it would report an incomplete copy as complete. */
void part_note_again(struct part *, const char *path);

/* Record why a call failed, and return -err. */
static inline int part_fail(struct part *p, const char *call, int err)
{
	p->call = call;
	p->reason = NULL;
	p->err = err;
	return -err;
}

static inline int part_refuse(struct part *p, int err, const char *reason, enum fcopy_advice advice)
{
	p->reason = reason;
	p->advice = advice;
	p->err = err;
	return -err;
}

/* trust.c: the questions of trust, which acquire.c and left.c ask. */
enum part_whose {
	PART_OURS,
	PART_OTHER_USER,
	PART_OPEN_TO_OTHERS,
	PART_NO_DIRECTORY,
	PART_UNKNOWN, /* errno says why */
};
/* Opens the directory `name`. */
enum part_whose part_whose(struct part *, const char *name, struct stat *);
/* Opens a file in it that only this user can have written. Returns a descriptor or -errno; -EPERM:
 * it is another file. */
int part_open_own(const struct part *, const char *name, int flags);
/* Sets p->number; p->lock may be open. Returns 0 or -errno. */
int part_find_number(struct part *);
/* Was the journal, which was read, begun in this directory? */
bool part_has_header(const struct part *);
/* ... or is at least the lock's number that of this directory? */
bool part_is_signed(const struct part *, const struct journal *lock);
/* Do inode numbers of the journal's last run mean something now? They count within one boot. */
bool part_same_boot(const struct part *);
/* What shards have committed: the journal names what DST became, and data is gone. It is the
 * receipt by which a late shard recognises the copy. Any other copy may remove it. */
bool part_is_receipt(const struct part *);

/* Has the part still its name? */
bool part_is_named(const struct part *);
/* Takes its public name away, so that no copy continues it. Returns 0 or -errno. */
int part_hide(struct part *);
/* The same for the part of a dead process, whose data is not open. Where open files are in the way
 * of a rename, as on SMB, its lock, if it has one, is released during the rename. */
int part_hide_dead(struct part *);
/* Removes the open part of a dead process, which has no data any more. Its lock, if it has one, is
 * held: the part is renamed before the lock is released, so that a process that waits to lock what
 * it has just made sees that it is gone. Without a lock, only an empty directory is removed, or one
 * that is retired: it had a journal, and its lock was gone already. Returns 0 or -errno. */
int part_discard(struct part *, bool retired);
/* Closes the part. It stays, unless `remove`: then the lock, the journal and the directory are
 * removed, if it has no data. Returns 0, or -errno: the rest is left there, or the journal of a
 * part that stays may lack lines. */
int part_close(struct part *, bool remove);

/* The name under which an unfinished copy is kept beside it. */

#define PART_SUFFIX ".fcopy-part"
#define PART_DATA   "data"
#define PART_HASHED (16 + sizeof(PART_SUFFIX) - 1) /* the length of a name with a hash */

/* Could this name of an entry be that of a part? */
static inline bool part_is_name(const char *name)
{
	const size_t length = strlen(name), suffix = sizeof(PART_SUFFIX) - 1;
	return length > suffix && strcmp(name + length - suffix, PART_SUFFIX) == 0;
}

/* Does the storage of the directory `parent` take a name of so many bytes? eCryptfs takes 143,
 * others 170 or so, and some do not say how many: then they are asked for that name. parent -1:
 * unknown. */
static inline bool part_name_fits(int parent, const char *name, size_t length)
{
	struct statfs fs;
	struct stat st;
	if (length > NAME_MAX)
		return false;
	if (length <= PART_HASHED || parent == -1)
		return true;
	if (fstatfs(parent, &fs) == 0 && (size_t)fs.f_namelen >= PART_HASHED &&
	    length > (size_t)fs.f_namelen)
		return false;
	return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENAMETOOLONG;
}

/* The name with a hash in place of NAME. */
static inline void part_hash_name(char part[NAME_MAX + 1], const char *name)
{
	snprintf(part, NAME_MAX + 1, "%016" PRIx64 PART_SUFFIX,
		 hash_add(HASH_START, name, strlen(name)));
}

/* Writes NAME.fcopy-part, or a hash in place of NAME if that is too long for the directory. */
static inline void part_make_name(char part[NAME_MAX + 1], int parent, const char *name)
{
	const int length = snprintf(part, NAME_MAX + 1, "%s" PART_SUFFIX, name);
	if (!part_name_fits(parent, part, (size_t)length))
		part_hash_name(part, name);
}

/* For messages: the path of the part beside dst, a path of a file or directory that has a name.
 * Returns false if it is too long; then part has only its first bytes. */
static inline bool part_make_path(char part[PATH_MAX], const char *dst)
{
	char name[NAME_MAX + 1];
	const char *slash = strrchr(dst, '/'), *last = slash ? slash + 1 : dst;
	const int length = (int)(last - dst);
	if (snprintf(part, PATH_MAX, "%.*s.", length, dst) >= PATH_MAX)
		return false;
	const int parent = open(part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	part_make_name(name, parent, last);
	if (parent >= 0)
		close(parent);
	return snprintf(part, PATH_MAX, "%.*s%s", length, dst, name) < PATH_MAX;
}

#endif
