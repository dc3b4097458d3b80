/* SPDX-License-Identifier: MIT
 * A new file that has its final name from the start: in a directory that other users cannot see
 * yet; or because it cannot be renamed, or need not be atomic.
 */
#define _GNU_SOURCE
#include "created.h"
#include "error.h"
#include "file.h"
#include "same.h"

#include <fcntl.h>
#include <unistd.h>

int created_open(struct endpoint *e, mode_t mode, struct fcopy_error *error)
{
	struct file *f = file_of(e);
	e->positional = true;
	e->st.st_mode = S_IFREG;
	e->fd = openat(f->place.dir, f->place.name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (e->fd < 0)
		return error_call(error, "open", e->path, errno);
	f->slot.stage = SLOT_MADE;
	return 0;
}

/* Takes its name from the old file, which keeps its data under a drawn one. In a sticky directory a
 * link to another user's file could not be removed: where a rename is forbidden, no link is made.
 */
static int set_aside(struct endpoint *e, const char **call)
{
	const struct place *p = &file_of(e)->place;
	char *drawn = file_of(e)->slot.name;
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

int created_open_final(struct endpoint *e, mode_t mode, struct fcopy_error *error)
{
	struct file *f = file_of(e);
	const char *call;
	int r = f->slot.how == HOW_SWAP ? set_aside(e, &call) : 0;
	if (r < 0)
		return error_call(error, call, e->path, -r);
	r = created_open(e, mode, error);
	if (r == 0 && fstat(e->fd, &f->place.st) < 0)
		r = error_call(error, "fstat", e->path, errno);
	return r;
}

void created_remove_old(struct endpoint *e)
{
	struct file *f = file_of(e);
	unlinkat(f->place.dir, f->slot.name, 0);
	f->slot.name[0] = '\0';
}

/* Gives the old file its name back. */
static void restore_old(struct endpoint *e)
{
	struct stat st;
	const struct place *p = &file_of(e)->place;
	char *old = file_of(e)->slot.name;
	if (!old[0])
		return;
	if (linkat(p->dir, old, p->dir, p->name, 0) == 0)
		unlinkat(p->dir, old, 0);
	else if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		(void)private_rename(p->dir, old, p->dir, p->name);
	old[0] = '\0';
}

/* Has no other process given the name to another file? In a directory of destination_create(),
 * which asks for no stat, none can. */
static bool is_ours(struct endpoint *e)
{
	struct stat named;
	struct file *f = file_of(e);
	struct place *p = &f->place;
	if (f->slot.stage != SLOT_MADE || p->st.st_ino == 0)
		return f->slot.stage == SLOT_MADE;
	if (e->fd >= 0)
		(void)!fstat(e->fd, &p->st);
	return fstatat(p->dir, p->name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       same_file(&p->st, &named);
}

/* Closes it first: some storage removes no file that is open, or writes it back when it is closed.
 */
void created_drop(struct endpoint *e)
{
	struct file *f = file_of(e);
	const bool ours = is_ours(e);
	endpoint_close(e);
	if (ours)
		unlinkat(f->place.dir, f->place.name, 0);
	if (f->slot.stage == SLOT_MADE)
		f->slot.stage = SLOT_GONE;
	restore_old(e);
}
