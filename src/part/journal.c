/* SPDX-License-Identifier: MIT
 * The lines of a journal: formatting and parsing.
 */
#include "journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECKSUM 8 /* hexadecimal digits, and a space after them */
#define RECENT   2 /* seconds: the coarsest clock of a file system */

/* FNV-1a of 64 bits, folded to 32: it finds torn lines, not forged ones. */
static uint32_t journal_checksum(const char *text, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
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
	char *at = to;
	for (size_t i = 0; i < size && at - to + 5 < (ptrdiff_t)JOURNAL_PATH; i++) {
		unsigned char c = (unsigned char)name[i];
		if (c > ' ' && c != '\\' && c != 0x7f)
			*at++ = (char)c;
		else
			at += sprintf(at, "\\%03o", c);
	}
	*at = '\0';
	return (size_t)(at - to);
}

size_t journal_unescape(const char *text, size_t size, char to[JOURNAL_PATH])
{
	size_t n = 0;
	for (size_t i = 0; i < size && n + 1 < JOURNAL_PATH; n++) {
		if (text[i] == '\\' && size - i >= 4) {
			to[n] = (char)((text[i + 1] - '0') << 6 | (text[i + 2] - '0') << 3 |
				       (text[i + 3] - '0'));
			i += 4;
		} else {
			to[n] = text[i++];
		}
	}
	to[n] = '\0';
	return n;
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
	return a->size == b->size && journal_same_time(&a->mtime, &b->mtime) &&
	       journal_same_time(&a->ctime, &b->ctime);
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

/* Writes n with at least this many digits, and one more character; returns the end. Most lines are
 * of entries, for which printf(3) took 5 % of the time of a tree in memory. */
static char *journal_put(char *at, intmax_t n, int digits, char after)
{
	char text[24];
	int used = 0;
	uintmax_t rest = n < 0 ? 0 - (uintmax_t)n : (uintmax_t)n;
	for (; rest > 0 || used < digits; rest /= 10)
		text[used++] = (char)('0' + rest % 10);
	if (n < 0)
		*at++ = '-';
	while (used > 0)
		*at++ = text[--used];
	*at++ = after;
	return at;
}

static char *journal_put_time(char *at, const struct timespec *t)
{
	at = journal_put(at, t->tv_sec, 1, '.');
	return journal_put(at, t->tv_nsec, 9, ' ');
}

/* `text` has room for a line. */
static size_t journal_text_of_entry(const struct journal_fact *f, char *text)
{
	char *at = journal_put(stpcpy(text, "done "), f->source.size, 1, ' ');
	at = journal_put_time(at, &f->source.mtime);
	at = journal_put_time(at, &f->source.ctime);
	at = journal_put_time(at, &f->when);
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

/* What is left of a line. */
struct journal_words {
	const char *at, *end;
	bool wrong;
};

static const char *journal_word(struct journal_words *w, size_t *length)
{
	const char *word = w->at;
	const char *space = w->at < w->end ? memchr(w->at, ' ', (size_t)(w->end - w->at)) : NULL;
	*length = (size_t)((space ? space : w->end) - word);
	w->at = space ? space + 1 : w->end;
	w->wrong |= *length == 0;
	return word;
}

/* base 8 or 10. Refuses what journal_format does not write: signs other than one -, spaces. */
static intmax_t journal_number(struct journal_words *w, char stop, int base)
{
	intmax_t value = 0;
	bool negative = w->at < w->end && *w->at == '-';
	const char *start = w->at += negative;
	for (; w->at < w->end && *w->at >= '0' && *w->at < '0' + base; w->at++)
		w->wrong |= __builtin_mul_overflow(value, base, &value) ||
			    __builtin_add_overflow(value, *w->at - '0', &value);
	w->wrong |= w->at == start || (w->at < w->end && *w->at != stop);
	w->at += w->at < w->end;
	return negative ? -value : value;
}

static uint64_t journal_unsigned(struct journal_words *w)
{
	uint64_t value = 0;
	const char *start = w->at;
	for (; w->at < w->end && *w->at >= '0' && *w->at <= '9'; w->at++)
		w->wrong |= __builtin_mul_overflow(value, (uint64_t)10, &value) ||
			    __builtin_add_overflow(value, (uint64_t)(*w->at - '0'), &value);
	w->wrong |= w->at == start || (w->at < w->end && *w->at != ' ');
	w->at += w->at < w->end;
	return value;
}

static struct timespec journal_time(struct journal_words *w)
{
	struct timespec t;
	t.tv_sec = (time_t)journal_number(w, '.', 10);
	t.tv_nsec = (long)journal_number(w, ' ', 10);
	w->wrong |= t.tv_nsec < 0 || t.tv_nsec > 999999999;
	return t;
}

static void journal_parse_done(struct journal_words *w, struct journal_fact *f)
{
	f->source.size = (off_t)journal_number(w, ' ', 10);
	w->wrong |= f->source.size < 0;
	const char *dot = w->at < w->end ? memchr(w->at, '.', (size_t)(w->end - w->at)) : NULL;
	if (!dot) {
		f->kind = JOURNAL_RANGE;
		f->offset = f->source.size;
		f->length = (off_t)journal_number(w, ' ', 10);
		off_t end;
		w->wrong |= f->length < 0 || __builtin_add_overflow(f->offset, f->length, &end);
		return;
	}
	f->kind = JOURNAL_ENTRY;
	f->source.mtime = journal_time(w);
	f->source.ctime = journal_time(w);
	f->when = journal_time(w);
	f->text = journal_word(w, &f->size);
}

static void journal_parse_source(struct journal_words *w, struct journal_fact *f)
{
	size_t n;
	const char *type = journal_word(w, &n);
	f->kind = JOURNAL_SOURCE;
	f->tree = n == 4 && memcmp(type, "tree", 4) == 0;
	w->wrong |= !f->tree && (n != 4 || memcmp(type, "file", 4) != 0);
	f->source.inode = journal_unsigned(w);
	f->source.device = journal_unsigned(w);
	f->source.size = (off_t)journal_number(w, ' ', 10);
	f->source.mtime = journal_time(w);
	f->source.ctime = journal_time(w);
}

static void journal_parse_data(struct journal_words *w, struct journal_fact *f)
{
	f->kind = JOURNAL_DATA;
	f->part = journal_unsigned(w);
	f->inode = journal_unsigned(w);
	f->device = journal_unsigned(w);
	intmax_t mode = journal_number(w, ' ', 8);
	w->wrong |= mode < 0 || mode > 07777;
	f->mode = (mode_t)mode;
}

static void journal_parse_run(struct journal_words *w, struct journal_fact *f)
{
	size_t n;
	const char *boot = journal_word(w, &n);
	f->kind = JOURNAL_RUN;
	w->wrong |= n >= sizeof(f->boot) || memchr(boot, '\0', n);
	snprintf(f->boot, sizeof(f->boot), "%.*s", (int)(w->wrong ? 0 : n), boot);
	f->mount = journal_unsigned(w);
	f->when = journal_time(w);
}

static void journal_parse_number(struct journal_words *w, struct journal_fact *f,
				 enum journal_kind kind)
{
	f->kind = kind;
	f->number = journal_unsigned(w);
}

static void journal_parse_text(struct journal_words *w, struct journal_fact *f,
			       enum journal_kind kind)
{
	f->kind = kind;
	f->text = journal_word(w, &f->size);
}

static void journal_parse_shards(struct journal_words *w, struct journal_fact *f)
{
	f->kind = JOURNAL_SHARDS;
	f->number = journal_unsigned(w);
	f->text = journal_word(w, &f->size);
}

static void journal_parse_commit(struct journal_words *w, struct journal_fact *f)
{
	f->kind = JOURNAL_COMMIT;
	f->number = journal_unsigned(w);
	f->source.inode = journal_unsigned(w);
	f->source.size = (off_t)journal_number(w, ' ', 10);
	f->source.mtime = journal_time(w);
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
	struct journal_words w = {.at = line + JOURNAL_SEAL, .end = line + length};
	const char *word = journal_word(&w, &n);
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
