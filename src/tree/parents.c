/* SPDX-License-Identifier: MIT
 * --parents: see root.h.
 */
#include "directory.h"
#include "endpoints/attributes.h"
#include "io/io.h"
#include "report.h"
#include "root.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PARENTS_FOREIGN                                                                            \
	"is below a symlink that another user made or can move: --parents does not follow it"
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
	io_close(to.src);
	io_close(to.dst);
	return r;
}

/* Opens a directory of DST that exists, or what a symlink there leads to. *symlink: then its
 * attributes are left alone. Returns a descriptor or -errno. */
static int parents_open(struct parents *p, int dir, const char *name, bool *symlink)
{
	struct stat st = {};
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? fd : -ENOTDIR;
	*symlink = r == -ENOTDIR && S_ISLNK(st.st_mode);
	if (fd >= 0 && r < 0)
		close(fd);
	if (*symlink)
		r = directory_follow(dir, name, O_PATH);
	p->foreign = *symlink && r == -EPERM;
	return r;
}

static int parents_create(struct tree *t, int dir, const char *name, const struct stat *src,
			  struct failure *fail)
{
	struct stat st;
	mode_t left;
	const bool moves = fstat(dir, &st) == 0 && private_is_shared(&st) &&
			   storage_can(t->known.storage, dir, STORAGE_RENAMES_DIRECTORIES);
	return private_make_directory(dir, name, (src->st_mode & 01777) | 0700, moves, false, &left,
				      fail);
}

/* Can the directory of SRC be read, as a copy of its attributes needs? Returns 0 or -errno. */
static int parents_check_source(int src)
{
	const int fd = openat(src, ".", DIRECTORY);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Makes one directory in at->dst like the one in at->src, and goes into both. A dry run makes none,
 * and stays in the last one that exists. */
static int parents_step(struct tree *t, struct parents *p, const char *name, struct parent *at,
			struct failure *fail)
{
	struct stat st = {0};
	bool made = false, symlink = false;
	int src = openat(at->src, name, O_PATH | O_DIRECTORY | O_CLOEXEC), dst = -1;
	int r = src < 0 || fstat(src, &st) < 0 ? fail_at(fail, "open") : 0;
	p->reads = r < 0;
	if (r == 0 && !p->absent)
		r = dst = fail_if(fail, parents_open(p, at->dst, name, &symlink), "open");
	const bool lacks = r == -ENOENT && !symlink && !p->reads;
	if (lacks && !t->options->dry_run) {
		r = dst = parents_create(t, at->dst, name, &st, fail);
		made = r >= 0;
		if (r == -EEXIST) /* another process was faster */
			r = dst = fail_if(fail, parents_open(p, at->dst, name, &symlink), "open");
	}
	p->absent |= lacks && t->options->dry_run;
	if (p->absent && !p->reads) {
		r = fail_if(fail, parents_check_source(src), "open");
		p->reads = r < 0;
	}
	if (r >= 0 && !t->options->dry_run && (made || (p->preserves && !symlink)))
		r = fail_if(fail, parents_note(p, src, dst, made), "open");
	if (r == 0 && made && p->flushes)
		r = fail_if(fail, io_flush_place(at->dst), "fsync"); /* before a name below it */
	close(at->src);
	at->src = src;
	if (!p->absent) {
		close(at->dst);
		at->dst = dst;
	}
	return r < 0 ? r : 0;
}

static int parents_walk(struct tree *t, char *directory, struct parents *p, struct parent *at,
			struct failure *fail)
{
	char *rest = directory;
	int r = 0;
	for (char *name; r == 0 && (name = strsep(&rest, "/"));) {
		if (!name[0] || strcmp(name, ".") == 0)
			continue;
		r = parents_step(t, p, name, at, fail);
	}
	return r;
}

int parents_make(struct tree *t, const struct operand *src, struct operand *to, char path[],
		 struct parents *p)
{
	char directory[PATH_MAX];
	struct failure fail = {.call = "open"};
	const char *below = src->path + strspn(src->path, "/");
	*p = (struct parents){.preserves = t->options->copy.preserve != 0,
			      .flushes = t->options->copy.fsync};
	operand_directory(src, directory);
	int n = snprintf(path, PATH_MAX, "%s%s%.*s%s", t->operands->dst.path,
			 t->operands->dst.slash ? "" : "/",
			 src->path + src->start > below ? (int)(src->path + src->start - below) : 0,
			 below, src->place.name);
	if (n >= PATH_MAX)
		return tree_fail(t, "open", src->path, ENAMETOOLONG);
	struct parent at = {
	    .src = open(directory[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC),
	    .dst = fcntl(to->place.dir, F_DUPFD_CLOEXEC, 0)};
	int r = at.src < 0 || at.dst < 0 ? -errno : parents_walk(t, directory, p, &at, &fail);
	io_close(at.src);
	if (r < 0) {
		io_close(at.dst);
		if (p->foreign)
			return tree_refuse(t, path, EPERM, PARENTS_FOREIGN, FCOPY_ADVICE_NONE);
		return tree_fail(t, fail.call, p->reads ? src->path : path, -r);
	}
	/* What has the name is another file than the one in DST itself. */
	operand_close(to);
	struct fcopy_error error;
	r = p->absent ? operand_foresee(to, at.dst, path, &error)
		      : operand_move(to, at.dst, path, &error);
	if (r < 0)
		report_operand(t, &error);
	close(at.dst);
	return r;
}

/* As with cp(1), only the superuser expects to give directories away. */
static int parents_lose(void *tree, enum fcopy_attribute which, const struct fcopy_error *error)
{
	struct tree *t = tree;
	if (t->options->copy.preserve_required & which)
		report_operand(t, error);
	else if (error->err != EPERM || geteuid() == 0)
		report_operand_warning(t, error);
	return 0;
}

/* Of one directory, once all below it is copied. */
static void parents_finish(struct tree *t, const struct operand *to, const struct parents *p,
			   const struct parent *noted)
{
	const unsigned preserve = t->options->copy.preserve;
	struct stat st, now;
	struct attributes_pair pair = {.src.fd = noted->src,
				       .dst.fd = noted->dst,
				       .st = &st,
				       .src_path = to->path,
				       .dst_path = to->path,
				       .storage = t->known.storage,
				       .required = t->options->copy.preserve_required};
	bool known = fstat(noted->src, &st) == 0 && fstat(noted->dst, &now) == 0;
	if (known && noted->made && !(preserve & FCOPY_ATTR_MODE) && 0700 & ~st.st_mode)
		(void)!fchmod(noted->dst, now.st_mode & 07777 & ~(0700 & ~st.st_mode));
	if (known && p->made)
		(void)attributes_apply(&pair, preserve, parents_lose, t);
	int r = p->made && p->flushes ? io_flush_directory(noted->dst) : 0;
	if (r < 0)
		tree_fail(t, "fsync", to->path, -r);
}

void parents_end(struct tree *t, const struct operand *to, struct parents *p)
{
	while (p->count > 0) {
		const struct parent *noted = &p->noted[--p->count];
		parents_finish(t, to, p, noted);
		close(noted->src);
		close(noted->dst);
	}
	free(p->noted);
	p->noted = NULL;
}
