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
	if (file_of(e)->directory >= 0 && (r = io_flush_directory(file_of(e)->directory)) < 0) {
		error_operation(error, "fsync of the directory", "fsync", e->path, -r);
		error->advice = FCOPY_ADVICE_FLUSH;
		return r;
	}
	final_close(e);
	return 0;
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
