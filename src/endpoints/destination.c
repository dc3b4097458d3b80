/* SPDX-License-Identifier: MIT
 * Opens DST, according to the type of the file that it names, and ends it. A file comes into being
 * in a slot.
 */
#include "replace.h"
#include "socket.h"

static void close_directory(struct file *f)
{
	io_close(f->directory);
	f->directory = -1;
}

/* Removes what this run has made, unless it is named, and leaves the place open. */
static void file_drop(struct endpoint *e)
{
	struct file *f = file_of(e);
	if (f->partial)
		partial_drop(e);
	else
		temporary_drop(e);
	close_directory(f);
}

static void destination_abort(struct endpoint *e)
{
	file_drop(e);
	place_close(&file_of(e)->place);
}

static int destination_commit(struct endpoint *e, struct fcopy_error *error)
{
	struct file *f = file_of(e);
	const bool invisible = HOW_IS(&f->slot, HOW_INVISIBLE);
	int r = invisible ? 0 : endpoint_close(e);
	if (r < 0) /* NFS and FUSE report failed writes at close */
		return error_call(error, "close", e->path, -r);
	if (invisible || f->slot.how == HOW_SWAP)
		r = replace_commit(e, error);
	if (r != 0)
		return r;
	f->slot.stage = SLOT_NAMED;
	if (f->directory >= 0) {
		r = io_flush_directory(f->directory);
		if (r < 0) {
			error_operation(error, "fsync of the directory", "fsync", e->path, -r);
			error->advice = FCOPY_ADVICE_FLUSH;
			return r;
		}
		close_directory(f);
	}
	if (f->partial)
		partial_drop(e);
	if (invisible)
		endpoint_close(e);
	place_close(&f->place);
	return 0;
}

static bool destination_leaves_name(const struct endpoint *e, int *dir)
{
	*dir = file_of(e)->place.dir;
	return HOW_IS(&file_of(e)->slot, HOW(RENAME) | HOW(PART));
}

static const struct endpoint_ops file_ops = {.finish = replace_finish,
					     .commit = destination_commit,
					     .abort = destination_abort,
					     .begin_partial = partial_begin,
					     .note_partial = partial_note,
					     .keep_partial = partial_keep,
					     .release_blocks = in_place_release_blocks,
					     .start_over = in_place_start_over,
					     .leaves_name = destination_leaves_name};

int destination_create(struct endpoint *e, int dir, const char *name, mode_t mode, const char *path,
		       struct fcopy_error *error)
{
	const int fd = temporary_make(dir, name, &mode);
	*e = (struct endpoint){.ops = &file_ops,
			       .path = path,
			       .fd = fd < 0 ? -1 : fd,
			       .positional = true,
			       .met = fd == -EEXIST,
			       .st.st_mode = S_IFREG};
	if (fd < 0)
		return error_call(error, "open", path, -fd);
	struct file *f = file_of(e);
	f->directory = f->place.target = -1;
	f->place.dir = dir;
	f->place.borrowed = true;
	f->slot.is.file = true;
	f->slot.how = HOW_FINAL;
	f->slot.stage = SLOT_MADE;
	f->slot.home = dir;
	f->slot.private = true;
	/* The kernel returned the name: it has at most NAME_MAX bytes. */
	strcpy(f->place.name, name);
	return 0;
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

/* Other names of the old file would keep the old content, if that was to be overwritten. */
static int check_links(const struct endpoint *e, struct fcopy_error *error)
{
	const struct place *p = &file_of(e)->place;
	if (!p->exists || e->options->force ||
	    (file_has(e, DESTINATION_REPLACES_LINKS) && p->target < 0))
		return 0;
	return error_refuse(error, e->path, EMLINK,
			    "has other hard links, which would be overwritten, too",
			    FCOPY_ADVICE_FORCE);
}

/* Refuses the chosen way before the first change if it is certain to fail. */
static int destination_check(struct endpoint *e, struct fcopy_error *error)
{
	const struct slot *s = &file_of(e)->slot;
	const bool replaces = HOW_IS(s, HOW_INVISIBLE);
	int r = 0;
	if (s->is.linked && !s->is.scratch && (s->how == HOW_SWAP || in_place_always(e->options)))
		r = check_links(e, error);
	return r < 0 || !replaces ? r : replace_check(e, error);
}

/* The old file can be overwritten, but no new one can have its name, or its owner. Other hard links
 * would keep the old content; that does not prevent a replacement. */
static bool is_only_replaced(const struct fcopy_error *error)
{
	return error->err != EMLINK && (error->advice == FCOPY_ADVICE_IN_PLACE_AUTO ||
					error->advice == FCOPY_ADVICE_IN_PLACE_OR_FORCE);
}

/* The chosen way has failed with r. Chooses another one, and forgets the failure; or returns false:
 * the failure stands. */
static bool file_choose_another(struct endpoint *e, int r, struct fcopy_error *error)
{
	struct slot *s = &file_of(e)->slot;
	if (r == RESULT_UNFIT)
		s->is.unfit |= 1u << s->how;
	else if (HOW_IS(s, HOW_INVISIBLE) && is_only_replaced(error))
		s->is.unfit |= HOW_INVISIBLE;
	else
		return false;
	const enum slot_how how = slot_choose(&s->is);
	if (how == HOW_NONE)
		return false;
	s->how = how;
	*error = (struct fcopy_error){0};
	return true;
}

/* Opens the directory that the commit will flush: a failure must show before the commit. */
static int open_directory(struct endpoint *e)
{
	struct file *f = file_of(e);
	if (!e->options->fsync || e->options->scratch || f->directory >= 0)
		return 0;
	f->directory = openat(f->place.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return f->directory < 0 ? -1 : 0;
}

/* Creates the file under its final name, because it cannot be renamed, or need not be atomic. It
 * can be seen, and another process can give its name to another file. */
static int file_create_visible(struct endpoint *e, const struct endpoint *src,
			       struct fcopy_error *error)
{
	struct file *f = file_of(e);
	const struct place *p = &f->place;
	struct failure fail;
	/* Its owner, mode and ACL are set when it is complete: until then nobody else may open it.
	 */
	const bool closed = e->options->preserve & FCOPY_ATTR_MODE && S_ISREG(src->st.st_mode) &&
			    storage_stores(f->slot.storage, p->dir, STORAGE_CHANGES_MODES);
	mode_t mode = closed ? 0600 : p->exists ? p->st.st_mode & 01777 : replace_new_mode(src);
	const int fd = slot_make(&f->slot, p->dir, p->name, -1, temporary_make, &mode, "open",
				 &fail);
	e->visible = f->slot.is.unfit & HOW(RENAME) ? STORAGE_NO_RENAME : IN_PLACE_REASON;
	e->positional = true;
	e->fd = fd < 0 ? -1 : fd;
	e->met = fd == -EEXIST && fail.step == STEP_MAKE;
	if (fd < 0)
		return error_call(error, fail.call, e->path, -fd);
	if (fstat(fd, &e->st) < 0)
		return error_call(error, "fstat", e->path, errno);
	slot_note(&f->slot, &e->st);
	return 0;
}

/* Opens the file in the chosen way. Returns 0, RESULT_UNFIT, or -errno with the failure recorded.
 */
static int file_open_chosen(struct endpoint *e, const struct endpoint *src,
			    struct fcopy_error *error)
{
	struct slot *s = &file_of(e)->slot;
	e->ops = &file_ops;
	if (s->how != HOW_WRITE && open_directory(e) < 0)
		return error_operation(error, "open of its directory", "open", e->path, errno);
	switch (s->how) {
	case HOW_WRITE: return in_place_open(e, src, error);
	case HOW_FINAL:
	case HOW_SWAP: return file_create_visible(e, src, error);
	default: return replace_open(e, src, error);
	}
}

/* Each failure that another way may avoid removes one: this ends. */
static int file_open(struct endpoint *e, const struct endpoint *src, struct fcopy_error *error)
{
	const bool checks = !file_is_shard(e);
	int r;
	do {
		r = checks ? destination_check(e, error) : 0;
		while (r == 0 && (r = file_open_chosen(e, src, error)) == RESULT_UNFIT &&
		       file_choose_another(e, r, error))
			r = 0;
		if (r != 0)
			file_drop(e);
	} while (r < 0 && file_choose_another(e, r, error));
	if (r == 0 && file_of(e)->slot.how == HOW_WRITE)
		r = check_alias(e, src, error);
	return r;
}

/* Chooses the way, of which nothing is changed yet. */
static void file_choose(struct endpoint *e, const struct place *p, const char *path,
			const struct fcopy_options *options, unsigned flags)
{
	*e = (struct endpoint){.fd = -1, .path = path, .options = options};
	struct file *f = file_of(e);
	const bool displaced = flags & DESTINATION_REPLACES_ALL && p->exists,
		   regular = S_ISREG(p->st.st_mode);
	*f = file_state();
	f->place = *p;
	f->place.exists &= !displaced && !(options->scratch);
	f->place.symlink &= !(flags & DESTINATION_REPLACES_ALL);
	f->flags = flags;
	if (p->target >= 0) { /* what a symlink led to is in another directory */
		f->place.dev = 0;
		f->flags &= ~(unsigned)(DESTINATION_IS_PRIVATE | DESTINATION_DIRECTORY_FITS |
					DESTINATION_ADMITTED);
	}
	f->slot.private = file_has(e, DESTINATION_IS_PRIVATE);
	f->slot.is = (struct slot_facts){.file = true,
					 .exists = p->exists && !(options->scratch && !displaced),
					 .special = p->exists && !displaced && !regular,
					 .displaced = displaced,
					 .linked = p->exists && !displaced && regular &&
						   p->st.st_nlink > 1 &&
						   !(flags & DESTINATION_ONLY),
					 .part = options->resume || options->shard.count > 0,
					 .scratch = options->scratch,
					 .in_place = options->in_place};
	f->slot.how = slot_choose(&f->slot.is);
}

/* The file is open. What has its final name from the start takes nothing from an old file. */
static void file_note_old(struct endpoint *e)
{
	const struct file *f = file_of(e);
	const bool invisible = HOW_IS(&f->slot, HOW_INVISIBLE);
	if (f->slot.how == HOW_WRITE && e->positional)
		e->old = OLD_OVERWRITTEN;
	else if (invisible && f->slot.is.exists)
		e->old = OLD_REPLACED;
	if (f->place.exists && (invisible || f->slot.how == HOW_WRITE))
		e->old_stat = &f->place.st;
}

int destination_open_place(struct endpoint *e, struct place *p, const char *path,
			   const struct endpoint *src, const struct fcopy_options *options,
			   unsigned flags, struct storage *storage, struct fcopy_error *error)
{
	file_choose(e, p, path, options, flags);
	file_of(e)->slot.storage = storage;
	p->dir = p->target = -1;
	int r = file_open(e, src, error);
	if (r == 0)
		file_note_old(e);
	else
		place_close(&file_of(e)->place);
	return r;
}

static int check_access(const struct endpoint *e, const char *name, int mode,
			struct fcopy_error *error)
{
	if (faccessat(file_of(e)->place.dir, name, mode, AT_EACCESS) == 0)
		return 0;
	error_call(error, "open", e->path, errno);
	return RESULT_REFUSED;
}

/* What would fail only when the file is opened in the chosen way. */
static int rehearse_chosen(struct endpoint *e, const struct stat *src, struct fcopy_error *error)
{
	if (file_of(e)->slot.how != HOW_WRITE)
		return file_has(e, DESTINATION_ADMITTED) ? 0
							 : check_access(e, ".", W_OK | X_OK, error);
	int r = check_access(e, file_of(e)->place.name, W_OK, error);
	return r != 0 ? r : in_place_rehearse(e, src, error);
}

int destination_rehearse(const struct place *p, const char *path, const struct stat *src,
			 const struct fcopy_options *options, unsigned flags,
			 struct fcopy_error *error)
{
	struct endpoint own, *e = &own;
	int r;
	file_choose(e, p, path, options, flags);
	do
		r = destination_check(e, error);
	while (r < 0 && file_choose_another(e, r, error));
	return r < 0 ? r : rehearse_chosen(e, src, error);
}

int destination_open(struct endpoint *e, struct operand *dst, const struct endpoint *src,
		     const struct fcopy_options *options, struct storage *storage,
		     struct fcopy_error *error)
{
	if (dst->kind == OPERAND_STREAM) {
		int r = stream_open(e, dst->path, STDOUT_FILENO, error);
		e->options = options;
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
	return file_has(e, DESTINATION_DIRECTORY_FITS) && file_of(e)->place.target < 0;
}

bool destination_is_target(const struct endpoint *e)
{
	return file_of(e)->place.target >= 0;
}

const struct stat *destination_found(const struct endpoint *e)
{
	return file_of(e)->slot.is.exists ? &file_of(e)->place.st : NULL;
}

int destination_expect(struct endpoint *e, const struct stat *old, struct fcopy_error *error)
{
	struct place *p = &file_of(e)->place;
	struct slot *s = &file_of(e)->slot;
	if (old && S_ISDIR(old->st_mode))
		return error_refuse(error, e->path, EISDIR, "is a directory", FCOPY_ADVICE_NONE);
	if (!old || !s->is.exists || !same_inode(old, &p->st)) /* it is not claimed */
		s->is.displaced = old != NULL;
	if (old)
		p->st = *old;
	/* The copy is complete: it takes nothing from that file. */
	p->exists = p->symlink = false;
	e->old_stat = NULL;
	s->is.exists = old != NULL;
	return 0;
}
