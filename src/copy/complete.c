/* SPDX-License-Identifier: MIT
 * --resume, where an earlier run of the command has completed the copy: nothing is written.
 */
#define _GNU_SOURCE
#include "complete.h"
#include "compare.h"
#include "endpoints/error.h"
#include "endpoints/partial.h"
#include "notify.h"
#include "settle.h"
#include "stale.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Opens DST if it is another file of the size of SRC, without other names. Returns a descriptor or
 * -1. */
static int complete_open(const struct copy *c, const struct operand *dst, struct stat *st)
{
	const struct fcopy_options *o = c->options;
	if (!o->resume || o->scratch || o->no_clobber || o->count > 0 || c->share ||
	    dst->kind != OPERAND_FILE || !S_ISREG(c->src.st.st_mode) || !c->src.positional ||
	    dst->place.st.st_size != c->src.st.st_size)
		return -1;
	int fd = openat(dst->place.dir, dst->place.name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -1; /* the copy itself reports what is wrong */
	if (fstat(fd, st) == 0 && st->st_ino == dst->place.st.st_ino &&
	    st->st_dev == dst->place.st.st_dev && st->st_size == c->src.st.st_size &&
	    st->st_nlink == 1 && (st->st_ino != c->src.st.st_ino || st->st_dev != c->src.st.st_dev))
		return fd;
	close(fd);
	return -1;
}

/* Some file systems, such as procfs, report the size 0 of files that have content. */
static bool complete_is_empty(const struct copy *c)
{
	char byte;
	return c->src.st.st_size == 0 && pread(c->src.fd, &byte, 1, 0) == 0;
}

static int complete_lose(void *copy, enum fcopy_attribute which, const struct fcopy_error *e)
{
	return copy_lose_attribute(copy, which, e);
}

int copy_complete(struct copy *c, const struct operand *dst)
{
	struct fcopy_report *report = c->report;
	const off_t size = c->src.st.st_size;
	struct stat st;
	bool cached;
	int fd = complete_open(c, dst, &st);
	if (fd < 0)
		return 0;
	source_adopt(&c->dst, fd, dst->path, &st);
	double start = io_now();
	copy_phase(c, FCOPY_PHASE_VERIFY, (uint64_t)size);
	off_t same = size > 0 ? compare_files(c, 0, size, c->options->fsync, false, &cached)
		     : complete_is_empty(c) ? 0
					    : -EIO; /* it is copied */
	report->seconds[FCOPY_PHASE_VERIFY] = io_now() - start;
	int r = same < 0 ? (int)same : same == size;
	if (r > 0) {
		/* Options of this run may ask for attributes that the earlier one did not set. */
		int lost = copy_attributes(c, true, complete_lose);
		if (lost == 0 && c->options->fsync)
			lost = copy_flush(c, true);
		r = lost < 0 ? lost : r;
	}
	c->dst.ops->abort(&c->dst);
	/* Only a cancellation ends the copy: what cannot be read is replaced. */
	if (same < 0 && same != -EINTR) {
		report->error = (struct fcopy_error){0};
		return 0;
	}
	if (r <= 0)
		return r;
	/* The earlier run may have been killed before it removed its part. */
	part_remove(dst->place.dir, dst->place.name);
	stale_warn(dst->place.dir, c->options, report);
	report->bytes = report->resumed = report->expected = (uint64_t)size;
	report->existed = report->atomic = true;
	copy_notify(c, FCOPY_EVENT_RESUME, NULL, NULL);
	return 1;
}
