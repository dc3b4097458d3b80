/* SPDX-License-Identifier: MIT
 *
 * The removal of what this program made, and its size. A mount point is never entered: rmdir(2)
 * fails with EBUSY.
 */
#ifndef PART_REMOVE_H
#define PART_REMOVE_H

#include <stdbool.h>
#include <stdint.h>

/* Removes everything below `root`, an open directory that only this process writes to,
 * and then its name in `dir`. Adds the number of removed entries to *count, unless count is NULL.
 * Returns 0, or -errno with the rest left there. */
int remove_tree(int root, int dir, const char *name, uint64_t *count);
/* Removes an entry of a part, of any type. Returns 0 or -errno. */
int remove_entry(int dir, const char *name);

/* Adds up the sizes of files. */
struct left_size {
	uint64_t bytes;
	unsigned entries; /* that may still be measured */
	bool partial;     /* there are more bytes */
	const volatile int *cancel;
};
/* The files in an open directory, and below it in the same file system. */
void left_measure(int fd, struct left_size *);

#endif
