/* SPDX-License-Identifier: MIT
 * What a whole journal says. The complete entries of a tree are found by a hash of their path; the
 * text stays in memory, and a line is parsed again when it is asked for.
 */
#include "io/hash.h"
#include "journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK ((size_t)1 << 20)

static int journal_load(int fd, struct journal *j)
{
	size_t room = 0;
	for (;;) {
		if (j->size + BLOCK > room) {
			char *more = realloc(j->text, room = room ? 2 * room : BLOCK);
			if (!more)
				return -ENOMEM;
			j->text = more;
		}
		ssize_t n = pread(fd, j->text + j->size, room - j->size, (off_t)j->size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		j->size += (size_t)n;
	}
}

/* Some bits of FNV-1a do not depend on the first bytes. */
static uint64_t journal_key(const char *text, size_t size)
{
	const uint64_t hash = hash_add(HASH_START, text, size);
	return hash ^ hash >> 29;
}

/* The last line about a path counts. If two paths have one key, only the later one is found: the
 * other one is copied again. */
static int journal_add(struct journal *j, const struct journal_fact *f, size_t at, bool current)
{
	struct table_row *row = table_add(&j->entries, journal_key(f->text, f->size));
	if (!row)
		return -ENOMEM;
	row->value = at;
	row->mark = current;
	return 0;
}

/* A run notes at its start how much of an earlier run's bytes it continues. */
static void journal_note_range(struct journal *j, const struct journal_fact *f)
{
	if (f->offset > j->prefix || f->offset + f->length <= j->prefix)
		return;
	j->prefix = f->offset + f->length;
}

static int journal_take(struct journal *j, const struct journal_fact *f, size_t at, bool current)
{
	switch (f->kind) {
	case JOURNAL_VERSION_IS: j->version = *f; break;
	case JOURNAL_NAME: j->name = *f; break;
	case JOURNAL_SOURCE: j->source = *f; break;
	case JOURNAL_OPTIONS: j->options = *f; break;
	case JOURNAL_DATA: j->data = *f; break;
	case JOURNAL_PRIVATE: j->private = *f; break;
	case JOURNAL_SHARDS: j->shards = *f; break;
	case JOURNAL_COMMIT: j->commit = *f; break;
	case JOURNAL_RUN:
		j->run = *f;
		j->prefix = j->flushed_prefix = 0;
		j->current = current;
		break;
	case JOURNAL_RANGE: journal_note_range(j, f); break;
	case JOURNAL_FLUSHED:
		j->flushed = at;
		j->flushed_prefix = j->prefix;
		break;
	case JOURNAL_LOST:
		j->lost = at;
		j->prefix = j->flushed_prefix;
		break;
	case JOURNAL_ENTRY:
	case JOURNAL_AGAIN: return journal_add(j, f, at, current);
	case JOURNAL_NOTHING: break;
	}
	return 0;
}

int journal_read(int fd, struct journal *j,
		 bool (*current)(const struct journal_fact *run, const void *arg), const void *arg)
{
	struct journal_fact f;
	bool counts = false;
	*j = (struct journal){0};
	int r = journal_load(fd, j);
	for (size_t at = 0, length; r == 0 && at < j->size; at += length + 1) {
		const char *end = memchr(j->text + at, '\n', j->size - at);
		if (!end)
			break; /* torn */
		length = (size_t)(end - (j->text + at));
		journal_parse(j->text + at, length, &f);
		if (f.kind == JOURNAL_RUN)
			counts = current && current(&f, arg);
		r = journal_take(j, &f, at, counts);
	}
	if (r < 0)
		journal_free(j);
	return r;
}

void journal_free(struct journal *j)
{
	free(j->text);
	j->text = NULL;
	table_free(&j->entries);
}

bool journal_find(const struct journal *j, const char *path, bool durable, struct journal_fact *f,
		  bool *sure)
{
	char escaped[JOURNAL_PATH];
	if (j->entries.used == 0)
		return false;
	const size_t n = journal_escape(path, strlen(path), escaped);
	const struct table_row *row = table_find(&j->entries, journal_key(escaped, n));
	if (!row)
		return false;
	const char *line = j->text + row->value;
	const char *end = memchr(line, '\n', j->size - row->value);
	journal_parse(line, (size_t)(end - line), f);
	if (f->kind != JOURNAL_ENTRY || f->size != n || memcmp(f->text, escaped, n) != 0)
		return false;
	*sure = row->value < j->flushed || (!durable && row->mark && row->value >= j->lost);
	return true;
}
