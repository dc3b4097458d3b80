/* SPDX-License-Identifier: MIT
 * sendfile(2): from a file's page cache to any descriptor, without a buffer in user space. It
 * writes at the destination's file offset, so threads cannot share a file.
 */
#include "engine.h"

#include <errno.h>
#include <sys/sendfile.h>
#include <unistd.h>

/* Small chunks for a socket: the receiver works concurrently, and progress is shown. The queue of
 * the socket has its full length. With TCP_NOTSENT_LOWAT the sender wakes up more often: at 128 KiB
 * a GiB took it twice the CPU time. */
#define SOCKET_CHUNK ((size_t)1 << 20)

/* Returns the count for the next call, not past the end of the file: some kernels delay the last
 * segment on a socket by up to 200 ms, because the longer count announces more bytes. */
static size_t sendfile_chunk(const struct transfer *t)
{
	const size_t want = transfer_chunk(t, t->dst_positional ? ENGINE_CHUNK : SOCKET_CHUNK);
	const off_t left = t->size - t->offset;
	return !t->dst_positional && left > 0 && left < (off_t)want ? (size_t)left : want;
}

static ssize_t sendfile_once(struct transfer *t, size_t want)
{
	off_t from = t->offset;
	t->io.calls++;
	return sendfile(t->dst, t->src, t->src_positional ? &from : NULL, want);
}

static int sendfile_copy(struct transfer *t)
{
	if (t->dst_positional && lseek(t->dst, t->offset, SEEK_SET) < 0)
		return transfer_fail(t, "lseek", SIDE_DST, -errno);
	size_t want;
	while ((want = sendfile_chunk(t)) > 0) {
		ssize_t sent = sendfile_once(t, want);
		if (sent == 0) {
			int r = transfer_end(t, "sendfile");
			if (r != RESULT_NEXT || (sent = sendfile_once(t, want)) == 0)
				return r; /* the end; a failure; or still no bytes: refused */
		}
		int r = sent < 0 ? transfer_judge(t, "sendfile", SIDE_BOTH)
				 : transfer_advance(t, (size_t)sent);
		if (r)
			return r;
	}
	return 0;
}

const struct engine engine_sendfile = {
    .name = "sendfile", .leaves_zeros = true, .copy = sendfile_copy};
