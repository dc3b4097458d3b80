/* SPDX-License-Identifier: MIT
 * --clean: lists what killed copies left, and removes it after a yes on a terminal, or with -f.
 */
#include "cli.h"
#include "show/errors.h"
#include "show/hint.h"
#include "show/json.h"
#include "show/json_file.h"
#include "show/show.h"
#include "show/text.h"

#include <string.h>
#include <unistd.h>

struct clean {
	const struct cli *cli;
	bool lists;       /* text on stdout */
	struct json json; /* f: NULL if there is none */
	unsigned found;
	bool failed; /* a removal, which was reported */
};

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

/* "unfinished copy, 2.9 KiB, 2 days old" */
static void describe(struct text *t, const struct fcopy_left *l)
{
	text_add(t, kind_words[l->kind]);
	text_add(t, l->more ? ", more than " : ", ");
	text_size(t, l->bytes);
	text_add(t, ", ");
	add_age(t, l->age);
}

/* As with -i, the answer is a line of standard input that starts with y. */
static bool confirm(void *user, const struct fcopy_left *l)
{
	const struct clean *c = user;
	struct text what = {0};
	char line[256] = "";
	if (c->cli->copy.force)
		return true;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return false;
	describe(&what, l);
	fflush(stdout);
	fputs("fcopy: remove '", stderr);
	message_print(l->path);
	fprintf(stderr, "' (%s)? ", what.at);
	fflush(stderr);
	bool yes = fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
	while (!strchr(line, '\n') && fgets(line, sizeof(line), stdin))
		;
	return yes;
}

static void list(const struct fcopy_left *l)
{
	struct text t = {0};
	text_add(&t, ": ");
	describe(&t, l);
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

static void add_json(struct json *j, const struct fcopy_left *l)
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

static void on_left(void *user, const struct fcopy_left *l)
{
	struct clean *c = user;
	c->found++;
	if (c->lists)
		list(l);
	if (c->json.f)
		add_json(&c->json, l);
	if (l->state == FCOPY_LEFT_FAILED) {
		c->failed = true;
		message_error(&l->error);
	}
}

int clean_run(const struct cli *cli)
{
	struct clean c = {.cli = cli, .lists = cli->voice.notes && (!cli->json || cli->json_file)};
	struct fcopy_error error;
	if (cli->json && (c.json.f = json_file_stream())) {
		json_open(&c.json, NULL, '{');
		json_string(&c.json, "fcopy", FCOPY_VERSION);
		json_path(&c.json, "clean", cli->clean);
		json_open(&c.json, "left", '[');
	}
	const struct fcopy_clean_options o = {
	    .api = FCOPY_API, .remove = confirm, .notify = on_left, .user = &c};
	int r = fcopy_clean(cli->clean, &o, &error);
	if (r < 0 && !c.failed)
		message_error(&error);
	if (c.lists && r == 0 && c.found == 0) {
		message_print_on(stdout, cli->clean);
		puts(": nothing to clean");
	}
	if (c.json.f) {
		json_close(&c.json, ']');
		json_bool(&c.json, "done", r == 0);
		error_write(&c.json, "error", &error);
		json_close(&c.json, '}');
		fputc('\n', c.json.f);
	}
	return r == 0 ? EXIT_DONE : EXIT_FAILED;
}
