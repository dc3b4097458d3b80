/* SPDX-License-Identifier: MIT
 * The walk of what is listed, and directories of the copy by their paths below that of the operand.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "tree.h"
#include "tree/directory.h"
#include "tree/permissions.h"
#include "tree/walk.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* It may have its final mode, from a commit that was killed. */
static int path_open_one(int dir, const char *name)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
	int fd = openat(dir, name, flags), r = -errno;
	if (fd < 0 && r == -EACCES && (r = permissions_admit_owner(dir, name)) >= 0) {
		fd = openat(dir, name, flags);
		r = -errno;
	}
	return fd < 0 ? r : fd;
}

int path_open_copy(const struct shard_tree *s, const char *path)
{
	char name[NAME_MAX + 1];
	for (int fd = s->root.dst;;) {
		const size_t length = strcspn(path, "/");
		int next = -ENAMETOOLONG;
		if (length <= NAME_MAX) {
			memcpy(name, path, length);
			name[length] = '\0';
			next = path_open_one(fd, name);
		}
		if (fd != s->root.dst)
			close(fd);
		if (next < 0 || !path[length])
			return next;
		fd = next;
		path += length + 1;
	}
}

void path_free(struct directory *d)
{
	if (d->src >= 0)
		close(d->src);
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
	d->state = DIRECTORY_RESUMED;
	d->src = openat(r->from->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d->dst = openat(r->dst, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->src >= 0 && d->dst >= 0)
		return d;
	path_free(d);
	return NULL;
}

int shard_walk(struct shard_tree *s, const struct batches *batches, struct line *root)
{
	struct tree *t = s->root.tree;
	struct stat st = {0};
	struct directory *d = path_top(s);
	if (!d)
		return job_fail(&s->job, NULL, "malloc", ENOMEM);
	(void)!fstat(s->root.dst, &st);
	t->root.dst_dev = st.st_dev;
	t->root.dst_ino = st.st_ino;
	t->root.ground = s->ground;
	t->sharing = s;
	t->batches = batches;
	d->list = root ? &root->entry : NULL;
	d->rest = root ? root->entry.below : NULL;
	walk_tree(t, d);
	t->batches = NULL;
	path_free(d);
	return 0;
}
