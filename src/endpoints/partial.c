/* SPDX-License-Identifier: MIT
 * --resume of a file: it is `data` in DST.fcopy-part/, whose journal says how many of its bytes are
 * complete.
 */
#define _GNU_SOURCE
#include "partial.h"
#include "error.h"
#include "file.h"
#include "io/io.h"
#include "replaceable.h"
#include "same.h"
#include "temporary.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIES 8 /* each fails if another copy makes or commits the part first */

struct partial {
	struct part *part; /* `own`, or that of shards, which outlives the endpoint */
	struct part own;
	off_t known; /* bytes that need no comparison */
	const struct fcopy_options *options;
};

/* name: in the directory of the part. operation: NULL: it cannot be removed. */
static void partial_warn(const struct part *p, const char *name, const char *operation, int err,
			 const struct fcopy_options *o)
{
	char path[PATH_MAX] = "";
	struct fcopy_error error;
	const ssize_t n = readlink(io_proc_path(p->parent).text, path, sizeof(path) - 1);
	const size_t used = n > 0 && (size_t)n + NAME_MAX + 2 < sizeof(path) ? (size_t)n : 0;
	snprintf(path + used, sizeof(path) - used, "%s%s", used > 0 ? "/" : "", name);
	error_operation(&error, operation, operation ? "close" : "remove", path, err);
	if (o->notify)
		o->notify(o->user,
			  &(struct fcopy_event){.kind = FCOPY_EVENT_WARNING, .error = &error});
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
static int part_refuse_source(const struct endpoint *e, int fd, const struct endpoint *src,
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

static int partial_fail(const struct endpoint *e, const struct part *p, int r,
			struct fcopy_error *error)
{
	if (p->reason)
		return error_refuse(error, e->path, -r, p->reason, p->advice);
	error_call(error, p->call, e->path, -r);
	if (r == -EACCES || r == -EPERM)
		error->advice = replace_in_place_advice(e);
	return r;
}

/* The attributes that data gets at the end depend on these. */
static uint64_t partial_options(const struct endpoint *e, const struct fcopy_options *o)
{
	return o->preserve | (uint64_t)o->default_mode << 7 |
	       (uint64_t)file_of(e)->place.exists << 8;
}

/* Is the source `data` of this part, or is the part in its way? */
static int partial_refuse_source(const struct endpoint *e, const struct part *p,
				 const struct endpoint *src, struct fcopy_error *error)
{
	char data[NAME_MAX + sizeof("/" PART_DATA)];
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int r = 0;
	snprintf(data, sizeof(data), "%s/" PART_DATA, p->public);
	for (int i = 0; i < 2 && r == 0; i++) {
		int fd = openat(p->parent, i ? data : p->public, flags);
		if (fd >= 0) {
			r = part_refuse_source(e, fd, src, error);
			close(fd);
		}
	}
	return r;
}

/* How many bytes are in data for sure: see part.h. A source that changed just before it was read
 * may have been changed again since, without a change of its times. */
static off_t partial_known(const struct part *p, const struct endpoint *src,
			   const struct fcopy_options *o, uint64_t options)
{
	const struct journal *j = &p->journal;
	if (!part_same_source(p, &src->st, options) ||
	    journal_is_recent(&j->source.source, &j->run.when))
		return 0;
	return j->current && !o->fsync ? j->prefix : j->flushed_prefix;
}

/* What has other attributes than a new copy would have is not continued: they could admit users to
 * it. */
static int partial_start_over(struct endpoint *e, struct part *p, const struct fcopy_options *o,
			      struct fcopy_error *error)
{
	const char *call = "unlinkat";
	int r = part_hide(p);
	if (r == 0)
		r = unlinkat(p->fd, PART_DATA, 0) < 0 && errno != ENOENT ? -errno : 0;
	partial_close(p, r == 0, o);
	if (r < 0)
		return error_operation(error, "remove of its .fcopy-part", call, e->path, -r);
	return -EAGAIN;
}

/* Continues the open part. Returns -EAGAIN if there is none now. */
static int partial_continue(struct endpoint *e, struct partial *f, const struct endpoint *src,
			    const struct fcopy_options *o, struct fcopy_error *error)
{
	struct part *p = f->part;
	struct stat st;
	const uint64_t options = partial_options(e, o);
	if (p->journal.source.tree) {
		part_close(p, false);
		return error_refuse(error, e->path, EISDIR,
				    "its .fcopy-part is the copy of a directory",
				    FCOPY_ADVICE_REMOVE_PART);
	}
	/* Without data, a process was killed just after it had committed the file. */
	e->fd = p->journal.options.number == options ? part_open_data(p, O_RDWR | O_NONBLOCK)
						     : -ENOENT;
	if (e->fd == -ENOENT)
		return partial_start_over(e, p, o, error);
	int r = e->fd < 0                                 ? e->fd
		: fstat(e->fd, &st) < 0                   ? -errno
		: S_ISREG(st.st_mode) && st.st_nlink == 1 ? 0
							  : -EPERM;
	if (r < 0) {
		endpoint_close(e);
		part_close(p, false);
		return error_operation(error, "open in its .fcopy-part", "openat", e->path, -r);
	}
	f->known = partial_known(p, src, o, options);
	if (f->known > st.st_size)
		f->known = st.st_size;
	file_of(e)->keep_part = true;
	return 0;
}

static void partial_report_exposed(const struct endpoint *e, const struct part *p,
				   const struct fcopy_options *o)
{
	struct fcopy_error error;
	if (!p->exposed || !o->notify)
		return;
	error_refuse(&error, e->path, EPERM, PART_EXPOSED, FCOPY_ADVICE_NONE);
	o->notify(o->user, &(struct fcopy_event){.kind = FCOPY_EVENT_NOT_PRIVATE, .error = &error});
}

static int partial_create(struct endpoint *e, struct partial *f, const struct endpoint *src,
			  const struct fcopy_options *o, struct fcopy_error *error)
{
	struct part *p = f->part;
	int r = part_make(p);
	if (r < 0)
		return partial_fail(e, p, r, error);
	if ((r = part_can_move(p)) < 0) {
		partial_close(p, true, o);
		return partial_fail(e, p, r, error);
	}
	e->fd = openat(p->fd, PART_DATA, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (e->fd < 0)
		r = part_fail(p, "open", errno);
	if (r == 0)
		r = part_describe(p, file_of(e)->place.name, &src->st, partial_options(e, o), e->fd,
				  file_of(e)->mode);
	if (r == 0)
		r = part_publish(p, &e->fd);
	if (r == 0) {
		partial_report_exposed(e, p, o);
		return 0;
	}
	endpoint_close(e);
	unlinkat(p->fd, PART_DATA, 0);
	bool again = r == -EEXIST || r == -ENOTEMPTY; /* another copy was faster */
	if (!again)
		partial_fail(e, p, r, error);
	partial_close(p, true, o);
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
		 const struct fcopy_options *o, struct fcopy_error *error)
{
	struct file *file = file_of(e);
	struct partial *f = calloc(1, sizeof(*f));
	if (!f)
		return error_call(error, "malloc", e->path, ENOMEM);
	f->options = o;
	file->mode = temporary_mode(file->place.dir, mode, file->slot.storage);
	int r = -EAGAIN;
	for (int tries = 0; tries < TRIES && r == -EAGAIN; tries++) {
		f->part = &f->own;
		part_init(f->part, file->place.dir, file->place.name);
		r = partial_refuse_source(e, f->part, src, error);
		if (r < 0)
			break;
		r = part_open(f->part, file->place.name, o->cancel);
		if (r == 0)
			r = partial_continue(e, f, src, o, error);
		else if (r == -ENOENT)
			r = partial_create(e, f, src, o, error);
		else
			partial_fail(e, f->part, r, error);
	}
	if (r == -EAGAIN)
		r = error_refuse(error, e->path, EBUSY,
				 "another copy has just used its .fcopy-part", FCOPY_ADVICE_NONE);
	if (r < 0) {
		free(f);
		return r;
	}
	partial_made(file, f);
	return 0;
}

int destination_check_part(const struct endpoint *e, const struct part *p,
			   const struct endpoint *src, struct fcopy_error *error)
{
	return partial_refuse_source(e, p, src, error);
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
	part_note_run(f->part, size);
	return size;
}

void partial_note(struct endpoint *e, off_t from, off_t to)
{
	if (to > from)
		part_note(file_of(e)->partial->part, &(struct journal_fact){.kind = JOURNAL_RANGE,
									    .offset = from,
									    .length = to - from});
}

bool partial_keep(struct endpoint *e, off_t size)
{
	struct file *f = file_of(e);
	if (f->slot.stage != SLOT_MADE || !f->partial)
		return false;
	(void)io_truncate(e->fd, size); /* best effort: what follows is compared */
	f->keep_part = part_is_named(f->partial->part);
	return f->keep_part;
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
		partial_close(p, removes && !moved, f->partial->options);
	free(f->partial);
	f->partial = NULL;
	if (made)
		f->slot.stage = SLOT_CHOSEN; /* shards open it again */
}

void part_remove(int dir, const char *name)
{
	struct part p;
	part_init(&p, dir, name);
	if (part_open(&p, name, NULL) < 0)
		return;
	if (p.journal.source.tree) {
		part_close(&p, false);
		return;
	}
	part_hide(&p);
	unlinkat(p.fd, PART_DATA, 0);
	part_close(&p, true);
}
