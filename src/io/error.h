/* SPDX-License-Identifier: MIT
 *
 * How a failure travels: functions return -errno, and whoever knows the call and the file writes
 * them down here, once.
 */
#ifndef IO_ERROR_H
#define IO_ERROR_H

#include "fcopy.h"

#include <errno.h>
#include <unistd.h>

/* Books a failed system call. Returns -err. */
static inline int error_call(struct fcopy_error *e, const char *call, const char *path, int err)
{
	*e = (struct fcopy_error){.err = err, .call = call, .path = path};
	return -err;
}

/* The same of a call that went through /proc/self/fd. */
static inline int error_proc(struct fcopy_error *e, const char *call, const char *path, int err)
{
	error_call(e, call, path, err);
	if (err == ENOENT && access("/proc/self/fd", F_OK) < 0)
		e->reason = "needs /proc, which is not mounted";
	return -err;
}

/* Books a refusal of our own: reason replaces the errno's text. Returns -err. */
static inline int error_refuse(struct fcopy_error *e, const char *path, int err, const char *reason,
			       enum fcopy_advice advice)
{
	*e = (struct fcopy_error){.err = err, .path = path, .reason = reason, .advice = advice};
	return -err;
}

#endif
