/* SPDX-License-Identifier: MIT
 *
 * What must be true of the parsers whatever they are fed.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include "cli/option.h"

#include <stdint.h>

/* Ends the run if it is not so: the fuzzer then keeps the input. */
#define MUST(so) ((so) ? (void)0 : fuzz_broken(#so, __FILE__, __LINE__))
_Noreturn void fuzz_broken(const char *what, const char *file, int line);

/* Opens a new directory in TMPDIR, where the caller removes it. */
int fuzz_directory(void);

/* said.c: takes the place of stderr, and looks whether it is given whole lines without control
 * characters. */
void said_begin(void);
/* Whether anything was said since said_begin. */
bool said_anything(void);

/* filter.c: frees the filters of a command line, which the program keeps until it ends.
 * filter_keep_lines comes before the command line is parsed. */
void filter_keep_lines(void);
void filter_forget(struct cli *cli);

/* values.c: one text as each kind of value. */
void values_check(const char *text);
/* endpoints.c: the same as SRC and DST. */
void endpoints_check(const char *text);
/* The whole input, as ... */
void journal_check(const uint8_t *data, size_t size); /* the lines of a journal */
void list_check(const uint8_t *data, size_t size);    /* a chunk of the list of shards */
void filter_check(const uint8_t *data, size_t size);  /* a file of patterns, and of names */
void stream_check(const uint8_t *data, size_t size);  /* what the peer of a stream does */
void http_check(const uint8_t *data, size_t size);    /* a request of HTTP */

#endif
