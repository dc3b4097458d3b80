/* SPDX-License-Identifier: MIT
 *
 * Hints: lines on stderr that say what the user can do. On a terminal they are broken between
 * words, and never inside a path or a command. And warnings that come by the thousand.
 */
#ifndef SHOW_HINT_H
#define SHOW_HINT_H

#include "cli/cli.h"

#include <limits.h>
#include <stdio.h>

#define HINT_SPACE      '\1' /* in the text of a hint: a space at which the line is not broken */
#define HINT_WOULD_KEEP "use --resume to keep an unfinished copy"

/* Between the two, what is written to the stream, and by message_print() and its like, is one hint.
 */
FILE *hint_begin(void);
FILE *note_begin(void); /* the same without the word hint */
void hint_end(void);
/* Where message_print() and its like write: stderr, or the hint that has begun. */
FILE *hint_stream(void);

/* A whole hint, as printf(3). */
void hint_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void note_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Parts of a message, and of a hint: text with its control characters escaped, which could
 * move the cursor, fake a second line or reverse the text; the name of DST.fcopy-part, which is
 * next to the file itself if dst is a symlink. */
void message_print(const char *text);
void message_print_on(FILE *, const char *text);
void message_part(const char *dst);
void message_part_quoted(const char *dst);                /* as one shell word */
void message_beside(const char *dst, const char *suffix); /* the same with another suffix */
/* The path of DST.fcopy-part; false: it is too long. */
bool message_part_path(const char *dst, char part[PATH_MAX]);
bool message_part_exists(const char *dst);
bool message_part_is_unfinished(const char *dst); /* it has data, and is not that of shards */
void message_quoted(const char *path);            /* as one shell word */

/* Is it HOST:PORT, with a host that is not a number? And what is then printed if the
 * copy made a file of this name. */
bool hint_is_address(const char *path);
/* The same of http:HOST:PORT, a URL without its slashes: returns HOST:PORT, or NULL. */
const char *hint_url(const char *path);
void hint_new_file(const char *src, const char *dst);

/* advice.c: what the user can do about an error, if there is anything. */
void hint_print(const struct fcopy_error *);
/* Hints propose nothing that is refused together with what this command line gives. */
void hint_about(const struct cli *);
void hint_advice(enum fcopy_advice); /* prints the hint that hint_text() returns */
/* A hint that needs no path, or NULL; and the other part: a hint that names the error's path. */
const char *hint_text(enum fcopy_advice);
/* advice.c: SRC looks like the value of an option before it, and the failure comes from that.
 * Returns whether it is so. */
bool hint_value(const struct cli *, const struct fcopy_error *);
void hint_bare(const struct cli *); /* the same without a failure; cli->bare_value is set */
/* One that follows from the errno alone. Returns whether it is such an error. */
bool hint_cause(const struct fcopy_error *);
void hint_print_path(const struct fcopy_error *);
/* Would the same command fail again, whatever is freed or repaired? DST cannot hold
 * so large a file, or refuses an attribute. And is it such an attribute? */
bool hint_repeats(const struct fcopy_error *);
bool hint_is_attribute(const struct fcopy_error *);
/* Copies the directory part of a path; "." if there is none. */
void hint_directory(const char *path, char directory[PATH_MAX]);
/* PURPOSE, remove DST.fcopy-part. */
void hint_shards(const char *purpose, const char *dst);

/* Warnings of one kind that come by the thousand. */

/* Counts a warning. Returns whether it is one of the first five of its call and errno;
 * with -v and for a server always true. */
bool flood_passes(const struct cli *, const struct fcopy_error *);
void flood_print(void); /* how many there were of each */

#endif
