/* SPDX-License-Identifier: MIT
 * Is the destination inside the source by way of a bind mount? Going up from the destination by
 * ".." leads to the directory of the mount point, which may be outside the source.
 * /proc/self/mountinfo shows which directory of which file system each mount is of: proc(5).
 */
#define _GNU_SOURCE
#include "inside.h"
#include "io/io.h"
#include "io/libc.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct mount {
	unsigned id, major, minor;
	char root[PATH_MAX];  /* of the mount, in its file system */
	char point[PATH_MAX]; /* where it is mounted */
};

/* A directory, and its path in its file system. */
struct location {
	unsigned mount, major, minor;
	char path[PATH_MAX]; /* as this process sees it */
	char inner[PATH_MAX];
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

static bool mount_read(const char *line, struct mount *m)
{
	if (sscanf(line, "%u %*u %u:%u %4095s %4095s", &m->id, &m->major, &m->minor, m->root,
		   m->point) != 5)
		return false;
	unescape(m->root);
	unescape(m->point);
	return true;
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

/* Calls f for each mount until it returns true; returns that. */
static bool mounts_any(bool (*f)(const struct mount *, struct location *, void *),
		       struct location *p, void *arg)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	struct mount *m = malloc(sizeof(*m));
	char *line = NULL;
	size_t size = 0;
	bool found = false;
	while (file && m && !found && getline(&line, &size, file) > 0)
		found = mount_read(line, m) && f(m, p, arg);
	free(line);
	free(m);
	if (file)
		fclose(file);
	return found;
}

static bool is_mount_of(const struct mount *m, struct location *p, void *unused)
{
	(void)unused;
	if (m->id == p->mount)
		location_set(p, m);
	return p->inner[0];
}

struct inside {
	struct location src, dst;
	bool one_file_system; /* other ones below the source are not copied */
};

/* What of this mount will be copied, and does it contain the destination? */
static bool mount_contains(const struct mount *m, struct location *dst, void *arg)
{
	const struct inside *in = arg;
	const struct location *src = &in->src;
	bool same = m->major == src->major && m->minor == src->minor;
	if (m->major != dst->major || m->minor != dst->minor)
		return false;
	if (m->id == src->mount)
		return path_below(dst->inner, src->inner);
	return (same || !in->one_file_system) && path_below(m->point, src->path) &&
	       path_below(dst->inner, m->root);
}

bool inside_by_mount(int src, int dst, bool one_file_system)
{
	struct inside *in = calloc(1, sizeof(*in));
	bool found = false;
	if (in && locate(src, &in->src) && locate(dst, &in->dst)) {
		in->one_file_system = one_file_system;
		found = mounts_any(is_mount_of, &in->src, NULL) &&
			mounts_any(is_mount_of, &in->dst, NULL) &&
			mounts_any(mount_contains, &in->dst, in);
	}
	free(in);
	return found;
}
