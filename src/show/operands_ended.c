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
	case FCOPY_STATE_SKIPPED: return "skipped";
	}
	return NULL;
}

void json_counts(struct json *j, const uint64_t count[FCOPY_COUNTS])
{
	for (int i = 0; i < FCOPY_COUNTS; i++)
		json_integer(j, fcopy_counts()[i].key, count[i]);
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
		json_counts(j, o->count);
		json_close(j, '}');
	}
	json_close(j, ']');
}
