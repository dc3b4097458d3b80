/* SPDX-License-Identifier: MIT
 * --resume of a file: it is `data` in DST.fcopy-part/, whose journal says how many of its bytes are
 * complete.
 */
#include "io/system.h"
#include "part/left.h"
#include "replace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_AFTER 5.0 /* seconds */
#define FLUSH_SHARE 20  /* ... and so many times as long as the last flush took */
#define TRIES       8   /* each fails if another copy makes or commits the part first */

struct partial {
	struct part *part; /* `own`, or that of shards, which outlives the endpoint */
	struct part own;
	off_t known;                /* bytes that need no comparison */
	off_t noted;                /* the journal says that the bytes before are complete */
	struct journal_fact source; /* of this copy, if the journal names another one */
	/* With flushes: when the last one ended, and how many seconds it took. */
	double flushed, cost;
	bool flushes;
};

/* name: in the directory of the part. operation: NULL: it cannot be removed. */
static void partial_warn(const struct part *p, const char *name, const char *operation, int err,
			 const struct fcopy_options *o)
{
	char path[PATH_MAX];
	struct fcopy_error error;
	io_name_path(p->parent, name, path);
	error_operation(&error, operation, operation ? "close" : "remove", path, err);
	error_warn(&error, o);
}

void partial_close(struct part *p, bool remove, const struct fcopy_options *o)
{
	const int r = part_close(p, remove);
	if (p->stuck[0])
		partial_warn(p, p->stuck, NULL, p->stuck_err, o);
	p->stuck[0] = '\0';
	if (r < 0)
		partial_warn(p, p->name, remove ? NULL : "close of its journal", -r, o);
}

/* Refuses to copy the part to itself. fd: what has its name. */
static int partial_refuse_source(const struct endpoint *e, int fd, const struct endpoint *src,
				 struct fcopy_error *error)
{
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : same_is_source(src, fd, &st);
	if (r == -ESTALE) /* another machine has removed it */
		return 0;
	if (r < 0)
		return error_call(error, "fstat", e->path, -r);
	return r > 0 ? error_refuse(error, e->path, EBUSY, "its .fcopy-part is the source",
				    FCOPY_ADVICE_NONE)
		     : 0;
}

static int partial_fail(const struct endpoint *e, const struct part *p, struct fcopy_error *error)
{
	if (p->reason)
		return error_refuse(error, e->path, p->err, p->reason, p->advice);
	error_call(error, p->call, e->path, p->err);
	if (p->err == EACCES || p->err == EPERM)
		error->advice = in_place_advice(e);
	return -p->err;
}

#define DST_EXISTS ((uint64_t)1 << 8)

/* The attributes that data gets at the end depend on these. */
static uint64_t partial_options(const struct endpoint *e)
{
	return e->options->preserve | (uint64_t)e->options->default_mode << 7 |
	       (file_of(e)->place.exists ? DST_EXISTS : 0);
}

/* Is the source `data` of this part, or is the part in its way? */
int destination_check_part(const struct endpoint *e, const struct part *p,
			   const struct endpoint *src, struct fcopy_error *error)
{
	char data[NAME_MAX + sizeof("/" PART_DATA)];
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int r = 0;
	snprintf(data, sizeof(data), "%s/" PART_DATA, p->public);
	for (int i = 0; i < 2 && r == 0; i++) {
		int fd = openat(p->parent, i ? data : p->public, flags);
		if (fd >= 0) {
			r = partial_refuse_source(e, fd, src, error);
			close(fd);
		}
	}
	return r;
}

/* How many bytes are in data for sure: see part.h. A source that changed just before it was read
 * may have been changed again since, without a change of its times. */
static off_t partial_known(const struct endpoint *e, const struct partial *f)
{
	const struct journal *j = &f->part->journal;
	if (f->source.kind != JOURNAL_NOTHING || journal_is_recent(&j->source.source, &j->run.when))
		return 0;
	return j->current && !e->options->fsync ? j->prefix : j->flushed_prefix;
}

/* Continues the open part. Returns -EAGAIN if there is none now. */
static int partial_continue(struct endpoint *e, struct partial *f, const struct endpoint *src,
			    struct fcopy_error *error)
{
	struct part *p = f->part;
	struct stat st;
	e->fd = part_open_data(p, O_RDWR | O_NONBLOCK);
	int r = e->fd < 0                                 ? e->fd
		: fstat(e->fd, &st) < 0                   ? -errno
		: S_ISREG(st.st_mode) && st.st_nlink == 1 ? 0
							  : -EPERM;
	if (r < 0) {
		endpoint_close(e);
		part_close(p, false);
		return r == -ENOENT ? -EAGAIN /* another machine has removed it */
				    : error_operation(error, "open in its .fcopy-part", "openat",
						      e->path, -r);
	}
	f->source = part_source(src->fd, &src->st);
	if (part_same_source(p, &f->source, partial_options(e)))
		f->source.kind = JOURNAL_NOTHING;
	e->past_cache = p->unflushed;
	f->known = partial_known(e, f);
	if (f->known > st.st_size)
		f->known = st.st_size;
	file_of(e)->keep_part = true;
	return 0;
}

static void partial_report_exposed(const struct endpoint *e, const struct part *p)
{
	const struct fcopy_options *o = e->options;
	struct fcopy_error error;
	if (!p->exposed || !o->notify)
		return;
	error_refuse(&error, e->path, EPERM, PART_EXPOSED, FCOPY_ADVICE_NONE);
	o->notify(o->user, &(struct fcopy_event){.kind = FCOPY_EVENT_NOT_PRIVATE, .error = &error});
}

static int partial_create(struct endpoint *e, struct partial *f, const struct endpoint *src,
			  struct fcopy_error *error)
{
	struct part *p = f->part;
	const struct journal_fact source = part_source(src->fd, &src->st);
	int r = part_make(p);
	if (r < 0)
		return partial_fail(e, p, error);
	if ((r = part_can_move(p)) < 0) {
		partial_close(p, true, e->options);
		return partial_fail(e, p, error);
	}
	e->fd = openat(p->fd, PART_DATA, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (e->fd < 0)
		r = part_fail(p, "open", errno);
	if (r == 0)
		r = part_describe(p, file_of(e)->place.name, &source, partial_options(e), e->fd,
				  file_of(e)->mode);
	if (r == 0)
		r = part_publish(p, &e->fd);
	if (r == 0) {
		partial_report_exposed(e, p);
		return 0;
	}
	endpoint_close(e);
	unlinkat(p->fd, PART_DATA, 0);
	bool again = r == -EEXIST; /* another copy was faster */
	if (!again)
		partial_fail(e, p, error);
	partial_close(p, true, e->options);
	return again ? -EAGAIN : r;
}

static void partial_made(struct file *file, struct partial *f)
{
	file->partial = f;
	file->slot.home = f->part->fd;
	strcpy(file->slot.name, PART_DATA);
	file->slot.stage = SLOT_MADE;
}

int partial_open(struct endpoint *e, const struct endpoint *src, mode_t mode,
		 struct fcopy_error *error)
{
	struct file *file = file_of(e);
	struct partial *f = calloc(1, sizeof(*f));
	if (!f)
		return error_call(error, "malloc", e->path, ENOMEM);
	file->mode = temporary_mode(file->place.dir, mode, file->slot.storage);
	const struct part_claim claim = {.dst = file->place.name,
					 .of = PART_OF_FILE,
					 .resumes = true,
					 .options = partial_options(e),
					 .cancel = e->options->cancel};
	f->part = &f->own;
	part_init(f->part, file->place.dir, file->place.name);
	int r = -EAGAIN;
	for (int tries = 0; tries < TRIES && r == -EAGAIN; tries++) {
		r = destination_check_part(e, f->part, src, error);
		if (r < 0)
			break;
		switch (part_acquire(f->part, &claim)) {
		case PART_FRESH: r = partial_create(e, f, src, error); break;
		case PART_CONTINUED: r = partial_continue(e, f, src, error); break;
		default: r = partial_fail(e, f->part, error);
		}
	}
	if (r == -EAGAIN)
		r = error_refuse(error, e->path, EBUSY,
				 "another copy has just used its .fcopy-part", FCOPY_ADVICE_NONE);
	if (r < 0) {
		free(f);
		return r;
	}
	if (f->part->differs)
		e->restarts =
		    f->part->differs == DST_EXISTS
			? "the file was created or removed since its .fcopy-part was begun"
			: "its .fcopy-part was begun with other options";
	partial_made(file, f);
	return 0;
}

int destination_share(struct endpoint *e, struct part *p, struct fcopy_error *error)
{
	struct file *file = file_of(e);
	struct stat st;
	struct partial *f = calloc(1, sizeof(*f));
	if (!f)
		return error_call(error, "malloc", e->path, ENOMEM);
	f->part = p;
	e->fd = part_open_data(p, O_RDWR | O_NONBLOCK);
	int r = e->fd < 0 ? e->fd : fstat(e->fd, &st) < 0 ? -errno : 0;
	if (r < 0)
		error_operation(error, "open in its .fcopy-part", "openat", e->path, -r);
	else if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || !part_is_data(p, &st))
		r = error_refuse(error, e->path, ESTALE, "the data in its .fcopy-part was replaced",
				 FCOPY_ADVICE_SHARDS);
	if (r < 0) {
		endpoint_close(e);
		free(f);
		return r;
	}
	partial_made(file, f);
	file->keep_part = true;
	file->mode = p->journal.data.mode;
	return 0;
}

int destination_unshare(struct endpoint *e, struct fcopy_error *error)
{
	int r = endpoint_close(e);
	if (file_of(e)->partial)
		partial_drop(e);
	return r < 0 ? error_call(error, "close", e->path, -r) : 0;
}

mode_t destination_new_mode(const struct endpoint *e)
{
	return file_of(e)->mode;
}

off_t partial_begin(struct endpoint *e, off_t size)
{
	struct partial *f = file_of(e)->partial;
	if (!f || size < 0)
		return f ? f->known : -1;
	int r = 0;
	if (f->source.kind != JOURNAL_NOTHING)
		r = part_note_source(f->part, &f->source, size);
	else
		part_note_run(f->part, size);
	if (r < 0)
		return r;
	f->noted = size;
	f->flushes = f->part == &f->own && !system_has(e->fd, SYSTEM_LOCAL);
	f->flushed = io_now();
	return size;
}

/* What the page cache holds proves nothing there after a kill: a later run would compare every byte
 * that was not flushed. Returns 0; or -errno if bytes are lost, which no later call reports. */
static int partial_flush(const struct endpoint *e, struct partial *f)
{
	const double start = io_now();
	const int err = fdatasync(e->fd) < 0 ? errno : 0;
	if (err == 0)
		part_note_flushed(f->part);
	else
		part_note_lost(f->part);
	f->flushed = io_now();
	f->cost = f->flushed - start;
	/* Storage that lacks the call, or was interrupted, has lost nothing. */
	return err == EINVAL || err == ENOSYS || err == EOPNOTSUPP || err == EPERM || err == EINTR
		   ? 0
		   : -err;
}

static void partial_note_range(const struct partial *f, off_t from, off_t to)
{
	if (to > from)
		part_note(f->part, &(struct journal_fact){
				       .kind = JOURNAL_RANGE, .offset = from, .length = to - from});
}

int partial_note(struct endpoint *e, off_t from, off_t to)
{
	struct partial *f = file_of(e)->partial;
	partial_note_range(f, from, to);
	f->noted = to;
	const double since = f->flushes ? io_now() - f->flushed : 0;
	return since > FLUSH_AFTER && since > FLUSH_SHARE * f->cost ? partial_flush(e, f) : 0;
}

/* A call that fails can be the one report of bytes that were written before it, and are lost: no
 * later flush proves anything then. On local storage a full disk refuses a write, and loses
 * nothing; but a flush that it fails does. */
static bool partial_is_lost(const struct partial *p, const struct fcopy_error *failed)
{
	return failed && (p->flushes || failed->err == EIO || strstr(failed->call, "sync"));
}

bool partial_keep(struct endpoint *e, off_t size, const struct fcopy_error *failed)
{
	struct file *f = file_of(e);
	struct partial *p = f->partial;
	if (f->slot.stage != SLOT_MADE || !p)
		return false;
	/* What follows is compared, unless the journal says that it is complete. */
	const bool truncated = size > 0 && io_truncate(e->fd, size) == 0;
	f->keep_part = (truncated || (size > 0 && size >= p->noted)) && part_is_named(p->part);
	if (!f->keep_part)
		return false;
	if (partial_is_lost(p, failed)) {
		part_note_lost(p->part);
	} else if (p->flushes) {
		partial_note_range(p, 0, size);
		(void)partial_flush(e, p); /* the copy has failed already */
	}
	return true;
}

bool partial_is_named(const struct endpoint *e)
{
	return part_is_named(file_of(e)->partial->part);
}

/* Closes data before it is removed: NFS renames a file that is open. */
void partial_drop(struct endpoint *e)
{
	struct file *f = file_of(e);
	struct part *p = f->partial->part;
	const bool own = p == &f->partial->own; /* not of shards */
	const bool made = f->slot.stage == SLOT_MADE;
	const bool removes = own && (!f->keep_part || !made);
	const bool moved = own && !part_is_named(p); /* its name is that of another one */
	endpoint_close(e);
	if (removes && !moved)
		part_hide(p);
	if (removes && made)
		unlinkat(p->fd, PART_DATA, 0);
	if (own)
		partial_close(p, removes && !moved, e->options);
	free(f->partial);
	f->partial = NULL;
	if (made)
		f->slot.stage = SLOT_CHOSEN; /* shards open it again */
}

/* Is the part of this source, or without data? */
static bool partial_is_outdated(const struct part *p, int src, const struct stat *st)
{
	const struct journal_fact source = part_source(src, st);
	struct left l;
	const bool outdated = part_examine(&l, p->parent, p->public, false) &&
			      (!part_has_data(&l.part) ||
			       part_same_source(&l.part, &source, l.part.journal.options.number));
	left_close(&l);
	return outdated;
}

void partial_remove(int dir, const char *name, int src, const struct stat *st)
{
	struct part p;
	const struct part_claim claim = {.dst = name, .of = PART_OF_FILE, .resumes = true};
	part_init(&p, dir, name);
	if (!part_exists(&p) || !partial_is_outdated(&p, src, st))
		return;
	if (part_acquire(&p, &claim) == PART_CONTINUED) /* others are gone, or stay */
		(void)part_retire(&p);
}
