/* SPDX-License-Identifier: MIT
 * options.attributes_only: a file of DST keeps its bytes, and gets the attributes of its source.
 */
#define _GNU_SOURCE
#include "directory.h"
#include "endpoints/error.h"
#include "hard_link.h"
#include "report.h"
#include "seen.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens the file, or creates it empty. The owner of its directory can exchange its name: only the
 * descriptor is used from here on. Returns it, or -errno with the call; *made: it is new. */
static int attributes_open(struct worker *w, const struct entry *e, const struct stat *st,
			   bool *made, const char **call)
{
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	const mode_t mode = w->options.default_mode ? 0666 : st->st_mode & 0777;
	*call = "open";
	int fd = openat(e->dir->dst, e->as, O_WRONLY | O_CREAT | O_EXCL | flags, mode);
	*made = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = openat(e->dir->dst, e->as, O_RDONLY | flags); /* a read-only file, too */
	if (fd < 0)
		return -errno;
	return fd;
}

/* Does what has the name get no attributes? Reported. */
static bool attributes_are_refused(struct worker *w, const struct entry *e, const struct stat *st,
				   const struct stat *old)
{
	if (S_ISLNK(old->st_mode))
		report_unsuitable(w, e, entry_dst, ELOOP,
				  "is a symlink, which --attributes-only does not follow");
	else if (!S_ISREG(old->st_mode))
		report_unsuitable(w, e, entry_dst, S_ISDIR(old->st_mode) ? EISDIR : EINVAL,
				  "is not a regular file");
	else if (old->st_dev == st->st_dev && old->st_ino == st->st_ino)
		report_unsuitable(w, e, entry_dst, EINVAL, "is SRC itself");
	else
		return false;
	return true;
}

/* Of a dry run. A file that is absent would be made. */
static void attributes_rehearse(struct worker *w, const struct entry *e, const struct stat *st)
{
	struct stat old;
	if (e->dir->dst < 0 || w->clears ||
	    fstatat(e->dir->dst, e->as, &old, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (!attributes_are_refused(w, e, st, &old) && w->options.no_clobber)
		w->outcome->action = FCOPY_ACTION_SKIPPED;
}

/* Returns false if something else than was seen is there. */
static bool attributes_only_once(struct worker *w, const struct entry *e, int src,
				 const struct stat *st)
{
	const char *call;
	struct stat old;
	bool made, known = true;
	int fd = attributes_open(w, e, st, &made, &call);
	if (fd == -ELOOP)
		(void)attributes_are_refused(w, e, st, &(struct stat){.st_mode = S_IFLNK});
	else if (fd < 0)
		report_call(w, e, call, entry_dst, -fd);
	if (fd < 0)
		return true;
	if (fstat(fd, &old) < 0)
		report_call(w, e, "fstat", entry_dst, errno);
	else if (attributes_are_refused(w, e, st, &old))
		known = true;
	else if (!made && w->options.no_clobber)
		w->outcome->action = FCOPY_ACTION_SKIPPED;
	else if (!made && !seen_is(w, e, &old))
		known = false;
	else
		directory_preserve(w, e, src, fd, st);
	close(fd);
	return known;
}

void attributes_only(struct worker *w, const struct entry *e, int src, const struct stat *st)
{
	int tries = 0;
	if (w->tree->options->dry_run) {
		attributes_rehearse(w, e, st);
		return;
	}
	while (!attributes_only_once(w, e, src, st) && seen_again(w, e, src, st, tries++))
		;
}
