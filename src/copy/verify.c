/* SPDX-License-Identifier: MIT
 * The two places where a copy is compared with its source: before the commit, and before an
 * interrupted one goes on.
 */
#include "copy.h"
#include "io/error.h"

#include <stdio.h>
#include <unistd.h>

#define RESUME_ALIGN ((off_t)4096) /* direct I/O goes on at a block */

/* Only two files can be read twice. */
static bool comparable(const struct copy *c)
{
	return S_ISREG(c->src.st.st_mode) && S_ISREG(c->dst.st.st_mode) && c->src.positional &&
	       c->dst.positional;
}

int verify_possible(struct copy *c)
{
	const struct fcopy_options *o = c->options;
	if ((!o->verify && !o->resume) || comparable(c))
		return 0;
	return error_refuse(&c->report->error, comparable(c) ? c->src.path : c->dst.path, ESPIPE,
			    VERIFY_IMPOSSIBLE, FCOPY_ADVICE_USAGE);
}

int verify_copy(struct copy *c)
{
	bool cached;
	struct fcopy_report *report = c->report;
	double start = io_now();
	copy_phase(c, FCOPY_PHASE_VERIFY, (uint64_t)c->all.offset);
	off_t same = compare_files(c, c->all.offset, true, &cached);
	report->seconds[FCOPY_PHASE_VERIFY] = io_now() - start;
	if (same < 0)
		return (int)same;
	if (same < c->all.offset) {
		snprintf(report->detail, sizeof(report->detail),
			 "differs from the source at byte %jd%s", (intmax_t)same,
			 c->dst.in_place ? ", and was written in place" : "");
		return error_refuse(&report->error, c->dst.path, EIO, report->detail,
				    FCOPY_ADVICE_NONE);
	}
	if (cached) {
		struct fcopy_error e;
		error_refuse(&e, c->dst.path, EOPNOTSUPP,
			     "verified with its pages dropped: the file system has no O_DIRECT",
			     FCOPY_ADVICE_NONE);
		copy_notify(c, FCOPY_EVENT_WARNING, &e, NULL);
	}
	return 0;
}

int verify_prefix(struct copy *c)
{
	bool cached;
	off_t size = lseek(c->dst.fd, 0, SEEK_END);
	if (size < 0)
		return error_call(&c->report->error, "lseek", c->dst.path, errno);
	off_t same = compare_files(c, size, false, &cached);
	if (same < 0)
		return (int)same;
	same -= same % RESUME_ALIGN;
	if (ftruncate(c->dst.fd, same) < 0)
		return error_call(&c->report->error, "ftruncate", c->dst.path, errno);
	c->all.offset = same;
	c->report->resumed = (uint64_t)same;
	copy_notify(c, FCOPY_EVENT_RESUME, NULL, NULL);
	return 0;
}
