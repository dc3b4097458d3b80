/* SPDX-License-Identifier: MIT
 * The lists of --preserve and --no-preserve, as in cp.
 */
#include "option.h"
#include "show/show.h"

#include <string.h>

#define LINKS   (1u << 31) /* no attribute of one file: hard links stay hard links */
#define CONTEXT (1u << 30) /* of SELinux: never preserved */

const struct option_word attribute_words[] = {
    {"mode", FCOPY_ATTR_MODE, false},
    {"ownership", FCOPY_ATTR_OWNERSHIP, false},
    {"timestamps", FCOPY_ATTR_TIMESTAMPS, false},
    {"links", LINKS, false},
    {"xattr", FCOPY_ATTR_XATTR, false},
    {"all",
     FCOPY_ATTR_MODE | FCOPY_ATTR_OWNERSHIP | FCOPY_ATTR_TIMESTAMPS | FCOPY_ATTR_XATTR | LINKS,
     false},
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
