/* SPDX-License-Identifier: MIT
 * --exclude, --include and --exclude-from, in the order in which they were given, and --files-from.
 * Files are read after the command line, because --null may follow them.
 */
#include "option.h"
#include "show/report.h"
#include "show/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX ((size_t)16 << 20) /* of one file */

struct strings {
	const char **text;
	size_t count, size;
};

static int filters_memory(const char *path)
{
	message_error(&(struct fcopy_error){.err = ENOMEM, .call = "malloc", .path = path});
	return EXIT_FAILED;
}

const char *filters_first_name(const struct cli *cli)
{
	static const char *const names[] = {[FILTER_EXCLUDE] = "exclude",
					    [FILTER_INCLUDE] = "include",
					    [FILTER_EXCLUDE_FROM] = "exclude-from",
					    [FILTER_FILES] = "files-from"};
	return names[cli->filters.argument[0].kind];
}

int filters_set(struct cli *cli, const struct option_row *row, const char *value)
{
	struct filter_arguments *f = &cli->filters;
	if (!value[0])
		return message_option(row->name, "invalid value '' (empty)");
	if (row->min == FILTER_FILES && f->files)
		return message_option(row->name, "is given twice");
	if (row->min == FILTER_FILES) {
		f->files = value;
		return EXIT_DONE;
	}
	if (!list_grow(&f->argument, f->count, &f->size, sizeof(*f->argument)))
		return filters_memory(value);
	f->argument[f->count++] = (struct filter_argument){(enum filter_kind)row->min, value};
	return EXIT_DONE;
}

/* Reads the lines of a file, or of standard input, with --null its null-terminated strings. As in
 * rsync(1), a carriage return ends the line of a pattern, too. */
static int filters_read_lines(const struct cli *cli, const char *path, bool patterns,
			      struct strings *lines)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	ssize_t length;
	const int end = cli->null ? '\0' : '\n';
	if (!f)
		return message_usage(path, "open: %s", strerror(errno));
	while ((length = getdelim(&line, &size, end, f)) >= 0) {
		if (length > 0 && line[length - 1] == end)
			line[--length] = '\0';
		if (patterns && !cli->null && length > 0 && line[length - 1] == '\r')
			line[--length] = '\0';
		if (lines->count >= LINES_MAX || strlen(line) != (size_t)length) {
			free(line);
			return message_usage(path, lines->count >= LINES_MAX
						       ? "has too many lines"
						       : "contains a null byte: use --null");
		}
		if (length == 0)
			continue;
		if (!list_grow(&lines->text, lines->count, &lines->size, sizeof(*lines->text)) ||
		    !(lines->text[lines->count++] = strdup(line)))
			return filters_memory(path);
	}
	free(line);
	if (ferror(f))
		return message_usage(path, "read: %s", strerror(errno));
	if (f != stdin)
		fclose(f);
	return EXIT_DONE;
}

/* As rsync(1): a pattern may say itself what it does. */
static struct fcopy_pattern filters_parse(const char *text, bool include)
{
	const bool says = (text[0] == '+' || text[0] == '-') && text[1] == ' ' && text[2];
	return (struct fcopy_pattern){says ? text + 2 : text, says ? text[0] == '+' : include};
}

static int filters_add(struct cli *cli, const char *text, bool include, size_t *size)
{
	struct fcopy_pattern *p = cli->filters.pattern;
	if (strcmp(text, "!") == 0) { /* as rsync(1) */
		cli->tree.pattern_count = 0;
		return EXIT_DONE;
	}
	if (!list_grow(&p, cli->tree.pattern_count, size, sizeof(*p)))
		return filters_memory(text);
	p[cli->tree.pattern_count++] = filters_parse(text, include);
	cli->tree.patterns = cli->filters.pattern = p;
	return EXIT_DONE;
}

int filters_read(struct cli *cli)
{
	const struct filter_arguments *f = &cli->filters;
	struct strings files = {0};
	size_t size = 0;
	int status = EXIT_DONE;
	for (size_t i = 0; i < f->count && status == EXIT_DONE; i++) {
		const struct filter_argument *a = &f->argument[i];
		struct strings lines = {0};
		if (a->kind != FILTER_EXCLUDE_FROM) {
			status = filters_add(cli, a->value, a->kind == FILTER_INCLUDE, &size);
			continue;
		}
		status = filters_read_lines(cli, a->value, true, &lines);
		for (size_t n = 0; n < lines.count && status == EXIT_DONE; n++)
			if (lines.text[n][0] != '#' && lines.text[n][0] != ';')
				status = filters_add(cli, lines.text[n], false, &size);
		free(lines.text); /* the lines belong to the patterns */
	}
	if (status != EXIT_DONE || !f->files)
		return status;
	static const char *const none[1];
	status = filters_read_lines(cli, f->files, false, &files);
	cli->tree.files = files.text ? files.text : none;
	cli->tree.file_count = files.count;
	cli->tree.files_recursive = cli->recursive_given;
	return status;
}
