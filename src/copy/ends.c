/* SPDX-License-Identifier: MIT
 * Implements ends.h.
 */
#include "ends.h"

static unsigned end_of_type(mode_t type, bool named)
{
	if (S_ISFIFO(type) || S_ISSOCK(type))
		return END_PIPE;
	if (S_ISCHR(type))
		return END_DEVICE;
	if (S_ISBLK(type))
		return END_DISK;
	return named ? END_FILE : END_OPEN;
}

/* What the operand may be. A directory counts as a file, until DST/basename(SRC) is open. */
static unsigned end_of_operand(const struct operand *o)
{
	switch (o->stream) {
	case FCOPY_KIND_CONNECT: return END_SOCKET;
	case FCOPY_KIND_LISTEN:
	case FCOPY_KIND_LISTEN_ANY: return END_LISTENER;
	case FCOPY_KIND_SOCKET: return END_SOCKET | END_LISTENER;
	case FCOPY_KIND_HTTP:
	case FCOPY_KIND_HTTP_ANY: return END_HTTP;
	default: return end_of_type(o->place.st.st_mode, o->stream == FCOPY_KIND_PATH);
	}
}

static unsigned end_of_endpoint(const struct endpoint *e)
{
	if (e->ops->answer || e->ops->reply)
		return END_HTTP;
	if (e->ops->peer)
		return endpoint_listens(e) ? END_LISTENER : END_SOCKET;
	return end_of_type(e->st.st_mode, e->positional);
}

unsigned ends_src(const struct request *x)
{
	if (x->options->scratch && x->src->kind == OPERAND_DIRECTORY)
		return 0;
	if (x->tree && x->src->kind != OPERAND_STREAM) /* its entries may be of any type */
		return END_FILE;
	return x->from ? end_of_endpoint(x->from) : end_of_operand(x->src);
}

unsigned ends_dst(const struct request *x)
{
	const mode_t type = x->dst->place.st.st_mode;
	const bool special = type && !S_ISREG(type) && !S_ISDIR(type);
	if (x->dst->kind != OPERAND_STREAM && (x->tree || (x->options->scratch && !special)))
		return END_FILE;
	return x->to ? end_of_endpoint(x->to) : end_of_operand(x->dst);
}
