/* SPDX-License-Identifier: MIT
 * Opens a part that an earlier run left: whose it is, whether another process uses it, and what its
 * journal says.
 */
#define _GNU_SOURCE
#include "io/system.h"
#include "old.h"
#include "part.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define TRIES     8    /* each fails if another copy commits the part first */
#define WAIT_MS   3    /* doubled each time: together, the waits for other machines take 0.8 s */
#define NAMES_MAX 4096 /* are read: a directory may be huge, and its server far away */

static bool part_same_run(const struct journal_fact *run, const void *here_)
{
	const struct journal_fact *here = here_;
	return here->mount != 0 && here->boot[0] != '-' && run->mount == here->mount &&
	       strcmp(run->boot, here->boot) == 0;
}

static int part_refuse_old(struct part *p, int err)
{
	return part_refuse(
	    p, err,
	    "its .fcopy-part has no journal: an earlier version of fcopy, or another "
	    "program, made it",
	    FCOPY_ADVICE_REMOVE_PART);
}

/* A client of a network file system remembers names: the file may be new. */
static int part_refuse_incomplete(struct part *p)
{
	part_refuse_old(p, EPERM);
	return system_has(p->parent, SYSTEM_LOCAL) ? -EPERM : -ESTALE;
}

static int part_open_directory(struct part *p)
{
	struct stat st;
	p->fd = openat(p->parent, p->public, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return part_refuse_old(p, ENOTDIR);
	if (p->fd < 0 && errno == EACCES)
		return part_refuse(p, EACCES, "its .fcopy-part belongs to another user",
				   FCOPY_ADVICE_REMOVE_PART);
	if (p->fd < 0)
		return part_fail(p, "open of its .fcopy-part", errno);
	if (fstat(p->fd, &st) < 0)
		return part_fail(p, "fstat", errno);
	if (private_is_ours(p->parent, &st, &p->exposed))
		return 0;
	return part_refuse(p, EPERM,
			   st.st_uid == geteuid() ? "its .fcopy-part is open to other users"
						  : "its .fcopy-part belongs to another user",
			   FCOPY_ADVICE_REMOVE_PART);
}

static int part_lock(struct part *p, int how, const volatile int *cancel)
{
	p->lock = openat(p->fd, PRIVATE_LOCK, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (p->lock < 0 && errno == ENOENT)
		return part_is_named(p) ? part_refuse_incomplete(p) : -EAGAIN;
	if (p->lock < 0)
		return part_fail(p, "open of its .fcopy-part", errno);
	int r = private_take_lock(p->lock, how, cancel);
	if (r == -EWOULDBLOCK)
		return part_refuse(p, EBUSY, "another fcopy is using its .fcopy-part",
				   FCOPY_ADVICE_NONE);
	if (r == -EINTR)
		return part_refuse(p, EINTR, "interrupted", FCOPY_ADVICE_NONE);
	if (r < 0 && !private_lacks_locks(-r))
		return part_fail(p, "lock of its .fcopy-part", -r);
	if (part_is_named(p))
		return 0;
	return errno && errno != ENOENT ? part_fail(p, "fstat", errno)
					: -EAGAIN; /* another copy has just committed it */
}

/* Flushes data before its journal is believed: a writeback that has failed since is reported now.
 */
static bool part_flush_data(const struct part *p)
{
	struct stat st;
	int fd = part_open_data(p, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return fd == -ENOENT; /* the commit was killed: nothing is continued */
	bool clean = fstat(fd, &st) == 0 && (S_ISDIR(st.st_mode) ? syncfs(fd) : fsync(fd)) == 0;
	close(fd);
	return clean;
}

/* flushes: the facts of a run count only if its bytes are on the storage. */
static int part_read(struct part *p, bool flushes)
{
	struct stat st, own;
	struct journal_fact here;
	p->log = openat(p->fd, PART_JOURNAL,
			O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (p->log < 0 && errno == ENOENT)
		return part_refuse_incomplete(p);
	if (p->log < 0)
		return part_fail(p, "open of its journal", errno);
	if (fstat(p->log, &st) < 0 || fstat(p->fd, &own) < 0)
		return part_fail(p, "fstat", errno);
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_uid != own.st_uid ||
	    (!p->exposed && (st.st_mode & 07777) != 0600))
		return part_refuse(p, EPERM, "its .fcopy-part has the journal of another part",
				   FCOPY_ADVICE_REMOVE_PART);
	private_here(p->fd, &here);
	bool clean = flushes && system_has(p->fd, SYSTEM_LOCAL) && part_flush_data(p);
	int r = journal_read(p->log, &p->journal, clean ? part_same_run : NULL, &here);
	return r < 0 ? part_fail(p, "read of its journal", -r) : 0;
}

/* Inode numbers count within one boot. */
static bool part_same_boot(const struct part *p)
{
	struct journal_fact here;
	private_here(p->fd, &here);
	return strcmp(here.boot, p->journal.run.boot) == 0;
}

/* The number is no proof in another boot. Where numbers are not stored (FUSE, FAT, exFAT), a
 * remount changes them, too: as after a boot, only what was flushed counts (part_read). */
static bool part_has_number(const struct part *p, const struct stat *own)
{
	const unsigned type = system_type(p->fd);
	const bool stored = !system_type_has(type, SYSTEM_DRAWS) &&
			    (system_type_has(type, SYSTEM_RENAMES) ||
			     system_type_has(type, SYSTEM_LOCAL));
	return p->journal.data.part == own->st_ino || !stored || !part_same_boot(p);
}

static int part_check_header(struct part *p, const char *dst)
{
	const struct journal *j = &p->journal;
	char name[JOURNAL_PATH];
	struct stat own;
	if (j->version.kind && j->version.number != JOURNAL_VERSION)
		return part_refuse(p, EPERM, "another version of fcopy made its .fcopy-part",
				   FCOPY_ADVICE_REMOVE_PART);
	size_t n = journal_escape(dst, strlen(dst), name);
	if (!j->version.kind || !j->name.kind || !j->source.kind || !j->options.kind ||
	    !j->data.kind || !j->run.kind || fstat(p->fd, &own) < 0 || j->name.size != n ||
	    memcmp(j->name.text, name, n) != 0 || !part_has_number(p, &own))
		return part_refuse(p, EPERM, "its .fcopy-part has the journal of another part",
				   FCOPY_ADVICE_REMOVE_PART);
	return 0;
}

bool part_is_receipt(const struct part *p)
{
	struct stat st;
	return p->journal.shards.kind && p->journal.commit.kind &&
	       fstatat(p->fd, PART_DATA, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

/* Has somebody put files into the receipt? They would stay in a hidden directory. NFS gives files
 * that are open and removed such a name. Returns 1, 0 or -errno. */
static int part_has_others(const struct part *p)
{
	_Alignas(8) char buffer[READER_SIZE];
	struct reader r = reader_open(p->fd, buffer, sizeof(buffer));
	bool others = false;
	for (const char *name; !others && (name = reader_next(&r));)
		others = strcmp(name, PRIVATE_LOCK) != 0 && strcmp(name, PART_JOURNAL) != 0 &&
			 strncmp(name, PART_SHARE, strlen(PART_SHARE)) != 0 &&
			 strncmp(name, ".nfs", 4) != 0;
	const int err = reader_close(&r);
	return err < 0 ? err : others;
}

/* Only shards continue what shards have begun. */
static int part_check_shards(struct part *p, bool joins)
{
	if (joins && !p->journal.shards.kind)
		return part_refuse(p, EEXIST, "an earlier copy left its .fcopy-part",
				   FCOPY_ADVICE_REMOVE_PART);
	if (joins || !p->journal.shards.kind)
		return 0;
	if (!part_is_receipt(p))
		return part_refuse(p, EBUSY, PART_OF_SHARDS, FCOPY_ADVICE_SHARDS);
	const int others = part_has_others(p);
	if (others < 0)
		return part_fail(p, "list of its .fcopy-part", -others);
	if (others)
		return part_refuse(p, EEXIST, "its .fcopy-part holds files that fcopy did not make",
				   FCOPY_ADVICE_REMOVE_PART);
	part_hide(p);
	part_remove_shares(p);
	part_close(p, true);
	return -EAGAIN;
}

/* The part, or a file of it, is one that another process has just removed or made. */
static void part_wait(const struct part *p, int tries)
{
	if (tries == 0 || system_has(p->parent, SYSTEM_LOCAL))
		return;
	nanosleep(&(struct timespec){.tv_nsec = (WAIT_MS << tries) * 1000000L}, NULL);
	private_refresh(p->parent);
}

/* A result of part_open_as() beside 0 and -errno. */
#define ANOTHER_COMMITS 1

static int part_open_as(struct part *p, const char *dst, bool joins, const volatile int *cancel)
{
	int r = -EAGAIN;
	for (int tries = 0; tries < TRIES && (r == -EAGAIN || r == -ESTALE); tries++) {
		part_wait(p, tries);
		r = part_open_directory(p);
		if (r == 0)
			strcpy(p->name, p->public);
		if (r == 0)
			r = part_lock(p, joins ? LOCK_SH : LOCK_EX, cancel);
		if (r == -EBUSY && joins && part_read(p, false) == 0 && p->journal.shards.kind)
			r = ANOTHER_COMMITS;
		if (r == 0)
			r = part_read(p, !joins);
		if (r == 0)
			r = part_check_header(p, dst);
		if (r == 0)
			r = part_check_shards(p, joins);
		p->published = r == 0;
		if (r != 0)
			part_close(p, false);
	}
	if (r == -ESTALE && p->reason)
		return -EPERM; /* part_refuse_incomplete */
	if (r == -EAGAIN)
		r = part_refuse(p, EBUSY, "another copy has just used its .fcopy-part",
				FCOPY_ADVICE_NONE);
	return r;
}

int part_share(struct part *p)
{
	const int locked = private_flock(p->lock, LOCK_SH);
	if (locked < 0 && !private_lacks_locks(-locked))
		return -EAGAIN;
	if (!private_has_name(p->lock, p->fd, PRIVATE_LOCK) || !part_is_named(p))
		return -EAGAIN;
	/* NFS reports here what it could not write. */
	const int err = close(p->log) < 0 ? errno : 0;
	p->log = -1;
	return err ? part_fail(p, "close", err) : part_read(p, false);
}

int part_open(struct part *p, const char *dst, const volatile int *cancel)
{
	return part_open_as(p, dst, false, cancel);
}

int part_join(struct part *p, const char *dst, const volatile int *cancel)
{
	int r;
	do
		r = part_open_as(p, dst, true, cancel);
	while (r == ANOTHER_COMMITS);
	return r;
}

/* By its name: nothing has to be created to find out whose a young part is. */
static bool part_is_young(int parent, const char *public, long age)
{
	char path[NAME_MAX + sizeof("/" PART_JOURNAL)];
	struct stat st;
	snprintf(path, sizeof(path), "%s/" PART_JOURNAL, public);
	return fstatat(parent, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	       time(NULL) - st.st_mtime < age;
}

bool part_drop_receipt(int parent, const char *public, long older_than)
{
	struct part p = {.parent = parent, .fd = -1, .lock = -1, .log = -1};
	struct stat st;
	if (older_than > 0 && part_is_young(parent, public, older_than))
		return false;
	snprintf(p.public, sizeof(p.public), "%s", public);
	int locked;
	bool gone = part_open_directory(&p) == 0;
	if (gone)
		strcpy(p.name, p.public);
	p.lock = gone ? openat(p.fd, PRIVATE_LOCK, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
		      : -1;
	gone = p.lock >= 0 &&
	       ((locked = private_flock(p.lock, LOCK_EX)) == 0 || private_lacks_locks(-locked)) &&
	       part_read(&p, false) == 0 && part_is_receipt(&p) && part_has_others(&p) == 0 &&
	       part_is_named(&p) && fstat(p.log, &st) == 0 &&
	       time(NULL) - st.st_mtime >= older_than && part_hide(&p) == 0;
	if (gone)
		part_remove_shares(&p);
	part_close(&p, gone);
	return gone;
}

bool part_is_of_shards(int parent, const char *public)
{
	struct part p = {.parent = parent, .fd = -1, .lock = -1, .log = -1};
	snprintf(p.public, sizeof(p.public), "%s", public);
	bool shards = part_open_directory(&p) == 0 && part_read(&p, false) == 0 &&
		      p.journal.shards.kind;
	part_close(&p, false);
	return shards;
}

/* The lock is removed before the journal. */
static bool part_is_retired(struct part *p, const char *name, const char *dst,
			    const struct stat *committed, const volatile int *cancel)
{
	struct stat st;
	strcpy(p->name, name);
	p->fd = openat(p->parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->fd < 0 || fstat(p->fd, &st) < 0 || !private_is_ours(p->parent, &st, &p->exposed) ||
	    fstatat(p->fd, PART_DATA, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT ||
	    part_read(p, true) < 0 || part_check_header(p, dst) < 0 || !part_is_data(p, committed))
		return false;
	bool locked = fstatat(p->fd, PRIVATE_LOCK, &st, AT_SYMLINK_NOFOLLOW) == 0;
	return !locked || part_lock(p, LOCK_EX, cancel) == 0;
}

int part_open_retired(struct part *p, const char *dst, const struct stat *committed,
		      const volatile int *cancel)
{
	_Alignas(8) char buffer[READER_SIZE];
	bool found = false;
	struct reader r = reader_open(p->parent, buffer, sizeof(buffer));
	const char *name;
	for (int names = 0; !found && names < NAMES_MAX && (name = reader_next(&r)); names++) {
		if (!temporary_is_drawn(name))
			continue;
		found = part_is_retired(p, name, dst, committed, cancel);
		if (!found)
			part_close(p, false);
	}
	reader_close(&r);
	return found ? 0 : -ENOENT;
}

bool part_is_data(const struct part *p, const struct stat *st)
{
	const struct journal_fact *data = &p->journal.data;
	return data->inode == st->st_ino &&
	       (data->device == st->st_dev || !part_same_boot(p) ||
		!system_has(p->fd, SYSTEM_LOCAL)); /* two mounts of one server */
}

bool part_same_source(const struct part *p, const struct stat *st, uint64_t options)
{
	const struct journal_fact *s = &p->journal.source;
	const bool tree = S_ISDIR(st->st_mode);
	const struct journal_source now = journal_source_of(st);
	if (s->tree != tree || p->journal.options.number != options ||
	    s->source.inode != st->st_ino)
		return false;
	return tree || journal_same_source(&s->source, &now);
}

int part_open_own(const struct part *p, const char *name, int flags)
{
	struct stat st, own;
	int fd = openat(p->fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && fstat(p->fd, &own) == 0 && S_ISREG(st.st_mode) &&
	    st.st_nlink == 1 && st.st_uid == own.st_uid &&
	    (p->exposed || (st.st_mode & 07777) == 0600))
		return fd;
	close(fd);
	return -EPERM;
}

bool part_has_header(const struct part *p)
{
	const struct journal *j = &p->journal;
	struct stat own;
	return fstat(p->fd, &own) == 0 && j->version.kind && j->version.number == JOURNAL_VERSION &&
	       j->name.kind && j->data.kind && j->run.kind && j->data.part == own.st_ino;
}

bool part_is_proved(const struct part *p, const struct journal *lock)
{
	struct stat own, above;
	if (part_has_header(p) ||
	    (fstat(p->fd, &own) == 0 && lock->private.kind && lock->private.number == own.st_ino))
		return true;
	return fstat(p->parent, &above) == 0 && !private_is_shared(&above);
}

/* Removes `data` if it is empty. Something that was made or put aside is not swept. */
static bool part_sweep_data(int fd)
{
	struct stat st;
	if ((unlinkat(fd, PRIVATE_OLD, AT_REMOVEDIR) < 0 && errno != ENOENT) ||
	    fstatat(fd, PRIVATE_ENTRY, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
		return false;
	if (fstatat(fd, PART_DATA, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	if (S_ISDIR(st.st_mode))
		return unlinkat(fd, PART_DATA, AT_REMOVEDIR) == 0;
	return S_ISREG(st.st_mode) && st.st_size == 0 && unlinkat(fd, PART_DATA, 0) == 0;
}

/* Can a lock show that a process lives? If it reaches no other machine, only where it was made. */
static bool part_lock_is_known(const struct part *p, const struct journal *lock)
{
	struct journal_fact here;
	if (!private_locks_are_local(p->lock))
		return true;
	private_here(p->fd, &here);
	return lock->run.kind && part_same_run(&lock->run, &here);
}

/* Its maker has not locked it yet if it is empty, and makes another one if this one is gone. What
 * is retired has a journal, and no lock any more. */
bool part_sweep(int parent, const char *name)
{
	struct stat st;
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	struct part p = {.parent = parent, .fd = fd, .lock = -1, .log = -1};
	struct journal lock = {.text = NULL};
	snprintf(p.name, sizeof(p.name), "%s", name);
	bool ours = fstat(p.fd, &st) == 0 && private_is_ours(parent, &st, &p.exposed);
	if (ours && private_is_empty(p.fd) == 1) {
		close(p.fd);
		return unlinkat(parent, name, AT_REMOVEDIR) == 0;
	}
	if (ours)
		p.lock = part_open_own(&p, PRIVATE_LOCK, O_RDWR);
	const bool retired = ours && p.lock == -ENOENT;
	p.lock = p.lock < 0 ? -1 : p.lock;
	const int log = p.lock >= 0 || retired ? part_open_own(&p, PART_JOURNAL, O_RDONLY) : -EPERM;
	bool dead = (p.lock >= 0 || log >= 0) && (log >= 0 || log == -ENOENT) &&
		    (p.lock < 0 || journal_read(p.lock, &lock, NULL, NULL) == 0) &&
		    (log < 0 || journal_read(log, &p.journal, NULL, NULL) == 0) &&
		    part_is_proved(&p, &lock) &&
		    (retired ||
		     (part_lock_is_known(&p, &lock) && flock(p.lock, LOCK_EX | LOCK_NB) == 0)) &&
		    part_sweep_data(p.fd);
	journal_free(&lock);
	if (log >= 0)
		close(log);
	bool gone = dead && part_discard(&p, retired) == 0;
	part_close(&p, false);
	return gone;
}
