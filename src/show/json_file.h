/* SPDX-License-Identifier: MIT
 *
 * Where the objects of --json go: standard output, or a file.
 */
#ifndef SHOW_JSON_FILE_H
#define SHOW_JSON_FILE_H

#include "cli/cli.h"

#include <sys/stat.h>

/* Would an object on standard output go to the same open file, pipe or socket as
 * the bytes of DST? */
bool json_file_mixes(const char *dst);
/* Is this file an argument of the command line, or does a descriptor among them name it? */
bool json_file_is_operand(const struct cli *, const struct stat *, int argc, char **argv);
/* After a usage error: finds --json, which may follow the invalid argument. Clears cli->json if an
 * object on standard output would be taken for the copy. */
void json_file_find(struct cli *, int argc, char **argv);
/* Opens FILE of --json=FILE, and refuses any file that is an argument of the command line, or that
 * a descriptor among the arguments refers to. Returns EXIT_DONE, or another exit status after a
 * message. */
int json_file_open(const struct cli *, int argc, char **argv);
/* Where the next object goes; NULL after a message: FILE or standard
 * output became dst, or FILE cannot be truncated. */
FILE *json_file_stream(const char *dst);
bool json_file_is_lost(void); /* json_file_stream() returned NULL */
/* Writes the objects so far to FILE: it may be read while a server runs, and a signal may end the
 * process. json_file_close() returns a failure. */
void json_file_flush(void);
/* Writes everything out. Returns 0, or an errno with the call that failed. */
int json_file_close(const char **call);

#endif
