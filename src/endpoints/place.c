/* SPDX-License-Identifier: MIT
 * One name in a directory that is held open.
 */
#define _GNU_SOURCE
#include "place.h"
#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void place_close(struct place *p)
{
	if (p->dir >= 0)
		close(p->dir);
	if (p->target >= 0)
		close(p->target);
	p->dir = p->target = -1;
}

int place_stat(struct place *p, const char *path, struct fcopy_error *e)
{
	p->exists = fstatat(p->dir, p->name, &p->st, AT_SYMLINK_NOFOLLOW) == 0;
	p->symlink = p->exists && S_ISLNK(p->st.st_mode);
	return p->exists || errno == ENOENT ? 0 : error_call(e, "stat", path, errno);
}

int place_open_target(struct place *p, const char *link, const char *path, struct fcopy_error *e)
{
	p->target = openat(p->dir, link, O_PLACE);
	if (p->target < 0 && errno == ENOENT)
		return error_refuse(e, path, ENOENT, "is a dangling symlink",
				    FCOPY_ADVICE_REMOVE_LINK);
	if (p->target < 0 && errno == ELOOP)
		return error_refuse(e, path, ELOOP, "is a loop of symlinks",
				    FCOPY_ADVICE_REMOVE_LOOP);
	if (p->target < 0)
		return error_call(e, "open", path, errno);
	return fstat(p->target, &p->st) < 0 ? error_call(e, "fstat", path, errno) : 0;
}

bool place_is_directory(const struct place *p)
{
	return p->exists && S_ISDIR(p->st.st_mode);
}

bool place_leads_nowhere(const struct fcopy_error *e)
{
	return e->advice == FCOPY_ADVICE_REMOVE_LINK || e->advice == FCOPY_ADVICE_REMOVE_LOOP;
}

int place_enter(struct place *p, int dir, const char *name, const char *path, struct fcopy_error *e)
{
	*p = (struct place){.dir = fcntl(dir, F_DUPFD_CLOEXEC, 0), .target = -1};
	if (p->dir < 0)
		return error_call(e, "fcntl(F_DUPFD)", path, errno);
	strcpy(p->name, name);
	return place_stat(p, path, e);
}

int place_share(struct place *p, const struct place *other, const char *path, struct fcopy_error *e)
{
	*p = *other;
	p->target = -1;
	p->dir = fcntl(other->dir, F_DUPFD_CLOEXEC, 0);
	return p->dir < 0 ? error_call(e, "fcntl(F_DUPFD)", path, errno) : 0;
}
