/* SPDX-License-Identifier: MIT
 * Storage that sets the modification time of a file when it is closed: CIFS since Linux 6.12.62,
 * and some FUSE file systems. Looks at it again after the commit.
 */
#define _GNU_SOURCE
#include "closed.h"
#include "endpoints/attributes.h"
#include "endpoints/error.h"
#include "endpoints/storage.h"
#include "io/io.h"
#include "settle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define UNKNOWN_MS 50   /* the longest wait for a change, while nothing is known of the storage */
#define CHANGES_MS 1000 /* ... if the time of another file has changed */

int copy_hold(const struct copy *c)
{
	if (c->stored.st_nlink == 0)
		return -1;
	return open(io_proc_path(c->dst.fd).text, O_PATH | O_CLOEXEC);
}

/* Not what the kernel has cached. */
static bool has_changed(int held, const struct timespec *stored)
{
	struct statx now;
	if (statx(held, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_MTIME, &now) < 0)
		return false;
	return now.stx_mtime.tv_sec != stored->tv_sec ||
	       (long)now.stx_mtime.tv_nsec != stored->tv_nsec;
}

/* close(2) does not wait until a FUSE server has released the file. */
static bool wait_for_change(int held, const struct timespec *stored, int most_ms)
{
	bool changed = has_changed(held, stored);
	for (int ms = 1, waited = 0; !changed && waited < most_ms; waited += ms, ms *= 2) {
		nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L},
			  NULL);
		changed = has_changed(held, stored);
	}
	return changed;
}

/* Has only the cache of the storage kept more of the source's time? */
static bool is_equal(const struct copy *c, int held)
{
	struct stat now;
	if (fstat(held, &now) < 0)
		return false;
	const struct storage_times t = storage_times(c->storage, held, now.st_dev);
	return storage_time_is_equal(&t, &c->src.st.st_mtim, &now);
}

int copy_look_again(struct copy *c, int held, int committed)
{
	const struct stat *stored = &c->stored;
	const enum storage_close known = storage_at_close(c->storage, stored->st_dev);
	const bool written = c->report->bytes > 0; /* another one may keep its time */
	int most_ms = known == CLOSE_KEEPS_TIMES || !written ? 0
		      : known == CLOSE_UNKNOWN               ? UNKNOWN_MS
							     : CHANGES_MS;
	int r = committed;
	bool changed = r == 0 && wait_for_change(held, &stored->st_mtim, most_ms) &&
		       !is_equal(c, held);
	if (r == 0 && (changed || written))
		storage_note_close(c->storage, stored->st_dev, !changed);
	if (changed) {
		const struct timespec times[2] = {c->src.st.st_atim, c->src.st.st_mtim};
		struct fcopy_error e;
		int set = io_set_times(held, times) < 0 ? errno : 0;
		if (set)
			error_call(&e, "utimensat", c->dst.path, set);
		else if (has_changed(held, &stored->st_mtim))
			set = is_equal(c, held)
				  ? 0
				  : -attributes_fail_stored(FCOPY_ATTR_TIMESTAMPS, c->dst.path, &e);
		if (set)
			r = copy_lose_attribute(c, FCOPY_ATTR_TIMESTAMPS, &e);
	}
	close(held);
	return r;
}
