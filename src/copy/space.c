/* SPDX-License-Identifier: MIT
 * Is there enough disk space for the copy? Compression and quotas can prove the answer wrong, so it
 * is a warning only.
 */
#include "space.h"
#include "endpoints/error.h"
#include "io/amount.h"
#include "io/system.h"
#include "notify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Bytes. A smaller copy ends before a user could react to a warning. */
#define SPACE_MIN         ((uint64_t)64 << 10)
#define SPACE_MIN_OF_MANY ((uint64_t)1 << 20) /* one file of a tree */

/* The bytes of data that are left to write; 0: unknown. */
static uint64_t data_left(const struct copy *c)
{
	const struct fcopy_options *o = c->options;
	uint64_t left = c->report->expected;
	left -= MIN(left, (uint64_t)(c->all.offset - c->first));
	bool keeps_holes = !c->mode->engine && o->sparse != FCOPY_WHEN_NEVER &&
			   o->preallocate != FCOPY_WHEN_ALWAYS;
	if (keeps_holes && S_ISREG(c->src.st.st_mode) && c->src.positional)
		left = MIN(left, (uint64_t)c->src.st.st_blocks * 512);
	return left;
}

/* Within one file system copy_file_range may make a clone, which takes no space. */
static bool may_clone(const struct copy *c)
{
	struct stat dst;
	return c->mode->engine && strcmp(c->mode->engine, engine_copy_file_range.name) == 0 &&
	       fstat(c->dst.fd, &dst) == 0 && dst.st_dev == c->src.st.st_dev;
}

/* The bytes that the caller may still allocate on the file system of fd; false: unknown. */
static bool free_bytes(int fd, uint64_t *bytes)
{
	struct statfs fs;
	if (fstatfs(fd, &fs) < 0 || fs.f_blocks == 0)
		return false;
	bool reserved = geteuid() == 0 && !system_type_has((unsigned)fs.f_type, SYSTEM_OVERSTATES);
	*bytes = (uint64_t)(reserved ? fs.f_bfree : fs.f_bavail) * (uint64_t)fs.f_frsize;
	return true;
}

/* Records how much space the copy needs and how much is free. Returns whether it is too little;
 * *in_place: it would be enough to overwrite DST. */
static bool lacks_space(struct copy *c, bool *in_place)
{
	struct fcopy_report *r = c->report;
	const struct stat *old = endpoint_old_stat(&c->dst);
	bool overwrites = copy_old(c) == OLD_OVERWRITTEN;
	uint64_t data = data_left(c), spare;
	if (data < (c->shared ? SPACE_MIN_OF_MANY : SPACE_MIN) || !S_ISREG(c->dst.st.st_mode) ||
	    !c->dst.positional || may_clone(c) || !free_bytes(c->dst.fd, &spare))
		return false;
	uint64_t reusable = old ? (uint64_t)old->st_blocks * 512 : 0;
	uint64_t in_old = data - MIN(data, reusable);
	uint64_t needed = overwrites ? in_old : data;
	if (needed == 0)
		return false;
	r->space_needed = needed;
	r->space_free = spare;
	*in_place = old && !overwrites && in_old <= spare && !c->options->resume;
	return needed > spare;
}

void space_check(struct copy *c)
{
	bool in_place;
	if (lacks_space(c, &in_place))
		copy_warn(c, c->dst.path, ENOSPC, "needs more space than is free",
			  in_place ? FCOPY_ADVICE_IN_PLACE : FCOPY_ADVICE_NONE);
}

int space_require(struct copy *c)
{
	bool in_place;
	if (!lacks_space(c, &in_place))
		return 0;
	return error_refuse(&c->report->error, c->dst.path, ENOSPC, "needs more space than is free",
			    FCOPY_ADVICE_FORCE);
}

/* The largest size of this file: the file system refuses every offset above it. ext4 has other
 * limits for a file with extents than for one without. */
static uint64_t largest_size(int fd)
{
	const off_t at = lseek(fd, 0, SEEK_CUR);
	uint64_t fits = 0, fails = (uint64_t)INT64_MAX + 1;
	while (fails - fits > 1) {
		const uint64_t middle = fits + (fails - fits) / 2;
		if (lseek(fd, (off_t)middle, SEEK_SET) >= 0)
			fits = middle;
		else
			fails = middle;
	}
	if (at >= 0)
		lseek(fd, at, SEEK_SET); /* the descriptor may be the caller's */
	return fits;
}

void space_explain_limit(struct copy *c)
{
	struct fcopy_report *r = c->report;
	struct rlimit process = {.rlim_cur = RLIM_INFINITY};
	const uint64_t wanted = (uint64_t)c->first + r->expected;
	char amount[AMOUNT_MAX];
	if (!r->error.call || r->error.path != c->dst.path || !S_ISREG(c->dst.st.st_mode))
		return;
	const uint64_t file = largest_size(c->dst.fd);
	getrlimit(RLIMIT_FSIZE, &process);
	const bool own = process.rlim_cur < file;
	const uint64_t limit = own ? process.rlim_cur : file;
	if (limit >= wanted)
		return;
	amount_write(amount, limit);
	snprintf(r->detail, sizeof(r->detail), "%s: %s %s", strerror(EFBIG), amount,
		 own ? "is the limit of this process (ulimit -f)"
		     : "is the limit of the file system for one file");
	r->error.reason = r->detail;
}
