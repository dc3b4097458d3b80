/* SPDX-License-Identifier: MIT
 * A new file that has its final name from the start: in a directory that other users cannot see
 * yet; or because it cannot be renamed, or need not be atomic.
 */
#define _GNU_SOURCE
#include "created.h"
#include "error.h"
#include "file.h"
#include "io/io.h"
#include "same.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* NFS and FUSE report failed writes at close. */
static int created_commit(struct endpoint *e, const struct fcopy_options *options,
			  struct fcopy_error *error)
{
	(void)options;
	int r = endpoint_close(e);
	return r < 0 ? error_call(error, "close", e->path, -r) : 0;
}

static void created_abort(struct endpoint *e)
{
	endpoint_close(e);
	unlinkat(file_of(e)->place.dir, file_of(e)->place.name, 0);
}

int created_open(struct endpoint *e, int dir, const char *name, mode_t mode, const char *path,
		 struct fcopy_error *error)
{
	static const struct endpoint_ops ops = {.commit = created_commit, .abort = created_abort};
	*e = (struct endpoint){.ops = &ops, .path = path, .positional = true};
	file_of(e)->place.dir = dir;
	e->st.st_mode = S_IFREG;
	/* The kernel returned the name: it has at most NAME_MAX bytes. */
	strcpy(file_of(e)->place.name, name);
	e->fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	return e->fd < 0 ? error_call(error, "open", path, errno) : 0;
}

static void final_close(struct endpoint *e)
{
	endpoint_close(e);
	if (file_of(e)->directory >= 0)
		close(file_of(e)->directory);
	file_of(e)->directory = -1;
	place_close(&file_of(e)->place);
}

static int final_commit(struct endpoint *e, const struct fcopy_options *options,
			struct fcopy_error *error)
{
	(void)options;
	int r = endpoint_close(e);
	if (r < 0)
		return error_call(error, "close", e->path, -r);
	file_of(e)->unfinished = false;
	if (file_of(e)->temporary[0]) /* the old file */
		unlinkat(file_of(e)->place.dir, file_of(e)->temporary, 0);
	if (file_of(e)->directory >= 0 && (r = io_flush_directory(file_of(e)->directory)) < 0) {
		error_operation(error, "fsync of the directory", "fsync", e->path, -r);
		error->advice = FCOPY_ADVICE_FLUSH;
		return r;
	}
	final_close(e);
	return 0;
}

/* Gives the old file its name back. */
static void final_restore(struct endpoint *e)
{
	struct stat st;
	const struct place *p = &file_of(e)->place;
	const char *old = file_of(e)->temporary;
	if (!old[0])
		return;
	if (linkat(p->dir, old, p->dir, p->name, 0) == 0)
		unlinkat(p->dir, old, 0);
	else if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		(void)private_rename(p->dir, old, p->dir, p->name);
	file_of(e)->temporary[0] = '\0';
}

/* Removes the file, unless its name is that of another file by now. Closes it first: some storage
 * removes no file that is open, or writes it back when it is closed. */
static void final_abort(struct endpoint *e)
{
	struct stat named;
	struct place *p = &file_of(e)->place;
	if (e->fd >= 0)
		(void)!fstat(e->fd, &p->st);
	bool ours = file_of(e)->unfinished &&
		    fstatat(p->dir, p->name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		    same_file(&p->st, &named);
	endpoint_close(e);
	if (ours)
		unlinkat(p->dir, p->name, 0);
	final_restore(e);
	final_close(e);
}

int created_open_final(struct endpoint *e, mode_t mode, const char *reason,
		       struct fcopy_error *error)
{
	static const struct endpoint_ops ops = {.commit = final_commit, .abort = final_abort};
	struct place *p = &file_of(e)->place;
	e->ops = &ops;
	e->positional = true;
	e->not_atomic = reason;
	e->st.st_mode = S_IFREG;
	e->fd = openat(p->dir, p->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (e->fd < 0)
		return error_call(error, "open", e->path, errno);
	file_of(e)->unfinished = true;
	return fstat(e->fd, &p->st) < 0 ? error_call(error, "fstat", e->path, errno) : 0;
}

/* Takes its name from the old file, which keeps its data under a drawn one. In a sticky directory a
 * link to another user's file could not be removed: where a rename is forbidden, no link is made.
 */
static int final_set_aside(struct endpoint *e, const char **call)
{
	const struct place *p = &file_of(e)->place;
	char *drawn = file_of(e)->temporary;
	*call = "getrandom";
	int r = temporary_draw(drawn);
	if (r == 0) {
		*call = "renameat";
		r = private_rename(p->dir, p->name, p->dir, drawn);
	}
	if (r < 0 && r != -EPERM && r != -EACCES && r != -EBUSY && r != -ENOENT &&
	    linkat(p->dir, p->name, p->dir, drawn, 0) == 0) {
		*call = "unlink";
		r = unlinkat(p->dir, p->name, 0) < 0 ? -errno : 0;
		if (r < 0)
			unlinkat(p->dir, drawn, 0);
	}
	if (r < 0)
		drawn[0] = '\0';
	return r;
}

int created_replace_final(struct endpoint *e, mode_t mode, const char *reason,
			  struct fcopy_error *error)
{
	const char *call;
	int r = final_set_aside(e, &call);
	if (r < 0)
		return error_call(error, call, e->path, -r);
	r = created_open_final(e, mode, reason, error);
	if (r < 0)
		final_restore(e);
	return r;
}
