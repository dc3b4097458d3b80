/* SPDX-License-Identifier: MIT
 * Implements parents.h.
 */
#define _GNU_SOURCE
#include "parents.h"
#include "endpoints/error.h"
#include "endpoints/metadata.h"
#include "report.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

/* The attributes of a directory are set when the copy below it is done. As with cp(1), the ones
 * that were there get them if another one is new; but not if they cannot be read. */
static int parents_note(struct parents *p, int src, int dst, bool made)
{
	struct parent *more = realloc(p->noted, (p->count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	p->noted = more;
	struct parent to = {.src = openat(src, ".", DIRECTORY), .made = made};
	to.dst = made ? fcntl(dst, F_DUPFD_CLOEXEC, 0) : openat(dst, ".", DIRECTORY);
	p->made |= made;
	if (to.src >= 0 && to.dst >= 0) {
		more[p->count++] = to;
		return 0;
	}
	int r = made ? -errno : 0;
	if (to.src >= 0)
		close(to.src);
	if (to.dst >= 0)
		close(to.dst);
	return r;
}

/* Not by a symlink: its owner could choose whose attributes are changed. */
static bool parents_is_directory(int dir, const char *name, int fd)
{
	struct stat named, st;
	return fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &st) == 0 &&
	       named.st_dev == st.st_dev && named.st_ino == st.st_ino;
}

/* Makes one directory in *dst like the one in *src, and goes into both. Takes both descriptors. */
static int parents_step(struct parents *p, const char *name, struct parent *at, const char **call)
{
	struct stat st = {0};
	*call = "open";
	int src = openat(at->src, name, O_PATH | O_DIRECTORY | O_CLOEXEC), dst = -1;
	int r = src < 0 || fstat(src, &st) < 0 ? -errno : 0;
	bool made = false;
	p->reads = r < 0;
	if (r == 0) {
		*call = "mkdir";
		made = mkdirat(at->dst, name, (st.st_mode & 01777) | 0700) == 0;
		r = made || errno == EEXIST ? 0 : -errno;
	}
	if (r == 0) {
		*call = "open";
		dst = openat(at->dst, name,
			     made ? DIRECTORY | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = dst < 0 ? -errno : 0;
	}
	if (r == 0 && (made || (p->preserves && parents_is_directory(at->dst, name, dst)))) {
		*call = "open";
		r = parents_note(p, src, dst, made);
	}
	close(at->src);
	close(at->dst);
	at->src = src;
	at->dst = dst;
	return r;
}

static int parents_walk(char *directory, struct parents *p, struct parent *at, const char **call)
{
	char *rest = directory;
	int r = 0;
	for (char *name; r == 0 && (name = strsep(&rest, "/"));) {
		if (!name[0] || strcmp(name, ".") == 0)
			continue;
		*call = NULL;
		r = strcmp(name, "..") == 0 ? -EINVAL : parents_step(p, name, at, call);
	}
	return r;
}

int parents_make(struct tree *t, const struct operand *src, struct operand *to, char path[],
		 struct parents *p)
{
	char directory[PATH_MAX];
	const char *call = "open";
	const char *below = src->path + strspn(src->path, "/");
	*p = (struct parents){.preserves = t->options->copy.preserve != 0};
	operand_directory(src, directory);
	int n = snprintf(path, PATH_MAX, "%s%s%.*s%s", t->destination.path,
			 t->destination.slash ? "" : "/",
			 src->path + src->start > below ? (int)(src->path + src->start - below) : 0,
			 below, src->place.name);
	if (n >= PATH_MAX)
		return tree_fail(t, "open", src->path, ENAMETOOLONG);
	struct parent at = {
	    .src = open(directory[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC),
	    .dst = fcntl(to->place.dir, F_DUPFD_CLOEXEC, 0)};
	int r = at.src < 0 || at.dst < 0 ? -errno : parents_walk(directory, p, &at, &call);
	if (at.src >= 0)
		close(at.src);
	if (r < 0) {
		if (at.dst >= 0)
			close(at.dst);
		return call ? tree_fail(t, call, p->reads ? src->path : path, -r)
			    : tree_refuse(t, src->path, EINVAL,
					  "contains '..': --parents cannot copy it below DST",
					  FCOPY_ADVICE_USAGE);
	}
	/* What has the name is another file than the one in DST itself. */
	operand_close(to);
	struct fcopy_error error;
	if ((r = operand_move(to, at.dst, path, &error)) < 0)
		report_operand(t, &error);
	close(at.dst);
	return r;
}

/* As with cp(1), only the superuser expects to give directories away. */
static void parents_lose(struct tree *t, unsigned attribute, const struct fcopy_error *error)
{
	if (t->options->copy.preserve_required & attribute)
		report_operand(t, error);
	else if (error->err != EPERM || geteuid() == 0)
		report_operand_warning(t, error);
}

void parents_end(struct tree *t, const struct operand *to, struct parents *p)
{
	struct fcopy_error error;
	const unsigned preserve = t->options->copy.preserve;
	while (p->count > 0) {
		const struct parent *noted = &p->noted[--p->count];
		struct stat st, now;
		struct metadata_pair pair = {.src = noted->src,
					     .dst = noted->dst,
					     .st = &st,
					     .src_path = to->path,
					     .dst_path = to->path};
		bool known = fstat(noted->src, &st) == 0 && fstat(noted->dst, &now) == 0;
		if (known && noted->made && !(preserve & FCOPY_ATTR_MODE) && 0700 & ~st.st_mode)
			(void)!fchmod(noted->dst, now.st_mode & 07777 & ~(0700 & ~st.st_mode));
		for (size_t i = 0; known && p->made && i < METADATA_ATTRIBUTES; i++)
			if (preserve & metadata_order[i] &&
			    metadata_copy_attribute(metadata_order[i], &pair, &error) < 0)
				parents_lose(t, metadata_order[i], &error);
		close(noted->src);
		close(noted->dst);
	}
	free(p->noted);
	p->noted = NULL;
}
