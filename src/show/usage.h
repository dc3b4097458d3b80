/* SPDX-License-Identifier: MIT
 *
 * Resource usage of the process: what time(1) prints, and peak memory.
 */
#ifndef SHOW_USAGE_H
#define SHOW_USAGE_H

#include <stdint.h>

struct usage {
	double real, user, sys;      /* seconds */
	long voluntary, involuntary; /* context switches: the process waited, or was preempted */
	long minor_faults, major_faults;
	uint64_t peak_memory; /* the largest resident size in bytes; always of the whole process */
};

/* CLOCK_MONOTONIC in seconds. */
double usage_clock(void);
/* All values since the start of the process, except real: that is usage_clock(). */
struct usage usage_now(void);
struct usage usage_since(const struct usage *start);
/* Of the calling thread since its start; real: the seconds since then. */
struct usage usage_of_thread(double real);

#endif
