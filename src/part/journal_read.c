/* SPDX-License-Identifier: MIT
 * What a whole journal says. The complete entries of a tree are found by a hash of their path; the
 * text stays in memory, and a line is parsed again when it is asked for.
 */
#include "journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK ((size_t)1 << 20)

struct journal_slot {
	size_t line; /* offset + 1 of the line in the text; 0: empty */
	size_t hash;
	unsigned length; /* of the line */
	bool current;    /* of a run whose writes are in the page cache */
};

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

static size_t journal_hash(const char *text, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
	return (size_t)(hash ^ hash >> 29);
}

/* The slot of this escaped path, or the empty one where it belongs. */
static struct journal_slot *journal_slot(const struct journal *j, const char *text, size_t size,
					 size_t hash)
{
	struct journal_fact f;
	for (size_t i = hash & (j->slots - 1);; i = (i + 1) & (j->slots - 1)) {
		struct journal_slot *s = &j->slot[i];
		if (s->line == 0)
			return s;
		if (s->hash != hash)
			continue;
		journal_parse(j->text + s->line - 1, s->length, &f);
		if (f.size == size && memcmp(f.text, text, size) == 0)
			return s;
	}
}

static int journal_grow(struct journal *j)
{
	struct journal_slot *old = j->slot;
	const size_t count = j->slots;
	if (2 * (j->entries + 1) <= count)
		return 0;
	j->slots = count ? 2 * count : 1024;
	j->slot = calloc(j->slots, sizeof(*j->slot));
	if (!j->slot) {
		j->slot = old;
		j->slots = count;
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		if (old[i].line == 0)
			continue;
		size_t k = old[i].hash & (j->slots - 1);
		while (j->slot[k].line)
			k = (k + 1) & (j->slots - 1);
		j->slot[k] = old[i];
	}
	free(old);
	return 0;
}

/* The last line about a path counts. */
static int journal_add(struct journal *j, const struct journal_fact *f, size_t at, size_t length,
		       bool current)
{
	int r = journal_grow(j);
	if (r < 0)
		return r;
	size_t hash = journal_hash(f->text, f->size);
	struct journal_slot *s = journal_slot(j, f->text, f->size, hash);
	j->entries += s->line == 0;
	*s = (struct journal_slot){
	    .line = at + 1, .hash = hash, .length = (unsigned)length, .current = current};
	return 0;
}

/* A run notes at its start how much of an earlier run's bytes it continues. */
static void journal_note_range(struct journal *j, const struct journal_fact *f)
{
	if (f->offset > j->prefix || f->offset + f->length <= j->prefix)
		return;
	j->prefix = f->offset + f->length;
}

static int journal_take(struct journal *j, const struct journal_fact *f, size_t at, size_t length,
			bool current)
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
	case JOURNAL_AGAIN: return journal_add(j, f, at, length, current);
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
		r = journal_take(j, &f, at, length, counts);
	}
	if (r < 0)
		journal_free(j);
	return r;
}

void journal_free(struct journal *j)
{
	free(j->text);
	free(j->slot);
	j->text = NULL;
	j->slot = NULL;
	j->slots = j->entries = 0;
}

bool journal_find(const struct journal *j, const char *path, bool durable, struct journal_fact *f,
		  bool *sure)
{
	char escaped[JOURNAL_PATH];
	if (j->entries == 0)
		return false;
	size_t n = journal_escape(path, strlen(path), escaped);
	const struct journal_slot *s = journal_slot(j, escaped, n, journal_hash(escaped, n));
	if (s->line == 0)
		return false;
	journal_parse(j->text + s->line - 1, s->length, f);
	*sure = s->line - 1 < j->flushed || (!durable && s->current && s->line - 1 >= j->lost);
	return f->kind == JOURNAL_ENTRY;
}
