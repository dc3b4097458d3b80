/* SPDX-License-Identifier: MIT
 * options.attributes_only: a file of DST keeps its bytes, and gets the attributes of its source.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "facts.h"
#include "hard_link.h"
#include "preserve.h"
#include "report.h"

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

/* Is the open file what was looked at? In a new directory, another entry may have made it. */
static bool attributes_are_for(const struct worker *w, const struct stat *now)
{
	const struct facts *f = &w->facts;
	return S_ISREG(now->st_mode) &&
	       (!f->looked || (f->exists && !w->decision.clears && f->old.st_dev == now->st_dev &&
			       f->old.st_ino == now->st_ino));
}

/* Returns false if something else than was looked at has the name. */
static bool attributes_only_once(struct worker *w, const struct entry *e, int src,
				 const struct stat *st)
{
	const char *call;
	struct stat now;
	bool made, known = true;
	int fd = attributes_open(w, e, st, &made, &call);
	if (fd == -ELOOP)
		return false;
	if (fd < 0) {
		report_call(w, e, call, entry_dst, -fd);
		return true;
	}
	if (!made && fstat(fd, &now) < 0)
		report_call(w, e, "fstat", entry_dst, errno);
	else if (!made && (!attributes_are_for(w, &now) || !facts_allow(w, e, &now)))
		known = false;
	else
		preserve_open(w, e, src, fd, st);
	close(fd);
	return known;
}

void attributes_only(struct worker *w, const struct entry *e, int src, const struct stat *st)
{
	int tries = 0;
	while (!attributes_only_once(w, e, src, st) && facts_again(w, e, src, st, tries++))
		;
}
