/* SPDX-License-Identifier: MIT
 * Opens SRC and DST, each according to the type of the file that it names.
 */
#define _GNU_SOURCE
#include "file.h"
#include "created.h"
#include "error.h"
#include "in_place.h"
#include "io/libc.h"
#include "replace.h"
#include "replaceable.h"
#include "same.h"
#include "stream.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int end_source(struct endpoint *e, const struct fcopy_options *options,
		      struct fcopy_error *error)
{
	(void)options, (void)error; /* close(2) of a descriptor that was only read has no error */
	e->ops->abort(e);
	return 0;
}

static void close_source(struct endpoint *e)
{
	endpoint_close(e);
}

static const struct endpoint_ops source_ops = {.commit = end_source, .abort = close_source};

void source_adopt(struct endpoint *e, int fd, const char *path, const struct stat *st)
{
	*e = (struct endpoint){
	    .ops = &source_ops, .path = path, .fd = fd, .positional = true, .st = *st};
}

static void leave_open(struct endpoint *e)
{
	e->fd = -1;
}

int source_share(struct endpoint *e, const struct endpoint *open, struct fcopy_error *error)
{
	static const struct endpoint_ops ops = {.commit = end_source, .abort = leave_open};
	*e = *open;
	e->ops = &ops;
	return fstat(e->fd, &e->st) < 0 ? error_call(error, "fstat", e->path, errno) : 0;
}

static int fail_open(const char *path, int err, struct fcopy_error *error)
{
	struct stat st;
	if (err == ENOENT && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
		return error_refuse_operand(error, path, ENOENT, "is a dangling symlink",
					    FCOPY_ADVICE_NONE);
	error_look_up(error, "open", path, err);
	if (err == ENXIO && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		error_unsuitable(error);
	return -err;
}

int source_open(struct endpoint *e, const struct operand *src, struct fcopy_error *error)
{
	const char *path = src->path;
	if (src->kind == OPERAND_STREAM)
		return stream_open(e, path, STDIN_FILENO, error);
	*e = (struct endpoint){.ops = &source_ops, .path = path};
	e->fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	if (e->fd < 0)
		return fail_open(path, errno, error);
	if (fstat(e->fd, &e->st) < 0)
		error_call(error, "fstat", path, errno);
	else if (S_ISDIR(e->st.st_mode)) {
		error_refuse_operand(error, path, EISDIR, "is a directory", FCOPY_ADVICE_RECURSIVE);
	} else if (S_ISBLK(e->st.st_mode) && device_size(e->fd, &e->st.st_size) < 0)
		error_call(error, "ioctl(BLKGETSIZE64)", path, errno);
	else {
		e->positional = S_ISREG(e->st.st_mode) || S_ISBLK(e->st.st_mode);
		return 0;
	}
	close_source(e);
	return -error->err;
}

/* The destination is open: closes it again if it may be the source. */
static int check_alias(struct endpoint *e, const struct endpoint *src, struct fcopy_error *error)
{
	int r = same_is_source(src, e->fd, &e->st);
	if (r == 0)
		return 0;
	e->ops->abort(e);
	return r < 0 ? error_call(error, "fstat", e->path, -r)
		     : same_refuse(src->path, e->path, error);
}

/* The old file can be overwritten, but no new one can have its name, or its owner. Other hard links
 * would keep the old content; that does not prevent a replacement. */
static bool is_only_replaced(const struct fcopy_error *error)
{
	return error->err != EMLINK && (error->advice == FCOPY_ADVICE_IN_PLACE_AUTO ||
					error->advice == FCOPY_ADVICE_IN_PLACE_OR_FORCE);
}

/* With --inplace: is the old file replaced, and not overwritten? */
static bool is_replaced(const struct endpoint *e)
{
	const struct place *p = &file_of(e)->place;
	return file_of(e)->displaces ||
	       (p->exists && file_of(e)->in_tree && S_ISREG(p->st.st_mode) && p->st.st_nlink > 1);
}

static int check_links(const struct endpoint *e, const struct fcopy_options *options,
		       struct fcopy_error *error)
{
	const struct place *p = &file_of(e)->place;
	if (!p->exists || options->force || (file_of(e)->replace_links && p->target < 0))
		return 0;
	return error_refuse(error, e->path, EMLINK,
			    "has other hard links, which would be overwritten, too",
			    FCOPY_ADVICE_FORCE);
}

/* The old file gives the new one nothing, or has other names, each of which may be the copy of
 * another file: it is replaced and not overwritten. If no rename can replace it, it is put aside
 * until the copy has succeeded. */
static int replace_old(struct endpoint *e, const struct endpoint *src,
		       const struct fcopy_options *options, struct fcopy_error *error)
{
	const struct place *p = &file_of(e)->place;
	const mode_t mode = p->exists ? p->st.st_mode & 01777 : replace_new_mode(src);
	int r = check_links(e, options, error);
	if (r < 0)
		return r;
	r = replace_open(e, src, options, error);
	if (r == 0 || !is_only_replaced(error))
		return r;
	*error = (struct fcopy_error){0};
	return created_replace_final(e, mode, IN_PLACE_REASON, error);
}

/* Writes into the file, which is created if it is absent. */
static int open_final(struct endpoint *e, const struct endpoint *src,
		      const struct fcopy_options *options, struct fcopy_error *error)
{
	const struct place *p = &file_of(e)->place;
	if (is_replaced(e))
		return replace_old(e, src, options, error);
	if (!p->exists)
		return created_open_final(e, replace_new_mode(src), IN_PLACE_REASON, error);
	int r = in_place_open(e, src, options, error);
	return r == 0 ? check_alias(e, src, error) : r;
}

static int check_access(const struct endpoint *e, const char *name, int mode,
			struct fcopy_error *error)
{
	return faccessat(file_of(e)->place.dir, name, mode, AT_EACCESS) == 0
		   ? 0
		   : error_call(error, "open", e->path, errno);
}

/* Is the place written to, and not replaced, if there is a choice? */
static bool is_written(const struct endpoint *e, const struct fcopy_options *options)
{
	const struct place *p = &file_of(e)->place;
	return in_place_always(options) || (p->exists && !S_ISREG(p->st.st_mode));
}

static int open_chosen(struct endpoint *e, const struct endpoint *src,
		       const struct fcopy_options *options, struct fcopy_error *error)
{
	const bool in_place = is_written(e, options);
	if (in_place && !options->scratch)
		return open_final(e, src, options, error);
	int r = replace_open(e, src, options, error);
	if (r == 0 || options->in_place != FCOPY_WHEN_AUTO || !is_only_replaced(error))
		return r;
	*error = (struct fcopy_error){0};
	return open_final(e, src, options, error);
}

static void set_place(struct endpoint *e, const struct place *p, const char *path, unsigned flags)
{
	const bool all = flags & DESTINATION_REPLACES_ALL;
	*e = (struct endpoint){.fd = -1, .path = path};
	*file_of(e) = file_state();
	file_of(e)->place = *p;
	file_of(e)->displaces = all && p->exists;
	file_of(e)->place.exists &= !all;
	file_of(e)->place.symlink &= !all;
	file_of(e)->in_tree = !(flags & DESTINATION_ONLY);
	file_of(e)->replace_links = flags & DESTINATION_REPLACES_LINKS;
	file_of(e)->replace_read_only = flags & DESTINATION_REPLACES_READ_ONLY;
	file_of(e)->admitted = flags & DESTINATION_ADMITTED;
	file_of(e)->exact = flags & DESTINATION_EXACT;
	file_of(e)->hands_out = flags & DESTINATION_HANDS_OUT;
	/* What a symlink led to is in another directory. */
	file_of(e)->private = flags & DESTINATION_IS_PRIVATE && p->target < 0;
	file_of(e)->fits = flags & DESTINATION_DIRECTORY_FITS && p->target < 0;
}

int destination_open_place(struct endpoint *e, struct place *p, const char *path,
			   const struct endpoint *src, const struct fcopy_options *options,
			   unsigned flags, struct storage *storage, struct fcopy_error *error)
{
	set_place(e, p, path, flags);
	file_of(e)->storage = storage;
	p->dir = p->target = -1;
	int r = open_chosen(e, src, options, error);
	if (r != 0)
		place_close(&file_of(e)->place);
	return r;
}

int destination_rehearse(const struct place *p, const char *path,
			 const struct fcopy_options *options, unsigned flags,
			 struct fcopy_error *error)
{
	struct endpoint own, *e = &own;
	set_place(e, p, path, flags);
	p = &file_of(e)->place;
	const bool in_place = is_written(e, options);
	const bool overwritten = in_place && p->exists && !is_replaced(e);
	if (overwritten)
		return check_access(e, p->name, W_OK, error);
	int r = in_place ? check_links(e, options, error) : replace_check(e, options, error);
	if (r < 0 && options->in_place == FCOPY_WHEN_AUTO && is_only_replaced(error)) {
		*error = (struct fcopy_error){0};
		return check_access(e, p->name, W_OK, error);
	}
	/* What a symlink led to is in another directory. */
	if (r < 0 || (file_of(e)->admitted && p->target < 0))
		return r;
	return check_access(e, ".", W_OK | X_OK, error);
}

int destination_open(struct endpoint *e, struct operand *dst, const struct endpoint *src,
		     const struct fcopy_options *options, struct storage *storage,
		     struct fcopy_error *error)
{
	if (dst->kind == OPERAND_STREAM) {
		int r = stream_open(e, dst->path, STDOUT_FILENO, error);
		return r == 0 ? check_alias(e, src, error) : r;
	}
	if (dst->kind != OPERAND_FAILED)
		return destination_open_place(e, &dst->place, dst->path, src, options,
					      DESTINATION_ONLY, storage, error);
	*error = dst->error;
	return -error->err;
}

const char *destination_name(const struct endpoint *e, int *dir)
{
	*dir = file_of(e)->place.dir;
	return file_of(e)->place.name;
}

bool destination_directory_fits(const struct endpoint *e)
{
	return file_of(e)->fits && file_of(e)->place.target < 0;
}

bool destination_is_target(const struct endpoint *e)
{
	return file_of(e)->place.target >= 0;
}

const struct stat *destination_found(const struct endpoint *e)
{
	const struct place *p = &file_of(e)->place;
	return p->exists || file_of(e)->displaces ? &p->st : NULL;
}

const char *destination_handed(const struct endpoint *e)
{
	return file_of(e)->handed[0] ? file_of(e)->handed : NULL;
}

int destination_expect(struct endpoint *e, const struct stat *old, struct fcopy_error *error)
{
	struct place *p = &file_of(e)->place;
	if (old && S_ISDIR(old->st_mode))
		return error_refuse(error, e->path, EISDIR, "is a directory", FCOPY_ADVICE_NONE);
	if (old)
		p->st = *old;
	p->exists = p->symlink = false; /* the copy is complete: it takes nothing from that file */
	file_of(e)->displaces = old != NULL;
	return 0;
}
