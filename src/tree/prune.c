/* SPDX-License-Identifier: MIT
 * Removes from a part what its source does not have any more.
 */
#define _GNU_SOURCE
#include "resume.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH 16 /* levels that are compared; 16 KiB of stack each */

struct stale {
	struct worker *w;
	struct directory *d;
	int src;               /* -1: as if it were empty */
	unsigned listed, kept; /* names in dst; how many the source has, too */
	unsigned found; /* names of the source that exist in dst, perhaps listed in another case */
	unsigned depth; /* levels below a directory that could not be read */
};

static bool has_name(int dir, const char *name)
{
	struct stat st;
	return dir >= 0 && (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT);
}

static void count_listed(struct stale *s, const char *name)
{
	s->listed++;
	s->kept += has_name(s->src, name);
}

static void count_found(struct stale *s, const char *name)
{
	s->found += has_name(s->d->dst, name);
}

static void remove_reported(struct stale *s, const char *name)
{
	int r = remove_entry(s->d->dst, name);
	if (r < 0)
		report_call(s->w, &(struct entry){.dir = s->d, .name = name, .as = name}, "remove",
			    entry_dst, -r);
}

static void remove_listed(struct stale *s, const char *name)
{
	if (!has_name(s->src, name))
		remove_reported(s, name);
}

/* Calls `take` for each name in an open directory except the mark. Returns 0 or -errno. */
static int take_names(struct stale *s, int dir, void (*take)(struct stale *, const char *name))
{
	_Alignas(8) char names[8192];
	const char *mark = s->w->tree->resume && !s->d->parent ? RESUME_MARK : ".";
	ssize_t n = -1;
	if (lseek(dir, 0, SEEK_SET) == 0)
		while ((n = getdents64(dir, names, sizeof(names))) > 0)
			for (ssize_t at = 0; at < n;) {
				const struct dirent64 *entry = (const void *)(names + at);
				if (!name_is_dot(entry->d_name) && strcmp(entry->d_name, mark) != 0)
					take(s, entry->d_name);
				at += entry->d_reclen;
			}
	return n < 0 ? -errno : 0;
}

static bool is_same_file(const struct stale *s, const struct entry *e, const struct stat *src,
			 const struct stat *dst)
{
	const time_t later = src->st_mtim.tv_sec - dst->st_mtim.tv_sec; /* FAT stores 2 s */
	int fd = src->st_size == dst->st_size && later >= 0 && later <= 2
		     ? openat(s->d->src, e->name, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
		     : -1;
	bool same = fd >= 0 && resume_has_same_bytes(s->w, e, fd, src);
	if (fd >= 0)
		close(fd);
	return same;
}

static bool is_same_symlink(const struct stale *s, const char *name)
{
	char src[PATH_MAX], dst[PATH_MAX];
	ssize_t n = readlinkat(s->d->src, name, src, sizeof(src));
	return n >= 0 && n == readlinkat(s->d->dst, name, dst, sizeof(dst)) &&
	       memcmp(src, dst, (size_t)n) == 0;
}

static void remove_doubtful(struct stale *s, const char *name);

static bool is_same_directory(const struct stale *s, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	const size_t size = strlen(name) + 1;
	struct directory *d = s->depth < DEPTH ? malloc(sizeof(*d) + size) : NULL;
	if (!d)
		return false;
	*d = (struct directory){.parent = s->d,
				.src = openat(s->d->src, name, flags),
				.dst = openat(s->d->dst, name, flags | O_NOFOLLOW)};
	memcpy(d->name, name, size);
	struct stale below = {.w = s->w, .d = d, .depth = s->depth + 1};
	bool pruned = d->src >= 0 && d->dst >= 0 &&
		      take_names(&below, d->dst, remove_doubtful) == 0;
	if (d->src >= 0)
		close(d->src);
	if (d->dst >= 0)
		close(d->dst);
	free(d);
	return pruned;
}

/* Is the copy what the source is now? */
static bool is_current(const struct stale *s, const char *name)
{
	const bool follow = s->w->tree->options->follow == FCOPY_FOLLOW_ALWAYS;
	const struct entry e = {.dir = s->d, .name = name, .as = name};
	struct stat src, dst;
	if (fstatat(s->d->src, name, &src, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(s->d->dst, name, &dst, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (src.st_mode & S_IFMT) != (dst.st_mode & S_IFMT))
		return false;
	/* The source has become private since. */
	if (!S_ISLNK(src.st_mode) && dst.st_mode & ~src.st_mode & 077)
		return false;
	switch (src.st_mode & S_IFMT) {
	case S_IFREG: return is_same_file(s, &e, &src, &dst);
	case S_IFDIR: return is_same_directory(s, name);
	case S_IFLNK: return is_same_symlink(s, name);
	default: return src.st_rdev == dst.st_rdev;
	}
}

/* The source's directory could not be read to its end: this copy may be of an earlier run, or of
 * this one. */
static void remove_doubtful(struct stale *s, const char *name)
{
	if (is_current(s, name))
		return;
	if (has_name(s->d->src, name))
		report_refusal(s->w, &(struct entry){.dir = s->d, .name = name, .as = name},
			       entry_dst, ESTALE,
			       "was copied from another version of its source: removed");
	remove_reported(s, name);
}

void prune_directory(struct worker *w, struct directory *d)
{
	/* With one_file_system, nothing below a mount point is copied. */
	bool mounted = w->tree->options->one_file_system && d->st.st_dev != w->tree->src_dev;
	/* The tree is committed in spite of a failure, and nothing old may be in it. */
	bool unknown = d->unread && d->resumed && w->tree->options->keep_going && !mounted;
	struct stale s = {.w = w, .d = d, .src = mounted ? -1 : d->src};
	const struct entry e = {.dir = d, .name = "", .as = ""};
	int r = take_names(&s, d->dst, unknown ? remove_doubtful : count_listed);
	if (r == 0 && (unknown || (s.kept == s.listed && s.listed >= d->present)))
		return;
	if (r == 0 && !mounted)
		r = take_names(&s, d->src, count_found);
	if (r == 0 && s.found > s.kept)
		report_refusal(w, &e, entry_dst, EEXIST,
			       "has other names than its source: they may differ in case");
	else if (r == 0)
		r = take_names(&s, d->dst, remove_listed);
	if (r < 0)
		report_call(w, &e, "getdents64", entry_dst, -r);
}
