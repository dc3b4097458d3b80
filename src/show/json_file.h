/* SPDX-License-Identifier: MIT
 *
 * Where the objects of --json go: standard output, or a file.
 */
#ifndef SHOW_JSON_FILE_H
#define SHOW_JSON_FILE_H

#include "output.h"

/* Would an object on standard output go to the same open file, pipe or socket as
 * the bytes of DST? */
bool json_file_mixes(const char *dst);
/* Opens FILE of --json=FILE; the library will refuse it, or standard output, as an operand. After a
 * usage error, refuses every operand itself; and clears cli->json if an object on standard output
 * might be taken for the copy. Returns EXIT_DONE, or another exit status after a message. */
int json_file_open(struct cli *, bool usage_error);
/* It is an operand: no object is written, and a FILE that was created is removed. */
void json_file_abandon(void);
/* Where the next object goes; NULL after json_file_abandon(), or after a message: another
 * process has removed FILE or what is standard output, or FILE cannot be truncated. */
FILE *json_file_stream(void);
bool json_file_is_lost(void); /* json_file_stream() returned NULL */
struct output *json_file_output(void);

#endif
