/* SPDX-License-Identifier: MIT
 * Is the destination inside the source, perhaps by way of a bind mount? Going up from the
 * destination by ".." leads to the directory of the mount point, which may be outside the source.
 * /proc/self/mountinfo shows which directory of which file system each mount is of: proc(5). It is
 * read once, and again when poll(2) reports that a mount has changed.
 */
#include "io/io.h"
#include "root.h"
#include "source/filter.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct mounts {
	pthread_mutex_t lock;
	struct mount_list list; /* closed: nothing was read */
	struct mount *mount;    /* with copies of root and point, and no other text */
	size_t count, size;
};

/* An open directory. */
struct location {
	const struct mount *in;
	char path[PATH_MAX];  /* as this process sees it */
	char inner[PATH_MAX]; /* in its file system */
};

static void mounts_clear(struct mounts *m)
{
	for (size_t i = 0; i < m->count; i++) {
		free((char *)m->mount[i].root);
		free((char *)m->mount[i].point);
	}
	free(m->mount);
	m->mount = NULL;
	m->count = m->size = 0;
}

/* Returns false if there is no memory. */
static bool mounts_add(struct mounts *m, const struct mount *read)
{
	struct mount new = {.id = read->id, .dev = read->dev};
	if (m->count == m->size) {
		const size_t size = 2 * m->size + 64;
		struct mount *more = realloc(m->mount, size * sizeof(*more));
		if (!more)
			return false;
		m->mount = more;
		m->size = size;
	}
	new.root = strdup(read->root);
	new.point = strdup(read->point);
	m->mount[m->count++] = new;
	return new.root &&new.point;
}

/* Reads the list unless it is known. It was opened before it is read, so that no later change is
 * missed. Returns false if it cannot be read. */
static bool mounts_read(struct mounts *m)
{
	struct mount next;
	bool read = true;
	if (m->list.file && m->count > 0 &&
	    poll(&(struct pollfd){.fd = fileno(m->list.file), .events = POLLPRI}, 1, 0) == 0)
		return true;
	mounts_clear(m);
	mount_close(&m->list);
	if (!mount_open(&m->list))
		return false;
	while (read && mount_next(&m->list, &next))
		read = mounts_add(m, &next);
	if (!read)
		mounts_clear(m);
	return read;
}

/* Where is the open directory? Returns false if that is unknown. */
static bool location_find(const struct mounts *m, int fd, struct location *p)
{
	const ssize_t n = readlink(io_proc_path(fd).text, p->path, sizeof(p->path) - 1);
	const uint64_t id = mount_id(fd);
	if (n <= 0 || id == 0)
		return false;
	p->path[n] = '\0';
	for (size_t i = 0; i < m->count && !p->in; i++)
		p->in = m->mount[i].id == id ? &m->mount[i] : NULL;
	const char *rest = p->in ? path_below(p->path, p->in->point) : NULL;
	return rest && snprintf(p->inner, PATH_MAX, "%s%s",
				strcmp(p->in->root, "/") == 0 ? "" : p->in->root, rest) < PATH_MAX;
}

/* Will what contains dst be copied: src, or a mount below it? */
static bool location_is_inside(const struct mounts *m, const struct location *src,
			       const struct location *dst, bool one_file_system)
{
	const dev_t dev = dst->in->dev;
	if (src->in->dev == dev && path_below(dst->inner, src->inner))
		return true;
	if (src->in->dev != dev && one_file_system)
		return false;
	for (const struct mount *i = m->mount; i < m->mount + m->count; i++)
		if (i->dev == dev && path_below(i->point, src->path) &&
		    path_below(dst->inner, i->root))
			return true;
	return false;
}

struct mounts *mounts_new(void)
{
	struct mounts *m = calloc(1, sizeof(*m));
	if (m)
		pthread_mutex_init(&m->lock, NULL);
	return m;
}

void mounts_free(struct mounts *m)
{
	if (!m)
		return;
	mounts_clear(m);
	mount_close(&m->list);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

bool inside_by_mount(struct mounts *m, int src, int dst, bool one_file_system)
{
	struct location *at = calloc(2, sizeof(*at));
	pthread_mutex_lock(&m->lock);
	const bool found = at && mounts_read(m) && location_find(m, src, &at[0]) &&
			   location_find(m, dst, &at[1]) &&
			   location_is_inside(m, &at[0], &at[1], one_file_system);
	pthread_mutex_unlock(&m->lock);
	free(at);
	return found;
}

static bool inside_is_top(const struct stat *st, void *top_)
{
	const struct stat *top = top_;
	return same_inode(st, top);
}

/* Is this directory, or one above it, `top`? 1: it is; 0; -errno with the call. */
static int inside_is_below(int dir, struct stat top, struct failure *fail)
{
	return reader_climb(dir, inside_is_top, &top, fail);
}

/* DST is inside the source. Does a pattern exclude it there, or a directory above it? Only its path
 * shows that, by which the walk would meet it. */
static bool inside_is_excluded(const struct building *r)
{
	char src[PATH_MAX], dst[PATH_MAX];
	const struct place *to = &r->to->place;
	const ssize_t n = readlink(io_proc_path(r->from->fd).text, src, sizeof(src));
	const ssize_t m = readlink(io_proc_path(to->dir).text, dst, sizeof(dst));
	const size_t length = strlen(to->name);
	if (!r->tree->filter || r->tree->share.by || n <= 1 || m < n || length == 0 ||
	    (size_t)m + length + 2 > sizeof(dst) || memcmp(src, dst, (size_t)n) != 0)
		return false;
	dst[m] = '/';
	memcpy(dst + m + 1, to->name, length + 1);
	if (dst[n] != '/')
		return false;
	char *path = dst + n + 1;
	for (char *end = path; *end; end++)
		if (*end == '/') {
			*end = '\0';
			if (filter_protects(r->tree->filter, path, true))
				return true;
			*end = '/';
		}
	return filter_protects(r->tree->filter, path, true);
}

int root_check_inside(const struct building *r, int dir)
{
	const bool one = r->tree->options->one_file_system;
	struct stat st;
	struct failure fail;
	if (one && fstat(dir, &st) == 0 && st.st_dev != r->from->place.st.st_dev)
		return 0; /* of what is mounted there, the copy has only the mount point */
	bool bound = inside_by_mount(r->tree->known.mounts, r->from->fd, dir, one);
	int result = inside_is_below(dir, r->from->place.st, &fail);
	if ((result == 1 || bound) && inside_is_excluded(r)) {
		r->tree->root.inodes.within = true;
		return 0;
	}
	if (result == 1 || bound)
		return root_refuse(r, EINVAL, "is inside the source tree", FCOPY_ADVICE_USAGE);
	/* A process that may not search there cannot have opened SRC there either. */
	return result == -EACCES || result == 0 ? 0 : root_fail(r, fail.call, -result);
}

int root_check_part_source(const struct building *r)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	struct part p;
	struct stat st;
	struct failure fail = {.call = "fstat"};
	part_init(&p, r->to->place.dir, r->to->place.name);
	int part = openat(p.parent, p.public, flags | O_NOFOLLOW), src = r->from->fd;
	if (part < 0)
		switch (errno) {
		case ENOENT:
		case ESTALE:
		case ENOTDIR:
		case ELOOP: return 0; /* the caller creates or refuses it */
		default: return root_fail(r, "open of its .fcopy-part", errno);
		}
	int result = fstat(part, &st) < 0 ? -errno : inside_is_below(src, st, &fail);
	if (result == 1 || inside_by_mount(r->tree->known.mounts, part, src, false))
		result = root_refuse(r, EBUSY, "its .fcopy-part contains the source",
				     FCOPY_ADVICE_NONE);
	else if (result == 0 || result == -EACCES) /* as in root_check_inside */
		result = root_check_inside(r, part);
	else if (result == -ESTALE) /* another machine has removed it */
		result = 0;
	else
		result = root_fail(r, fail.call, -result);
	close(part);
	return result;
}
