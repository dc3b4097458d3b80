/* SPDX-License-Identifier: MIT
 * How many CPUs and how much memory this process may use, how many CPUs have nothing to do, and
 * threads on different CPUs.
 */
#define _GNU_SOURCE
#include "cpus.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_AHEAD ((uint64_t)16 << 20)
#define STACK_MIN  ((size_t)1 << 20) /* musl has 128 KiB; two attributes take as much */

/* Reads a small file of procfs or cgroupfs as a string. False: it could not be read. */
static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The CPUs of one cpu.max, "QUOTA PERIOD" in microseconds or "max PERIOD", rounded down: a second
 * thread gains nothing from half a CPU. */
static unsigned parse_quota(const char *text)
{
	char *end;
	unsigned long long quota = strtoull(text, &end, 10), period = strtoull(end, NULL, 10);
	if (end == text || quota == 0 || period == 0 || quota / period > UINT_MAX)
		return UINT_MAX;
	return quota < period ? 1 : (unsigned)(quota / period);
}

/* One memory.max in bytes, or "max". */
static uint64_t parse_memory(const char *text)
{
	char *end;
	unsigned long long bytes = strtoull(text, &end, 10);
	return end == text ? UINT64_MAX : bytes;
}

static uint64_t parse_cpus(const char *text)
{
	unsigned n = parse_quota(text);
	return n == UINT_MAX ? UINT64_MAX : n;
}

/* The lowest value of the file from the process's group up to the root: each one limits all below
 * it. UINT64_MAX: there is no limit. */
static uint64_t least_limit(const char *cgroup, const char *root, const char *file,
			    uint64_t (*parse)(const char *text))
{
	char text[PATH_MAX], path[2 * PATH_MAX], limit[64];
	uint64_t least = UINT64_MAX;
	if (!read_text(cgroup, text, sizeof(text)))
		return least;
	char *group = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");
	if (!group)
		return least;
	group = strchr(group, '/');
	group[strcspn(group, "\n")] = '\0';
	for (char *slash = group + strlen(group); slash; slash = strrchr(group, '/')) {
		*slash = '\0';
		snprintf(path, sizeof(path), "%s%s/%s", root, group, file);
		uint64_t n = read_text(path, limit, sizeof(limit)) ? parse(limit) : UINT64_MAX;
		if (n < least)
			least = n;
	}
	return least;
}

unsigned cpus_quota(const char *cgroup, const char *root)
{
	uint64_t least = least_limit(cgroup, root, "cpu.max", parse_cpus);
	return least < UINT_MAX ? (unsigned)least : UINT_MAX;
}

uint64_t cpus_memory(const char *cgroup, const char *root)
{
	return least_limit(cgroup, root, "memory.max", parse_memory);
}

off_t cpus_read_ahead(unsigned copies)
{
	uint64_t memory = cpus_memory(CPUS_CGROUP, CPUS_CGROUP_ROOT) / 8;
	return (off_t)(memory < READ_AHEAD ? memory : READ_AHEAD) / copies;
}

unsigned cpus_allowed(void)
{
	cpu_set_t set;
	/* More than 1024 CPUs do not fit into the set: EINVAL. */
	unsigned n = sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
	unsigned quota = n > 1 ? cpus_quota(CPUS_CGROUP, CPUS_CGROUP_ROOT) : n;
	return n < quota ? n : quota;
}

unsigned cpus_idle(void)
{
	char text[128];
	long online = sysconf(_SC_NPROCESSORS_ONLN), running;
	if (!read_text("/proc/loadavg", text, sizeof(text)) ||
	    sscanf(text, "%*s %*s %*s %ld/", &running) != 1)
		return UINT_MAX;
	long idle = online - (running - 1); /* one of the runnable tasks is the caller */
	return idle > 0 ? (unsigned)idle : 0;
}

int cpus_start_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
	cpu_set_t all, others;
	pthread_attr_t attributes;
	size_t stack = 0;
	pthread_attr_init(&attributes);
	if (pthread_attr_getstacksize(&attributes, &stack) == 0 && stack < STACK_MIN)
		pthread_attr_setstacksize(&attributes, STACK_MIN);
	int err = pthread_create(thread, &attributes, run, arg);
	pthread_attr_destroy(&attributes);
	if (err != 0 || sched_getaffinity(0, sizeof(all), &all) < 0)
		return err;
	others = all;
	CPU_CLR((unsigned)sched_getcpu(), &others);
	/* EINVAL: there is no other CPU. A thread that is on another one already stays there. */
	if (pthread_setaffinity_np(*thread, sizeof(others), &others) == 0)
		pthread_setaffinity_np(*thread, sizeof(all), &all);
	return 0;
}
