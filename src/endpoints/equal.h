/* SPDX-License-Identifier: MIT
 *
 * Are the attributes of a copy those of its source, as far as DST stores them and this user can set
 * them? The only place that decides it: for mirrors, --update, --link-dest and comparisons.
 */
#ifndef ENDPOINTS_EQUAL_H
#define ENDPOINTS_EQUAL_H

#include "storage.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum equal_answer { EQUAL_UNKNOWN, EQUAL_YES, EQUAL_NO };

/* Of one run. */
struct equal {
	struct storage *storage;
	int64_t window_ns; /* --modify-window: times that differ by this much are equal; 0: those
			    * that DST stores for the source's; < 0: only equal ones */
	bool root;         /* this process may set any owner, and capabilities */
	unsigned required; /* attributes without which a copy fails: always compared */
	bool dry_run;      /* DST is not to be asked */
	enum equal_answer labels; /* may this process set security.*? atomic */
	unsigned left_out; /* attributes that DST does not store, and were not compared; atomic */
};

/* Of `preserve`, what is to be compared: not what this user cannot set, nor what DST cannot store.
 * dir: an open directory of DST, which is asked if an attribute differs. */
unsigned equal_preserves(struct equal *, int dir, const struct stat *src, const struct stat *old,
			 unsigned preserve);

/* Is DST's modification time the source's, as DST stores that? dst: any open file of the same file
 * system. */
bool equal_times(const struct equal *, int dst, const struct stat *src, const struct stat *old);
/* Has dst the attributes of `preserve` that a copy of src would get? Both are descriptors, perhaps
 * O_PATH, with their stats. Access times are not compared, nor what DST or this user cannot set.
 * What cannot be read is never equal. */
bool equal_attributes(struct equal *, int src, const struct stat *, int dst, const struct stat *,
		      unsigned preserve);
/* Of that, what the two stats show. */
bool equal_stats(const struct equal *, const struct stat *src, int dst, const struct stat *old,
		 unsigned preserve);

#endif
