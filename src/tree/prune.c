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

/* Calls `take` for each name in an open directory except the mark. Returns 0 or -errno. A source
 * that was removed since has no names: getdents64(2) returns ENOENT then. */
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
	return n < 0 && (errno != ENOENT || dir != s->d->src) ? -errno : 0;
}

static void remove_doubtful(struct stale *s, const char *name);

/* src is the open directory of the source. */
static bool is_same_directory(const struct stale *s, const char *name, int src)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	const size_t size = strlen(name) + 1;
	struct directory *d = s->depth < DEPTH ? malloc(sizeof(*d) + size) : NULL;
	if (!d)
		return false;
	*d = (struct directory){.parent = s->d, .src = src, .dst = openat(s->d->dst, name, flags)};
	memcpy(d->name, name, size);
	struct stale below = {.w = s->w, .d = d, .depth = s->depth + 1};
	bool pruned = d->dst >= 0 && take_names(&below, d->dst, remove_doubtful) == 0;
	if (d->dst >= 0)
		close(d->dst);
	free(d);
	return pruned;
}

/* Is the copy what a new one would be now? */
static bool is_current(const struct stale *s, const char *name)
{
	const bool follow = s->w->tree->options->follow == FCOPY_FOLLOW_ALWAYS;
	const struct entry e = {.dir = s->d, .name = name, .as = name};
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	struct stat src, dst;
	if (fstatat(s->d->src, name, &src, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(s->d->dst, name, &dst, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (src.st_mode & S_IFMT) != (dst.st_mode & S_IFMT))
		return false;
	if (S_ISLNK(src.st_mode))
		return unmarked_same_link(s->d->dst, s->d->src, name);
	const bool owned = s->w->tree->options->copy.preserve & FCOPY_ATTR_OWNERSHIP;
	if (!S_ISREG(src.st_mode) && !S_ISDIR(src.st_mode))
		return src.st_rdev == dst.st_rdev && !(dst.st_mode & ~src.st_mode & 07777) &&
		       (!owned || (src.st_uid == dst.st_uid && src.st_gid == dst.st_gid));
	int fd = openat(s->d->src, name, flags | (follow ? 0 : O_NOFOLLOW));
	bool current = fd >= 0 && fstat(fd, &src) == 0 &&
		       (S_ISREG(dst.st_mode)
			    ? resume_is_current(s->w, &e, fd, &dst, &src)
			    : S_ISDIR(src.st_mode) && is_same_directory(s, name, fd) &&
				  resume_update(s->w, &e, fd, &dst, &src));
	if (fd >= 0)
		close(fd);
	return current;
}

/* The source's directory could not be read to its end: this copy may be of an earlier run, or of
 * this one. */
static void remove_doubtful(struct stale *s, const char *name)
{
	if (is_current(s, name) || tree_stopped(s->w->tree)) /* or it was not compared */
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
	/* No entry failed, so the source has got a name since it was read: that copy is old. */
	bool newer = r == 0 && w->tree->resume && s.kept > d->present &&
		     __atomic_load_n(&w->tree->failures, __ATOMIC_RELAXED) == 0;
	if (newer)
		report_refusal(w, &e, entry_src, EBUSY,
			       "got an entry during the copy of which the part has an old copy");
	if (newer && w->tree->options->keep_going)
		r = take_names(&s, d->dst, remove_doubtful);
	if (r == 0 && (unknown || (s.kept == s.listed && s.listed >= d->present)))
		return;
	const char *path = entry_dst;
	if (r == 0 && !mounted && (r = take_names(&s, d->src, count_found)) < 0)
		path = entry_src;
	if (r == 0 && s.found > s.kept)
		report_refusal(w, &e, entry_dst, EEXIST,
			       "has other names than its source: they may differ in case");
	else if (r == 0)
		r = take_names(&s, d->dst, remove_listed);
	if (r < 0)
		report_call(w, &e, "getdents64", path, -r);
}
