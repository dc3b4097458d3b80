/* SPDX-License-Identifier: MIT
 * A DST.fcopy-part without a mark: a process was killed after it had removed the mark, and before
 * it gave the complete tree its name. Such a part holds nothing that the source does not have. And
 * entries of the source that would take the place of the mark.
 */
#define _GNU_SOURCE
#include "resume.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define LEVELS 1024 /* 2 KiB of stack and two descriptors each */

/* Two open directories, and how the source's symlinks are treated. */
struct pair {
	int part, src;
	bool follow;
	unsigned levels; /* above these two */
};

bool unmarked_same_link(int part, int src, const char *name)
{
	char a[PATH_MAX], b[PATH_MAX];
	ssize_t n = readlinkat(part, name, a, sizeof(a));
	return n >= 0 && readlinkat(src, name, b, sizeof(b)) == n && memcmp(a, b, (size_t)n) == 0;
}

/* The destination may store times with less precision: 1 s, or 2 s on FAT. */
bool unmarked_near_time(const struct stat *part, const struct stat *src)
{
	time_t later = src->st_mtim.tv_sec - part->st_mtim.tv_sec;
	return same_mtime(part, src) ||
	       (later >= 0 && later < 2 && part->st_mtim.tv_nsec % 100 == 0);
}

static bool unmarked_directory(const struct pair *);

static bool unmarked_subdirectory(const struct pair *p, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;
	struct pair below = {.follow = p->follow, .levels = p->levels + 1};
	below.part = openat(p->part, name, flags | O_NOFOLLOW);
	below.src = openat(p->src, name, flags | (p->follow ? 0 : O_NOFOLLOW));
	bool same = below.part >= 0 && below.src >= 0 && below.levels < LEVELS &&
		    unmarked_directory(&below);
	if (below.part >= 0)
		close(below.part);
	if (below.src >= 0)
		close(below.src);
	return same;
}

static bool unmarked_entry(const struct pair *p, const char *name)
{
	struct stat a, b;
	if (fstatat(p->part, name, &a, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(p->src, name, &b, p->follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0 ||
	    (a.st_mode & S_IFMT) != (b.st_mode & S_IFMT))
		return false;
	switch (a.st_mode & S_IFMT) {
	case S_IFREG: return a.st_size == b.st_size && unmarked_near_time(&a, &b);
	case S_IFDIR: return unmarked_subdirectory(p, name);
	case S_IFLNK: return unmarked_same_link(p->part, p->src, name);
	default: return a.st_rdev == b.st_rdev;
	}
}

static bool unmarked_directory(const struct pair *p)
{
	_Alignas(8) char names[1024]; /* more than one name of any length */
	ssize_t n;
	while ((n = getdents64(p->part, names, sizeof(names))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d = (const void *)(names + at);
			if (!name_is_dot(d->d_name) && !unmarked_entry(p, d->d_name))
				return false;
			at += d->d_reclen;
		}
	return n == 0;
}

bool unmarked_is_copy(int part, int src, bool follow)
{
	return lseek(part, 0, SEEK_SET) == 0 &&
	       unmarked_directory(&(struct pair){.part = part, .src = src, .follow = follow});
}

bool resume_is_mark(const struct tree *t, const struct entry *e)
{
	struct stat mark, named;
	int dir = e->dir->dst;
	if (!t->resume || t->single || e->dir->parent || strcasecmp(e->as, RESUME_MARK) != 0)
		return false;
	return strcmp(e->as, RESUME_MARK) == 0 ||
	       (fstatat(dir, RESUME_MARK, &mark, AT_SYMLINK_NOFOLLOW) == 0 &&
		fstatat(dir, e->as, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		named.st_dev == mark.st_dev && named.st_ino == mark.st_ino);
}
