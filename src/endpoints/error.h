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

/* What a failure means: who decides that asks here. */
enum error_class {
	ERROR_OTHER,     /* also of calls that read attributes: of SRC, or of an old file */
	ERROR_FULL,      /* DST has no space, or this user no quota, for data or names */
	ERROR_STORAGE,   /* DST's storage failed */
	ERROR_ATTRIBUTE, /* DST cannot have the attribute that was to be set. A lack of space for
			  * an extended attribute means that it is too large, or one too many
			  * (ext4: one block for all), although there may be room for files. */
};

enum error_class error_classify(const struct fcopy_error *);

/* A call that was to set an attribute has failed: is its storage the reason, and not the attribute?
 * Then a copy that can do without the attribute fails, too. */
static inline bool error_is_of_storage(const struct fcopy_error *e)
{
	const enum error_class is = error_classify(e);
	return is == ERROR_FULL || is == ERROR_STORAGE;
}

/* Hands it to options.notify as a warning: the copy goes on. */
void error_warn(const struct fcopy_error *, const struct fcopy_options *);

/* The recorded failure follows from what the operands are. */
int error_unsuitable(struct fcopy_error *);

#endif
