/* SPDX-License-Identifier: MIT
 *
 * System calls that fail on demand. All of them pass through until a fault is set; then the Nth
 * call of that name, counted from there on, fails with an errno, in whatever thread.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* cmocka.h wants the headers above. */
#include <cmocka.h>

#ifdef __GLIBC__
#define HAS_LOCALES true
#else
#include "musl.h"
#endif

#define FAULT_ZERO  0    /* instead of an errno: the call returns 0 and does nothing */
#define FAULT_EVERY 1000 /* added to nth: that call, and each one after it */

/* The names are the symbols', as the library calls them: pread64, not pread. Five calls count under
 * more than one name: "openat64 of O_TMPFILE", "mmap64 of memory", "fcntl64 of flags", "setsockopt
 * of SO_RCVLOWAT", "fallocate64 to punch". */

/* From fault_on on, the nth call fails. */
void fault_set(const char *call, int nth, int err);

/* Up to three faults beside the first, such as the lack of O_TMPFILE: every call of that name.
 * Empty: none. */
void fault_also(const char *call, int err);

/* In place of the fault: this happens just before the call that would fail, which then succeeds or
 * not as the kernel has it. A race, always lost. */
void fault_before(void (*happens)(void));

/* Reads, writes and their kin move at most n bytes a call; 0: any number. */
void fault_short(size_t n);

/* Between these two the faults are there. */
void fault_on(void);
void fault_off(void);

/* Was the fault of fault_set injected? How often was its call made? */
bool fault_seen(void);
int fault_calls(void);

/* Forgets all of it. */
void fault_clear(void);

/* Calls once(arg) with the Nth call of that name failing, for N = 1, 2 … until a run makes fewer
 * calls; once has to say fault_on and fault_off around what it tests. Fails the test if nothing was
 * ever injected. Returns how many were. */
int fault_sweep(const char *call, int err, void (*once)(void *arg), void *arg);

/* For the wraps: does this call fail now? With errno set if so. And how many of n bytes it moves.
 */
bool fault_strikes(const char *call);
size_t fault_cut(size_t n);

#endif
