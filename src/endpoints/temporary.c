/* SPDX-License-Identifier: MIT
 * The temporary file of HOW_LINK and HOW_RENAME, which slot_commit() gives its final name:
 *
 *     open(O_TMPFILE) ---- unsupported ----> openat(O_EXCL, .fcopy-RANDOM, 0600)
 *          | unnamed                               | named
 *          | bytes                                 | bytes, then owner and mode
 *          |                                       |
 *     DST is new:   linkat(DST)                    renameat(DST)
 *     DST exists:   linkat(.fcopy-RANDOM),         renameat(DST)
 *                   renameat(DST)
 *     no_clobber:   linkat(DST)                    renameat2(DST, RENAME_NOREPLACE)
 *
 * Where chmod has no effect, the named file has its final mode from the start.
 *
 * A process that is killed leaves nothing of an unnamed file. linkat(2) does not replace a file, so
 * an existing DST takes two calls. An existing DST is not replaced by a named file where unnamed
 * ones are supported: to create it with mode 0600, which fchmod(2) widens, takes as many calls, and
 * about as much time (on tmpfs a tenth less), and it would remain after a kill.
 */
#include "attributes.h"
#include "io/system.h"
#include "replace.h"

#include <sched.h>
#include <stdio.h>

/* Finds the call that can name an unnamed file here, before the first byte. "." exists: a call that
 * works fails with EEXIST, and one that does not fails with ENOENT for the old name, which
 * do_linkat in fs/namei.c looks up first. */
static enum storage_link find_link_call(struct endpoint *e)
{
	struct slot *s = &file_of(e)->slot;
	for (s->link = LINK_DESCRIPTOR; s->link <= LINK_PROC; s->link++)
		if (slot_link(s->home, ".", s) == -EEXIST)
			return s->link;
	return LINK_UNKNOWN;
}

int temporary_make(int dir, const char *name, void *mode)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
	const int fd = openat(dir, name, flags, *(const mode_t *)mode);
	/* cppcheck-suppress resourceLeak */
	return fd < 0 ? -errno : fd;
}

static int temporary_make_named(struct endpoint *e, mode_t mode, struct failure *fail)
{
	struct file *f = file_of(e);
	f->created_mode = mode;
	int r = slot_make(&f->slot, f->place.dir, "", -1, temporary_make, &mode, "open", fail);
	e->fd = r < 0 ? -1 : r;
	return r < 0 ? r : 0;
}

static bool read_umask(unsigned *mask)
{
	char line[256];
	bool found = false;
	FILE *f = fopen("/proc/self/status", "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "Umask: %o", mask) == 1;
	if (f)
		fclose(f);
	return found;
}

/* umask(2) can only be read by changing it. In a thread with a separate umask, no file of another
 * thread gets a wrong mode during that time. */
static void *change_own_umask(void *mask)
{
	if (unshare(CLONE_FS) == 0)
		*(unsigned *)mask = umask(077);
	return NULL;
}

/* The kernel applies umask and default ACL to an unnamed file, which is created with its final
 * mode. A named file is created with 0600 and gets that mode later. A shortage may pass: try
 * again. There may be no /proc; where a sandbox also refuses the other way, assume the strictest.
 */
mode_t temporary_umask(void)
{
	unsigned mask = 077;
	pthread_t thread;
	for (int tries = 0; tries < 3; tries++)
		if (read_umask(&mask))
			return mask;
	if (pthread_create(&thread, NULL, change_own_umask, &mask) == 0)
		pthread_join(thread, NULL);
	return mask;
}

/* The umask of this process; `s` remembers it. */
static mode_t umask_once(struct storage *s)
{
	if (!s)
		return temporary_umask();
	pthread_mutex_lock(&s->lock);
	if (!s->masked)
		s->umask = temporary_umask();
	s->masked = true;
	const mode_t mask = s->umask;
	pthread_mutex_unlock(&s->lock);
	return mask;
}

mode_t temporary_mode(int dir, mode_t mode, struct storage *storage)
{
	mode_t most;
	return mode & (acl_default_mode(dir, &most) ? most | 07000 : ~umask_once(storage));
}

/* Kernels and file systems without O_TMPFILE see a directory opened for writing. */
static bool lacks_unnamed(int r)
{
	return r == -EOPNOTSUPP || r == -EISDIR || r == -EINVAL || r == -ENOENT || r == -ENOSYS;
}

/* Only where linkat(2) is known to keep the file: with some FUSE file systems it returns 0,
 * st_nlink is 1, and the inode is removed when the file is closed. Most storage that is asked over
 * a network lacks O_TMPFILE: it is not asked for its type. Each file system is asked once. */
int temporary_create(struct endpoint *e, mode_t mode, struct failure *fail)
{
	struct file *f = file_of(e);
	struct slot *s = &f->slot;
	const dev_t dev = f->place.dev ? f->place.dev : f->place.st.st_dev;
	s->home = f->place.dir;
	s->link = storage_link_call(s->storage, dev, &f->local);
	if (s->link == LINK_NONE)
		return RESULT_UNFIT;
	e->fd = openat(s->home, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	int r = e->fd < 0 ? -errno : 0;
	s->fd = &e->fd;
	if (r == 0 && s->link == LINK_UNKNOWN) {
		const unsigned type = system_type(e->fd);
		f->local = system_type_has(type, SYSTEM_LOCAL);
		if (system_type_has(type, SYSTEM_FAITHFUL))
			s->link = find_link_call(e);
		if (s->link == LINK_UNKNOWN)
			r = -EOPNOTSUPP;
		else
			storage_note_link(s->storage, dev, s->link, f->local);
	}
	if (lacks_unnamed(r) && r != -ENOENT) /* that may be of this directory */
		storage_note_link(s->storage, dev, LINK_NONE, f->local);
	e->faithful = r == 0;
	if (r == 0)
		s->stage = SLOT_MADE;
	else
		endpoint_close(e);
	return lacks_unnamed(r) ? RESULT_UNFIT : fail_if(fail, r, "open");
}

bool temporary_is_named(int dir)
{
	struct endpoint probe = {.fd = -1};
	file_of(&probe)->place.dir = dir;
	file_of(&probe)->slot = (struct slot){.is.file = true, .how = HOW_LINK};
	const bool unfit = temporary_create(&probe, 0600, NULL) == RESULT_UNFIT;
	temporary_drop(&probe);
	return unfit;
}

int temporary_create_named(struct endpoint *e, mode_t mode, struct failure *fail)
{
	const int dir = file_of(e)->place.dir;
	const bool later = storage_can(file_of(e)->slot.storage, dir, STORAGE_CHANGES_MODES);
	if (!file_of(e)->place.exists) /* else that of the old file counts */
		file_of(e)->mode = temporary_mode(dir, mode, file_of(e)->slot.storage);
	return temporary_make_named(e, later ? 0600 : mode, fail);
}

int temporary_open_probe(int dir, struct endpoint *probe, struct failure *fail)
{
	struct place *place = &file_of(probe)->place;
	struct slot *s = &file_of(probe)->slot;
	*s = (struct slot){.is.file = true, .how = HOW_LINK};
	place->dir = dir;
	int r = temporary_create(probe, 0600, fail);
	if (r == RESULT_UNFIT) {
		s->how = HOW_RENAME;
		r = temporary_make_named(probe, 0600, fail);
	}
	strcpy(place->name, s->name);
	place->target = probe->fd;
	if (r < 0 || fstat(probe->fd, &place->st) == 0)
		return r;
	return fail_at(fail, "fstat");
}

void temporary_drop(struct endpoint *e)
{
	struct file *f = file_of(e);
	f->slot.fd = &e->fd;
	slot_drop(&f->slot, f->place.dir, f->place.name);
	slot_warn_left(&f->slot, f->place.name, e->options);
}
