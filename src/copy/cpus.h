/* SPDX-License-Identifier: MIT
 *
 * CPUs and memory that this process may use.
 */
#ifndef COPY_CPUS_H
#define COPY_CPUS_H

#include "copy.h"

/* CPUs that the affinity mask and the cgroup's quota leave to this process, at least 1. */
unsigned cpus_allowed(void);
/* CPUs that no other task uses at this moment; UINT_MAX if that is unknown. */
unsigned cpus_idle(void);
/* As pthread_create(3), but the new thread starts on another CPU if there is one. The kernel would
 * often leave it on the caller's CPU, which the caller keeps for up to 4 ms (a tick of 250 Hz).
 * Later the kernel may move both. */
int cpus_start_thread(pthread_t *, void *(*run)(void *), void *arg);
/* The lowest cpu.max from this process's cgroup up to the root, in whole CPUs, at least 1; UINT_MAX
 * without a limit; of version 1, cpu.cfs_quota_us. cgroup: a file like /proc/self/cgroup; root:
 * where cgroup version 2 is mounted, or the directories of the controllers of version 1. */
unsigned cpus_quota(const char *cgroup, const char *root);
/* The same for memory.max, or memory.limit_in_bytes, in bytes; UINT64_MAX without a limit. */
uint64_t cpus_memory(const char *cgroup, const char *root);
/* Bytes that each of several copies at once may read ahead: all of it has to fit into memory. */
off_t cpus_read_ahead(unsigned copies);
/* The files that this process passes to them. */
#define CPUS_CGROUP      "/proc/self/cgroup"
#define CPUS_CGROUP_ROOT "/sys/fs/cgroup"

#endif
