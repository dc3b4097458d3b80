/* SPDX-License-Identifier: MIT
 * The values of options: sizes as people write them, words, lists of attributes, modes.
 */
#include "option.h"
#include "show/show.h"
#include "show/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The factor that a suffix stands for; 0: not a suffix. */
static uint64_t value_factor(const char *suffix)
{
	static const char letters[] = "KMGTPE";
	uint64_t f = 1;
	if (suffix[0] == '\0')
		return 1;
	char letter = suffix[0] == 'k' ? 'K' : suffix[0];
	const char *found = strchr(letters, letter);
	bool decimal = strcmp(suffix + 1, "B") == 0;
	if (!found || (!decimal && suffix[1] != '\0' && strcmp(suffix + 1, "iB") != 0))
		return 0;
	for (long i = 0; i <= found - letters; i++)
		f *= decimal ? 1000 : 1024;
	return f;
}

bool size_parse(const char *text, uint64_t *size)
{
	char *end;
	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	uint64_t f = value_factor(end);
	if (errno || f == 0 || n > UINT64_MAX / f)
		return false;
	*size = n * f;
	return true;
}

const struct option_word *option_word_find(const struct option_row *row, const char *text)
{
	for (const struct option_word *w = row->words; w && w->name; w++)
		if (strcmp(text, w->name) == 0)
			return w;
	return NULL;
}

int option_word_refuse(const struct option_row *row, const char *what, const char *value)
{
	struct text words = {0};
	for (const struct option_word *w = row->words; w->name; w++) {
		if (w->synonym)
			continue;
		text_add(&words, w == row->words ? "" : ", ");
		text_add(&words, w->name);
	}
	return message_option(row->name, "invalid %s '%s' (%s)", what, value, words.at);
}

/* The lists of --preserve and --no-preserve, as in cp. */

#define LINKS   (1u << 31) /* no attribute of one file: hard links stay hard links */
#define CONTEXT (1u << 30) /* of SELinux: never preserved */

const struct option_word attribute_words[] = {{"mode", FCOPY_ATTR_MODE, false},
					      {"ownership", FCOPY_ATTR_OWNERSHIP, false},
					      {"timestamps", FCOPY_ATTR_TIMESTAMPS, false},
					      {"links", LINKS, false},
					      {"xattr", FCOPY_ATTR_XATTR, false},
					      {"all", FCOPY_ATTR_ALL | LINKS, false},
					      {"context", CONTEXT, true},
					      {.name = NULL}};

/* A name may be shortened: no two begin with the same letter. */
static unsigned attribute_bits(const char *name, size_t length)
{
	for (const struct option_word *w = attribute_words; w->name && length > 0; w++)
		if (strncmp(w->name, name, length) == 0)
			return w->value;
	return 0;
}

/* Stores the attributes of a list in *all, and in *named those that have their own name in it.
 * Returns false if the list is invalid. */
static bool parse_list(const char *list, unsigned *all, unsigned *named)
{
	*all = *named = 0;
	for (;;) {
		size_t length = strcspn(list, ",");
		unsigned bits = attribute_bits(list, length);
		if (bits == 0)
			return false;
		*all |= bits;
		if ((bits & (bits - 1)) == 0)
			*named |= bits;
		if (list[length] == '\0')
			return true;
		list += length + 1;
	}
}

static int refuse_list(const struct option_row *row, const char *list)
{
	if (list && (strcmp(list, "acl") == 0 || strcmp(list, "acls") == 0))
		return message_option(row->name, "'%s': use mode, which includes ACLs", list);
	return option_word_refuse(row, "list", list);
}

/* An attribute that the list names is required. With -p or `all`, its loss is only a warning. */
int attributes_preserve(struct cli *cli, const struct option_row *row, const char *list)
{
	unsigned all, named;
	if (!parse_list(list ? list : "mode,ownership,timestamps", &all, &named))
		return refuse_list(row, list);
	if (all & CONTEXT)
		return message_option(row->name, "fcopy cannot set a security context: use cp");
	if (all & LINKS)
		cli->tree.hard_links = true;
	all &= ~LINKS;
	named &= ~LINKS;
	cli->copy.preserve |= all;
	if (list && all & FCOPY_ATTR_MODE)
		cli->copy.default_mode = false;
	cli->copy.preserve_required |= list ? named : 0;
	return EXIT_DONE;
}

bool attributes_are_list(const char *list)
{
	unsigned all, named;
	return parse_list(list, &all, &named);
}

int attributes_drop(struct cli *cli, const struct option_row *row, const char *list)
{
	unsigned all, named;
	if (!parse_list(list, &all, &named))
		return refuse_list(row, list);
	if (all & LINKS)
		cli->tree.hard_links = false;
	all &= ~(LINKS | CONTEXT);
	cli->copy.preserve &= ~all;
	if (all & FCOPY_ATTR_MODE)
		cli->copy.default_mode = true;
	cli->copy.preserve_required &= ~all;
	return EXIT_DONE;
}

/* The mode: operand MODE, or --mode. */

/* Is one letter inserted, removed or changed, or swapped with the next one? */
static bool differs_by_one(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	const char *after_a = a + (*a != '\0'), *after_b = b + (*b != '\0');
	return strcmp(after_a, after_b) == 0 || strcmp(after_a, b) == 0 ||
	       strcmp(a, after_b) == 0 ||
	       (*a && *b && a[0] == b[1] && a[1] == b[0] && strcmp(a + 2, b + 2) == 0);
}

#define NAME_SIZE 32 /* no option is longer */

const char *suggest_option(const struct option_row *table, const char *text)
{
	char name[NAME_SIZE + 1];
	strncpy(name, text, NAME_SIZE);
	name[NAME_SIZE] = '\0';
	name[strcspn(name, "=")] = '\0';
	for (const struct option_row *row = table; !option_table_ends(row); row++)
		if (row->name && differs_by_one(name, row->name))
			return row->name;
	return NULL;
}

const char *suggest_mode(const char *text)
{
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++) {
		if (differs_by_one(text, m->name))
			return m->name;
		if (m->alias && differs_by_one(text, m->alias))
			return m->alias;
	}
	return NULL;
}

int mode_set(struct cli *cli, const struct option_row *row, const char *text)
{
	(void)row;
	cli->copy.mode = fcopy_mode_find(text);
	if (cli->copy.mode)
		return EXIT_DONE;
	const char *near = suggest_mode(text);
	char names[256] = "";
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++) {
		size_t used = strlen(names);
		snprintf(names + used, sizeof(names) - used, "%s%d %s", used ? ", " : "", m->number,
			 m->name);
	}
	if (text[0] == '\0')
		text = "''";
	if (near)
		return message_usage(text, "no such mode; did you mean %s? (%s)", near, names);
	return message_usage(text, "no such mode (%s)", names);
}
