/* SPDX-License-Identifier: MIT
 * Implements climb.h.
 */
#define _GNU_SOURCE
#include "climb.h"
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int climb(int dir, bool (*visit)(const struct stat *, void *arg), void *arg, struct failure *fail)
{
	struct stat st, below = {0};
	int r = -1, fd = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (r < 0) {
		if (fd < 0 || fstat(fd, &st) < 0) {
			r = fail_at(fail, fd < 0 ? "open" : "fstat");
			break;
		}
		if (same_inode(&st, &below))
			r = 0; /* the parent of / is / */
		else if (visit(&st, arg))
			r = 1;
		if (r >= 0)
			break;
		below = st;
		const int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		const int err = errno;
		close(fd);
		errno = err;
		fd = up;
	}
	if (fd >= 0)
		close(fd);
	return r;
}
