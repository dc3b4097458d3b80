/* SPDX-License-Identifier: MIT
 * fcopy_clean(): what killed copies left in one directory.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "part/left.h"
#include "source/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int clean_fail(struct fcopy_error *error, const char *call, const char *path, int err)
{
	if (error->err == 0)
		error_call(error, call, path, err);
	return -1;
}

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

/* Returns 0 or -1. The path of the error is lost with the name. */
static int clean_name(int dir, const char *path, const char *name,
		      const struct fcopy_clean_options *o, struct fcopy_error *error)
{
	char whole[PATH_MAX];
	struct left found;
	struct fcopy_left l = {.path = whole};
	const size_t slash = strlen(path);
	if (!left_find(&found, dir, name))
		return 0;
	if (snprintf(whole, sizeof(whole), "%s%s%s", path,
		     slash > 0 && path[slash - 1] == '/' ? "" : "/", name) >= PATH_MAX) {
		left_close(&found);
		return clean_fail(error, "stat", path, ENAMETOOLONG);
	}
	clean_describe(&l, &found, o->cancel);
	if (l.state == FCOPY_LEFT_DEAD && o->remove && o->remove(o->user, &l)) {
		int r = left_remove(&found);
		l.state = found.state;
		if (r < 0) {
			error_call(&l.error, "remove", whole, -r);
			clean_fail(error, "remove", path, -r);
		}
	}
	left_close(&found);
	if (o->notify)
		o->notify(o->user, &l);
	return l.state == FCOPY_LEFT_FAILED ? -1 : 0;
}

int fcopy_clean(const char *path, const struct fcopy_clean_options *options,
		struct fcopy_error *error)
{
	const struct fcopy_clean_options none = {.api = FCOPY_API};
	const struct fcopy_clean_options *o = options ? options : &none;
	struct name_list list = {.count = 0};
	const char *call = "open";
	*error = (struct fcopy_error){0};
	if (o->api != FCOPY_API) {
		error_refuse(error, path, EINVAL, "options.api is not FCOPY_API",
			     FCOPY_ADVICE_NONE);
		return -1;
	}
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -errno : names_read(dir, &list, &call);
	if (dir < 0) {
		error_look_up(error, call, path, -r);
		return -1;
	}
	if (r < 0) {
		close(dir);
		return clean_fail(error, call, path, -r);
	}
	for (size_t i = 0; i < list.count; i++) {
		if (o->cancel && __atomic_load_n(o->cancel, __ATOMIC_RELAXED)) {
			error_refuse(error, path, EINTR, "interrupted", FCOPY_ADVICE_NONE);
			r = -1;
			break;
		}
		if (clean_name(dir, path, list.name[i], o, error) < 0)
			r = -1;
	}
	names_free(&list);
	close(dir);
	return r;
}
