/* SPDX-License-Identifier: MIT
 * The temporary file, from its creation to its final name, which it gets in naming.c:
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
 * Where chmod has no effect, the named file has its final mode from the start. Where a file cannot
 * be renamed, created.c writes it under its final name.
 *
 * A process that is killed leaves nothing of an unnamed file. linkat(2) does not replace a file, so
 * an existing DST takes two calls. With --resume the named file is DST.fcopy-part (part.c).
 */
#define _GNU_SOURCE
#include "temporary.h"
#include "acl.h"
#include "file.h"
#include "io/io.h"
#include "io/libc.h"
#include "io/system.h"
#include "storage.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* linkat(AT_EMPTY_PATH) needs no /proc, but CAP_DAC_READ_SEARCH before Linux 6.10. */
static int link_descriptor(const struct endpoint *e, const char *name)
{
	return linkat(e->fd, "", file_of(e)->place.dir, name, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int link_by_proc(const struct endpoint *e, const char *name)
{
	const struct io_path path = io_proc_path(e->fd);
	int dir = file_of(e)->place.dir;
	return linkat(AT_FDCWD, path.text, dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* Finds the call that can name an unnamed file here, before the first byte. "." exists: a call that
 * works fails with EEXIST, and one that does not fails with ENOENT for the old name, which
 * do_linkat in fs/namei.c looks up first. */
static enum storage_link find_link_call(const struct endpoint *e)
{
	if (link_descriptor(e, ".") == -EEXIST)
		return LINK_DESCRIPTOR;
	return link_by_proc(e, ".") == -EEXIST ? LINK_PROC : LINK_UNKNOWN;
}

int temporary_make_drawn(struct endpoint *e, int (*make)(const struct endpoint *, const char *name),
			 const char *made, const char **call)
{
	int r = -EEXIST;
	for (int tries = 0; r == -EEXIST && tries < 8; tries++) {
		*call = "getrandom";
		r = temporary_draw(file_of(e)->temporary);
		if (r < 0)
			break;
		*call = made;
		r = make(e, file_of(e)->temporary);
	}
	if (r < 0)
		file_of(e)->temporary[0] = '\0';
	return r;
}

static int open_new(const struct endpoint *e, const char *name)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
	int fd = openat(file_of(e)->place.dir, name, flags, file_of(e)->created_mode);
	if (fd < 0)
		return -errno;
	return fd;
}

static int create_named(struct endpoint *e, mode_t mode, const char **call)
{
	file_of(e)->created_mode = mode;
	int r = temporary_make_drawn(e, open_new, "open", call);
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

/* The same, read once. */
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

/* Only where linkat(2) is known to keep the file: with some FUSE file systems it returns 0,
 * st_nlink is 1, and the inode is removed when the file is closed. Most storage that is asked over
 * a network lacks O_TMPFILE: it is not asked for its type. */
static int create_unnamed(struct endpoint *e, mode_t mode)
{
	struct file *f = file_of(e);
	e->fd = openat(f->place.dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	if (e->fd < 0)
		return -errno;
	/* The device of an old file; of a new one it is not known. */
	enum storage_link link = storage_link_call(f->storage, f->place.st.st_dev, &f->listed);
	if (link == LINK_UNKNOWN) {
		const unsigned type = system_type(e->fd);
		f->listed = system_type_has(type, SYSTEM_LOCAL);
		if (system_type_has(type, SYSTEM_FAITHFUL))
			link = find_link_call(e);
		storage_note_link(f->storage, f->place.st.st_dev, link, f->listed);
	}
	f->link = link == LINK_DESCRIPTOR ? link_descriptor
		  : link == LINK_PROC     ? link_by_proc
					  : NULL;
	e->faithful = f->link;
	if (f->link)
		return 0;
	endpoint_close(e);
	return -EOPNOTSUPP;
}

/* Kernels and file systems without O_TMPFILE see a directory opened for writing. */
static bool lacks_unnamed(int r)
{
	return r == -EOPNOTSUPP || r == -EISDIR || r == -EINVAL || r == -ENOENT || r == -ENOSYS;
}

bool temporary_is_named(int dir)
{
	struct endpoint probe = {.fd = -1};
	file_of(&probe)->place.dir = dir;
	int r = create_unnamed(&probe, 0600);
	temporary_drop(&probe);
	return lacks_unnamed(r);
}

int temporary_create(struct endpoint *e, mode_t mode, const char **call)
{
	int r = create_unnamed(e, mode);
	*call = "open";
	return lacks_unnamed(r) ? 1 : r;
}

int temporary_create_named(struct endpoint *e, mode_t mode, const char **call)
{
	const int dir = file_of(e)->place.dir;
	const bool later = storage_can(file_of(e)->storage, dir, STORAGE_CHANGES_MODES);
	if (!file_of(e)->place.exists) /* else that of the old file counts */
		file_of(e)->mode = temporary_mode(dir, mode, file_of(e)->storage);
	return create_named(e, later ? 0600 : mode, call);
}

int temporary_open_probe(int dir, struct endpoint *probe, const char **call)
{
	struct place *place = &file_of(probe)->place;
	place->dir = dir;
	*call = "open";
	int r = create_unnamed(probe, 0600);
	if (lacks_unnamed(r))
		r = create_named(probe, 0600, call);
	strcpy(place->name, file_of(probe)->temporary);
	place->target = probe->fd;
	if (r < 0 || fstat(probe->fd, &place->st) == 0)
		return r;
	*call = "fstat";
	return -errno;
}

/* Some storage removes no file that is open, or writes one back when it is closed: look again. A
 * part that was removed is not looked for: its name may be that of another copy's part. */
void temporary_drop(struct endpoint *e)
{
	const struct file *f = file_of(e);
	bool removes = f->temporary[0] && !f->keep_part;
	bool removed = removes && unlinkat(f->place.dir, f->temporary, 0) == 0;
	endpoint_close(e);
	if (removes && (!removed || temporary_is_drawn(f->temporary)))
		unlinkat(f->place.dir, f->temporary, 0);
	file_of(e)->temporary[0] = '\0';
}
