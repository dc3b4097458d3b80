/* SPDX-License-Identifier: MIT
 * Directories by their paths below the operand, component by component.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "tree.h"
#include "tree/directory.h"
#include "tree/permissions.h"
#include "tree/report.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int path_make_directory(const struct tree *t, int dir, const char *name)
{
	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	int r = t->root.ground.withheld ? permissions_admit_owner(dir, name) : 0;
	return r < 0 ? r : 0;
}

/* A directory of the copy may have its final mode, from a commit that was killed. Whoever made one
 * under a umask may be about to add the rights that it lacks, or was killed before. */
static int path_open_one(int dir, const char *name, int flags, const struct tree *t, bool make)
{
	int fd = openat(dir, name, flags), r = -errno;
	if (fd >= 0 && make && t->root.ground.withheld)
		(void)permissions_admit_owner(dir, name);
	if (fd >= 0)
		return fd;
	if (r == -EACCES && t)
		r = permissions_admit_owner(dir, name);
	else if (r == -ENOENT && make)
		r = path_make_directory(t, dir, name);
	if (r < 0)
		return r;
	if ((fd = openat(dir, name, flags)) < 0)
		return -errno;
	return fd;
}

/* follow: symlinks, too. t: of a copy, or NULL; make: creates what is missing. */
static int path_walk(int top, const char *path, bool follow, const struct tree *t, bool make)
{
	const int flags = O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW);
	char name[NAME_MAX + 1];
	for (int fd = top;;) {
		const size_t length = strcspn(path, "/");
		const bool last = !path[length];
		int next = -ENAMETOOLONG;
		if (length <= NAME_MAX) {
			memcpy(name, path, length);
			name[length] = '\0';
			next = path_open_one(fd, name, flags | (last ? O_RDONLY : O_PATH), t, make);
		}
		if (fd != top)
			close(fd);
		if (next < 0 || last)
			return next;
		fd = next;
		path += length + 1;
	}
}

int path_open_source(const struct shard_tree *s, const char *path)
{
	return path_walk(s->root.from->fd, path,
			 s->root.tree->options->follow == FCOPY_FOLLOW_ALWAYS, NULL, false);
}

int path_open_copy(const struct shard_tree *s, const char *path, bool make)
{
	return path_walk(s->root.dst, path, false, s->root.tree, make);
}

struct directory *path_directory(const struct shard_tree *s, const char *path,
				 const struct stat *st)
{
	return directory_new(s->top, strcmp(path, ".") == 0 ? "" : path, -1, -1, st);
}

void path_free(struct directory *d)
{
	if (d->src >= 0)
		close(d->src);
	if (d->parent)
		__atomic_sub_fetch(&d->parent->pending, 1, __ATOMIC_RELAXED);
	directory_unref(d);
}

struct directory *path_top(const struct shard_tree *s)
{
	const struct building *r = &s->root;
	struct directory *d = directory_new(NULL, "", -1, -1, &r->from->place.st);
	if (!d)
		return NULL;
	d->src_path = r->from->path;
	d->dst_path = r->to->path;
	d->src = openat(r->from->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d->dst = r->dst < 0 ? -1 : openat(r->dst, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->src >= 0 && (r->dst < 0 || d->dst >= 0))
		return d;
	path_free(d);
	return NULL;
}

int path_open(const struct shard_tree *s, struct worker *w, struct directory *d, const char *path,
	      bool make)
{
	const struct entry e = {.dir = d, .name = "", .as = ""};
	int src = path_open_source(s, path);
	if (src == -ENOENT || src == -ENOTDIR || src == -ELOOP) {
		__atomic_store_n(&w->tree->differs, true, __ATOMIC_RELAXED);
		return src;
	}
	if (src < 0)
		return report_call(w, &e, "open", entry_src, -src);
	int dst = path_open_copy(s, path, make);
	if (dst < 0) {
		close(src);
		return report_call(w, &e, "open", entry_dst, -dst);
	}
	d->src = src;
	d->dst = dst;
	return 0;
}
