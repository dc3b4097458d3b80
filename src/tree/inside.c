/* SPDX-License-Identifier: MIT
 * Is the destination inside the source by way of a bind mount? Going up from the destination by
 * ".." leads to the directory of the mount point, which may be outside the source.
 * /proc/self/mountinfo shows which directory of which file system each mount is of: proc(5). It is
 * read once, and again when poll(2) reports that a mount has changed.
 */
#define _GNU_SOURCE
#include "io/io.h"
#include "io/libc.h"
#include "root.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct mount {
	unsigned id, major, minor;
	char *root;  /* of the mount, in its file system */
	char *point; /* where it is mounted */
};

/* A directory, and its path in its file system. */
struct location {
	unsigned mount, major, minor;
	char path[PATH_MAX]; /* as this process sees it */
	char inner[PATH_MAX];
};

struct mounts {
	pthread_mutex_t lock;
	FILE *file;          /* NULL: nothing was read */
	struct mount *mount; /* sorted by id */
	size_t count, size;
	const struct mount **by_point; /* sorted by path_compare() */
	/* The mounts below one source, sorted by their file systems and roots: */
	const struct mount **below;
	size_t belows;
	bool gathered; /* below is of this source: */
	unsigned src_mount;
	char src_path[PATH_MAX];
};

/* Space, tab, newline and backslash are written as \ and three octal digits. */
static void unescape(char *text)
{
	char *to = text;
	for (const char *c = text; *c; c++) {
		if (c[0] == '\\' && c[1] && c[2] && c[3]) {
			*to++ = (char)((c[1] & 7) * 64 + (c[2] & 7) * 8 + (c[3] & 7));
			c += 3;
		} else {
			*to++ = *c;
		}
	}
	*to = '\0';
}

/* Orders paths so that what is below a directory follows it at once. */
static int path_compare(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	const int x = *a == '/' ? 1 : (unsigned char)*a << 1,
		  y = *b == '/' ? 1 : (unsigned char)*b << 1;
	return x - y;
}

static int compare_ids(const void *a, const void *b)
{
	const struct mount *x = a, *y = b;
	return x->id < y->id ? -1 : x->id > y->id;
}

static int compare_points(const void *a, const void *b)
{
	const struct mount *const *x = a, *const *y = b;
	return path_compare((*x)->point, (*y)->point);
}

static int compare_roots(const void *a, const void *b)
{
	const struct mount *x = *(const struct mount *const *)a,
			   *y = *(const struct mount *const *)b;
	if (x->major != y->major)
		return x->major < y->major ? -1 : 1;
	if (x->minor != y->minor)
		return x->minor < y->minor ? -1 : 1;
	return strcmp(x->root, y->root);
}

static void mounts_clear(struct mounts *m)
{
	for (size_t i = 0; i < m->count; i++) {
		free(m->mount[i].root);
		free(m->mount[i].point);
	}
	free(m->mount);
	free(m->by_point);
	free(m->below);
	m->mount = NULL;
	m->by_point = m->below = NULL;
	m->count = m->size = m->belows = 0;
	m->gathered = false;
}

/* Returns false if there is no memory. Other lines than those of mounts are ignored. */
static bool mounts_add(struct mounts *m, const char *line)
{
	struct mount new = {.root = NULL};
	if (m->count == m->size) {
		const size_t size = 2 * m->size + 64;
		struct mount *more = realloc(m->mount, size * sizeof(*more));
		if (!more)
			return false;
		m->mount = more;
		m->size = size;
	}
	if (sscanf(line, "%u %*u %u:%u %ms %ms", &new.id, &new.major, &new.minor, &new.root,
		   &new.point) == 5) {
		unescape(new.root);
		unescape(new.point);
		m->mount[m->count++] = new;
		return true;
	}
	free(new.root);
	return true;
}

static bool mounts_sort(struct mounts *m)
{
	if (m->count == 0)
		return true;
	m->by_point = malloc((m->count + 1) * sizeof(*m->by_point));
	m->below = malloc((m->count + 1) * sizeof(*m->below));
	if (!m->by_point || !m->below)
		return false;
	qsort(m->mount, m->count, sizeof(*m->mount), compare_ids);
	for (size_t i = 0; i < m->count; i++)
		m->by_point[i] = &m->mount[i];
	qsort(m->by_point, m->count, sizeof(*m->by_point), compare_points);
	return true;
}

/* Has a mount come, gone or moved since the list was opened? */
static bool mounts_changed(struct mounts *m)
{
	struct pollfd p = {.fd = fileno(m->file), .events = POLLPRI};
	return poll(&p, 1, 0) != 0;
}

/* Reads the list unless it is known. It was opened before it is read, so that no later change is
 * missed. Returns false if it cannot be read. */
static bool mounts_read(struct mounts *m)
{
	char *line = NULL;
	size_t size = 0;
	bool read = true;
	if (m->file && m->count > 0 && !mounts_changed(m))
		return true;
	mounts_clear(m);
	if (m->file)
		fclose(m->file);
	m->file = fopen("/proc/self/mountinfo", "re");
	if (!m->file)
		return false;
	while (read && getline(&line, &size, m->file) > 0)
		read = mounts_add(m, line);
	free(line);
	read = read && mounts_sort(m);
	if (!read)
		mounts_clear(m);
	return read;
}

/* Is it the directory `top`, or below it? Returns the rest of the path then, or NULL. */
static const char *path_below(const char *path, const char *top)
{
	size_t n = strlen(top);
	n -= n > 0 && top[n - 1] == '/';
	return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/') ? path + n : NULL;
}

static bool locate(int fd, struct location *p)
{
	struct statx st;
	ssize_t n = readlink(io_proc_path(fd).text, p->path, sizeof(p->path) - 1);
	if (n <= 0 || statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 ||
	    !(st.stx_mask & STATX_MNT_ID)) /* Linux 5.8 */
		return false;
	p->path[n] = '\0';
	p->mount = (unsigned)st.stx_mnt_id;
	return true;
}

static void location_set(struct location *p, const struct mount *m)
{
	const char *rest = path_below(p->path, m->point);
	bool top = strcmp(m->root, "/") == 0;
	if (!rest || snprintf(p->inner, PATH_MAX, "%s%s", top ? "" : m->root, rest) >= PATH_MAX)
		return;
	p->major = m->major;
	p->minor = m->minor;
	if (!p->inner[0])
		strcpy(p->inner, "/");
}

/* Where the directory is in its file system. */
static bool location_find(const struct mounts *m, struct location *p)
{
	const struct mount key = {.id = p->mount}, *found = NULL;
	if (m->mount)
		found = bsearch(&key, m->mount, m->count, sizeof(key), compare_ids);
	if (found)
		location_set(p, found);
	return p->inner[0];
}

/* Gathers the mounts below the source, which follow one another by their points. */
static void mounts_gather(struct mounts *m, const struct location *src)
{
	const struct mount key = {.point = (char *)src->path};
	size_t low = 0, high = m->count;
	if (m->gathered && m->src_mount == src->mount && strcmp(m->src_path, src->path) == 0)
		return;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct mount *at = m->by_point[middle], *of = &key;
		if (compare_points(&at, &of) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	m->belows = 0;
	if (!m->below)
		return;
	for (; low < m->count && path_below(m->by_point[low]->point, src->path); low++)
		m->below[m->belows++] = m->by_point[low];
	qsort(m->below, m->belows, sizeof(*m->below), compare_roots);
	m->gathered = true;
	m->src_mount = src->mount;
	strcpy(m->src_path, src->path);
}

/* Is there a mount below the source of this directory of this file system? */
static bool mounts_have_root(const struct mounts *m, const struct location *dst, char *root)
{
	const struct mount key = {.major = dst->major, .minor = dst->minor, .root = root};
	const struct mount *of = &key;
	return m->below && bsearch(&of, m->below, m->belows, sizeof(*m->below), compare_roots);
}

/* ... or of one that contains the destination? */
static bool mounts_contain(const struct mounts *m, struct location *dst)
{
	char *inner = dst->inner;
	if (mounts_have_root(m, dst, inner))
		return true;
	for (char *slash; (slash = strrchr(inner, '/')) && slash > inner;) {
		*slash = '\0';
		if (mounts_have_root(m, dst, inner))
			return true;
	}
	char top[] = "/";
	return mounts_have_root(m, dst, top);
}

struct inside {
	struct location src, dst;
};

/* What of the mounts will be copied, and does it contain the destination? */
static bool mounts_put_inside(struct mounts *m, struct inside *in, bool one_file_system)
{
	struct location *src = &in->src, *dst = &in->dst;
	if (!mounts_read(m) || !location_find(m, src) || !location_find(m, dst))
		return false;
	const bool same = src->major == dst->major && src->minor == dst->minor;
	if (same && path_below(dst->inner, src->inner))
		return true;
	if (one_file_system && !same)
		return false;
	mounts_gather(m, src);
	return mounts_contain(m, dst);
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
	if (m->file)
		fclose(m->file);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

bool inside_by_mount(struct mounts *m, int src, int dst, bool one_file_system)
{
	struct inside *in = calloc(1, sizeof(*in));
	bool found = false;
	if (in && locate(src, &in->src) && locate(dst, &in->dst)) {
		pthread_mutex_lock(&m->lock);
		found = mounts_put_inside(m, in, one_file_system);
		pthread_mutex_unlock(&m->lock);
	}
	free(in);
	return found;
}
