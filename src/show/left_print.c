/* SPDX-License-Identifier: MIT
 * What --clean found and did, for people and as an object; and parts that a copy does not continue.
 */
#include "hint.h"
#include "json.h"
#include "report.h"
#include "text.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const kinds[] = {[FCOPY_LEFT_FILE] = "file",
				    [FCOPY_LEFT_DIRECTORY] = "directory",
				    [FCOPY_LEFT_PART] = "part",
				    [FCOPY_LEFT_RECEIPT] = "receipt",
				    [FCOPY_LEFT_OLD] = "old"};
static const char *const kind_words[] = {[FCOPY_LEFT_FILE] = "temporary file",
					 [FCOPY_LEFT_DIRECTORY] = "temporary directory",
					 [FCOPY_LEFT_PART] = "unfinished copy",
					 [FCOPY_LEFT_RECEIPT] = "receipt of shards",
					 [FCOPY_LEFT_OLD] = "replaced by a mirror"};
static const char *const states[] = {
    [FCOPY_LEFT_DEAD] = "dead",       [FCOPY_LEFT_LIVE] = "live",
    [FCOPY_LEFT_UNKNOWN] = "unknown", [FCOPY_LEFT_REMOVED] = "removed",
    [FCOPY_LEFT_FAILED] = "failed",   [FCOPY_LEFT_RETURNED] = "returned"};

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

void left_print_old(const struct fcopy_left *l, FILE *f)
{
	if (!l->old)
		return;
	fputs("earlier '", f);
	message_print_on(f, l->old);
	fputs("', ", f);
}

void left_print(const struct fcopy_left *l)
{
	struct text t = {0};
	left_describe(&t, l);
	switch (l->state) {
	case FCOPY_LEFT_DEAD:
		text_add(&t, l->returns ? ": not in use, can be renamed back"
					: ": not in use, can be removed");
		break;
	case FCOPY_LEFT_LIVE: text_add(&t, ": in use"); break;
	case FCOPY_LEFT_REMOVED: text_add(&t, ": removed"); break;
	case FCOPY_LEFT_RETURNED: text_add(&t, ": renamed back"); break;
	case FCOPY_LEFT_FAILED: text_add(&t, ": cannot be removed"); break;
	case FCOPY_LEFT_UNKNOWN:
		text_add(&t, ": left alone: ");
		text_add(&t, l->reason);
		break;
	}
	message_print_on(stdout, l->path);
	fputs(": ", stdout);
	left_print_old(l, stdout);
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
	json_path(j, "old", l->old);
	json_bool(j, "returns", l->returns);
	error_write(j, "error", &l->error);
	json_close(j, '}');
}

/* A part that this copy does not continue. */

static bool is_directory(const char *dst)
{
	struct stat st;
	return stat(dst, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The copy of SRC: DST, or DST/basename(SRC). Returns false if the path is too long. */
static bool name_copy(const char *src, const char *dst, bool into, char path[PATH_MAX])
{
	const char *slash = dst[strlen(dst) - 1] == '/' ? "" : "/";
	size_t end = strlen(src), start;
	while (end > 1 && src[end - 1] == '/')
		end--;
	for (start = end; start > 0 && src[start - 1] != '/';)
		start--;
	int n = into ? snprintf(path, PATH_MAX, "%s%s%.*s", dst, slash, (int)(end - start),
				src + start)
		     : snprintf(path, PATH_MAX, "%s", dst);
	return n < PATH_MAX;
}

void unused_print(const struct cli *cli)
{
	const struct fcopy_options *o = &cli->copy;
	const size_t n = cli->source_count > 0 ? cli->source_count : 1;
	char path[PATH_MAX];
	if (!cli->voice.advises || o->resume || o->shard.count > 0 || cli->tree.parents ||
	    cli->dst[0] == '\0' ||
	    fcopy_operand_kind(cli->dst, STDOUT_FILENO, NULL) != FCOPY_KIND_PATH)
		return;
	const bool into = !o->no_directory && (cli->tree.into_directory || is_directory(cli->dst));
	for (size_t i = 0; i < n; i++) {
		const char *src = cli->source_count > 0 ? cli->sources[i] : cli->src;
		if (!name_copy(src, cli->dst, into, path) || !message_part_is_unfinished(path))
			continue;
		note_begin();
		message_part(path);
		fputs(": unfinished copy, not used without --resume", hint_stream());
		hint_end();
		return;
	}
}
