/* SPDX-License-Identifier: MIT
 * What became of each SRC: for the last messages, and for --json.
 */
#include "json.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

static struct fcopy_operand *ended;
static size_t ended_count, ended_size;

static const char *keep(const char *text)
{
	return text ? strdup(text) : NULL;
}

void operands_note(const struct fcopy_operand *o)
{
	if (ended_count == ended_size) {
		size_t size = ended_size ? 2 * ended_size : 16;
		struct fcopy_operand *more = realloc(ended, size * sizeof(*more));
		if (!more)
			return; /* best effort: the last messages lack it */
		ended = more;
		ended_size = size;
	}
	struct fcopy_operand *to = &ended[ended_count++];
	*to = *o;
	to->dst = keep(o->dst);
	to->part = keep(o->part);
}

const struct fcopy_operand *operands_ended(size_t *count)
{
	*count = ended_count;
	return ended;
}

static const char *state_name(const struct fcopy_operand *o)
{
	if (!o)
		return "not begun";
	switch (o->state) {
	case FCOPY_STATE_COMPLETE: return "complete";
	case FCOPY_STATE_INCOMPLETE: return "incomplete";
	case FCOPY_STATE_PART: return "part";
	case FCOPY_STATE_UNCHANGED: return "unchanged";
	}
	return NULL;
}

void operands_add(struct json *j, const struct cli *cli)
{
	static const struct fcopy_operand none;
	size_t next = 0;
	json_open(j, "operands", '[');
	for (size_t i = 0; i < cli->source_count; i++) {
		bool found = next < ended_count && ended[next].index == i;
		const struct fcopy_operand *o = found ? &ended[next++] : &none;
		json_open(j, NULL, '{');
		json_path(j, "src", cli->sources[i]);
		json_path(j, "dst", o->dst);
		json_string(j, "state", state_name(found ? o : NULL));
		json_bool(j, "committed", o->committed);
		json_path(j, "part", o->part);
		json_integer(j, "files", o->files);
		json_integer(j, "directories", o->directories);
		json_integer(j, "symlinks", o->symlinks);
		json_integer(j, "specials", o->specials);
		json_integer(j, "hard_links", o->hard_links);
		json_integer(j, "skipped", o->skipped);
		json_integer(j, "reused", o->reused);
		json_integer(j, "unchanged", o->unchanged);
		json_integer(j, "deleted", o->deleted);
		json_integer(j, "excluded", o->excluded);
		json_integer(j, "vanished", o->vanished);
		json_integer(j, "failed", o->failed);
		json_integer(j, "bytes", o->bytes);
		json_integer(j, "resumed", o->resumed);
		json_close(j, '}');
	}
	json_close(j, ']');
}
