/* SPDX-License-Identifier: MIT
 *
 * Resource usage of the process: what time(1) prints.
 */
#ifndef SHOW_USAGE_H
#define SHOW_USAGE_H

#include <stdint.h>

struct usage {
	double real, user, sys;      /* seconds */
	long voluntary, involuntary; /* context switches: the process waited, or was preempted */
	long minor_faults, major_faults;
};

/* CLOCK_MONOTONIC in seconds. */
double usage_clock(void);
/* All values since the start of the process, except real: that is usage_clock(). */
struct usage usage_now(void);
struct usage usage_since(const struct usage *start);
/* The largest resident size of the process in bytes; 0: unknown. */
uint64_t usage_peak_memory(void);
/* Of the calling thread since its start; real: the seconds since then. */
struct usage usage_of_thread(double real);

#endif
