/* SPDX-License-Identifier: MIT
 * fcopy_clean(): what killed copies left in one directory, or below it. And the warning about what
 * they left where another copy writes.
 */
#include "copy.h"
#include "endpoints/error.h"
#include "endpoints/replace.h"
#include "io/amount.h"
#include "io/libc.h"
#include "io/system.h"
#include "part/left.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The bytes of its files. */
static void clean_measure(const struct left *found, struct left_size *size)
{
	if (S_ISREG(found->st.st_mode))
		size->bytes = (uint64_t)found->st.st_size;
	else if (found->part.fd >= 0)
		left_measure(found->part.fd, size);
	else
		size->partial = true;
}

static void clean_describe(struct fcopy_left *l, const struct left *found,
			   const volatile int *cancel)
{
	struct left_size size = {.entries = ~0U, .cancel = cancel};
	const int64_t age = time_between(found->changed, time(NULL));
	l->kind = found->kind;
	l->state = found->state;
	l->reason = found->state == FCOPY_LEFT_UNKNOWN ? found->reason : NULL;
	l->age = age > 0 ? age : 0;
	l->old = found->kind == FCOPY_LEFT_OLD ? found->old : NULL;
	l->returns = found->returns;
	clean_measure(found, &size);
	l->bytes = size.bytes;
	l->more = size.partial;
}

#define OPEN_LEVELS 16 /* directories that are held open, however deep the tree */

/* A directory that is being searched. */
struct search {
	struct search *above;
	struct name_list names;
	size_t next;   /* of its names */
	size_t length; /* of its path */
	unsigned depth;
	int fd; /* -1: it is closed while one below it is searched, or cannot be found again */
	dev_t dev;
	ino_t ino;
};

/* What fcopy_clean() was called with, and where it is. */
struct cleaning {
	const struct fcopy_clean_options *o;
	struct fcopy_error *error;
	struct search *at;
	char *path;            /* of that directory, or of a name in it: PATH_MAX bytes */
	char failed[PATH_MAX]; /* the path of *error */
};

/* Notes the first failure; length: of its path, the first bytes of c->path. Returns -1. */
static int clean_fail(struct cleaning *c, const char *call, size_t length, int err)
{
	if (c->error->err == 0) {
		snprintf(c->failed, sizeof(c->failed), "%.*s", (int)length, c->path);
		error_call(c->error, call, c->failed, err);
	}
	return -1;
}

/* Appends a name to the path of the directory. Returns false if that is too long. */
static bool clean_append(struct cleaning *c, const char *name)
{
	const size_t length = c->at->length, room = PATH_MAX - length;
	const bool slash = length == 0 || c->path[length - 1] != '/';
	const int n = snprintf(c->path + length, room, "%s%s", slash ? "/" : "", name);
	return (size_t)n < room;
}

/* Returns 0 or -1. */
static int clean_left(struct cleaning *c, struct left *found)
{
	const struct fcopy_clean_options *o = c->o;
	struct fcopy_left l = {.path = c->path};
	clean_describe(&l, found, o->cancel);
	if (l.state == FCOPY_LEFT_DEAD && o->remove && o->remove(o->user, &l)) {
		int r = left_remove(found);
		l.state = found->state;
		if (r < 0) {
			error_call(&l.error, "remove", c->path, -r);
			clean_fail(c, "remove", c->at->length, -r);
		}
	}
	if (o->notify)
		o->notify(o->user, &l);
	return l.state == FCOPY_LEFT_FAILED ? -1 : 0;
}

/* Is it a directory, which may contain others? Not a part, nor what is mounted there. Returns its
 * descriptor; -1: there is nothing to search; or -errno. */
static int clean_open(struct cleaning *c, const char *name)
{
	struct stat st;
	if (fstatat(c->at->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return -1;
	if (c->o->unsearched && !c->o->recursive)
		*c->o->unsearched = true;
	if (!c->o->recursive)
		return -1;
	const int fd = openat(c->at->fd, name,
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -1 : errno == EPERM ? -EACCES : -errno;
	const int mounted = system_is_mount_root(fd);
	if (mounted < 0 ? c->at->dev == st.st_dev : !mounted)
		return fd;
	close(fd);
	return -1;
}

static bool clean_is(const struct search *d, const struct stat *st)
{
	return st->st_dev == d->dev && st->st_ino == d->ino;
}

/* Takes fd, the directory c->path: its names are next. Deep in a tree, closes the one above.
 * Returns 0 or -1. */
static int clean_enter(struct cleaning *c, int fd)
{
	struct search *d = calloc(1, sizeof(*d)), *above = c->at;
	struct stat st = {0}, up;
	const size_t length = strlen(c->path);
	struct failure fail = {.call = "malloc"};
	int r = d ? names_read(fd, &d->names, &fail) : -ENOMEM;
	if (r == 0 && fstat(fd, &st) < 0) {
		r = fail_at(&fail, "fstat");
		names_free(&d->names);
	}
	if (r < 0) {
		close(fd);
		free(d);
		return clean_fail(c, fail.call, length, -r);
	}
	d->above = above;
	d->length = length;
	d->depth = above ? above->depth + 1 : 1;
	d->fd = fd;
	d->dev = st.st_dev;
	d->ino = st.st_ino;
	c->at = d;
	/* Without the right to search it has no "..", and nothing below it is entered. */
	if (d->depth > OPEN_LEVELS && fstatat(fd, "..", &up, 0) == 0 && clean_is(above, &up)) {
		close(above->fd);
		above->fd = -1;
	}
	return 0;
}

static void clean_close(struct cleaning *c)
{
	struct search *d = c->at;
	c->at = d->above;
	io_close(d->fd);
	names_free(&d->names);
	free(d);
}

/* Opens the directory above this one again. Returns 0 or -errno. */
static int clean_climb(const struct search *d)
{
	struct stat st;
	const int up = openat(d->fd, "..", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	const int err = up < 0 || fstat(up, &st) < 0 ? errno : clean_is(d->above, &st) ? 0 : ESTALE;
	if (err == 0)
		d->above->fd = up;
	else
		io_close(up);
	return -err;
}

/* Goes up. If a directory was moved, what is left in the closed ones above it is not searched: the
 * uppermost ones are open. Returns 0 or -1. */
static int clean_leave(struct cleaning *c)
{
	struct search *d = c->at, *above = d->above;
	int r = 0;
	if (above && above->fd < 0) {
		const int climbed = d->fd < 0 ? -ESTALE : clean_climb(d);
		if (climbed < 0) {
			r = clean_fail(c, "open", above->length, -climbed);
			above->next = above->names.count;
		}
	}
	clean_close(c);
	return r;
}

static int clean_name(struct cleaning *c, const char *name)
{
	struct left found;
	int r;
	if (!clean_append(c, name))
		return clean_fail(c, "stat", c->at->length, ENAMETOOLONG);
	if (part_examine(&found, c->at->fd, name, true)) {
		r = clean_left(c, &found);
		left_close(&found);
		return r;
	}
	const int fd = clean_open(c, name);
	if (fd == -1)
		return 0;
	return fd >= 0 ? clean_enter(c, fd) : clean_fail(c, "open", strlen(c->path), -fd);
}

/* Closes dir, the directory c->path. Returns 0 or -1. */
static int clean_below(struct cleaning *c, int dir)
{
	int r = clean_enter(c, dir);
	while (c->at) {
		struct search *d = c->at;
		if (c->o->cancel && __atomic_load_n(c->o->cancel, __ATOMIC_RELAXED)) {
			snprintf(c->failed, sizeof(c->failed), "%.*s", (int)d->length, c->path);
			error_refuse(c->error, c->failed, EINTR, "interrupted", FCOPY_ADVICE_NONE);
			r = -1;
			while (c->at)
				clean_close(c);
		} else if ((d->next < d->names.count ? clean_name(c, d->names.name[d->next++])
						     : clean_leave(c)) < 0) {
			r = -1;
		}
	}
	return r;
}

int fcopy_clean(const char *path, const struct fcopy_clean_options *options,
		struct fcopy_error *error)
{
	const struct fcopy_clean_options none = {.api = FCOPY_API};
	const struct fcopy_clean_options *o = options ? options : &none;
	static _Thread_local struct cleaning c; /* the path of the error stays valid */
	char whole[PATH_MAX];
	*error = (struct fcopy_error){0};
	if (o->api != FCOPY_API) {
		error_refuse(error, path, EINVAL, "options.api is not FCOPY_API",
			     FCOPY_ADVICE_NONE);
		return -1;
	}
	const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0) {
		error_look_up(error, "open", path, errno);
		return -1;
	}
	snprintf(whole, sizeof(whole), "%s", path);
	c = (struct cleaning){.o = o, .error = error, .path = whole};
	return clean_below(&c, dir);
}

bool fcopy_is_unfinished(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char directory[PATH_MAX];
	struct left l;
	struct stat st;
	if (lstat(path, &st) < 0)
		return false;
	snprintf(directory, sizeof(directory), "%.*s.", (int)(name - path), path);
	const int parent = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const bool unfinished = parent >= 0 && part_examine(&l, parent, name, false) &&
				l.part.journal.source.kind && !l.part.journal.shards.kind &&
				part_has_data(&l.part);
	if (parent >= 0)
		left_close(&l);
	io_close(parent);
	return unfinished;
}

/* Temporary files and unfinished trees that a killed copy left. A copy that writes under such a
 * name itself warns about those of the same user that are older than a day. It removes only what
 * has no bytes of a copy: another machine may be writing the rest. */

#define DAY          86400L
#define NAMES_MAX    4096  /* are read: a directory may be huge, and its server far away */
#define ENTRIES_MAX  10000 /* of one unfinished tree are measured */
#define WARNINGS_MAX 8

/* Whose is it, and how large? Returns false if a copy on this machine uses it: the mtime of a
 * directory does not change when files below it are written. */
static bool examine(int dir, const char *name, struct left_size *size, bool *dead)
{
	struct left l;
	const bool unused = part_examine(&l, dir, name, false) && l.state != FCOPY_LEFT_LIVE;
	*dead = l.state == FCOPY_LEFT_DEAD;
	if (unused)
		clean_measure(&l, size);
	left_close(&l);
	return unused;
}

/* Returns false if there is nothing to warn about. directory: the path of dir. */
static bool warn_about(int dir, const char *directory, const char *name,
		       const struct fcopy_options *o, const struct fcopy_report *report)
{
	char path[PATH_MAX], reason[128], bytes[AMOUNT_MAX];
	struct stat st, named;
	struct left_size size = {.entries = ENTRIES_MAX};
	struct fcopy_error e;
	bool dead;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_uid != geteuid() ||
	    (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return false;
	const int64_t age = time_between(st.st_mtime, time(NULL));
	int n = snprintf(path, sizeof(path), "%s/%s", directory, name);
	/* The user may remove what the path leads to: it must be this file. */
	if (!o->notify || age < DAY || n >= PATH_MAX || lstat(path, &named) < 0 ||
	    !same_inode(&named, &st) || !examine(dir, name, &size, &dead))
		return false;
	amount_write(bytes, size.bytes);
	const enum fcopy_advice advice = !S_ISDIR(st.st_mode) ? FCOPY_ADVICE_REMOVE_FILE
					 : dead               ? FCOPY_ADVICE_CLEAN
							      : FCOPY_ADVICE_REMOVE_TREE;
	snprintf(reason, sizeof(reason), "left by an interrupted copy (%s%s, %ju day%s old)",
		 size.partial ? "more than " : "", bytes, (uintmax_t)(age / DAY),
		 age < 2 * DAY ? "" : "s");
	error_refuse(&e, path, EEXIST, reason, advice);
	o->notify(o->user, &(struct fcopy_event){
			       .kind = FCOPY_EVENT_WARNING, .report = report, .error = &e});
	return true;
}

/* Without /proc, the empty path, where nothing is found. */
static void find_path(int dir, char path[PATH_MAX])
{
	const ssize_t n = readlink(io_proc_path(dir).text, path, PATH_MAX - 1);
	path[n > 0 ? n : 0] = '\0';
}

void stale_warn_name(int dir, const char *name, const struct fcopy_options *o)
{
	char directory[PATH_MAX];
	if (!temporary_is_drawn(name) || left_sweep(dir, name, -1))
		return;
	find_path(dir, directory);
	(void)warn_about(dir, directory, name, o, NULL);
}

void stale_warn(int dir, const struct fcopy_options *o, const struct fcopy_report *report)
{
	_Alignas(8) char buffer[READER_SIZE];
	char directory[PATH_MAX];
	unsigned names = 0, warnings = 0;
	struct reader r = reader_open(dir, buffer, sizeof(buffer));
	if (r.fd < 0)
		return;
	find_path(r.fd, directory);
	for (const char *name;
	     names < NAMES_MAX && warnings < WARNINGS_MAX && (name = reader_next(&r)); names++)
		if (temporary_is_drawn(name) && !left_sweep(r.fd, name, -1))
			warnings += warn_about(r.fd, directory, name, o, report);
	reader_close(&r);
}
