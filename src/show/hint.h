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

/* say.c: as printf(3). A hint begins with "fcopy: hint: ", a note with "fcopy: "; on a terminal
 * they are broken into lines between words. A message, which also begins with "fcopy: ", is one
 * line. */
void hint_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void note_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void message_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
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

#define HINT_WOULD_KEEP "use --resume to keep an unfinished copy"

/* Hints propose nothing that is refused together with what this command line gives. */
void hint_about(const struct cli *);
/* What the user can do about an error, if there is anything. */
void hint_print(const struct fcopy_error *);
/* Its parts: one that needs no path, or NULL, and prints it; one that names the error's path; and
 * one that follows from the errno alone, if there is one. */
const char *hint_text(enum fcopy_advice);
void hint_advice(enum fcopy_advice);
void hint_print_path(const struct fcopy_error *);
bool hint_cause(const struct fcopy_error *);
/* PURPOSE, remove DST.fcopy-part. */
void hint_shards(const char *purpose, const char *dst);
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
