/* SPDX-License-Identifier: MIT
 *
 * The journal of a part says what `data` is a copy of, and how much of it is complete. It is text:
 * one fact per line. Each line only adds to what is known, and the last one may be torn.
 *
 * A line is eight hexadecimal digits, a space, and a fact. The digits are the two halves of the
 * 64-bit FNV-1a hash of the fact, combined by exclusive or; a line with other digits is ignored. A
 * run that continues the part, and a commit, first write an empty line: it ends a torn one. In
 * names, white space, control characters and backslashes are \ and three octal digits. A time is
 * seconds since the epoch, a period and nine digits. The header is the first six lines: if it
 * cannot be written, --resume fails before the first byte. If a later line cannot be written, the
 * copy continues without the journal, and a later run copies or compares again what the journal
 * lacks.
 *
 *     fcopy-part 1                      the version of the format
 *     name NAME                         the name of DST
 *     source tree|file INODE DEVICE SIZE MTIME CTIME
 *                                       SRC
 *     options NUMBER                    the options that decide what is copied, and the umask;
 *                                       of a file in shards also the number of its ranges
 *     data PART INODE DEVICE MODE       inode of the part; inode, device and final mode of `data`
 *     run BOOT MOUNT TIME               a run began at TIME, in this boot and with this mount (0:
 *                                       unknown); of a file, `source` follows if it is another one
 *     done SIZE MTIME CTIME TIME INODE PATH
 *                                       a file of a tree is complete; its source had this size and
 *                                       these times at TIME (written when: src/tree/resume.c)
 *     done OFFSET LENGTH                a range of a file is complete
 *     again PATH                        that file is copied again
 *     flushed                           the lines of this run before this one, but for those
 *                                       before a `lost`, and the bytes that they describe, were
 *                                       flushed
 *     lost                              a flush failed: only flushed lines before this one count
 *     shards N NAME                     the part belongs to N shards; their --job, or -
 *     commit SUM INODE SIZE TIME        the shards rename `data` to DST, which then has this inode.
 *                                       TIME: modification time of a file, creation time of a
 *                                       directory. SUM: of the list of shares
 *
 * The lock has lines of the same form: fcopy-part, run, and `private INODE`, the inode of the
 * directory.
 *
 * Where the next mount may show other inode numbers, a random number takes the place of that of the
 * part, in the journal and in the lock; a hash of its path that of SRC; and 0 those of its files.
 */
#ifndef PART_JOURNAL_H
#define PART_JOURNAL_H

#include "io/hash.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#define JOURNAL_VERSION 1
#define JOURNAL_PATH    ((size_t)4 * PATH_MAX) /* an escaped path, with its 0 */
#define JOURNAL_LINE                                                                               \
	(JOURNAL_PATH + (size_t)4 * NAME_MAX) /* the longest line, with its newline                \
					       */

#define JOURNAL_BOOT 40 /* a boot ID, with its 0 */

enum journal_kind {
	JOURNAL_NOTHING, /* a torn or unknown line */
	JOURNAL_VERSION_IS,
	JOURNAL_NAME,
	JOURNAL_SOURCE,
	JOURNAL_OPTIONS,
	JOURNAL_DATA,
	JOURNAL_RUN,
	JOURNAL_RANGE,
	JOURNAL_ENTRY,
	JOURNAL_AGAIN,
	JOURNAL_FLUSHED,
	JOURNAL_LOST,
	JOURNAL_PRIVATE, /* in a lock: private.h */
	JOURNAL_SHARDS,
	JOURNAL_COMMIT,
};

/* What identifies a source: an edit changes one of these. */
struct journal_source {
	uint64_t inode, device;
	off_t size;
	struct timespec mtime, ctime;
};

/* One line. The members that lines of its kind do not have are 0: journal_rows in journal.c.
 * NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order of a line */
struct journal_fact {
	enum journal_kind kind;
	uint64_t number; /* version; options; private: an inode; shards; of a commit the sum */
	bool tree;       /* of source */
	/* Of source; of an entry all but the device; of a commit inode, size and mtime. */
	struct journal_source source;
	struct timespec when; /* an entry: when its source was opened; a run: when it started */
	uint64_t inode, device, part; /* of data, and the inode of the part */
	mode_t mode;                  /* that data gets last */
	char boot[JOURNAL_BOOT];
	uint64_t mount;
	off_t offset, length;
	const char *text; /* a name or path, still escaped, inside the line; not terminated */
	size_t size;
};

/* Formats one fact as a line with its newline. Returns its length. A path is given unescaped as
 * fact->text with fact->size bytes. */
size_t journal_format(const struct journal_fact *, char line[JOURNAL_LINE]);
/* Writes the checksum of the `size` bytes that follow line[JOURNAL_SEAL] in front of them. */
#define JOURNAL_SEAL ((size_t)9)
void journal_seal(char *line, size_t size);
/* Reads one line, without its newline. */
void journal_parse(const char *line, size_t length, struct journal_fact *);

/* Escapes white space, control characters and backslashes as \ooo. Returns the length. */
size_t journal_escape(const char *name, size_t size, char to[JOURNAL_PATH]);
/* The opposite, with a null byte at the end. */
size_t journal_unescape(const char *text, size_t size, char to[JOURNAL_PATH]);

struct journal_source journal_source_of(const struct stat *);
bool journal_same_source(const struct journal_source *, const struct journal_source *);
/* Could the source have been edited after this time without a change of its times, because its file
 * system counts in steps of up to two seconds? */
bool journal_is_recent(const struct journal_source *, const struct timespec *when);

/* What a whole journal says: of each kind the last line. If it has none, the kind of that fact is
 * JOURNAL_NOTHING. The prefixes begin again with each run, and flushed_prefix is never more than
 * prefix. The offsets are of lines in `text`. */
struct journal {
	struct journal_fact version, name, source, options, data, run, private, shards, commit;
	/* Of a file: so many bytes are complete as far as the last run knows, and on the storage.
	 */
	off_t prefix, flushed_prefix;
	bool current; /* the writes of the last run are in the page cache */
	/* Of a tree: the complete entries. */
	char *text;
	size_t size;
	size_t unflushed; /* the next flush covers the facts from this offset on */
	size_t lost; /* what was not flushed before this one may have been lost by its writeback */
	struct table entries; /* by a hash of their path: offset of the last line, and what is known
				 of its bytes */
};

/* Reads an open journal. current: are the facts of this run known to be in the page cache? NULL: of
 * none. Returns 0 or -errno; journal_free releases it. A journal without a header is not an error.
 */
int journal_read(int fd, struct journal *,
		 bool (*current)(const struct journal_fact *run, const void *arg), const void *arg);
void journal_free(struct journal *);
/* What the journal says about this path: false: nothing. *sure: it is certain that the entry's
 * bytes are in `data`; durable: that they are on the storage. */
bool journal_find(const struct journal *, const char *path, bool durable, struct journal_fact *,
		  bool *sure);

#endif
