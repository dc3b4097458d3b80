/* SPDX-License-Identifier: MIT
 * What --clean found and did: for people, and as an object.
 */
#include "left_print.h"
#include "errors.h"
#include "hint.h"
#include "text.h"

static const char *const kinds[] = {[FCOPY_LEFT_FILE] = "file",
				    [FCOPY_LEFT_DIRECTORY] = "directory",
				    [FCOPY_LEFT_PART] = "part",
				    [FCOPY_LEFT_RECEIPT] = "receipt"};
static const char *const kind_words[] = {[FCOPY_LEFT_FILE] = "temporary file",
					 [FCOPY_LEFT_DIRECTORY] = "temporary directory",
					 [FCOPY_LEFT_PART] = "unfinished copy",
					 [FCOPY_LEFT_RECEIPT] = "receipt of shards"};
static const char *const states[] = {[FCOPY_LEFT_DEAD] = "dead",
				     [FCOPY_LEFT_LIVE] = "live",
				     [FCOPY_LEFT_UNKNOWN] = "unknown",
				     [FCOPY_LEFT_REMOVED] = "removed",
				     [FCOPY_LEFT_FAILED] = "failed"};

static void add_age(struct text *t, int64_t seconds)
{
	static const struct {
		int64_t seconds;
		const char *name;
	} units[] = {{86400, " day"}, {3600, " hour"}, {60, " minute"}, {1, " second"}};
	size_t i = 0;
	while (i < 3 && seconds < units[i].seconds)
		i++;
	text_number(t, (uint64_t)(seconds / units[i].seconds));
	text_add(t, units[i].name);
	text_add(t, seconds / units[i].seconds == 1 ? " old" : "s old");
}

void left_describe(struct text *t, const struct fcopy_left *l)
{
	text_add(t, kind_words[l->kind]);
	text_add(t, l->more ? ", more than " : ", ");
	text_size(t, l->bytes);
	text_add(t, ", ");
	add_age(t, l->age);
}

void left_print(const struct fcopy_left *l)
{
	struct text t = {0};
	text_add(&t, ": ");
	left_describe(&t, l);
	switch (l->state) {
	case FCOPY_LEFT_DEAD: text_add(&t, ": not in use, can be removed"); break;
	case FCOPY_LEFT_LIVE: text_add(&t, ": in use"); break;
	case FCOPY_LEFT_REMOVED: text_add(&t, ": removed"); break;
	case FCOPY_LEFT_FAILED: text_add(&t, ": cannot be removed"); break;
	case FCOPY_LEFT_UNKNOWN:
		text_add(&t, ": left alone: ");
		text_add(&t, l->reason);
		break;
	}
	message_print_on(stdout, l->path);
	puts(t.at);
}

void left_json(struct json *j, const struct fcopy_left *l)
{
	json_open(j, NULL, '{');
	json_path(j, "path", l->path);
	json_string(j, "kind", kinds[l->kind]);
	json_string(j, "state", states[l->state]);
	json_string(j, "reason", l->reason);
	json_integer(j, "bytes", l->bytes);
	json_bool(j, "more", l->more);
	json_integer(j, "age", (uint64_t)l->age);
	error_write(j, "error", &l->error);
	json_close(j, '}');
}
