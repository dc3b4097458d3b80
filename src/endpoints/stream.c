/* SPDX-License-Identifier: MIT
 * The table of operands that are not paths.
 */
#include "stream.h"

#include <unistd.h>

static const struct stream *const streams[] = {&tcp_stream, &descriptor_stream};

/* The row that the operand belongs to; NULL: it is a path. */
static const struct stream *stream_find(const char *operand)
{
	for (size_t i = 0; i < sizeof(streams) / sizeof(*streams); i++)
		if (streams[i]->names(operand))
			return streams[i];
	return NULL;
}

bool stream_names(const char *operand)
{
	return stream_find(operand) != NULL;
}

enum fcopy_kind fcopy_operand_kind(const char *operand, int dash, int *descriptor)
{
	int fd = -1;
	const struct stream *s = stream_find(operand);
	enum fcopy_kind kind = s ? s->kind(operand, dash, &fd) : FCOPY_KIND_PATH;
	if (descriptor)
		*descriptor = fd;
	return kind;
}

mode_t stream_type(const char *operand, int dash)
{
	struct stat st;
	int fd;
	if (fcopy_operand_kind(operand, dash, &fd) >= FCOPY_KIND_SOCKET)
		return S_IFSOCK;
	return (fd >= 0 ? fstat(fd, &st) : stat(operand, &st)) == 0 ? st.st_mode & S_IFMT : S_IFREG;
}

int stream_open(struct endpoint *e, const char *operand, int dash, struct fcopy_error *error)
{
	return stream_find(operand)->open(e, operand, dash, error);
}
