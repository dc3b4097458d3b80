/* SPDX-License-Identifier: MIT
 * copy_file_range(2): from file to file inside the kernel. A file system may clone, and the server
 * of a network file system may copy.
 */
#include "engine.h"

#include <errno.h>
#include <unistd.h>

static ssize_t copy_file_range_once(struct transfer *t, size_t want)
{
	off_t from = t->offset, to = t->offset;
	t->io.calls++;
	return copy_file_range(t->src, &from, t->dst, &to, want, 0);
}

static int copy_file_range_copy(struct transfer *t)
{
	size_t want;
	if (!t->src_positional || !t->dst_positional)
		return transfer_refuse(t, NULL, SIDE_BOTH, ESPIPE);
	while ((want = transfer_chunk(t, ENGINE_CHUNK)) > 0) {
		ssize_t n = copy_file_range_once(t, want);
		if (n == 0) {
			int r = transfer_end(t, "copy_file_range");
			if (r != RESULT_NEXT || (n = copy_file_range_once(t, want)) == 0)
				return r; /* the end; a failure; or still no bytes: refused */
		}
		int r = n < 0 ? transfer_judge(t, "copy_file_range", SIDE_BOTH)
			      : transfer_advance(t, (size_t)n);
		if (r)
			return r;
	}
	return 0;
}

const struct engine engine_copy_file_range = {.name = "copy_file_range",
					      .positional = true,
					      .leaves_zeros = true,
					      .copy = copy_file_range_copy};
