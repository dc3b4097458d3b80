/* SPDX-License-Identifier: MIT
 * Files of patterns and of names: the input is a file for --exclude-from and for --files-from. The
 * first line is also a path, whose answer must be that of a second opinion where that is simple.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include "source/filter.h"

#include <sanitizer/lsan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROOM 8192

/* The lines belong to the options for as long as the program runs. */
static char *line[ROOM];
static size_t lines, room;

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
	char *copy = __real_strdup(text);
	if (lines < room)
		line[lines++] = copy;
	return copy;
}

void filter_keep_lines(void)
{
	room = ROOM;
	__lsan_disable();
}

void filter_forget(struct cli *cli)
{
	__lsan_enable();
	room = 0;
	while (lines > 0)
		free(line[--lines]);
	free(cli->filters.argument);
	free(cli->filters.pattern);
	if (cli->tree.file_count > 0)
		free((void *)cli->tree.files);
}

/* A path below SRC as a walk makes it: no empty component, and not . or .. */
static bool is_path(const char *text)
{
	for (const char *part = text;; part++) {
		size_t length = strcspn(part, "/");
		if (length == 0 ||
		    (part[0] == '.' && (length == 1 || (length == 2 && part[1] == '.'))))
			return false;
		part += length;
		if (!*part)
			return true;
	}
}

/* Without wildcards: a name at any level, or a path from the top. */
static void check_plain(const char *pattern, const char *path)
{
	const struct fcopy_pattern p = {pattern, false};
	const struct fcopy_tree_options o = {.patterns = &p, .pattern_count = 1};
	struct filter *f;
	size_t bad;
	if (!is_path(pattern) || strpbrk(pattern, "*?[\\") || filter_new(&f, &o, &bad) != 0)
		return;
	size_t length = strlen(pattern), size = strlen(path);
	bool equal = size >= length && strcmp(path + size - length, pattern) == 0 &&
		     (size == length || path[size - length - 1] == '/');
	MUST(filter_excludes(f, path, false) == equal && filter_excludes(f, path, true) == equal);
	filter_free(f);
}

static void check_cli(struct cli *cli, const char *path)
{
	struct filter *f;
	size_t bad, at = 0;
	if (filter_new(&f, &cli->tree, &bad) != 0)
		return;
	MUST(f || (cli->tree.pattern_count == 0 && !cli->tree.files));
	if (f && is_path(path)) {
		bool directory = filter_excludes(f, path, true),
		     file = filter_excludes(f, path, false);
		MUST(filter_needs_types(f) || directory == file);
		MUST(cli->tree.files || filter_protects(f, path, false) == file);
		for (size_t i = 0; i < cli->tree.pattern_count; i++)
			check_plain(cli->tree.patterns[i].text, path);
	}
	for (const char *name; (name = filter_missing(f, &at));)
		MUST(is_path(name));
	filter_free(f);
}

static void read_file(const char *file, bool list, bool null, const char *path)
{
	struct cli cli = {.null = null};
	const struct option_row row = {.name = list ? "files-from" : "exclude-from",
				       .min = list ? FILTER_FILES : FILTER_EXCLUDE_FROM};
	said_begin();
	filter_keep_lines();
	MUST(filters_set(&cli, &row, file) == EXIT_DONE);
	int status = filters_read(&cli);
	room = 0; /* what check_cli() makes, it frees */
	MUST(status == EXIT_DONE || status == EXIT_USAGE);
	MUST(said_anything() == (status == EXIT_USAGE));
	if (status == EXIT_DONE)
		check_cli(&cli, path);
	filter_forget(&cli);
}

void filter_check(const uint8_t *data, size_t size)
{
	char file[32], path[512];
	const char *end = size > 0 ? memchr(data, '\n', size) : NULL;
	size_t length = end ? (size_t)(end - (const char *)data) : size;
	snprintf(path, sizeof(path), "%.*s", (int)length, size > 0 ? (const char *)data : "");
	int fd = memfd_create("list", MFD_CLOEXEC);
	MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	for (int i = 0; i < 4; i++)
		read_file(file, i & 1, i & 2, path);
	close(fd);
}
