/* SPDX-License-Identifier: MIT
 * sendfile(2): from a file's page cache to any descriptor, without a buffer in user space. Its
 * output goes by the descriptor's position, so threads cannot share a file.
 */
#include "engine.h"

#include <errno.h>
#include <sys/sendfile.h>
#include <unistd.h>

static int copy(struct transfer *t)
{
	if (t->dst_positional && lseek(t->dst, t->offset, SEEK_SET) < 0)
		return transfer_fail(t, "lseek", SIDE_DST, -errno);
	size_t want;
	while ((want = transfer_chunk(t, ENGINE_CHUNK)) > 0) {
		off_t from = t->offset;
		ssize_t sent = sendfile(t->dst, t->src, t->src_positional ? &from : NULL, want);
		t->io.calls++;
		if (sent == 0)
			return 0;
		int r = sent < 0 ? transfer_judge(t, "sendfile", SIDE_BOTH)
				 : transfer_advance(t, (size_t)sent);
		if (r)
			return r;
	}
	return 0;
}

const struct engine engine_sendfile = {.name = "sendfile", .falls_back = true, .copy = copy};
