/* SPDX-License-Identifier: MIT
 *
 * Standard output and standard error wait for their readers. Another process that has the same pipe
 * or terminal may have made it non-blocking: stdio would then discard what does not fit. A signal
 * that interrupts a write discards nothing, unless it ends the program.
 */
#ifndef SHOW_PATIENT_H
#define SHOW_PATIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

/* musl's streams are constant: the program has its own. */
#ifndef __GLIBC__
extern FILE *patient_stream[STDERR_FILENO + 1];
#undef stdout
#undef stderr
#define stdout      patient_stream[STDOUT_FILENO]
#define stderr      patient_stream[STDERR_FILENO]
#define printf(...) fprintf(stdout, __VA_ARGS__)
#define putchar(c)  fputc(c, stdout)
#define puts(text)  fprintf(stdout, "%s\n", text)
#endif

/* Replaces the streams, before anything is printed; fileno(3) of them fails then. stderr is written
 * in whole lines, also if others write there. */
void patient_begin(void);
/* errno of the first failed write to standard output by its stream, or 0. */
int patient_lost(void);
/* Writes all of it. Returns false, with errno, on a failure. A signal handler may call it. */
bool patient_write(int fd, const char *, size_t n);

/* What a write of fopencookie(3) returns after a failure. A negative number confuses glibc. */
#ifdef __GLIBC__
#define PATIENT_FAILED 0
#else
#define PATIENT_FAILED (-1)
#endif

#endif
