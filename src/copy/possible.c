/* SPDX-License-Identifier: MIT
 * What can never work, as the operands alone tell: refused before anybody listens, connects or
 * creates a file.
 */
#include "copy.h"
#include "io/error.h"

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
		bool asked;
		enum rank src, dst; /* what they have to be at least */
		const char *reason;
		enum fcopy_advice advice;
	} rules[] = {
	    {lacks & FCOPY_TAKES_STREAM_SRC, DEVICE, STREAM, offsets, FCOPY_ADVICE_AUTO},
	    {lacks & FCOPY_TAKES_STREAM_DST, STREAM, DEVICE, offsets, FCOPY_ADVICE_AUTO},
	    {o->verify || o->resume, NAMED, NAMED, VERIFY_IMPOSSIBLE, FCOPY_ADVICE_USAGE},
	    {o->preserve_required, REGULAR, REGULAR, PRESERVE_IMPOSSIBLE, FCOPY_ADVICE_USAGE},
	    {o->no_cache, DISK, DISK, "has no page cache that could be left as it was",
	     FCOPY_ADVICE_USAGE},
	    {o->reflink == FCOPY_ALWAYS, REGULAR, REGULAR, "only a file can be cloned",
	     FCOPY_ADVICE_USAGE},
	};
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
