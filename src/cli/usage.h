/* SPDX-License-Identifier: MIT
 *
 * What time(1) tells of a process, and a little more.
 */
#ifndef CLI_USAGE_H
#define CLI_USAGE_H

#include <stdint.h>

struct usage {
	double real, user, sys;      /* seconds */
	long voluntary, involuntary; /* context switches: the process waited, or was made to */
	long minor_faults, major_faults;
	uint64_t peak_memory; /* bytes resident at most; of the whole process, always */
};

/* Seconds since some moment. */
double usage_clock(void);
/* Everything but real since the start of the process; real since some moment. */
struct usage usage_now(void);
struct usage usage_since(const struct usage *start);
/* Of the calling thread since it began, which is `real` seconds ago. */
struct usage usage_of_thread(double real);

#endif
