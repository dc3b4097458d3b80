/* SPDX-License-Identifier: MIT
 *
 * What functions return besides 0, which is success, and -errno. 1 is the "yes" of a question whose
 * "no" is 0. Any other outcome is one of these, in all rooms: a value that is handed on can never
 * be taken for another one, for a "yes", or for a descriptor.
 */
#ifndef IO_RESULT_H
#define IO_RESULT_H

#include <errno.h>

enum result {
	/* A name in DST. */
	RESULT_SKIPPED = 1 << 30, /* no_clobber: DST exists and stays as it is; not a failure */
	RESULT_TAKEN,     /* it leads to something else than what may be replaced, which stays */
	RESULT_RIVAL,     /* it leads to the copy of another entry of the tree, which stays */
	RESULT_EXCHANGED, /* done, but at the last moment another file had it, and has come out */
	RESULT_NEW,       /* done: it did not exist */
	RESULT_SAME,      /* it is what it was to become */
	RESULT_KNOWN,     /* the outcome of the entry is known, and counted */
	RESULT_STAYS,     /* something below it cannot be removed, and stays */

	/* A way to copy. */
	RESULT_NEXT,    /* the engine does not support these descriptors; another one may */
	RESULT_UNFIT,   /* the storage lacks it */
	RESULT_CHANGED, /* done: owner or mode of the file have changed */
	RESULT_NONE,    /* neither file has what was to be kept */
	RESULT_REFUSED, /* of a dry run: the open of DST would fail, as is recorded */

	/* A new tree, a part, and the job of shards. */
	RESULT_EXISTS,    /* DST exists, and its part does not show that it was committed */
	RESULT_MERGES,    /* the operands ask for a merge into DST */
	RESULT_COMMITTED, /* DST is complete, by this process or by another one */
	RESULT_AGAIN,     /* another process has changed the part: look again */
	RESULT_LEFT,      /* other processes have chunks, and will commit */
};

/* What has failed, for decisions. */
enum step {
	STEP_OTHER,
	STEP_READ,     /* a call that reads the source */
	STEP_MAKE,     /* the call that makes something under a name */
	STEP_RENAME,   /* the rename that gives a copy its name */
	STEP_DISPLACE, /* the rename of what a copy replaces */
	STEP_OPEN,     /* the open of the copy, to read it */
	STEP_TRUNCATE, /* ftruncate(2) of the copy */
	STEP_REPORTED, /* any: the caller reports nothing more */
};

/* Which call has failed, beside -errno. */
struct failure {
	const char *call; /* for messages; NULL: no call has failed, or STEP_REPORTED */
	enum step step;
};

/* `call` has failed, or is made next. Returns -errno. NULL: nobody asks. */
static inline int fail_at(struct failure *fail, const char *call)
{
	if (fail)
		*fail = (struct failure){.call = call};
	return -errno;
}

/* As fail_at(), if r is below 0. Returns r. */
static inline int fail_if(struct failure *fail, int r, const char *call)
{
	if (r < 0)
		fail_at(fail, call);
	return r;
}

/* The failure was reported. Returns r, its -errno. */
static inline int fail_reported(struct failure *fail, int r)
{
	*fail = (struct failure){.step = STEP_REPORTED};
	return r;
}

#endif
