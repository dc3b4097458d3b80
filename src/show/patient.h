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

/* Replaces the streams, before anything is printed; fileno(3) of them fails then. stderr is written
 * in whole lines, also if others write there. A libc whose stdout is constant (musl) keeps its own
 * streams, which wait for no reader of a non-blocking pipe. */
void patient_begin(void);
/* Writes all of it. Returns false, with errno, on a failure. A signal handler may call it. */
bool patient_write(int fd, const char *, size_t n);

#endif
