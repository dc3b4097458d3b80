/* SPDX-License-Identifier: MIT
 * The lines of a journal: formatting and parsing.
 */
#include "journal.h"
#include "io/hash.h"
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

static bool journal_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool journal_same_source(const struct journal_source *a, const struct journal_source *b)
{
	return a->inode == b->inode && a->size == b->size &&
	       journal_same_time(&a->mtime, &b->mtime) && journal_same_time(&a->ctime, &b->ctime);
}

static bool journal_is_after(const struct timespec *t, const struct timespec *when)
{
	time_t later = when->tv_sec - t->tv_sec;
	return later < RECENT || (later == RECENT && when->tv_nsec <= t->tv_nsec);
}

bool journal_is_recent(const struct journal_source *s, const struct timespec *when)
{
	return journal_is_after(&s->mtime, when) || journal_is_after(&s->ctime, when);
}

/* `text` has room for a line. */
static size_t journal_text_of_entry(const struct journal_fact *f, char *text)
{
	char *at = words_put(stpcpy(text, "done "), f->source.size, 10, 1, ' ');
	at = words_put_time(at, &f->source.mtime);
	at = words_put_time(at, &f->source.ctime);
	at = words_put_time(at, &f->when);
	at = words_put_unsigned(at, f->source.inode, 10, 1, ' ');
	return (size_t)(at - text) + journal_escape(f->text, f->size, at);
}

static size_t journal_text(const struct journal_fact *f, char *text, size_t room)
{
	const struct journal_source *s = &f->source;
	char path[JOURNAL_PATH];
	int n = 0;
	switch (f->kind) {
	case JOURNAL_VERSION_IS:
		n = snprintf(text, room, "fcopy-part %ju", (uintmax_t)f->number);
		break;
	case JOURNAL_SHARDS:
		journal_escape(f->size ? f->text : "-", f->size ? f->size : 1, path);
		n = snprintf(text, room, "shards %ju %s", (uintmax_t)f->number, path);
		break;
	case JOURNAL_COMMIT:
		n = snprintf(text, room, "commit %ju %ju %jd %jd.%09ld", (uintmax_t)f->number,
			     (uintmax_t)s->inode, (intmax_t)s->size, (intmax_t)s->mtime.tv_sec,
			     s->mtime.tv_nsec);
		break;
	case JOURNAL_NAME:
	case JOURNAL_AGAIN:
		journal_escape(f->text, f->size, path);
		n = snprintf(text, room, "%s %s", f->kind == JOURNAL_NAME ? "name" : "again", path);
		break;
	case JOURNAL_SOURCE:
		n = snprintf(text, room, "source %s %ju %ju %jd %jd.%09ld %jd.%09ld",
			     f->tree ? "tree" : "file", (uintmax_t)s->inode, (uintmax_t)s->device,
			     (intmax_t)s->size, (intmax_t)s->mtime.tv_sec, s->mtime.tv_nsec,
			     (intmax_t)s->ctime.tv_sec, s->ctime.tv_nsec);
		break;
	case JOURNAL_OPTIONS: n = snprintf(text, room, "options %ju", (uintmax_t)f->number); break;
	case JOURNAL_DATA:
		n = snprintf(text, room, "data %ju %ju %ju %o", (uintmax_t)f->part,
			     (uintmax_t)f->inode, (uintmax_t)f->device, (unsigned)f->mode);
		break;
	case JOURNAL_RUN:
		n = snprintf(text, room, "run %s %ju %jd.%09ld", f->boot, (uintmax_t)f->mount,
			     (intmax_t)f->when.tv_sec, f->when.tv_nsec);
		break;
	case JOURNAL_RANGE:
		n = snprintf(text, room, "done %jd %jd", (intmax_t)f->offset, (intmax_t)f->length);
		break;
	case JOURNAL_ENTRY: return journal_text_of_entry(f, text);
	case JOURNAL_FLUSHED: n = snprintf(text, room, "flushed"); break;
	case JOURNAL_LOST: n = snprintf(text, room, "lost"); break;
	case JOURNAL_PRIVATE: n = snprintf(text, room, "private %ju", (uintmax_t)f->number); break;
	case JOURNAL_NOTHING: break;
	}
	return (size_t)n;
}

size_t journal_format(const struct journal_fact *f, char line[JOURNAL_LINE])
{
	size_t n = journal_text(f, line + JOURNAL_SEAL, JOURNAL_LINE - JOURNAL_SEAL - 1);
	journal_seal(line, n);
	line[JOURNAL_SEAL + n] = '\n';
	return JOURNAL_SEAL + n + 1;
}

static void journal_parse_done(struct words *w, struct journal_fact *f)
{
	f->source.size = (off_t)words_number(w, ' ', 10);
	w->wrong |= f->source.size < 0;
	const char *dot = w->at < w->end ? memchr(w->at, '.', (size_t)(w->end - w->at)) : NULL;
	if (!dot) {
		f->kind = JOURNAL_RANGE;
		f->offset = f->source.size;
		f->length = (off_t)words_number(w, ' ', 10);
		off_t end;
		w->wrong |= f->length < 0 || __builtin_add_overflow(f->offset, f->length, &end);
		return;
	}
	f->kind = JOURNAL_ENTRY;
	f->source.mtime = words_time(w);
	f->source.ctime = words_time(w);
	f->when = words_time(w);
	f->source.inode = words_unsigned(w);
	f->text = words_text(w, &f->size);
}

static void journal_parse_source(struct words *w, struct journal_fact *f)
{
	size_t n;
	const char *type = words_text(w, &n);
	f->kind = JOURNAL_SOURCE;
	f->tree = n == 4 && memcmp(type, "tree", 4) == 0;
	w->wrong |= !f->tree && (n != 4 || memcmp(type, "file", 4) != 0);
	f->source.inode = words_unsigned(w);
	f->source.device = words_unsigned(w);
	f->source.size = (off_t)words_number(w, ' ', 10);
	f->source.mtime = words_time(w);
	f->source.ctime = words_time(w);
}

static void journal_parse_data(struct words *w, struct journal_fact *f)
{
	f->kind = JOURNAL_DATA;
	f->part = words_unsigned(w);
	f->inode = words_unsigned(w);
	f->device = words_unsigned(w);
	intmax_t mode = words_number(w, ' ', 8);
	w->wrong |= mode < 0 || mode > 07777;
	f->mode = (mode_t)mode;
}

static void journal_parse_run(struct words *w, struct journal_fact *f)
{
	size_t n;
	const char *boot = words_text(w, &n);
	f->kind = JOURNAL_RUN;
	w->wrong |= n >= sizeof(f->boot) || memchr(boot, '\0', n);
	snprintf(f->boot, sizeof(f->boot), "%.*s", (int)(w->wrong ? 0 : n), boot);
	f->mount = words_unsigned(w);
	f->when = words_time(w);
}

static void journal_parse_number(struct words *w, struct journal_fact *f, enum journal_kind kind)
{
	f->kind = kind;
	f->number = words_unsigned(w);
}

static void journal_parse_text(struct words *w, struct journal_fact *f, enum journal_kind kind)
{
	f->kind = kind;
	f->text = words_text(w, &f->size);
}

static void journal_parse_shards(struct words *w, struct journal_fact *f)
{
	f->kind = JOURNAL_SHARDS;
	f->number = words_unsigned(w);
	f->text = words_text(w, &f->size);
}

static void journal_parse_commit(struct words *w, struct journal_fact *f)
{
	f->kind = JOURNAL_COMMIT;
	f->number = words_unsigned(w);
	f->source.inode = words_unsigned(w);
	f->source.size = (off_t)words_number(w, ' ', 10);
	f->source.mtime = words_time(w);
}

static bool journal_is(const char *word, size_t length, const char *expected)
{
	return length == strlen(expected) && memcmp(word, expected, length) == 0;
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

void journal_parse(const char *line, size_t length, struct journal_fact *f)
{
	size_t n;
	*f = (struct journal_fact){.kind = JOURNAL_NOTHING};
	if (!journal_checks(line, length))
		return;
	struct words w = {.at = line + JOURNAL_SEAL, .end = line + length};
	const char *word = words_text(&w, &n);
	if (journal_is(word, n, "done"))
		journal_parse_done(&w, f);
	else if (journal_is(word, n, "fcopy-part"))
		journal_parse_number(&w, f, JOURNAL_VERSION_IS);
	else if (journal_is(word, n, "options"))
		journal_parse_number(&w, f, JOURNAL_OPTIONS);
	else if (journal_is(word, n, "private"))
		journal_parse_number(&w, f, JOURNAL_PRIVATE);
	else if (journal_is(word, n, "name"))
		journal_parse_text(&w, f, JOURNAL_NAME);
	else if (journal_is(word, n, "again"))
		journal_parse_text(&w, f, JOURNAL_AGAIN);
	else if (journal_is(word, n, "source"))
		journal_parse_source(&w, f);
	else if (journal_is(word, n, "data"))
		journal_parse_data(&w, f);
	else if (journal_is(word, n, "run"))
		journal_parse_run(&w, f);
	else if (journal_is(word, n, "shards"))
		journal_parse_shards(&w, f);
	else if (journal_is(word, n, "commit"))
		journal_parse_commit(&w, f);
	else if (journal_is(word, n, "flushed"))
		f->kind = JOURNAL_FLUSHED;
	else if (journal_is(word, n, "lost"))
		f->kind = JOURNAL_LOST;
	if (w.wrong || w.at != w.end)
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
