/* SPDX-License-Identifier: MIT
 * What can never work, as the operands alone tell: refused before anybody listens, connects or
 * creates a file.
 */
#include "copy.h"
#include "endpoints/error.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Each can do what those before it can. */
enum rank { STREAM, DEVICE, DISK, REGULAR, NAMED };

/* DST need not exist yet, or is a directory to copy into. */
static enum rank rank_of(const char *path, int dash)
{
	mode_t type = stream_type(path, dash);
	if (S_ISFIFO(type) || S_ISSOCK(type))
		return STREAM;
	if (S_ISCHR(type))
		return DEVICE;
	if (S_ISBLK(type))
		return DISK;
	return stream_names(path) ? REGULAR : NAMED;
}

int copy_possible(const char *src, const char *dst, const struct fcopy_options *o,
		  struct fcopy_error *error)
{
	static const char offsets[] = "a stream has no offsets, which this mode needs";
	const unsigned lacks = ~(o->mode ? o->mode : fcopy_modes())->takes;
	const struct {
		const char *reason;
		enum rank src, dst; /* what they have to be at least */
		enum fcopy_advice advice;
		bool asked;
	} rules[] = {
	    {offsets, DEVICE, STREAM, FCOPY_ADVICE_AUTO, lacks & FCOPY_TAKES_STREAM_SRC},
	    {offsets, STREAM, DEVICE, FCOPY_ADVICE_AUTO, lacks & FCOPY_TAKES_STREAM_DST},
	    {VERIFY_IMPOSSIBLE, NAMED, NAMED, FCOPY_ADVICE_USAGE, o->verify || o->resume},
	    {PRESERVE_IMPOSSIBLE, REGULAR, REGULAR, FCOPY_ADVICE_USAGE, o->preserve_required},
	    {"has no page cache that could be left as it was", DISK, DISK, FCOPY_ADVICE_USAGE,
	     o->no_cache},
	    {"only a file can be cloned", REGULAR, REGULAR, FCOPY_ADVICE_USAGE,
	     o->reflink == FCOPY_WHEN_ALWAYS},
	    {FSYNC_IMPOSSIBLE, STREAM, DISK, FCOPY_ADVICE_USAGE, o->fsync},
	};
	if (o->threads > FCOPY_THREADS_MAX)
		return error_refuse(error, dst, EINVAL, "more threads than FCOPY_THREADS_MAX",
				    FCOPY_ADVICE_USAGE);
	if (o->buffer_size > FCOPY_BUFFER_MAX)
		return error_refuse(error, dst, EINVAL, "a larger buffer than FCOPY_BUFFER_MAX",
				    FCOPY_ADVICE_USAGE);
	if (o->count && (o->reflink == FCOPY_WHEN_ALWAYS ||
			 (o->mode && o->mode->engine && strcmp(o->mode->engine, "reflink") == 0)))
		return error_refuse(
		    error, src, EINVAL, "a clone is of the whole file: it has no limit",
		    o->reflink == FCOPY_WHEN_ALWAYS ? FCOPY_ADVICE_USAGE : FCOPY_ADVICE_AUTO);
	if (o->in_place && o->resume)
		return error_refuse(error, dst, EINVAL, "cannot be resumed in place",
				    FCOPY_ADVICE_USAGE);
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		if (!rules[i].asked)
			continue;
		bool src_fits = rank_of(src, STDIN_FILENO) >= rules[i].src;
		if (src_fits && (o->scratch || rank_of(dst, STDOUT_FILENO) >= rules[i].dst))
			continue;
		return error_refuse(error, src_fits ? dst : src, ESPIPE, rules[i].reason,
				    rules[i].advice);
	}
	return 0;
}
