/* SPDX-License-Identifier: MIT
 * --delete: removes from DST what SRC lacks, when every entry of SRC was copied. Only then is it
 * known that nothing of SRC was overlooked; any failure before keeps everything.
 *
 * A marker in DST says that files were written and not yet flushed. If a mirror finds the marker of
 * another boot, power may have been cut since: then a file that was written after the marker is
 * compared by its bytes, because its size and time may be right while its blocks are lost.
 */
#define _GNU_SOURCE
#include "mirror.h"
#include "endpoints/error.h"
#include "flush.h"
#include "io/system.h"
#include "part/part.h"
#include "part/private.h"
#include "pool.h"
#include "report.h"
#include "source/filter.h"
#include "source/names.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARKER        ".fcopy-mirror"
#define SLACK         2   /* seconds between the clock and the times of a file system */
#define ANCESTORS_MAX 256 /* directories above SRC */

/* What DST has and SRC lacks. */
struct extra {
	struct extra *next;
	dev_t dev;
	ino_t ino;
	char path[]; /* below the operand */
};

/* A removal, or a count of what would be removed. */
struct mirror_run {
	struct worker *w;
	struct directory *root;
	bool reports;     /* each removal */
	bool counts;      /* only */
	uint64_t entries; /* removed or counted */
	dev_t dev;        /* of DST */
	struct {
		dev_t dev;
		ino_t ino;
	} above[ANCESTORS_MAX]; /* SRC and the directories above it */
	size_t ancestors;
};

bool mirror_is_marker(const struct entry *e)
{
	return !e->dir->parent && strcmp(e->name, MARKER) == 0;
}

static void mirror_warn(struct tree *t, const char *call, const char *path, int err)
{
	struct fcopy_error error;
	error_call(&error, call, path, err);
	report_operand_warning(t, &error);
}

/* This boot, or an empty string if it is unknown. */
static void mirror_boot(char boot[40])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, boot, 36);
	boot[n == 36 ? 36 : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

/* Reads the marker of an earlier run. Returns whether there is one. */
static bool mirror_read_marker(struct mirror *m, int dst, const char *boot)
{
	char found[40] = "";
	struct stat st;
	int fd = openat(dst, MARKER, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT;
	bool ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	ssize_t n = ours ? read(fd, found, 36) : -1;
	close(fd);
	if (!ours)
		return true;
	m->doubted = n != 36 || boot[0] == '\0' || strcmp(found, boot) != 0;
	m->doubted_since = st.st_mtim.tv_sec - SLACK;
	return true;
}

/* The marker of an earlier run stays: what that wrote may not have been flushed either. */
void mirror_begin(struct tree *t, const struct operand *o, int dst)
{
	char boot[40];
	struct mirror *m = &t->mirror;
	const int64_t window = t->options->modify_window_ns;
	*m = (struct mirror){.window_ns = window < 0   ? 0
					  : window > 0 ? window
						       : system_time_step(dst),
			     .root = geteuid() == 0};
	if (t->options->update != FCOPY_UPDATE_CHANGED || t->options->copy.resume)
		return;
	mirror_boot(boot);
	m->marked = mirror_read_marker(m, dst, boot);
	if (m->marked || t->options->dry_run)
		return;
	int fd = openat(dst, MARKER, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		mirror_warn(t, "open of " MARKER, o->path, errno);
		return;
	}
	m->marked = true;
	if (write(fd, boot, strlen(boot)) < 0) /* an empty marker is one of another boot */
		mirror_warn(t, "write of " MARKER, o->path, errno);
	close(fd);
}

static bool mirror_ends_in(const char *name, const char *suffix)
{
	const size_t n = strlen(name), length = strlen(suffix);
	return n >= length && strcmp(name + n - length, suffix) == 0;
}

/* Names of copies that may be at work. */
static bool mirror_is_own(const char *name)
{
	return strcmp(name, MARKER) == 0 || temporary_is_drawn(name) ||
	       mirror_ends_in(name, PART_SUFFIX) || mirror_ends_in(name, ".fcopy-shards");
}

/* Returns false if there is no memory. */
static bool mirror_note(struct worker *w, const struct directory *d, const char *name,
			const struct stat *st)
{
	struct tree *t = w->tree;
	char path[PATH_MAX];
	const struct entry e = {.dir = (struct directory *)d, .name = name, .as = name};
	if (!entry_path_below(&e, path, sizeof(path))) {
		report_call(w, &e, "remove", entry_dst, ENAMETOOLONG);
		return true;
	}
	struct extra *x = malloc(sizeof(*x) + strlen(path) + 1);
	if (!x)
		return false;
	*x = (struct extra){.dev = st->st_dev, .ino = st->st_ino};
	strcpy(x->path, path);
	pthread_mutex_lock(&t->lock);
	x->next = t->mirror.extras;
	t->mirror.extras = x;
	pthread_mutex_unlock(&t->lock);
	return true;
}

/* DST may list an entry under another name than SRC, such as one in another case: is it the copy of
 * a name that DST does not list? */
static bool mirror_is_alias(const struct directory *d, const struct name_list *src,
			    const struct name_list *dst, const struct stat *st)
{
	struct stat other;
	for (size_t i = 0; i < src->count; i++)
		if (!names_have(dst, src->name[i]) &&
		    fstatat(d->dst, src->name[i], &other, AT_SYMLINK_NOFOLLOW) == 0 &&
		    other.st_dev == st->st_dev && other.st_ino == st->st_ino)
			return true;
	return false;
}

static int mirror_compare(struct worker *w, struct directory *d, const struct name_list *src,
			  const struct name_list *dst, const char **call)
{
	struct stat st;
	for (size_t i = 0; i < dst->count; i++) {
		const char *name = dst->name[i];
		if (names_have(src, name) || mirror_is_own(name))
			continue;
		*call = "stat";
		if (fstatat(d->dst, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno != ENOENT)
				return -errno;
			continue;
		}
		*call = "malloc";
		if (!mirror_is_alias(d, src, dst, &st) && !mirror_note(w, d, name, &st))
			return -ENOMEM;
	}
	return 0;
}

void mirror_collect(struct worker *w, struct directory *d)
{
	const struct entry e = {.dir = d, .name = "", .as = ""};
	struct name_list src = {0}, dst = {0};
	const char *call;
	int r = names_read(d->src, &src, &call);
	if (r < 0 && r != -ENOENT) { /* ENOENT: removed since it was opened */
		report_call(w, &e, call, entry_src, -r);
		return;
	}
	r = names_read(d->dst, &dst, &call);
	if (r == 0)
		r = mirror_compare(w, d, &src, &dst, &call);
	if (r < 0)
		report_call(w, &e, call, entry_dst, -r);
	names_free(&src);
	names_free(&dst);
}

/* Returns a descriptor of a directory below fd, or -errno; -EXDEV: it is on another file system, or
 * a mount point. */
static int mirror_open(int fd, const char *path, size_t length, bool source, bool follow)
{
	char name[NAME_MAX + 1];
	int flags = O_PATH | O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW);
	struct stat top, st;
	struct statx sx;
	int at = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (at < 0 || fstat(fd, &top) < 0)
		return -errno;
	for (size_t n; length > 0; path += n + 1, length -= n < length ? n + 1 : n) {
		n = strcspn(path, "/");
		n = n < length ? n : length;
		memcpy(name, path, n);
		name[n] = '\0';
		int below = openat(at, name, flags);
		int err = errno;
		close(at);
		if (below < 0)
			return -err;
		at = below;
		if (source || (fstat(at, &st) == 0 && st.st_dev == top.st_dev &&
			       (statx(at, "", AT_EMPTY_PATH, 0, &sx) < 0 ||
				!(sx.stx_attributes & STATX_ATTR_MOUNT_ROOT))))
			continue;
		close(at);
		return -EXDEV;
	}
	return at;
}

static void mirror_find_ancestors(struct mirror_run *x)
{
	struct stat st;
	int fd = openat(x->root->src, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (fd >= 0 && x->ancestors < ANCESTORS_MAX && fstat(fd, &st) == 0) {
		const size_t n = x->ancestors;
		if (n > 0 && x->above[n - 1].dev == st.st_dev && x->above[n - 1].ino == st.st_ino)
			break; /* the parent of / is / */
		x->above[n].dev = st.st_dev;
		x->above[n].ino = st.st_ino;
		x->ancestors++;
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = up;
	}
	if (fd >= 0)
		close(fd);
}

static bool mirror_is_above(const struct mirror_run *x, const struct stat *st)
{
	for (size_t i = 0; i < x->ancestors; i++)
		if (x->above[i].dev == st->st_dev && x->above[i].ino == st->st_ino)
			return true;
	return false;
}

static int mirror_refuse(struct mirror_run *x, const char *path, int err, const char *reason)
{
	const struct entry e = {.dir = x->root, .name = path, .as = path};
	if (x->counts)
		return -err;
	return reason ? report_refusal(x->w, &e, entry_dst, err, reason)
		      : report_call(x->w, &e, "remove", entry_dst, err);
}

static int mirror_remove(struct mirror_run *x, int parent, const char *name, char *path);

/* Opens a directory to remove what is in it; as its owner also one without permissions. */
static int mirror_open_doomed(const struct mirror_run *x, int parent, const char *name,
			      const char **reason)
{
	struct stat st;
	struct statx sx;
	int path = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (path < 0 || fstat(path, &st) < 0) {
		int err = errno;
		if (path >= 0)
			close(path);
		return -err;
	}
	const struct io_path link = io_proc_path(path);
	bool mounted = st.st_dev != x->dev || (statx(path, "", AT_EMPTY_PATH, 0, &sx) == 0 &&
					       sx.stx_attributes & STATX_ATTR_MOUNT_ROOT);
	*reason = mounted                   ? "is a mount point: not removed"
		  : mirror_is_above(x, &st) ? "contains SRC: not removed"
					    : NULL;
	if (!*reason && !x->counts && (st.st_mode & 0700) != 0700 && geteuid() != 0 &&
	    st.st_uid == geteuid())
		(void)!chmod(link.text, (st.st_mode & 07777) | 0700);
	int fd = *reason ? -EBUSY : open(link.text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = fd == -1 ? -errno : fd;
	close(path);
	return fd;
}

/* Returns 0; 1: something in it stays; or -errno, reported. `path` has room for PATH_MAX bytes. */
static int mirror_remove_below(struct mirror_run *x, int parent, const char *name, char *path)
{
	struct name_list list = {0};
	const char *reason = NULL, *call;
	const size_t length = strlen(path);
	int fd = mirror_open_doomed(x, parent, name, &reason), result = 0;
	if (fd < 0)
		return mirror_refuse(x, path, -fd, reason);
	int r = names_read(fd, &list, &call);
	if (r < 0)
		result = mirror_refuse(x, path, -r, NULL);
	for (size_t i = 0; i < list.count && !tree_stopped(x->w->tree); i++) {
		if (length + 1 + strlen(list.name[i]) >= PATH_MAX) {
			result = mirror_refuse(x, path, ENAMETOOLONG, NULL);
			break;
		}
		sprintf(path + length, "/%s", list.name[i]);
		r = mirror_remove(x, fd, list.name[i], path);
		path[length] = '\0';
		result = r != 0 && result >= 0 ? r : result;
	}
	names_free(&list);
	close(fd);
	return tree_stopped(x->w->tree) ? -EINTR : result;
}

/* Removes or counts one entry. Returns as mirror_remove_below. */
static int mirror_remove(struct mirror_run *x, int parent, const char *name, char *path)
{
	struct stat st;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : mirror_refuse(x, path, errno, NULL);
	const bool directory = S_ISDIR(st.st_mode);
	if (mirror_is_own(name) || filter_protects(x->w->tree->filter, path, directory))
		return 1;
	int r = directory ? mirror_remove_below(x, parent, name, path) : 0;
	if (r != 0)
		return r;
	if (!x->counts && unlinkat(parent, name, directory ? AT_REMOVEDIR : 0) < 0 &&
	    errno != ENOENT)
		return mirror_refuse(x, path, errno, NULL);
	x->entries++;
	if (x->reports)
		report_deleted(x->w, &(struct entry){.dir = x->root, .name = path, .as = path});
	return 0;
}

static struct mirror_run mirror_run_of(struct worker *w, struct directory *root, bool counts,
				       bool reports)
{
	struct mirror_run x = {.w = w, .root = root, .counts = counts, .reports = reports};
	struct stat st;
	if (fstat(root->dst, &st) == 0)
		x.dev = st.st_dev;
	mirror_find_ancestors(&x);
	return x;
}

int mirror_remove_conflict(struct worker *w, const struct entry *e, const struct stat *old)
{
	struct tree *t = w->tree;
	const uint64_t *max = t->options->max_delete;
	char path[PATH_MAX];
	struct directory *root = e->dir;
	while (root->parent)
		root = root->parent;
	if (!entry_path_below(e, path, sizeof(path)))
		return report_call(w, e, "remove", entry_dst, ENAMETOOLONG);
	struct mirror_run x = mirror_run_of(w, root, true, t->options->dry_run);
	int r = max || t->options->dry_run ? mirror_remove(&x, e->dir->dst, e->as, path) : 0;
	/* With a limit, nothing is removed unless all of it may be. */
	if (max && __atomic_add_fetch(&t->mirror.removed, x.entries, __ATOMIC_RELAXED) > *max)
		return report_refusal(w, e, entry_dst, EEXIST,
				      "has another type than its source: its removal would exceed "
				      "--max-delete");
	if (t->options->dry_run) {
		w->sum.deleted += x.entries;
		return r < 0 ? r : 0;
	}
	x.counts = false;
	x.reports = true;
	x.entries = 0;
	r = mirror_remove(&x, e->dir->dst, e->as, path);
	w->sum.deleted += x.entries;
	if (r > 0)
		return report_refusal(w, e, entry_dst, ENOTEMPTY,
				      S_ISDIR(old->st_mode)
					  ? "is a directory with entries that are not removed"
					  : "has another type than its source, and is protected");
	return r;
}

/* Was the entry absent from SRC just now, and is it still the one that was noted? 1, 0 or -errno.
 */
static int mirror_still_extra(const struct mirror_run *x, const struct extra *extra, int dst,
			      const char *name, size_t length)
{
	struct stat st;
	const bool follow = x->w->tree->options->follow == FCOPY_FOLLOW_ALWAYS;
	int src = mirror_open(x->root->src, extra->path, length, true, follow), r;
	if (src < 0)
		r = src == -ENOENT ? 1 : src == -ENOTDIR || src == -ELOOP ? 0 : src;
	else
		r = fstatat(src, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? 0
		    : errno == ENOENT                                 ? 1
								      : -errno;
	if (src >= 0)
		close(src);
	if (r <= 0)
		return r;
	if (fstatat(dst, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return st.st_dev == extra->dev && st.st_ino == extra->ino;
}

/* Its directory has its attributes already: the removal must not change its time. */
static void mirror_remove_extra(struct mirror_run *x, const struct extra *extra)
{
	char path[PATH_MAX];
	const char *slash = strrchr(extra->path, '/');
	const size_t length = slash ? (size_t)(slash - extra->path) : 0;
	const char *name = slash ? slash + 1 : extra->path;
	struct stat st;
	strcpy(path, extra->path);
	int dst = mirror_open(x->root->dst, extra->path, length, false, false);
	if (dst < 0) {
		mirror_refuse(x, path, -dst,
			      dst == -EXDEV ? "is on another file system than DST: not removed"
					    : NULL);
		return;
	}
	bool timed = fstat(dst, &st) == 0;
	int extra_still = mirror_still_extra(x, extra, dst, name, length);
	if (extra_still < 0)
		mirror_refuse(x, path, -extra_still, NULL);
	else if (extra_still > 0 && mirror_remove(x, dst, name, path) >= 0 && timed && !x->counts &&
		 x->w->tree->options->copy.preserve & FCOPY_ATTR_TIMESTAMPS) {
		const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st.st_mtim};
		(void)!utimensat(AT_FDCWD, io_proc_path(dst).text, times, 0);
	}
	close(dst);
}

static uint64_t mirror_remove_all(struct worker *w, struct directory *root, bool counts,
				  bool reports)
{
	struct mirror_run x = mirror_run_of(w, root, counts, reports);
	for (const struct extra *e = w->tree->mirror.extras; e && !tree_stopped(w->tree);
	     e = e->next)
		mirror_remove_extra(&x, e);
	return x.entries;
}

/* Why nothing may be removed, or NULL. */
static const char *mirror_check(struct worker *w, struct directory *root, char *text, size_t size)
{
	const struct tree *t = w->tree;
	const uint64_t *max = t->options->max_delete;
	struct name_list src;
	const char *call;
	if (__atomic_load_n(&t->failures, __ATOMIC_RELAXED) > 0 || w->sum.failed > 0)
		return "nothing is removed, because entries failed";
	if (!max) {
		bool empty = names_read(root->src, &src, &call) < 0 || src.count == 0;
		names_free(&src);
		return empty ? "nothing is removed, because SRC is empty: use --max-delete if that "
			       "is right"
			     : NULL;
	}
	const uint64_t n = mirror_remove_all(w, root, true, false) + t->mirror.removed;
	if (n <= *max)
		return NULL;
	snprintf(text, size, "nothing is removed: %llu entries are more than --max-delete=%llu",
		 (unsigned long long)n, (unsigned long long)*max);
	return text;
}

static void mirror_remove_extras(struct tree *t, struct directory *root)
{
	char text[FCOPY_DETAIL_MAX];
	struct worker *w = pool_join(t);
	if (!w) {
		tree_stop(t, ENOMEM);
		return;
	}
	const char *reason = mirror_check(w, root, text, sizeof(text));
	if (reason)
		report_refusal(w, &(struct entry){.dir = root, .name = "", .as = ""}, entry_dst,
			       ENOTEMPTY, reason);
	else
		w->sum.deleted += mirror_remove_all(w, root, t->options->dry_run, true);
	pool_leave(w);
}

void mirror_end(struct tree *t, struct directory *root)
{
	struct mirror *m = &t->mirror;
	const struct fcopy_tree_report *sum = t->report;
	if (m->extras && !tree_stopped(t))
		mirror_remove_extras(t, root);
	for (struct extra *next; m->extras; m->extras = next) {
		next = m->extras->next;
		free(m->extras);
	}
	if (!m->marked || t->options->dry_run || tree_stopped(t))
		return;
	const bool changed = sum->files + sum->symlinks + sum->specials + sum->hard_links +
				 sum->repaired + sum->deleted >
			     0;
	const int r = changed || m->doubted ? flush_page_cache(root->dst) : 0;
	if (r < 0) {
		tree_fail(t, "syncfs", root->dst_path, -r);
		return;
	}
	if (unlinkat(root->dst, MARKER, 0) < 0 && errno != ENOENT)
		mirror_warn(t, "unlink of " MARKER, root->dst_path, errno);
}
