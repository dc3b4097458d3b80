/* SPDX-License-Identifier: MIT
 * getrusage(2), clock_gettime(2) and /proc/self/status.
 */
#define _GNU_SOURCE
#include "usage.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

static double timeval_seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* execve(2) resets VmHWM, but not ru_maxrss, which may be that of the shell that started fcopy. */
uint64_t usage_peak_memory(void)
{
	char line[256];
	unsigned long kib;
	uint64_t peak = 0;
	struct rusage r;
	FILE *f = fopen("/proc/self/status", "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %lu", &kib) == 1)
			peak = (uint64_t)kib * 1024;
	if (f)
		fclose(f);
	if (peak == 0 && getrusage(RUSAGE_SELF, &r) == 0)
		peak = (uint64_t)r.ru_maxrss * 1024;
	return peak;
}

double usage_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct usage read_usage(int whose, double real)
{
	struct rusage r;
	getrusage(whose, &r);
	return (struct usage){.real = real,
			      .user = timeval_seconds(&r.ru_utime),
			      .sys = timeval_seconds(&r.ru_stime),
			      .voluntary = r.ru_nvcsw,
			      .involuntary = r.ru_nivcsw,
			      .minor_faults = r.ru_minflt,
			      .major_faults = r.ru_majflt};
}

struct usage usage_now(void)
{
	return read_usage(RUSAGE_SELF, usage_clock());
}

struct usage usage_of_thread(double real)
{
	return read_usage(RUSAGE_THREAD, real);
}

struct usage usage_since(const struct usage *start)
{
	struct usage u = usage_now();
	u.real -= start->real;
	u.user -= start->user;
	u.sys -= start->sys;
	u.voluntary -= start->voluntary;
	u.involuntary -= start->involuntary;
	u.minor_faults -= start->minor_faults;
	u.major_faults -= start->major_faults;
	return u;
}
