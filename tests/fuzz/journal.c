/* SPDX-License-Identifier: MIT
 * The journal of a part: each line of the input is a line of a journal, as it is and with the right
 * checksum. And the whole input is a journal.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include "part/journal.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void same_numbers(const struct journal_fact *a, const struct journal_fact *b)
{
	MUST(a->kind == b->kind && a->number == b->number && a->tree == b->tree);
	MUST(a->inode == b->inode && a->device == b->device && a->part == b->part);
	MUST(a->mode == b->mode && a->mount == b->mount && strcmp(a->boot, b->boot) == 0);
	MUST(a->offset == b->offset && a->length == b->length);
	MUST(a->source.inode == b->source.inode && a->source.device == b->source.device);
	MUST(journal_same_source(&a->source, &b->source));
}

/* What a line says is inside it, and is written and read again without a change. */
static void parse_line(const char *line, size_t length)
{
	struct journal_fact f, again;
	char text[JOURNAL_LINE];
	journal_parse(line, length, &f);
	if (f.kind == JOURNAL_NOTHING)
		return;
	if (f.text) {
		MUST(f.size > 0 && f.text > line && f.text + f.size <= line + length);
		MUST(!memchr(f.text, ' ', f.size));
		return;
	}
	size_t n = journal_format(&f, text);
	MUST(n > JOURNAL_SEAL && n <= JOURNAL_LINE && text[n - 1] == '\n');
	journal_parse(text, n - 1, &again);
	same_numbers(&f, &again);
}

static bool every_run(const struct journal_fact *run, const void *arg)
{
	(void)run, (void)arg;
	return true;
}

static void read_journal(const char *text, size_t size, const char *path)
{
	struct journal j;
	struct journal_fact f;
	bool sure;
	int fd = memfd_create("journal", MFD_CLOEXEC);
	MUST(fd >= 0 && write(fd, text, size) == (ssize_t)size);
	MUST(journal_read(fd, &j, every_run, NULL) == 0);
	MUST(j.flushed_prefix <= j.prefix && j.prefix >= 0 && j.entries.used <= size);
	if (journal_find(&j, path, false, &f, &sure))
		MUST(f.kind == JOURNAL_ENTRY && sure);
	journal_free(&j);
	close(fd);
}

void journal_check(const uint8_t *data, size_t size)
{
	static char sealed[2 * JOURNAL_LINE];
	size_t used = 0;
	for (size_t at = 0, length; at < size; at += length + 1) {
		const uint8_t *end = memchr(data + at, '\n', size - at);
		length = (end ? (size_t)(end - data) : size) - at;
		parse_line((const char *)data + at, length);
		if (used + JOURNAL_SEAL + length + 1 > sizeof(sealed))
			break;
		memcpy(sealed + used + JOURNAL_SEAL, data + at, length);
		journal_seal(sealed + used, length);
		parse_line(sealed + used, JOURNAL_SEAL + length);
		used += JOURNAL_SEAL + length;
		sealed[used++] = '\n';
	}
	read_journal((const char *)data, size, "f");
	read_journal(sealed, used, "f");
}
