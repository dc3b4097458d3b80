/* SPDX-License-Identifier: MIT
 * Chooses how a name comes into being, makes what gets it, and drops that; and renames that replace
 * one certain entry.
 */
#include "slot.h"
#include "io/system.h"

#include <stdio.h>

/* rename(2) replaces whatever has the name by then. RENAME_EXCHANGE hands it out instead: if it is
 * not the file that was expected, both are exchanged again. */

#define EXCHANGES 100 /* each fails if another process has just replaced the file, too */

static bool same_entry(const struct stat *a, const struct stat *b)
{
	return same_inode(a, b) && !((a->st_mode ^ b->st_mode) & S_IFMT);
}

bool exchange_is_same(int dir, const struct stat *now, const struct stat *old)
{
	return same_mtime(now, old) && now->st_size == old->st_size &&
	       !((now->st_mode ^ old->st_mode) & S_IFMT) &&
	       (same_inode(now, old) ||
		(now->st_dev == old->st_dev && system_has(dir, SYSTEM_RENUMBERS)));
}

static bool is_there(int dir, const char *name, const struct stat *old)
{
	struct stat now;
	return fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       exchange_is_same(dir, &now, old);
}

/* What came out as `from` gets its name back, and ours comes out again. If a third process has
 * replaced ours in the meantime, that one comes out, and goes back. */
static int exchange_back(int home, const char *from, int dir, const char *name,
			 const struct stat *ours)
{
	struct stat out;
	for (int tries = 0; tries < EXCHANGES; tries++) {
		if (renameat2(home, from, dir, name, RENAME_EXCHANGE) == 0) {
			if (fstatat(home, from, &out, AT_SYMLINK_NOFOLLOW) == 0 &&
			    same_entry(&out, ours))
				return -EEXIST;
		} else if (errno != ENOENT) {
			break;
		} else if (private_rename(home, from, dir, name) == 0) {
			return -ESTALE; /* another process has moved ours away */
		}
	}
	return -ENOTRECOVERABLE;
}

/* The old file has come out. If it cannot be removed, it gets its name back: a caller takes `from`
 * for what was not renamed, and drops it. */
static int drop_old(int home, const char *from, int dir, const char *name, const struct stat *ours)
{
	if (unlinkat(home, from, 0) == 0 || errno == ENOENT)
		return 0;
	const int err = errno, r = exchange_back(home, from, dir, name, ours);
	return r == -EEXIST ? -err : r;
}

int exchange_over(int home, const char *from, int dir, const char *name, const struct stat *old,
		  bool hands_out)
{
	struct stat ours, out;
	if (S_ISDIR(old->st_mode))
		return -EISDIR; /* as rename(2): the exchange would hide it, and what it holds */
	if (fstatat(home, from, &ours, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (fstatat(dir, name, &out, AT_SYMLINK_NOFOLLOW) == 0 && !exchange_is_same(dir, &out, old))
		return -EEXIST;
	if (renameat2(home, from, dir, name, RENAME_EXCHANGE) < 0) {
		if (errno == ENOENT) /* the old file is gone */
			return private_rename(home, from, dir, name);
		if (errno != EINVAL && errno != ENOSYS)
			return -errno;
		/* Here another process can still replace it in between. */
		return !is_there(dir, name, old)             ? -EEXIST
		       : renameat(home, from, dir, name) < 0 ? -errno
							     : 0;
	}
	if (fstatat(home, from, &out, AT_SYMLINK_NOFOLLOW) < 0) /* what came out is unknown */
		return exchange_back(home, from, dir, name, &ours);
	if (!exchange_is_same(dir, &out, old) && !same_entry(&out, &ours))
		return hands_out ? RESULT_EXCHANGED : exchange_back(home, from, dir, name, &ours);
	return drop_old(home, from, dir, name, &ours);
}

/* In a sticky directory a link to another user's file could not be removed: where a rename is
 * forbidden, no link is made. */
int exchange_move(int home, const char *from, int dir, const char *name)
{
	const int r = private_rename(home, from, dir, name);
	if (r == 0 || r == -EEXIST || r == -EPERM || r == -EACCES || r == -EBUSY || r == -ENOENT)
		return r;
	if (linkat(home, from, dir, name, 0) < 0)
		return errno == EEXIST ? -EEXIST : r;
	if (unlinkat(home, from, 0) == 0)
		return 0;
	const int err = errno;
	unlinkat(dir, name, 0);
	return -err;
}

/* What one call makes cannot be overwritten. */
static unsigned choose_made(const struct slot_facts *is, enum slot_how way[4])
{
	unsigned n = 0;
	if (is->foreign)
		way[n++] = HOW_ASIDE;
	way[n++] = is->exists ? HOW_RENAME : HOW_FINAL;
	if (is->exists && !is->foreign &&
	    (is->in_place == FCOPY_WHEN_AUTO || is->in_place == FCOPY_WHEN_ALWAYS))
		way[n++] = HOW_SWAP;
	return n;
}

/* Several names, or nothing that the copy could take: only a new inode will do. */
static unsigned choose_file(const struct slot_facts *is, enum slot_how way[4])
{
	const bool new_inode = is->exists && (is->displaced || is->linked);
	const bool written = (is->special && !new_inode) || is->in_place == FCOPY_WHEN_ALWAYS;
	const bool possible = written || is->in_place == FCOPY_WHEN_AUTO;
	unsigned n = 0;
	if (is->scratch || !written || new_inode) {
		way[n++] = is->part && !is->scratch ? HOW_PART : HOW_LINK;
		if (way[0] == HOW_LINK)
			way[n++] = HOW_RENAME;
	}
	if (!is->scratch && !is->exists && (!is->part || written))
		way[n++] = HOW_FINAL;
	else if (!is->scratch && is->exists && possible)
		way[n++] = new_inode ? HOW_SWAP : HOW_WRITE;
	return n;
}

enum slot_how slot_choose(const struct slot_facts *is)
{
	enum slot_how way[4];
	const unsigned n = is->file ? choose_file(is, way) : choose_made(is, way);
	for (unsigned i = 0; i < n; i++)
		if (!(is->unfit & 1u << way[i]))
			return way[i];
	return HOW_NONE;
}

#define TRIES 8 /* of names: each fails if the drawn one is taken */

int slot_draw(struct slot *s, slot_maker *make, void *arg, const char *made, struct failure *fail)
{
	int r = -EEXIST;
	for (int tries = 0; r == -EEXIST && tries < TRIES; tries++) {
		r = s->storage ? storage_draw(s->storage, s->name) : temporary_draw(s->name);
		if (fail_if(fail, r, "getrandom") < 0)
			break;
		*fail = (struct failure){made, STEP_MAKE};
		r = make(s->home, s->name, arg);
	}
	if (r < 0)
		s->name[0] = '\0';
	return r;
}

static int displace_by_rename(int dir, const char *drawn, void *name)
{
	return exchange_move(dir, name, dir, drawn);
}

static int displace_by_link(int dir, const char *drawn, void *name)
{
	return linkat(dir, name, dir, drawn, 0) < 0 ? -errno : 0;
}

int slot_displace(int dir, const char *name, bool link, char drawn[TEMPORARY_SIZE],
		  struct failure *fail)
{
	struct slot s = {.home = dir};
	const int r = slot_draw(&s, link ? displace_by_link : displace_by_rename, (void *)name,
				link ? "linkat" : "renameat", fail);
	if (fail->step == STEP_MAKE)
		fail->step = link ? STEP_OTHER : STEP_DISPLACE;
	strcpy(drawn, s.name);
	return r;
}

void slot_look(struct slot *s, int dir, const char *as)
{
	struct stat st;
	if (!HOW_IS(s, HOW_INVISIBLE) && fstatat(dir, as, &st, AT_SYMLINK_NOFOLLOW) == 0)
		slot_note(s, &st);
}

/* HOW_SWAP: the old entry gets a drawn name. */
static int make_swapped(struct slot *s, int dir, const char *as, slot_maker *make, void *arg,
			const char *made, struct failure *fail)
{
	int r = slot_displace(dir, as, false, s->name, fail);
	if (r < 0)
		return r;
	*fail = (struct failure){made, STEP_MAKE};
	r = make(dir, as, arg);
	if (r >= 0)
		slot_look(s, dir, as);
	return r;
}

int slot_make(struct slot *s, int dir, const char *as, int aside, slot_maker *make, void *arg,
	      const char *made, struct failure *fail)
{
	int r;
	s->home = s->how == HOW_ASIDE ? aside : dir;
	*fail = (struct failure){made, STEP_MAKE};
	if (s->how == HOW_RENAME) {
		r = slot_draw(s, make, arg, made, fail);
	} else if (s->how == HOW_SWAP) {
		r = make_swapped(s, dir, as, make, arg, made, fail);
	} else if (s->how == HOW_FINAL) {
		s->name[0] = '\0';
		r = make(dir, as, arg);
	} else {
		if (s->how == HOW_ASIDE) /* that of HOW_PART is known */
			strcpy(s->name, PRIVATE_ENTRY);
		r = make(s->home, s->name, arg);
	}
	if (r >= 0)
		s->stage = SLOT_MADE;
	return r;
}

int slot_link(int dir, const char *name, void *slot)
{
	const struct slot *s = slot;
	const struct io_path path = io_proc_path(*s->fd);
	const int r = s->link == LINK_DESCRIPTOR
			  ? linkat(*s->fd, "", dir, name, AT_EMPTY_PATH)
			  : linkat(AT_FDCWD, path.text, dir, name, AT_SYMLINK_FOLLOW);
	return r < 0 ? -errno : 0;
}

int slot_close(const struct slot *s)
{
	const int fd = *s->fd;
	*s->fd = -1;
	return fd >= 0 && libc_close(fd) < 0 ? -errno : 0;
}

static void slot_remove(struct slot *s, int dir, const char *name)
{
	int r = unlinkat(dir, name, 0);
	if (r < 0 && !s->is.file && errno == EISDIR)
		r = unlinkat(dir, name, AT_REMOVEDIR);
	s->left_err = r < 0 && errno != ENOENT ? errno : 0;
	s->left[0] = '\0';
}

/* Some storage removes no file that is open, or writes one back when it is closed: removes it
 * again. */
static void drop_invisible(struct slot *s)
{
	const bool removes = s->stage == SLOT_MADE && s->name[0];
	if (removes)
		slot_remove(s, s->home, s->name);
	if (s->fd)
		(void)slot_close(s);
	if (removes && s->is.file)
		slot_remove(s, s->home, s->name);
	if (removes)
		strcpy(s->left, s->name);
}

/* Has no other process given the name to another file? */
static bool is_ours(struct slot *s, int dir, const char *as)
{
	struct stat now, named;
	if (s->stage != SLOT_MADE || s->ino == 0)
		return s->stage == SLOT_MADE && s->is.file;
	if (s->fd && *s->fd >= 0 && fstat(*s->fd, &now) == 0)
		slot_note(s, &now);
	return fstatat(dir, as, &named, AT_SYMLINK_NOFOLLOW) == 0 && s->dev == named.st_dev &&
	       s->ino == named.st_ino;
}

/* HOW_SWAP: gives the old entry its name back. */
static void slot_give_back(struct slot *s, int dir, const char *as)
{
	const bool returns = s->name[0] && s->stage != SLOT_NAMED;
	const int r = returns ? exchange_move(dir, s->name, dir, as) : 0;
	if (r < 0 && r != -ENOENT) {
		s->left_err = -r;
		strcpy(s->left, s->name);
	}
	s->name[0] = '\0';
}

/* Closes it first: some storage removes no file that is open, or writes it back when it is closed.
 */
static void drop_visible(struct slot *s, int dir, const char *as)
{
	const bool ours = is_ours(s, dir, as);
	if (s->fd)
		(void)slot_close(s);
	if (ours)
		slot_remove(s, dir, as);
	if (s->how == HOW_SWAP)
		slot_give_back(s, dir, as);
}

void slot_drop(struct slot *s, int dir, const char *as)
{
	if (HOW_IS(s, HOW_INVISIBLE))
		drop_invisible(s);
	else
		drop_visible(s, dir, as);
	if (s->stage != SLOT_MADE)
		return;
	s->name[0] = '\0';
	s->stage = SLOT_GONE;
}
