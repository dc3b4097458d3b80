/* SPDX-License-Identifier: MIT
 *
 * Are the attributes of a copy those of its source?
 */
#ifndef ENDPOINTS_EQUAL_H
#define ENDPOINTS_EQUAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Has dst the attributes of `preserve` that a copy of src would get? Both are descriptors, perhaps
 * O_PATH, with their stats. Access times are not compared, nor are extended attributes of symlinks.
 * Modification times that differ by at most window_ns are equal. */
bool metadata_is_equal(int src, const struct stat *, int dst, const struct stat *,
		       unsigned preserve, int64_t window_ns);
/* Is it certain that the file has neither an ACL nor an extended attribute that metadata_is_equal()
 * compares? false: it has one, or the kernel lacks listxattrat(2), Linux 6.13. */
bool metadata_lacks_attributes(int dir, const char *name, bool follow);
/* Of metadata_is_equal(), what the two stats show. */
bool metadata_stat_is_equal(const struct stat *src, const struct stat *dst, unsigned preserve,
			    int64_t window_ns);
/* The distance of two times in ns, at most INT64_MAX. */
int64_t metadata_time_difference(const struct timespec *, const struct timespec *);

#endif
