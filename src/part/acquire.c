/* SPDX-License-Identifier: MIT
 * Acquires the part of a copy, as part.h says:
 *
 *     open DST.fcopy-part: is it ours? -> lock it: is it used? -> has it its name still?
 *       -> read its journal: was it begun here, for this DST? -> what does it hold, and may this
 *     copy continue that?
 *
 * If it is gone, or its files cannot be seen yet, all of this starts again.
 */
#include "io/io.h"
#include "io/system.h"
#include "left.h"
#include "part.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define TRIES   8 /* each fails if another copy commits the part first */
#define WAIT_MS 3 /* doubled each time: together, the waits for other machines take 0.8 s */

#define OTHER_JOURNAL "its .fcopy-part has the journal of another part"
#define OF_SHARDS     "its .fcopy-part belongs to a copy in shards"
#define BEGUN_BEFORE  "an earlier copy left its .fcopy-part"

static bool acquire_is_current(const struct journal_fact *run, const void *here_)
{
	const struct journal_fact *here = here_;
	return here->mount != 0 && here->boot[0] != '-' && run->mount == here->mount &&
	       strcmp(run->boot, here->boot) == 0;
}

static int acquire_refuse_old(struct part *p, int err)
{
	return part_refuse(
	    p, err,
	    "its .fcopy-part has no journal: an earlier version of fcopy, or another "
	    "program, made it",
	    FCOPY_ADVICE_REMOVE_PART);
}

/* A client of a network file system remembers names: the file may be new. */
static int acquire_refuse_incomplete(struct part *p)
{
	acquire_refuse_old(p, EPERM);
	return system_has(p->parent, SYSTEM_LOCAL) ? -EPERM : -ESTALE;
}

static int acquire_directory(struct part *p)
{
	struct stat st;
	switch (part_whose(p, p->public, &st)) {
	case PART_OURS: return 0;
	case PART_OTHER_USER:
		return part_refuse(p, p->fd < 0 ? EACCES : EPERM,
				   "its .fcopy-part belongs to another user",
				   FCOPY_ADVICE_REMOVE_PART);
	case PART_OPEN_TO_OTHERS:
		return part_refuse(p, EPERM, "its .fcopy-part is open to other users",
				   FCOPY_ADVICE_REMOVE_PART);
	case PART_NO_DIRECTORY: return acquire_refuse_old(p, ENOTDIR);
	default: return part_fail(p, "open of its .fcopy-part", errno);
	}
}

static int acquire_open_lock(struct part *p)
{
	p->lock = openat(p->fd, PRIVATE_LOCK, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (p->lock >= 0)
		return 0;
	if (errno != ENOENT)
		return part_fail(p, "open of its .fcopy-part", errno);
	return part_is_named(p) ? acquire_refuse_incomplete(p) : -EAGAIN;
}

/* Without locks that all machines see, a shard cannot know whether the process of a claim lives. */
static int acquire_refuse_unlocked(struct part *p)
{
	return part_refuse(p, ENOLCK,
			   "cannot be copied in shards: its file system has no locks that other "
			   "machines see",
			   FCOPY_ADVICE_NO_PART);
}

/* how: LOCK_SH: for a shard. */
static int acquire_lock(struct part *p, int how, const volatile int *cancel)
{
	int r = private_take_lock(p->lock, how, cancel);
	if (r == -EWOULDBLOCK)
		return part_refuse(p, EBUSY, "another fcopy is using its .fcopy-part",
				   FCOPY_ADVICE_NONE);
	if (r == -EINTR)
		return part_refuse(p, EINTR, "interrupted", FCOPY_ADVICE_NONE);
	if (r < 0 && !private_lacks_locks(-r))
		return part_fail(p, "lock of its .fcopy-part", -r);
	if (how == LOCK_SH && (r < 0 || private_locks_are_local(p->lock)))
		return acquire_refuse_unlocked(p);
	if (part_is_named(p))
		return 0;
	return errno && errno != ENOENT ? part_fail(p, "fstat", errno)
					: -EAGAIN; /* another copy has just committed it */
}

/* Flushes data before its journal is believed: a writeback that has failed since is reported now.
 */
static bool acquire_flush_data(struct part *p)
{
	struct stat st;
	int fd = part_open_data(p, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return fd == -ENOENT; /* the commit was killed: nothing is continued */
	bool clean = fstat(fd, &st) == 0 && (S_ISDIR(st.st_mode) ? syncfs(fd) : fsync(fd)) == 0;
	close(fd);
	p->unflushed = !clean;
	return clean;
}

/* flushes: the facts of a run count only if its bytes are on the storage. */
static int acquire_read(struct part *p, bool flushes)
{
	struct journal_fact here;
	const int log = part_open_own(p, PART_JOURNAL, O_RDWR | O_APPEND);
	if (log == -ENOENT)
		return acquire_refuse_incomplete(p);
	if (log == -EPERM)
		return part_refuse(p, EPERM, OTHER_JOURNAL, FCOPY_ADVICE_REMOVE_PART);
	if (log < 0)
		return part_fail(p, "open of its journal", -log);
	p->log = log;
	int r = part_find_number(p);
	if (r < 0)
		return part_fail(p, "read of its lock", -r);
	private_here(p->fd, &here);
	bool clean = flushes && system_has(p->fd, SYSTEM_LOCAL) && acquire_flush_data(p);
	journal_free(&p->journal);
	r = journal_read(p->log, &p->journal, clean ? acquire_is_current : NULL, &here);
	p->unflushed |= p->journal.lost > 0;
	return r < 0 ? part_fail(p, "read of its journal", -r) : 0;
}

/* An inode number is no proof in another boot. */
static int acquire_check_header(struct part *p, const char *dst)
{
	const struct journal *j = &p->journal;
	char name[JOURNAL_PATH];
	if (j->version.kind && j->version.number != JOURNAL_VERSION)
		return part_refuse(p, EPERM, "another version of fcopy made its .fcopy-part",
				   FCOPY_ADVICE_REMOVE_PART);
	size_t n = journal_escape(dst, strlen(dst), name);
	const bool here = part_has_header(p) ||
			  (j->run.kind && system_numbers_last(p->fd) && !part_same_boot(p));
	if (!here || !j->version.kind || !j->name.kind || !j->source.kind || !j->options.kind ||
	    !j->data.kind || j->name.size != n || memcmp(j->name.text, name, n) != 0)
		return part_refuse(p, EPERM, OTHER_JOURNAL, FCOPY_ADVICE_REMOVE_PART);
	return 0;
}

/* Nobody can continue it. */
static int acquire_retire(struct part *p)
{
	int r = part_retire(p);
	return r < 0 ? part_fail(p, "remove of its .fcopy-part", -r) : -EAGAIN;
}

/* Only shards continue what shards have begun. Their receipt is removed. */
static int acquire_check_shards(struct part *p, bool joins)
{
	if (joins && !p->journal.shards.kind)
		return part_refuse(p, EEXIST, BEGUN_BEFORE, FCOPY_ADVICE_REMOVE_PART);
	if (joins || !p->journal.shards.kind)
		return 0;
	part_close(p, false);
	return left_sweep(p->parent, p->public, -1)
		   ? -EAGAIN
		   : part_refuse(p, EBUSY, OF_SHARDS, FCOPY_ADVICE_SHARDS);
}

/* What the open part holds, for a copy of one file or tree. Returns 0 with the state, or -errno. */
static int acquire_content(struct part *p, const struct part_claim *c, enum part_state *state)
{
	const bool tree = p->journal.source.tree;
	const bool data = part_has_data(p);
	*state = PART_CONTINUED;
	if (c->committed) {
		*state = !data && part_is_data(p, c->committed) ? PART_COMMITTED : PART_FRESH;
		return 0;
	}
	if (tree != (c->of == PART_OF_TREE))
		return part_refuse(p, tree ? EISDIR : EPERM,
				   tree ? "its .fcopy-part is the copy of a directory"
					: "its .fcopy-part is the copy of a file",
				   FCOPY_ADVICE_REMOVE_PART);
	const bool same = p->journal.options.number == c->options;
	/* A file with other attributes than a new copy would have could admit users to it. */
	if (!data || (!same && !tree)) {
		p->differs = data ? p->journal.options.number ^ c->options : 0;
		return acquire_retire(p);
	}
	return same ? 0
		    : part_refuse(p, EINVAL,
				  "its .fcopy-part was begun with other options, another list of "
				  "files, or another umask: use the same ones",
				  FCOPY_ADVICE_REMOVE_PART);
}

/* One look at the part. -EAGAIN: it is gone; -ESTALE: its files cannot be seen yet; RESULT_LEFT:
 * another process commits it. */
static int acquire_once(struct part *p, const struct part_claim *c, enum part_state *state)
{
	const bool joins = c->of == PART_OF_SHARDS;
	int r = acquire_directory(p);
	if (r == 0)
		r = acquire_open_lock(p);
	if (r == 0)
		r = acquire_lock(p, joins ? LOCK_SH : LOCK_EX, c->cancel);
	if (r == -EBUSY && joins && acquire_read(p, false) == 0 && p->journal.shards.kind)
		return RESULT_LEFT;
	if (r == 0)
		r = acquire_read(p, !joins);
	if (r == 0)
		r = acquire_check_header(p, c->dst);
	if (r == 0)
		r = acquire_check_shards(p, joins);
	if (r == 0 && !joins)
		r = acquire_content(p, c, state);
	else if (r == 0)
		*state = part_is_receipt(p)  ? PART_RECEIPT
			 : !part_has_data(p) ? PART_COMMITTED
					     : PART_CONTINUED;
	p->published = r == 0;
	return r;
}

/* The part, or a file of it, is one that another process has just removed or made. */
static void acquire_wait(const struct part *p, int tries)
{
	if (tries == 0 || system_has(p->parent, SYSTEM_LOCAL))
		return;
	nanosleep(&(struct timespec){.tv_nsec = (WAIT_MS << tries) * 1000000L}, NULL);
	private_refresh(p->parent);
}

/* Nothing is to be continued: only a receipt is removed. */
static enum part_state acquire_place(struct part *p)
{
	struct left l;
	if (!part_exists(p))
		return PART_FRESH;
	const bool found = part_examine(&l, p->parent, p->public, false);
	const bool shards = found && l.part.journal.shards.kind;
	if (found && l.kind == FCOPY_LEFT_RECEIPT && l.state == FCOPY_LEFT_DEAD)
		(void)left_remove(&l);
	left_close(&l);
	if (!part_exists(p))
		return PART_FRESH;
	if (shards)
		part_refuse(p, EBUSY, OF_SHARDS, FCOPY_ADVICE_SHARDS);
	else
		part_refuse(p, EEXIST, BEGUN_BEFORE, FCOPY_ADVICE_RESUME);
	return PART_REFUSED;
}

enum part_state part_acquire(struct part *p, const struct part_claim *c)
{
	enum part_state state = PART_FRESH;
	int r = -EAGAIN;
	if (!c->resumes)
		return acquire_place(p);
	for (int tries = 0; tries < TRIES && (r == -EAGAIN || r == -ESTALE); tries++) {
		acquire_wait(p, tries);
		p->err = 0;
		r = acquire_once(p, c, &state);
		if (r != 0 || state == PART_FRESH)
			part_close(p, false);
		if (r == RESULT_LEFT) {
			r = -EAGAIN;
			tries = -1;
		}
	}
	if (r == -ENOENT)
		return PART_FRESH;
	if (r == -EAGAIN)
		r = part_refuse(p, EBUSY, "another copy has just used its .fcopy-part",
				FCOPY_ADVICE_NONE);
	return r == 0                                          ? state
	       : r == -EBUSY && p->advice == FCOPY_ADVICE_NONE ? PART_BUSY
							       : PART_REFUSED;
}

int part_share(struct part *p)
{
	const int locked = private_flock(p->lock, LOCK_SH);
	if (locked < 0 && !private_lacks_locks(-locked))
		return -EAGAIN;
	if (locked < 0 || private_locks_are_local(p->lock))
		return acquire_refuse_unlocked(p);
	if (!private_has_name(p->lock, p->fd, PRIVATE_LOCK) || !part_is_named(p))
		return -EAGAIN;
	/* NFS reports here what it could not write. */
	const int err = close(p->log) < 0 ? errno : 0;
	p->log = -1;
	return err ? part_fail(p, "close", err) : acquire_read(p, false);
}
