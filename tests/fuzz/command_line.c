/* SPDX-License-Identifier: MIT
 * libFuzzer's way in: each line of the input is an argument. The arguments together are a command
 * line, and each alone is a value of every kind. FUZZ names another parser, which gets the whole
 * input: journal, list, filter, stream, http.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS_MAX 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void fuzz_broken(const char *what, const char *file, int line)
{
	dprintf(2, "fuzz: not so: %s:%d: %s\n", file, line, what);
	abort();
}

int fuzz_directory(void)
{
	const char *above = getenv("TMPDIR");
	char path[4096];
	snprintf(path, sizeof(path), "%s/fuzz.XXXXXX", above ? above : "/tmp");
	MUST(mkdtemp(path));
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(fd > 0);
	return fd;
}

/* Each argument in a separate allocation, so that reading past its end is an error. */
static char **split(const uint8_t *data, size_t size, int *argc)
{
	char **argv = calloc(ARGUMENTS_MAX + 2, sizeof(*argv));
	const uint8_t *end = data + size;
	int n = 0;
	MUST(argv);
	argv[n++] = strdup("fcopy");
	while (data < end && n <= ARGUMENTS_MAX) {
		size_t length = 0;
		while (data + length < end && data[length] != '\n' && data[length] != '\0')
			length++;
		argv[n++] = strndup((const char *)data, length);
		data += length + 1;
	}
	*argc = n;
	return realloc(argv, sizeof(*argv) * ((size_t)n + 1));
}

/* Or the value at the end of one: -tDIR. */
static bool is_argument(const char *text, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (argv[i] <= text && text <= argv[i] + strlen(argv[i]))
			return true;
	return false;
}

static void check_numbers(const struct fcopy_options *o, unsigned max_clients)
{
	MUST(o->buffer_size <= FCOPY_BUFFER_MAX);
	MUST(o->threads <= FCOPY_THREADS_MAX);
	MUST(max_clients <= FCOPY_CLIENTS_MAX);
	MUST(o->timeout_ms >= -1 && o->timeout_ms <= 1000000000);
	MUST(o->preallocate <= FCOPY_WHEN_NEVER && o->sparse <= FCOPY_WHEN_NEVER &&
	     o->reflink <= FCOPY_WHEN_NEVER);
	MUST((o->preserve_required & ~o->preserve) == 0);
	MUST(o->preserve < FCOPY_ATTR_XATTR << 1);
}

static void check_accepted(const struct cli *cli, int argc, char **argv)
{
	const struct fcopy_options *o = &cli->copy;
	check_numbers(o, cli->max_clients);
	if (cli->action != ACTION_COPY && cli->action != ACTION_BENCHMARK)
		return;
	MUST(is_argument(cli->src, argc, argv));
	/* Without DST, --benchmark writes to the current directory. */
	MUST(is_argument(cli->dst, argc, argv) ||
	     (cli->action == ACTION_BENCHMARK && strcmp(cli->dst, ".") == 0));
	MUST(cli->src != cli->dst);
	MUST(!cli->max_clients || cli->keep_listening);
	if (cli->action == ACTION_BENCHMARK)
		MUST(!o->mode && !o->force && !o->verify && !cli->keep_listening);
}

/* optind 0 makes getopt forget the line before. */
static int parse(struct cli *cli, int argc, char **argv)
{
	optind = 0;
	said_begin();
	filter_keep_lines();
	int status = options_parse(cli, argc, argv);
	filter_forget(cli);
	MUST(status == EXIT_DONE || status == EXIT_USAGE);
	MUST(said_anything() == (status == EXIT_USAGE));
	return status;
}

static void check_line(int argc, char **argv)
{
	struct cli cli, again;
	if (parse(&cli, argc, argv) != EXIT_DONE)
		return;
	check_accepted(&cli, argc, argv);
	/* getopt has moved the operands to the end, which must not have changed the meaning. */
	MUST(parse(&again, argc, argv) == EXIT_DONE);
	MUST(again.action == cli.action && again.src == cli.src && again.dst == cli.dst);
	MUST(again.copy.mode == cli.copy.mode && again.copy.preserve == cli.copy.preserve);
}

static void check_options(const uint8_t *data, size_t size)
{
	int argc;
	char **argv = split(data, size, &argc);
	for (int i = 1; i < argc; i++) {
		values_check(argv[i]);
		endpoints_check(argv[i]);
	}
	check_line(argc, argv);
	for (int i = 0; i < argc; i++)
		free(argv[i]);
	free(argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct parser {
		const char *name;
		void (*check)(const uint8_t *data, size_t size);
	} parsers[] = {{"options", check_options},
		       {"journal", journal_check},
		       {"list", list_check},
		       {"filter", filter_check},
		       {"stream", stream_check},
		       {"http", http_check},
		       {NULL, NULL}};
	static const struct parser *parser;
	if (!parser) {
		const char *wanted = getenv("FUZZ");
		for (parser = parsers; wanted && parser->name; parser++)
			if (strcmp(parser->name, wanted) == 0)
				break;
		MUST(parser->check);
	}
	parser->check(data, size);
	return 0;
}
