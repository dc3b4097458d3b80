/* SPDX-License-Identifier: MIT
 * Compares a copy with its source: before the commit (--verify), and before an interrupted copy is
 * continued (--resume).
 */
#include "verify.h"
#include "compare.h"
#include "endpoints/error.h"
#include "notify.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESUME_ALIGN ((off_t)4096) /* direct I/O continues at a block */

int verify_copy(struct copy *c)
{
	bool cached;
	struct fcopy_report *report = c->report;
	double start = io_now();
	copy_phase(c, FCOPY_PHASE_VERIFY, (uint64_t)(c->all.offset - c->first));
	const char *in_place = endpoint_old(&c->dst) == OLD_OVERWRITTEN
				   ? ", and was written in place"
				   : "";
	off_t same = c->src.positional
			 ? compare_files(c, c->first, c->all.offset, true, true, &cached)
			 : compare_sum(c, c->all.offset, &cached);
	report->seconds[FCOPY_PHASE_VERIFY] += io_now() - start;
	if (same < 0) {
		/* Some object stores open no file that is being written. */
		const struct fcopy_error *e = &report->error;
		if (e->call && strcmp(e->call, "open") == 0 && e->path == c->dst.path && !e->reason)
			report->error.advice = FCOPY_ADVICE_NO_FSYNC;
		return (int)same;
	}
	if (c->src.positional ? same < c->all.offset : same == 0) {
		if (c->src.positional)
			snprintf(report->detail, sizeof(report->detail),
				 "differs from the source at byte %jd%s", (intmax_t)same, in_place);
		else
			snprintf(report->detail, sizeof(report->detail),
				 "differs from what the source sent%s", in_place);
		return error_refuse(&report->error, c->dst.path, EIO, report->detail,
				    FCOPY_ADVICE_NONE);
	}
	if (cached)
		copy_warn(c, c->dst.path, EOPNOTSUPP,
			  access("/proc/self/fd", F_OK) < 0
			      ? "verified through the page cache: /proc is not mounted"
			      : "verified through the page cache: O_DIRECT is unsupported here",
			  FCOPY_ADVICE_NONE);
	return 0;
}

/* A clone is one call for the whole file. */
static bool clones_only(const struct copy *c)
{
	return c->options->reflink == FCOPY_WHEN_ALWAYS ||
	       (c->mode->engine && strcmp(c->mode->engine, engine_reflink.name) == 0);
}

int verify_prefix(struct copy *c)
{
	bool cached;
	struct stat part;
	off_t known = c->dst.ops->begin_partial ? c->dst.ops->begin_partial(&c->dst, -1) : -1;
	if (known < 0)
		return error_refuse(&c->report->error, c->dst.path, EINVAL,
				    "has no .fcopy-part that could be resumed", FCOPY_ADVICE_USAGE);
	if (fstat(c->dst.fd, &part) < 0)
		return error_call(&c->report->error, "fstat", c->dst.path, errno);
	/* With --fsync, read from the storage: after a failed writeback the page cache may contain
	 * data that the disk does not, and the next fsync would succeed. */
	off_t end = part.st_size < c->limit ? part.st_size : c->limit;
	double start = io_now();
	known = known < end ? known : end;
	copy_phase(c, FCOPY_PHASE_VERIFY, (uint64_t)(end - known));
	/* A new part has nothing to compare. Some object stores open no file that is being written.
	 */
	off_t same = end > known ? compare_files(c, known, end, c->options->fsync, false, &cached)
				 : known;
	c->report->seconds[FCOPY_PHASE_VERIFY] += io_now() - start;
	if (same < 0)
		return (int)same;
	const char *restart = same < part.st_size ? "its .fcopy-part differs from the source"
						  : NULL;
	same = clones_only(c) ? 0 : same - same % RESUME_ALIGN;
	c->resumes = true;
	c->all.offset = same;
	c->report->resumed = (uint64_t)same;
	/* First: the journal must not promise bytes that are truncated. */
	c->dst.ops->begin_partial(&c->dst, same);
	const int cut = same < part.st_size ? io_truncate(c->dst.fd, same) : 0;
	if (cut < 0) {
		error_call(&c->report->error, "ftruncate", c->dst.path, -cut);
		c->report->error.advice = FCOPY_ADVICE_REMOVE_PART;
		return -c->report->error.err;
	}
	copy_notify(c, FCOPY_EVENT_RESUME, NULL, same == 0 ? restart : NULL);
	return 0;
}
