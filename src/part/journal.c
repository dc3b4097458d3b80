/* SPDX-License-Identifier: MIT
 * The lines of a journal: formatting and parsing.
 */
#include "journal.h"
#include "io/hash.h"
#include "io/io.h"
#include "io/words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECKSUM 8 /* hexadecimal digits, and a space after them */
#define RECENT   2 /* seconds: the coarsest clock of a file system */

/* Folded to 32 bits: it finds torn lines. */
static uint32_t journal_checksum(const char *text, size_t size)
{
	const uint64_t hash = hash_add(HASH_START, text, size);
	return (uint32_t)(hash ^ hash >> 32);
}

void journal_seal(char *line, size_t size)
{
	const uint32_t sum = journal_checksum(line + JOURNAL_SEAL, size);
	for (int i = 0; i < CHECKSUM; i++)
		line[i] = "0123456789abcdef"[sum >> (4 * (CHECKSUM - 1 - i)) & 15];
	line[CHECKSUM] = ' ';
}

size_t journal_escape(const char *name, size_t size, char to[JOURNAL_PATH])
{
	char *end = words_put_name(to, name, size < PATH_MAX ? size : PATH_MAX - 1);
	*end = '\0';
	return (size_t)(end - to);
}

size_t journal_unescape(const char *text, size_t size, char to[JOURNAL_PATH])
{
	bool wrong = false; /* only what the checksum has missed */
	return words_name(text, size < JOURNAL_PATH ? size : JOURNAL_PATH - 1, to, &wrong);
}

struct journal_source journal_source_of(const struct stat *st)
{
	return (struct journal_source){.inode = st->st_ino,
				       .device = st->st_dev,
				       .size = st->st_size,
				       .mtime = st->st_mtim,
				       .ctime = st->st_ctim};
}

bool journal_same_source(const struct journal_source *a, const struct journal_source *b)
{
	return a->inode == b->inode && a->size == b->size && same_time(a->mtime, b->mtime) &&
	       same_time(a->ctime, b->ctime);
}

static bool journal_is_after(const struct timespec *t, const struct timespec *when)
{
	const int64_t later = time_between(t->tv_sec, when->tv_sec);
	return later < RECENT || (later == RECENT && when->tv_nsec <= t->tv_nsec);
}

bool journal_is_recent(const struct journal_source *s, const struct timespec *when)
{
	return journal_is_after(&s->mtime, when) || journal_is_after(&s->ctime, when);
}

/* What a word of a line is, and which member of the fact has it. */
enum word_type { UNSIGNED, SIZE, TIME, MODE, TREE, BOOT, TEXT };

static const struct journal_word {
	char letter;
	enum word_type type;
	size_t at;
} journal_words[] = {
    {'n', UNSIGNED, offsetof(struct journal_fact, number)},
    {'t', TREE, offsetof(struct journal_fact, tree)},
    {'i', UNSIGNED, offsetof(struct journal_fact, source.inode)},
    {'d', UNSIGNED, offsetof(struct journal_fact, source.device)},
    {'s', SIZE, offsetof(struct journal_fact, source.size)},
    {'m', TIME, offsetof(struct journal_fact, source.mtime)},
    {'c', TIME, offsetof(struct journal_fact, source.ctime)},
    {'w', TIME, offsetof(struct journal_fact, when)},
    {'I', UNSIGNED, offsetof(struct journal_fact, inode)},
    {'D', UNSIGNED, offsetof(struct journal_fact, device)},
    {'P', UNSIGNED, offsetof(struct journal_fact, part)},
    {'M', MODE, offsetof(struct journal_fact, mode)},
    {'b', BOOT, offsetof(struct journal_fact, boot)},
    {'u', UNSIGNED, offsetof(struct journal_fact, mount)},
    {'o', SIZE, offsetof(struct journal_fact, offset)},
    {'l', SIZE, offsetof(struct journal_fact, length)},
    {'x', TEXT, offsetof(struct journal_fact, text)},
};

/* A line: its first word, and the letters of the others. A line with "done" is of the first of the
 * two kinds if it has all its words. */
static const struct journal_row {
	enum journal_kind kind;
	const char *name, *letters;
} journal_rows[] = {
    {JOURNAL_ENTRY, "done", "smcwix"}, /* first: it is nearly every line of a tree */
    {JOURNAL_RANGE, "done", "ol"},      {JOURNAL_VERSION_IS, "fcopy-part", "n"},
    {JOURNAL_NAME, "name", "x"},        {JOURNAL_SOURCE, "source", "tidsmc"},
    {JOURNAL_OPTIONS, "options", "n"},  {JOURNAL_DATA, "data", "PIDM"},
    {JOURNAL_RUN, "run", "buw"},        {JOURNAL_AGAIN, "again", "x"},
    {JOURNAL_FLUSHED, "flushed", ""},   {JOURNAL_LOST, "lost", ""},
    {JOURNAL_PRIVATE, "private", "n"},  {JOURNAL_SHARDS, "shards", "nx"},
    {JOURNAL_COMMIT, "commit", "nism"},
};

#define ROWS (sizeof(journal_rows) / sizeof(*journal_rows))

static const struct journal_word *journal_word_of(char letter)
{
	const struct journal_word *word = journal_words;
	while (word->letter != letter)
		word++;
	return word;
}

/* Writes a word, and a space after it. An empty text is -. */
static char *journal_put(char *to, const struct journal_word *word, const struct journal_fact *f)
{
	const void *member = (const char *)f + word->at;
	switch (word->type) {
	case UNSIGNED: return words_put_unsigned(to, *(const uint64_t *)member, 10, 1, ' ');
	case SIZE: return words_put(to, *(const off_t *)member, 10, 1, ' ');
	case TIME: return words_put_time(to, member);
	case MODE: return words_put_unsigned(to, *(const mode_t *)member, 8, 1, ' ');
	case TREE: return stpcpy(to, *(const bool *)member ? "tree " : "file ");
	case BOOT: return stpcpy(stpcpy(to, member), " ");
	case TEXT:
		to += journal_escape(f->size ? f->text : "-", f->size ? f->size : 1, to);
		return stpcpy(to, " ");
	}
	return to;
}

size_t journal_format(const struct journal_fact *f, char line[JOURNAL_LINE])
{
	const struct journal_row *row = journal_rows;
	while (row->kind != f->kind)
		row++;
	char *at = stpcpy(stpcpy(line + JOURNAL_SEAL, row->name), " ");
	for (const char *letter = row->letters; *letter; letter++)
		at = journal_put(at, journal_word_of(*letter), f);
	at[-1] = '\n'; /* in place of the last space */
	const size_t length = (size_t)(at - line);
	journal_seal(line, length - JOURNAL_SEAL - 1);
	return length;
}

static bool journal_is(const char *word, size_t length, const char *expected)
{
	return length == strlen(expected) && memcmp(word, expected, length) == 0;
}

static void journal_get_boot(struct words *w, char boot[JOURNAL_BOOT])
{
	size_t length;
	const char *text = words_text(w, &length);
	w->wrong |= length >= JOURNAL_BOOT || memchr(text, '\0', length);
	snprintf(boot, JOURNAL_BOOT, "%.*s", (int)(w->wrong ? 0 : length), text);
}

static void journal_get(struct words *w, const struct journal_word *word, struct journal_fact *f)
{
	void *member = (char *)f + word->at;
	size_t length;
	intmax_t n;
	switch (word->type) {
	case UNSIGNED: *(uint64_t *)member = words_unsigned(w); break;
	case SIZE:
		n = words_number(w, ' ', 10);
		w->wrong |= n < 0;
		*(off_t *)member = (off_t)n;
		break;
	case TIME: *(struct timespec *)member = words_time(w); break;
	case MODE:
		n = words_number(w, ' ', 8);
		w->wrong |= n < 0 || n > 07777;
		*(mode_t *)member = (mode_t)n;
		break;
	case TREE: {
		const char *type = words_text(w, &length);
		*(bool *)member = journal_is(type, length, "tree");
		w->wrong |= !f->tree && !journal_is(type, length, "file");
		break;
	}
	case BOOT: journal_get_boot(w, member); break;
	case TEXT: f->text = words_text(w, &f->size); break;
	}
}

static bool journal_checks(const char *line, size_t length)
{
	char digits[CHECKSUM + 1];
	if (length <= JOURNAL_SEAL || length >= JOURNAL_LINE || line[CHECKSUM] != ' ')
		return false;
	snprintf(digits, sizeof(digits), "%08" PRIx32,
		 journal_checksum(line + JOURNAL_SEAL, length - JOURNAL_SEAL));
	return memcmp(line, digits, CHECKSUM) == 0;
}

/* Has the line, after its first word, the words of this row? */
static bool journal_fits(struct words w, const struct journal_row *row, struct journal_fact *f)
{
	off_t end;
	*f = (struct journal_fact){.kind = row->kind};
	for (const char *letter = row->letters; *letter; letter++)
		journal_get(&w, journal_word_of(*letter), f);
	return !w.wrong && w.at == w.end && !__builtin_add_overflow(f->offset, f->length, &end);
}

void journal_parse(const char *line, size_t length, struct journal_fact *f)
{
	size_t n;
	if (journal_checks(line, length)) {
		struct words w = {.at = line + JOURNAL_SEAL, .end = line + length};
		const char *name = words_text(&w, &n);
		for (size_t i = 0; i < ROWS; i++)
			if (journal_is(name, n, journal_rows[i].name) &&
			    journal_fits(w, &journal_rows[i], f))
				return;
	}
	*f = (struct journal_fact){.kind = JOURNAL_NOTHING};
}

/* What a whole journal says. The complete entries of a tree are found by a hash of their path; the
 * text stays in memory, and a line is parsed again when it is asked for. */

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

/* Marks of a complete entry. */
enum {
	ENTRY_CURRENT = 1, /* its bytes are in the page cache */
	ENTRY_FLUSHED = 2, /* ... and on the storage */
};

/* The last line about a path counts. If two paths have one key, only the later one is found: the
 * other one is copied again. */
static int journal_add(struct journal *j, const struct journal_fact *f, size_t at, bool current)
{
	struct table_row *row = table_add(&j->entries, journal_key(f->text, f->size));
	if (!row)
		return -ENOMEM;
	row->value = at;
	row->mark = current ? ENTRY_CURRENT : 0;
	return 0;
}

/* A flush covers what its own run has written. Of what an earlier one has, it may be too late to
 * say that it was lost: by a power cut, or by a writeback whose failure was reported before. */
static void journal_note_flushed(struct journal *j)
{
	j->flushed_prefix = j->prefix;
	for (size_t i = 0; i < j->entries.rows; i++)
		if (j->entries.row[i].value >= j->unflushed)
			j->entries.row[i].mark |= ENTRY_FLUSHED;
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
		j->unflushed = at;
		break;
	case JOURNAL_RANGE: journal_note_range(j, f); break;
	case JOURNAL_FLUSHED: journal_note_flushed(j); break;
	case JOURNAL_LOST:
		j->lost = j->unflushed = at;
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
	*sure = row->mark & ENTRY_FLUSHED ||
		(!durable && row->mark & ENTRY_CURRENT && row->value >= j->lost);
	return true;
}
