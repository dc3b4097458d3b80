/* SPDX-License-Identifier: MIT
 *
 * What the cmocka programs share: a directory to work in, and tests made from rows of a table.
 */
#ifndef CASES_H
#define CASES_H

#include "faults.h"

#include "../check/files.h"

/* Adds a test. state is handed to it; the name is made by the format and copied. */
void case_add(void (*test)(void **), const void *state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct errno_case {
	const void *row;
	int err;
};

/* Adds "who: call fails with ERRNO" for each of the list, which -1 ends. The state is a struct
 * errno_case. */
void case_add_errnos(void (*test)(void **), const void *row, const int *errs, const char *who,
		     const char *call);

/* Makes a fresh directory the working directory: on the file system of FCOPY_TEST_DIR whose name
 * this is, or on its first one. To be called first. */
void cases_enter(const char *file_system);

/* Runs what was added: each test with faults cleared, descriptors counted, and the directory empty.
 * Returns main's exit status. */
int cases_run(const char *group);

/* cmocka's assert_int_equal prints two hexadecimal numbers. This one names the test and what was
 * compared, and prints decimal numbers; assert_errno also prints the names of errnos. */
#undef assert_int_equal
#define assert_int_equal(actual, expected)                                                         \
	case_compare(#actual, (long long)(actual), (long long)(expected), false, __FILE__, __LINE__)
#define assert_errno(actual, expected)                                                             \
	case_compare(#actual, (long long)(actual), (long long)(expected), true, __FILE__, __LINE__)
void case_compare(const char *what, long long actual, long long expected, bool is_errno,
		  const char *file, int line);

/* For messages: EIO, and not 5. */
const char *errno_name(int err);

#endif
