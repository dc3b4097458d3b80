/* SPDX-License-Identifier: MIT
 *
 * Fills in struct fcopy_error. Functions return -errno; the one that knows the call and the file
 * records both, once. Each function here returns -err.
 */
#ifndef ENDPOINTS_ERROR_H
#define ENDPOINTS_ERROR_H

#include "fcopy.h"

#include <errno.h>

/* Records a failed system call. */
int error_call(struct fcopy_error *, const char *call, const char *path, int err);

/* Records a system call that failed as part of `operation`, which messages name instead of it. */
int error_operation(struct fcopy_error *, const char *operation, const char *call, const char *path,
		    int err);

/* Records a system call on a name below /proc/self/fd. */
int error_proc(struct fcopy_error *, const char *call, const char *path, int err);

/* Records a refusal by fcopy itself: `reason` replaces the text of err. */
int error_refuse(struct fcopy_error *, const char *path, int err, const char *reason,
		 enum fcopy_advice);

/* Record why SRC or DST, or what it leads to, cannot be used, before anything was changed: the
 * failed call that looked it up, which is `unsuitable` if it names nothing; and a refusal that
 * follows from what it is, which always is. */
int error_look_up(struct fcopy_error *, const char *call, const char *path, int err);
int error_refuse_operand(struct fcopy_error *, const char *path, int err, const char *reason,
			 enum fcopy_advice);

/* Does the recorded failure of a call on a copy speak of its storage: an error of I/O, or a lack of
 * space? Then it is none of the attribute that was to be set. Of extended attributes, a lack of
 * space means that one is too large, or that there are too many. */
bool error_is_of_storage(const struct fcopy_error *);

/* The recorded failure follows from what the operands are. */
int error_unsuitable(struct fcopy_error *);

#endif
