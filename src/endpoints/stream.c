/* SPDX-License-Identifier: MIT
 * The table of operands that are not paths.
 */
#include "stream.h"

static const struct stream *const streams[] = {&tcp_stream, &http_stream, &descriptor_stream};

/* The row that the operand belongs to; NULL: it is a path. */
static const struct stream *stream_find(const char *operand)
{
	for (size_t i = 0; i < sizeof(streams) / sizeof(*streams); i++)
		if (streams[i]->names(operand))
			return streams[i];
	return NULL;
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

int stream_open(struct endpoint *e, const char *operand, int dash, struct fcopy_error *error)
{
	return stream_find(operand)->open(e, operand, dash, error);
}
