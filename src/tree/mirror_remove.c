/* SPDX-License-Identifier: MIT
 * --delete: removes what SRC lacks, and what has another type there. Nothing is removed that was
 * exchanged since, contains SRC, is mounted, or is protected by a filter.
 */
#include "directory.h"
#include "displace.h"
#include "endpoints/error.h"
#include "endpoints/slot.h"
#include "io/io.h"
#include "io/system.h"
#include "part/left.h"
#include "report.h"
#include "rivals.h"
#include "source/filter.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANCESTORS_MAX 256 /* directories above SRC */
#define OPEN_LEVELS   16  /* directories that a removal holds open, however deep the tree */

/* A removal, or a count of what would be removed. */
struct mirror_run {
	struct worker *w;
	struct directory *root;
	bool reports;                      /* each removal */
	bool counts;                       /* only */
	bool blind;                        /* not all could be counted */
	uint64_t entries;                  /* removed or counted */
	unsigned depth;                    /* below what is to be removed */
	dev_t dev;                         /* of the directory that holds what is removed */
	bool mounted;                      /* that directory is below a mount point of DST */
	struct inode above[ANCESTORS_MAX]; /* SRC and the directories above it */
	size_t ancestors;
	const char *obstacle; /* the first entry that must stay: what it is; NULL: none */
	char obstacle_path[PATH_MAX];
};

bool mirror_is_own(const char *name)
{
	return strcmp(name, MARKER) == 0 || temporary_is_drawn(name) || part_is_name(name);
}

static bool mirror_is_mount(int fd, const struct stat *st, dev_t above)
{
	const int root = system_is_mount_root(fd);
	return root < 0 ? st->st_dev != above : root > 0;
}

/* Returns a descriptor of a directory below fd, or -errno; -EXDEV: it is
 * a mount point, or below one. */
static int mirror_open(int fd, const char *path, size_t length, bool source, bool follow)
{
	char name[NAME_MAX + 1];
	int flags = O_PATH | O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW);
	struct stat top, st;
	int at = fstat(fd, &top) < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (at < 0)
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
		if (source || (fstat(at, &st) == 0 && !mirror_is_mount(at, &st, top.st_dev)))
			continue;
		close(at);
		return -EXDEV;
	}
	return at;
}

static bool mirror_note_ancestor(const struct stat *st, void *run)
{
	struct mirror_run *x = run;
	x->above[x->ancestors] = inode_of(st);
	return ++x->ancestors == ANCESTORS_MAX;
}

static bool mirror_is_above(const struct mirror_run *x, const struct stat *st)
{
	for (size_t i = 0; i < x->ancestors; i++)
		if (inode_is(x->above[i], st))
			return true;
	return false;
}

static void mirror_note_obstacle(struct mirror_run *x, const char *what, const char *path)
{
	if (x->obstacle)
		return;
	x->obstacle = what;
	strcpy(x->obstacle_path, path);
}

static int mirror_refuse(struct mirror_run *x, const char *path, int err, const char *reason)
{
	const struct entry e = ENTRY(x->root, path);
	mirror_note_obstacle(x, reason ? reason : "cannot be removed", path);
	x->blind |= !reason;
	if (x->counts && !x->reports)
		return -err;
	return reason ? report_refusal(x->w, &e, entry_dst, err, reason)
		      : report_call(x->w, &e, "remove", entry_dst, err);
}

static int mirror_remove(struct mirror_run *x, int *parent, const char *name, char *path);

/* A dry run changes no mode; nor does a count if chmod(2) could clear a setgid bit. */
static bool mirror_may_widen(const struct mirror_run *x, const struct stat *st)
{
	return !x->w->tree->options->dry_run && !(x->counts && st->st_mode & S_ISGID);
}

/* Opens a directory to remove what is in it; as its owner also one without permissions. *widened:
 * its mode, if it gave it those first, or 0. -EAGAIN: only the run could do so. */
static int mirror_open_doomed(const struct mirror_run *x, int parent, const char *name,
			      const char **reason, mode_t *widened)
{
	struct stat st, above;
	int path = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (path < 0 || fstat(path, &st) < 0) {
		int err = errno;
		io_close(path);
		return -err;
	}
	*reason = mirror_is_mount(path, &st, x->dev) ? "is a mount point: not removed"
		  : x->mounted || (st.st_dev != x->dev && fstat(parent, &above) == 0 &&
				   above.st_dev == st.st_dev)
		      ? "is below a mount point: not removed"
		  : st.st_dev != x->dev
		      ? "is a subvolume: not removed; delete it, or use --exclude to keep it"
		  : mirror_is_above(x, &st) ? "contains SRC: not removed"
					    : NULL;
	const bool closed = !*reason && (st.st_mode & 0700) != 0700 && geteuid() != 0 &&
			    st.st_uid == geteuid();
	const bool widens = closed && mirror_may_widen(x, &st);
	*widened = widens ? st.st_mode : 0;
	if (widens)
		(void)!io_chmod(path, (st.st_mode & 07777) | 0700);
	int fd = *reason ? -EBUSY : io_reopen_directory(path);
	if (fd < 0 && widens)
		(void)!io_chmod(path, st.st_mode & 07777);
	if (fd == -EACCES && closed && !widens)
		fd = -EAGAIN;
	close(path);
	return fd;
}

/* Opens the directory above the open one, which must be what it was. Returns a descriptor or -1. */
static int mirror_open_above(struct mirror_run *x, int fd, const struct stat *above,
			     const char *path)
{
	struct stat st = {0};
	const int up = fd < 0 ? -1
			      : openat(fd, "..", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	int err = up < 0 || fstat(up, &st) < 0 ? errno : 0;
	if (err == 0 && !same_inode(&st, above))
		err = ESTALE;
	if (err == 0)
		return up;
	io_close(up);
	if (fd >= 0) /* otherwise it is reported */
		mirror_refuse(x, path, err, NULL);
	return -1;
}

/* Removes what the open directory lists. Returns as mirror_remove_below. */
static int mirror_remove_listed(struct mirror_run *x, int *fd, char *path)
{
	struct name_list list = {0};
	const size_t length = strlen(path);
	int r = names_read(*fd, &list, NULL);
	int result = r < 0 ? mirror_refuse(x, path, -r, NULL) : 0;
	for (size_t i = 0; i < list.count && *fd >= 0 && !tree_stopped(x->w->tree); i++) {
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
	return tree_stopped(x->w->tree) ? -EINTR : *fd < 0 ? -ESTALE : result;
}

/* Returns 0; RESULT_STAYS: something in it does; or -errno, reported. `path` has room for PATH_MAX
 * bytes. Deep in a tree, closes *parent, and opens it again; -1 if that fails. */
static int mirror_remove_below(struct mirror_run *x, int *parent, const char *name, char *path)
{
	const char *reason = NULL;
	mode_t widened = 0;
	struct stat above;
	int fd = mirror_open_doomed(x, *parent, name, &reason, &widened);
	if (fd == -EAGAIN) {
		x->blind = true;
		return 0;
	}
	if (fd < 0)
		return mirror_refuse(x, path, -fd, reason);
	const bool deep = ++x->depth > OPEN_LEVELS && fstat(*parent, &above) == 0;
	if (deep)
		close(*parent);
	const int result = mirror_remove_listed(x, &fd, path);
	if (deep)
		*parent = mirror_open_above(x, fd, &above, path);
	x->depth--;
	if ((result != 0 || x->counts) && widened && fd >= 0) /* it stays */
		(void)!fchmod(fd, widened & 07777);
	io_close(fd);
	return *parent < 0 && result == 0 ? -ESTALE : result;
}

/* Removes or counts one entry, also one with a drawn name. Returns as mirror_remove_below. */
static int mirror_remove_any(struct mirror_run *x, int *parent, const char *name, char *path)
{
	struct stat st;
	if (fstatat(*parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : mirror_refuse(x, path, errno, NULL);
	const bool directory = S_ISDIR(st.st_mode);
	if (same_output(&x->w->tree->options->copy, &st)) {
		mirror_note_obstacle(x, "is written by this run", path);
		return RESULT_STAYS;
	}
	if (filter_protects(x->w->tree->filter, path, directory)) {
		mirror_note_obstacle(x, "is excluded", path);
		return RESULT_STAYS;
	}
	int r = directory ? mirror_remove_below(x, parent, name, path) : 0;
	if (r != 0)
		return r;
	if (!x->counts && unlinkat(*parent, name, directory ? AT_REMOVEDIR : 0) < 0 &&
	    errno != ENOENT)
		return mirror_refuse(x, path, errno, NULL);
	x->entries++;
	if (x->reports)
		report_outcome(x->w, &ENTRY(x->root, path),
			       &(struct outcome){.action = FCOPY_ACTION_DELETED});
	return 0;
}

/* Removes or counts what an earlier mirror has put aside, under the name that it had. Returns as
 * mirror_remove_below. */
static int mirror_remove_old(struct mirror_run *x, const struct left *l, const char *path)
{
	char old[PATH_MAX];
	const char *slash = strrchr(path, '/');
	const int length = slash ? (int)(slash - path) + 1 : 0;
	if (snprintf(old, sizeof(old), "%.*s%s", length, path, l->old) >= PATH_MAX)
		return mirror_refuse(x, path, ENAMETOOLONG, NULL);
	int fd = left_open_old(l);
	if (fd < 0)
		return mirror_refuse(x, path, -fd, NULL);
	const int r = mirror_remove_any(x, &fd, l->old, old);
	close(fd);
	return r;
}

/* Removes or counts a directory with a drawn name, which stays if its process lives, or it is not
 * certainly ours. Returns as mirror_remove_below. */
static int mirror_remove_left(struct mirror_run *x, int parent, const char *name, const char *path)
{
	struct left l;
	int r = RESULT_STAYS;
	if (!temporary_is_drawn(name))
		return r;
	if (part_examine(&l, parent, name, true) && l.state == FCOPY_LEFT_DEAD) {
		r = l.kind == FCOPY_LEFT_OLD ? mirror_remove_old(x, &l, path) : 0;
		l.returns = false;
		if (r == 0 && !x->counts && left_remove(&l) < 0)
			r = mirror_refuse(x, path, EBUSY, NULL);
	}
	left_close(&l);
	return r;
}

/* Removes or counts one entry, but for the names of copies at work. Returns as mirror_remove_below.
 */
static int mirror_remove(struct mirror_run *x, int *parent, const char *name, char *path)
{
	const bool own = mirror_is_own(name);
	if (!own && !system_is_lost_found(*parent, name))
		return mirror_remove_any(x, parent, name, path);
	const int r = own ? mirror_remove_left(x, *parent, name, path) : RESULT_STAYS;
	if (r == RESULT_STAYS)
		mirror_note_obstacle(
		    x, own ? "is an unfinished copy" : "belongs to the file system", path);
	return r;
}

static struct mirror_run mirror_run_of(struct worker *w, struct directory *root, bool counts,
				       bool reports)
{
	struct mirror_run x = {
	    .w = w, .root = root, .counts = counts, .reports = reports, .dev = root->dst_inode.dev};
	(void)reader_climb(x.root->src, mirror_note_ancestor, &x, NULL);
	return x;
}

/* The entry may be in a subvolume. Below a mount point nothing is removed: it may be another view
 * of SRC, or of what DST is in. */
static void mirror_find_device(struct mirror_run *x, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat st;
	const int fd = mirror_open(x->root->dst, path, slash ? (size_t)(slash - path) : 0, false,
				   false);
	if (fd >= 0 && fstat(fd, &st) == 0)
		x->dev = st.st_dev;
	x->mounted = fd == -EXDEV;
	io_close(fd);
}

/* An entry below one of another type must stay: says which. */
static int mirror_refuse_conflict(struct mirror_run *x, const struct entry *e, const char *path)
{
	char reason[PATH_MAX + 128];
	const size_t length = strlen(path);
	const bool below = strlen(x->obstacle_path) > length;
	snprintf(reason, sizeof(reason), "differs in type from its source, but %s%s%s%s",
		 below ? "holds " : "", below ? x->obstacle_path + length + 1 : "",
		 below ? ", which " : "", x->obstacle);
	return report_refusal(x->w, e, entry_dst, ENOTEMPTY, reason);
}

int mirror_may_remove(struct worker *w, const struct entry *e)
{
	struct tree *t = w->tree;
	const uint64_t *max = t->options->max_delete;
	char path[PATH_MAX];
	if (!entry_path_below(e, path, sizeof(path)))
		return report_call(w, e, "remove", entry_dst, ENAMETOOLONG);
	struct mirror_run x = mirror_run_of(w, entry_top(e), true, false);
	mirror_find_device(&x, path);
	(void)mirror_remove(&x, &e->dir->dst, e->as, path);
	if (x.obstacle)
		return mirror_refuse_conflict(&x, e, path);
	if (max &&
	    (__atomic_add_fetch(&t->mirror.removed, x.entries, __ATOMIC_RELAXED) > *max || x.blind))
		return report_refusal(w, e, entry_dst, EEXIST,
				      "differs in type from its source: its removal would exceed "
				      "--max-delete");
	return 0;
}

int mirror_remove_cleared(struct worker *w, const struct entry *e, int dir, const char *name)
{
	char path[PATH_MAX];
	if (!entry_path_below(e, path, sizeof(path)))
		return report_call(w, e, "remove", entry_dst, ENAMETOOLONG);
	struct mirror_run x = mirror_run_of(w, entry_top(e), w->tree->options->dry_run, true);
	mirror_find_device(&x, path);
	if (!w->tree->options->dry_run && w->work.facts.exists)
		rivals_unclaim(w->tree, &w->work.facts.old);
	const int r = mirror_remove_any(&x, &dir, name, path);
	/* An entry has become one that stays since it was counted. */
	return r == RESULT_STAYS ? mirror_refuse_conflict(&x, e, path) : r;
}

bool mirror_source_is_excluded(const struct tree *t, int src, const char *name, const char *path)
{
	const int flags = t->options->follow == FCOPY_FOLLOW_ALWAYS ? 0 : AT_SYMLINK_NOFOLLOW;
	struct stat st;
	return t->filter && filter_needs_types(t->filter) && fstatat(src, name, &st, flags) == 0 &&
	       filter_protects(t->filter, path, S_ISDIR(st.st_mode));
}

/* Is it still the entry that was noted? File systems without inode numbers of their own (FUSE, FAT,
 * SMB) give an inode another number when it is read again. */
static bool mirror_is_noted(int dir, const struct extra *extra, const struct stat *st)
{
	if (st->st_dev != extra->inode.dev || (st->st_mode ^ extra->mode) & S_IFMT)
		return false;
	if (st->st_ino == extra->inode.ino)
		return true;
	return !system_has(dir, SYSTEM_LOCAL) && st->st_size == extra->size &&
	       same_time(st->st_mtim, extra->mtime);
}

/* Was the entry absent from SRC just now, or excluded there, and is it still the one that was
 * noted? 1; 0; or -errno, with the reason.
 */
static int mirror_still_extra(const struct mirror_run *x, const struct extra *extra, int dst,
			      const char *name, size_t length, const char **reason)
{
	struct stat st;
	const bool follow = x->w->tree->options->follow == FCOPY_FOLLOW_ALWAYS;
	int src = mirror_open(x->root->src, extra->path, length, true, follow), r;
	if (src < 0)
		r = src == -ENOENT ? 1 : src == -ENOTDIR || src == -ELOOP ? 0 : src;
	else
		r = fstatat(src, name, &st, AT_SYMLINK_NOFOLLOW) < 0
			? (errno == ENOENT ? 1 : -errno)
			: mirror_source_is_excluded(x->w->tree, src, name, extra->path);
	io_close(src);
	if (r <= 0)
		return r;
	if (fstatat(dst, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (mirror_is_noted(dst, extra, &st))
		return 1;
	*reason = "was replaced during the run: not removed";
	return -ESTALE;
}

/* The directory at this path has its attributes already: the removal must not change its time. Sets
 * both times: libfuse before 3.15 ignores a call that sets only one. unknown: the errno of its
 * fstat(2). */
static void mirror_restore_time(const struct mirror_run *x, int dst, const char *path,
				const struct stat *st, int unknown)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	const struct entry e = ENTRY(x->root, path);
	struct fcopy_error error;
	if (x->counts || !(x->w->tree->options->copy.preserve & FCOPY_ATTR_TIMESTAMPS))
		return;
	if (unknown)
		error_call(&error, "fstat", entry_dst, unknown);
	else if (io_set_times(dst, times) < 0)
		error_call(&error, "utimensat", entry_dst, errno);
	else
		return;
	report_warning(x->w, &e, &error);
}

static void mirror_remove_extra(struct mirror_run *x, const struct extra *extra)
{
	char path[PATH_MAX], directory[PATH_MAX];
	const char *slash = strrchr(extra->path, '/');
	const size_t length = slash ? (size_t)(slash - extra->path) : 0;
	const char *name = slash ? slash + 1 : extra->path;
	struct stat st = {0};
	strcpy(path, extra->path);
	snprintf(directory, sizeof(directory), "%.*s", (int)length, path);
	int dst = mirror_open(x->root->dst, extra->path, length, false, false);
	if (dst < 0) {
		mirror_refuse(x, path, -dst,
			      dst == -EXDEV ? "is below a mount point: not removed" : NULL);
		return;
	}
	const int unknown = fstat(dst, &st) < 0 ? errno : 0;
	/* It may be in a subvolume. */
	x->dev = unknown ? x->root->dst_inode.dev : st.st_dev;
	const bool admitted = !unknown && mirror_may_widen(x, &st) && admit_open(dst, &st);
	const char *reason = NULL;
	int extra_still = mirror_still_extra(x, extra, dst, name, length, &reason);
	if (extra_still < 0)
		mirror_refuse(x, path, -extra_still, reason);
	else if (extra_still > 0 && mirror_remove(x, &dst, name, path) >= 0)
		mirror_restore_time(x, dst, directory, &st, unknown);
	if (admitted)
		admit_close(dst, &st);
	close(dst);
}

uint64_t mirror_remove_all(struct worker *w, struct directory *root, bool counts, bool reports)
{
	struct mirror_run x = mirror_run_of(w, root, counts, reports);
	for (const struct extra *e = w->tree->mirror.extras; e && !tree_stopped(w->tree);
	     e = e->next) {
		/* If it is removed now, it lacks everything. */
		if (opened_check_name(w->tree, root) < 0) {
			mirror_refuse(
			    &x, "", ESTALE,
			    "is not mirrored further: SRC was moved, replaced or removed");
			break;
		}
		mirror_remove_extra(&x, e);
	}
	return x.blind && counts ? UINT64_MAX : x.entries;
}
