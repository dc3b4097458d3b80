/* SPDX-License-Identifier: MIT
 * Implements part.h: how a part comes into being, what it notes, and how it goes.
 */
#include "part.h"
#include "io/hash.h"
#include "io/io.h"
#include "io/system.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

void part_init(struct part *p, int parent, const char *dst)
{
	*p = (struct part){.parent = parent, .fd = -1, .lock = -1, .log = -1};
	part_make_name(p->public, parent, dst);
}

int part_make(struct part *p)
{
	struct private_directory d;
	struct failure fail;
	int r = private_make(&d, p->parent, &fail);
	if (r == -ESTALE)
		return part_refuse(p, ESTALE, "another process replaces its temporary directory",
				   FCOPY_ADVICE_NONE);
	if (r < 0)
		return part_fail(p, fail.call, -r);
	p->fd = d.fd;
	p->lock = d.lock;
	p->exposed = d.exposed;
	p->number = d.number;
	p->journal = (struct journal){.text = NULL};
	strcpy(p->name, d.name);
	return 0;
}

/* Moving changes the directory's "..", which needs its w: a umask may have withheld that. */
int part_can_move(struct part *p)
{
	char name[TEMPORARY_SIZE];
	int r = temporary_draw(name);
	if (r < 0)
		return part_fail(p, "getrandom", -r);
	if (mkdirat(p->fd, PART_DATA, 0700) < 0)
		return part_fail(p, "mkdir", errno);
	r = private_rename(p->fd, PART_DATA, p->parent, name);
	if (r == -EACCES && fchmodat(p->fd, PART_DATA, 0700, 0) == 0)
		r = private_rename(p->fd, PART_DATA, p->parent, name);
	if (r == 0) {
		if (unlinkat(p->parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
			strcpy(p->stuck, name);
			p->stuck_err = errno;
		}
		return 0;
	}
	unlinkat(p->fd, PART_DATA, AT_REMOVEDIR);
	if (private_is_of_disk(-r))
		return part_fail(p, "rename", -r);
	return part_refuse(p, -r,
			   "cannot be resumed: nothing can be moved to another directory here",
			   FCOPY_ADVICE_NO_PART);
}

static size_t part_format(char *text, size_t at, const struct journal_fact *f)
{
	char line[JOURNAL_LINE];
	size_t n = journal_format(f, line);
	memcpy(text + at, line, n);
	return at + n;
}

/* Without its header, a journal says nothing, and the part could not be continued. */
static int part_drop_journal(struct part *p, const char *call, int err)
{
	close(p->log);
	p->log = -1;
	unlinkat(p->fd, PART_JOURNAL, 0);
	return part_fail(p, call, err);
}

/* Where inode numbers change, the path takes the place of the source's: without /proc, none. */
struct journal_fact part_source(int fd, const struct stat *st)
{
	struct journal_fact f = {
	    .kind = JOURNAL_SOURCE, .tree = S_ISDIR(st->st_mode), .source = journal_source_of(st)};
	char path[PATH_MAX];
	if (fd < 0 || system_numbers_last(fd))
		return f;
	const ssize_t n = readlink(io_proc_path(fd).text, path, sizeof(path));
	if (n > 0)
		f.source.inode = hash_add(HASH_START, path, (size_t)n);
	return f;
}

int part_describe(struct part *p, const char *dst, const struct journal_fact *source,
		  uint64_t options, int data, mode_t mode)
{
	struct stat st, log = {0};
	struct journal_fact run;
	char text[2 * JOURNAL_LINE];
	p->log = openat(p->fd, PART_JOURNAL, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC,
			0600);
	if (p->log < 0)
		return part_fail(p, "open", errno);
	int r = fstat(data, &st) < 0 || fstat(p->log, &log) < 0 ? -errno : 0;
	if (r == 0 && p->number == 0)
		r = part_find_number(p);
	if (r < 0)
		return part_drop_journal(p, "fstat", -r);
	/* A umask may have withheld rights; storage may lack the call. */
	if ((log.st_mode & 07777) != 0600)
		(void)!fchmod(p->log, 0600);
	private_here(p->fd, &run);
	const struct journal_fact facts[] = {
	    {.kind = JOURNAL_VERSION_IS, .number = JOURNAL_VERSION},
	    {.kind = JOURNAL_NAME, .text = dst, .size = strlen(dst)},
	    *source,
	    {.kind = JOURNAL_OPTIONS, .number = options},
	    {.kind = JOURNAL_DATA,
	     .part = p->number,
	     .inode = st.st_ino,
	     .device = st.st_dev,
	     .mode = mode & 07777},
	    run,
	};
	size_t size = 0;
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		size = part_format(text, size, &facts[i]);
	part_append(p, text, size);
	return p->lost ? part_drop_journal(p, "write", p->lost) : 0;
}

/* Two calls must say that it is gone: a part is removed then. */
bool part_has_data(const struct part *p)
{
	struct stat st;
	int gone = 0;
	do
		errno = 0;
	while (fstatat(p->fd, PART_DATA, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT &&
	       ++gone < 2);
	return gone < 2;
}

int part_open_data(const struct part *p, int flags)
{
	int fd = openat(p->fd, PART_DATA, flags | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && part_has_data(p)) {
		fd = openat(p->fd, PART_DATA, flags | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			errno = ESTALE;
	}
	/* A commit that was interrupted may have set the mode. The part is closed to others. */
	if (fd < 0 && errno == EACCES &&
	    fchmodat(p->fd, PART_DATA, flags & O_DIRECTORY ? 0700 : 0600, 0) == 0)
		fd = openat(p->fd, PART_DATA, flags | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd;
}

/* SMB renames no directory of which a file is open: closes the files, and opens them again.
 * close(2) does not wait until FUSE has released them. data may be NULL: it is not open. */
static int part_rename_closed(struct part *p, const char *to, int *data)
{
	struct stat st;
	int renamed, ms = 1;
	const bool logs = data || p->log >= 0;
	const int type = data && fstat(*data, &st) == 0 && S_ISDIR(st.st_mode) ? O_DIRECTORY
									       : O_RDWR;
	if (p->log >= 0 && close(p->log) < 0) { /* without its header it could not be continued */
		const int err = errno;
		p->log = -1;
		return -err;
	}
	io_close(data ? *data : -1);
	close(p->lock);
	do
		renamed = private_rename(p->parent, p->name, p->parent, to);
	while ((renamed == -EACCES || renamed == -EBUSY) && private_await_release(-renamed, &ms));
	const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	p->lock = openat(p->fd, PRIVATE_LOCK, flags);
	if (logs)
		p->log = openat(p->fd, PART_JOURNAL, flags | O_APPEND);
	int r = p->lock < 0 || (logs && p->log < 0) ? -errno : renamed;
	if (data && (*data = part_open_data(p, type)) < 0 && r == 0)
		r = *data;
	/* Others may have joined. */
	const int how = data && p->journal.shards.kind ? LOCK_SH : LOCK_EX;
	if (r == 0 && (r = private_take_lock(p->lock, how, NULL)) < 0 && private_lacks_locks(-r))
		r = 0;
	return r;
}

/* First flushes the journal, the lock and the names of the files, because a power cut must not
 * leave a visible part without its header or its lock, which no run would continue: fsync(2) of a
 * file on btrfs makes no other name durable. A failure to flush is like one to write a later line.
 */
int part_publish(struct part *p, int *data)
{
	if (p->log >= 0)
		(void)!fdatasync(p->log);
	if (!system_numbers_last(p->fd)) /* by its number the part is recognised */
		(void)!fdatasync(p->lock);
	(void)!io_flush_directory(p->fd);
	int r = private_rename(p->parent, p->name, p->parent, p->public);
	if ((r == -EACCES || r == -EBUSY) && !system_has(p->fd, SYSTEM_LOCAL))
		r = part_rename_closed(p, p->public, data);
	/* A server that is asked twice says no to what it has done. */
	if (r == -ENOENT && private_has_name(p->fd, p->parent, p->public))
		r = 0;
	if (r < 0)
		return part_fail(p, "rename", -r);
	strcpy(p->name, p->public);
	p->published = true;
	return 0;
}

bool part_exists(const struct part *p)
{
	struct stat st;
	return fstatat(p->parent, p->public, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

bool part_is_named(const struct part *p)
{
	return private_has_name(p->fd, p->parent, p->name);
}

void part_append(struct part *p, const char *lines, size_t size)
{
	if (p->log < 0 || __atomic_load_n(&p->lost, __ATOMIC_RELAXED))
		return;
	ssize_t n;
	do
		n = write(p->log, lines, size);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)size)
		part_lose(p, n < 0 ? errno : ENOSPC);
}

void part_note(struct part *p, const struct journal_fact *f)
{
	char line[JOURNAL_LINE];
	part_append(p, line, journal_format(f, line));
}

/* The first newline ends a line that was torn. A run forgets what is complete: it comes before its
 * source. */
static void part_append_run(struct part *p, const struct journal_fact *source, off_t prefix)
{
	char text[1 + 2 * JOURNAL_LINE];
	struct journal_fact run;
	text[0] = '\n';
	private_here(p->fd, &run);
	size_t size = part_format(text, 1, &run);
	if (source)
		size = part_format(text, size, source);
	if (prefix > 0)
		size = part_format(text, size,
				   &(struct journal_fact){.kind = JOURNAL_RANGE, .length = prefix});
	part_append(p, text, size);
}

void part_note_run(struct part *p, off_t prefix)
{
	part_append_run(p, NULL, prefix);
}

int part_note_source(struct part *p, const struct journal_fact *source, off_t prefix)
{
	part_append_run(p, source, prefix);
	if (p->lost)
		return -p->lost;
	const int err = fdatasync(p->log) < 0 ? errno : 0; /* some storage lacks it */
	return err == EIO || private_is_of_disk(err) ? -err : 0;
}

void part_note_flushed(struct part *p)
{
	part_note(p, &(struct journal_fact){.kind = JOURNAL_FLUSHED});
	if (p->log >= 0)
		(void)!fdatasync(p->log);
}

void part_note_lost(struct part *p)
{
	part_note(p, &(struct journal_fact){.kind = JOURNAL_LOST});
}

void part_note_again(struct part *p, const char *path)
{
	part_note(
	    p, &(struct journal_fact){.kind = JOURNAL_AGAIN, .text = path, .size = strlen(path)});
	if (__atomic_load_n(&p->lost, __ATOMIC_RELAXED) || fdatasync(p->log) < 0)
		unlinkat(p->fd, PART_JOURNAL, 0);
}

static int part_hide_how(struct part *p, bool closes)
{
	char name[TEMPORARY_SIZE];
	int r = temporary_draw(name);
	if (r == 0)
		r = private_rename(p->parent, p->name, p->parent, name);
	if ((r == -EACCES || r == -EBUSY) && closes && !system_has(p->fd, SYSTEM_LOCAL))
		r = part_rename_closed(p, name, NULL);
	if (r == 0) {
		strcpy(p->name, name);
		p->published = false;
	}
	return r;
}

int part_hide(struct part *p)
{
	return part_hide_how(p, false);
}

int part_hide_dead(struct part *p)
{
	return part_hide_how(p, p->lock >= 0);
}

void part_remove_shares(const struct part *p)
{
	_Alignas(8) char buffer[READER_SIZE];
	struct reader r = reader_open(p->fd, buffer, sizeof(buffer));
	for (const char *name; (name = reader_next(&r));)
		if (strncmp(name, PART_SHARE, strlen(PART_SHARE)) == 0)
			unlinkat(p->fd, name, 0);
	reader_close(&r);
}

/* The journal goes last: from it, the next run after a kill learns that the copy was committed.
 * While there is data, both stay: fcopy --clean recognises the directory by them. Another process
 * may sweep what has no lock any more. */
static int part_remove_files(const struct part *p, bool lock, bool journal)
{
	if (part_has_data(p))
		return errno ? -errno : -ENOTEMPTY;
	if (lock && unlinkat(p->fd, PRIVATE_LOCK, 0) < 0 && errno != ENOENT)
		return -errno;
	return journal && unlinkat(p->fd, PART_JOURNAL, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* NFS renames an open file that is removed: close each one first. */
int part_close(struct part *p, bool remove)
{
	int r = 0;
	bool named = remove && p->fd >= 0 && private_may_have_name(p->fd, p->parent, p->name);
	if (p->log >= 0 && close(p->log) < 0 && !remove)
		r = -errno;
	io_close(p->lock);
	if (remove && p->fd >= 0)
		r = part_remove_files(p, true, true);
	io_close(p->fd);
	if (r == 0 && named && unlinkat(p->parent, p->name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = -errno;
	journal_free(&p->journal);
	p->fd = p->lock = p->log = -1;
	return r;
}

int part_retire(struct part *p)
{
	int r = part_hide(p);
	if (r == 0)
		r = unlinkat(p->fd, PART_DATA, 0) < 0 && errno != ENOENT ? -errno : 0;
	if (r == 0)
		part_remove_shares(p);
	const int closed = part_close(p, r == 0);
	if (r == 0 && closed < 0) {
		memcpy(p->stuck, p->name, sizeof(p->stuck));
		p->stuck_err = -closed;
	}
	return r;
}

int part_discard(struct part *p, bool retired)
{
	int r = p->lock < 0 ? 0 : part_hide(p);
	/* SMB renames no directory with open files. Otherwise it may be published by now. */
	if (r < 0 && ((r != -EACCES && r != -EBUSY) || system_has(p->fd, SYSTEM_LOCAL)))
		return r;
	const bool locked = p->lock >= 0;
	if (locked)
		close(p->lock);
	p->lock = -1;
	r = part_remove_files(p, locked, locked || retired);
	if (r < 0)
		return r;
	if (!private_may_have_name(p->fd, p->parent, p->name))
		return -ESTALE;
	return unlinkat(p->parent, p->name, AT_REMOVEDIR) < 0 ? -errno : 0;
}
