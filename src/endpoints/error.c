/* SPDX-License-Identifier: MIT
 * Errors as structs, and as text.
 */
#include "error.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int error_call(struct fcopy_error *e, const char *call, const char *path, int err)
{
	return error_operation(e, NULL, call, path, err);
}

int error_operation(struct fcopy_error *e, const char *operation, const char *call,
		    const char *path, int err)
{
	*e = (struct fcopy_error){.err = err, .operation = operation, .call = call, .path = path};
	return -err;
}

int error_proc(struct fcopy_error *e, const char *call, const char *path, int err)
{
	error_call(e, call, path, err);
	if (err == ENOENT && access("/proc/self/fd", F_OK) < 0)
		e->reason = "needs /proc, which is not mounted";
	return -err;
}

int error_refuse(struct fcopy_error *e, const char *path, int err, const char *reason,
		 enum fcopy_advice advice)
{
	*e = (struct fcopy_error){.err = err,
				  .path = path,
				  .reason = reason,
				  .advice = advice,
				  .unsuitable = advice == FCOPY_ADVICE_USAGE ||
						advice == FCOPY_ADVICE_INTO};
	return -err;
}

void error_warn(const struct fcopy_error *e, const struct fcopy_options *o)
{
	if (o->notify)
		o->notify(o->user, &(struct fcopy_event){.kind = FCOPY_EVENT_WARNING, .error = e});
}

int error_look_up(struct fcopy_error *e, const char *call, const char *path, int err)
{
	error_call(e, call, path, err);
	e->unsuitable = err == ENOENT || err == ENOTDIR || err == ELOOP || err == ENAMETOOLONG;
	return -err;
}

int error_refuse_operand(struct fcopy_error *e, const char *path, int err, const char *reason,
			 enum fcopy_advice advice)
{
	error_refuse(e, path, err, reason, advice);
	return error_unsuitable(e);
}

int error_unsuitable(struct fcopy_error *e)
{
	e->unsuitable = true;
	return -e->err;
}

int fcopy_error_text(const struct fcopy_error *e, char *text, size_t size)
{
	const char *what = e->operation ? e->operation : e->call;
	const char *and = !e->path2 ? "" : what || e->engine ? " -> " : " and ";
	bool option = e->option && !e->path;
	return snprintf(text, size, "%s%s%s%s%s%s%s%s", option ? "--" : "",
			e->path  ? *e->path ? e->path : "''"
			: option ? e->option
				 : "",
			and, e->path2 ? e->path2 : "", e->path || option ? ": " : "",
			what ? what : "", what ? ": " : "",
			e->reason ? e->reason : strerror(e->err));
}
