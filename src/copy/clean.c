/* SPDX-License-Identifier: MIT
 * fcopy_clean(): what killed copies left in one directory, or below it.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "io/libc.h"
#include "part/left.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void clean_describe(struct fcopy_left *l, const struct left *found,
			   const volatile int *cancel)
{
	struct left_size size = {.entries = ~0U, .cancel = cancel};
	time_t age = time(NULL) - found->changed;
	l->kind = found->kind;
	l->state = found->state;
	l->reason = found->state == FCOPY_LEFT_UNKNOWN ? found->reason : NULL;
	l->age = age > 0 ? age : 0;
	l->old = found->kind == FCOPY_LEFT_OLD ? found->old : NULL;
	l->returns = found->returns;
	if (S_ISREG(found->st.st_mode))
		size.bytes = (uint64_t)found->st.st_size;
	else if (found->part.fd >= 0)
		left_measure(found->part.fd, &size);
	else
		size.partial = true;
	l->bytes = size.bytes;
	l->more = size.partial;
}

/* What fcopy_clean() was called with. */
struct cleaning {
	const struct fcopy_clean_options *o;
	struct fcopy_error *error;
	char failed[PATH_MAX]; /* the path of *error */
};

static int clean_directory(struct cleaning *c, int dir, const char *path);

/* Notes the first failure. */
static int clean_fail(struct cleaning *c, const char *call, const char *path, int err)
{
	if (c->error->err == 0) {
		snprintf(c->failed, sizeof(c->failed), "%s", path);
		error_call(c->error, call, c->failed, err);
	}
	return -1;
}

/* Returns false if the path is too long. */
static bool clean_path(char whole[PATH_MAX], const char *path, const char *name)
{
	const size_t length = strlen(path);
	return snprintf(whole, PATH_MAX, "%s%s%s", path,
			length > 0 && path[length - 1] == '/' ? "" : "/", name) < PATH_MAX;
}

/* Returns 0 or -1. The path of the error is lost with the name. */
static int clean_left(struct cleaning *c, const char *path, const char *whole, struct left *found)
{
	const struct fcopy_clean_options *o = c->o;
	struct fcopy_left l = {.path = whole};
	clean_describe(&l, found, o->cancel);
	if (l.state == FCOPY_LEFT_DEAD && o->remove && o->remove(o->user, &l)) {
		int r = left_remove(found);
		l.state = found->state;
		if (r < 0) {
			error_call(&l.error, "remove", whole, -r);
			clean_fail(c, "remove", path, -r);
		}
	}
	if (o->notify)
		o->notify(o->user, &l);
	return l.state == FCOPY_LEFT_FAILED ? -1 : 0;
}

/* Is it a directory, which may contain others? Not a part, nor what is mounted there. Returns its
 * descriptor; -1: there is nothing to search; or -errno. */
static int clean_open(struct cleaning *c, int dir, const char *name)
{
	struct stat st, above;
	struct statx sx;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return -1;
	if (c->o->unsearched && !c->o->recursive)
		*c->o->unsearched = true;
	if (!c->o->recursive)
		return -1;
	const int fd = openat(dir, name,
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -1 : errno == EPERM ? -EACCES : -errno;
	/* A subvolume has another device, and is no mount point. */
	const bool known = statx(fd, "", AT_EMPTY_PATH, 0, &sx) == 0 &&
			   sx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT;
	const bool mounted = known ? sx.stx_attributes & STATX_ATTR_MOUNT_ROOT
				   : fstat(dir, &above) < 0 || above.st_dev != st.st_dev;
	if (!mounted)
		return fd;
	close(fd);
	return -1;
}

static int clean_name(struct cleaning *c, int dir, const char *path, const char *name)
{
	char whole[PATH_MAX];
	struct left found;
	int r;
	if (!clean_path(whole, path, name))
		return clean_fail(c, "stat", path, ENAMETOOLONG);
	if (part_examine(&found, dir, name, true)) {
		r = clean_left(c, path, whole, &found);
		left_close(&found);
		return r;
	}
	int fd = clean_open(c, dir, name);
	if (fd == -1)
		return 0;
	if (fd >= 0)
		return clean_directory(c, fd, whole);
	return clean_fail(c, "open", whole, -fd);
}

/* Closes dir. */
static int clean_directory(struct cleaning *c, int dir, const char *path)
{
	struct name_list list = {.count = 0};
	const char *call;
	int r = names_read(dir, &list, &call);
	if (r < 0)
		r = clean_fail(c, call, path, -r);
	for (size_t i = 0; i < list.count; i++) {
		if (c->o->cancel && __atomic_load_n(c->o->cancel, __ATOMIC_RELAXED)) {
			snprintf(c->failed, sizeof(c->failed), "%s", path);
			error_refuse(c->error, c->failed, EINTR, "interrupted", FCOPY_ADVICE_NONE);
			r = -1;
			break;
		}
		if (clean_name(c, dir, path, list.name[i]) < 0)
			r = -1;
	}
	names_free(&list);
	close(dir);
	return r;
}

int fcopy_clean(const char *path, const struct fcopy_clean_options *options,
		struct fcopy_error *error)
{
	const struct fcopy_clean_options none = {.api = FCOPY_API};
	const struct fcopy_clean_options *o = options ? options : &none;
	static _Thread_local struct cleaning c; /* the path of the error stays valid */
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
	c = (struct cleaning){.o = o, .error = error};
	return clean_directory(&c, dir, path);
}
