/* SPDX-License-Identifier: MIT
 *
 * Text for the user: messages; and hints, lines on stderr that say what the user can do. And
 * warnings that come by the thousand.
 */
#ifndef SHOW_HINT_H
#define SHOW_HINT_H

#include "cli/cli.h"

#include <limits.h>
#include <stdio.h>

/* say.c: as printf(3). A hint and a note are broken into lines between words on a terminal. A
 * message is one line. */
#define hint_printf(...)    say_line("fcopy: hint: ", true, __VA_ARGS__)
#define note_printf(...)    say_line("fcopy: ", true, __VA_ARGS__)
#define message_printf(...) say_line("fcopy: ", false, __VA_ARGS__)
void say_line(const char *start, bool breaks, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void print_on(FILE *, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define GLUE "\1" /* in their text: a space at which a line is not broken */

/* What a name looks like there. Only an argument of these functions: they free it, and print its
 * glue as spaces. */

/* With its control characters escaped, which could move the cursor, fake a second line or reverse
 * the text. */
const char *escaped(const char *text);
const char *quoted(const char *path);                /* as one shell word */
const char *part_escaped(const char *dst);           /* the path of DST.fcopy-part */
const char *part_quoted(const char *dst);            /* the same as one shell word */
const char *error_words(const struct fcopy_error *); /* PATH: CALL: REASON, escaped */

void print_escaped(FILE *, const char *text); /* at once */
/* The path of DST.fcopy-part; false: it is too long. */
bool part_path(const char *dst, char part[PATH_MAX]);

/* hint.c */

#define HINT_SHARDS     "remove %s while no shard runs"
#define HINT_WOULD_KEEP "use --resume to keep an unfinished copy"

/* Hints propose nothing that is refused together with what this command line gives. */
void hint_about(const struct cli *);
/* What the user can do about an error, if there is anything. */
void hint_print(const struct fcopy_error *);
/* Its parts: what the library advises about this path; and what follows from the errno alone, if
 * there is something. */
void hint_advice(enum fcopy_advice, const char *path);
bool hint_cause(const struct fcopy_error *);
/* Is there such a hint, and is it the same for all paths? */
bool hint_is_general(enum fcopy_advice);
/* SRC looks like the value of an option before it, and the failure comes from that. Returns whether
 * it is so. */
bool hint_value(const struct cli *, const struct fcopy_error *);
void hint_bare(const struct cli *); /* the same without a failure; cli->bare_value is set */
/* Is DST HOST:PORT, or http:HOST:PORT, a URL without its slashes? The copy has made a file of that
 * name. */
void hint_new_file(const char *src, const char *dst);
/* Would the same command fail again, whatever is freed or repaired? DST cannot hold so large a
 * file, or refuses an attribute. */
bool hint_repeats(const struct fcopy_error *);
/* Copies the directory part of a path; "." if there is none. */
void hint_directory(const char *path, char directory[PATH_MAX]);

/* messages.c: warnings of one kind that come by the thousand. */

/* Counts a warning. Returns whether it is one of the first five of its call and errno;
 * with -v and for a server always true. */
bool flood_passes(const struct cli *, const struct fcopy_error *);
void flood_print(void); /* how many there were of each */

#endif
