/* SPDX-License-Identifier: MIT
 * The values of options: sizes as people write them, and words.
 */
#include "option.h"
#include "show/show.h"
#include "show/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The factor that a suffix stands for; 0: not a suffix. */
static uint64_t factor(const char *suffix)
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
	uint64_t f = factor(end);
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
