/* SPDX-License-Identifier: MIT
 *
 * Keeps and parses the faults of faultfs.
 */
#define _GNU_SOURCE
#include "faults.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char *const names[FAULTS] = {
    [FAULT_READ] = "read",           [FAULT_WRITE] = "write",       [FAULT_FLUSH] = "flush",
    [FAULT_FSYNC] = "fsync",         [FAULT_RELEASE] = "release",   [FAULT_CREATE] = "create",
    [FAULT_FALLOCATE] = "fallocate", [FAULT_TRUNCATE] = "truncate", [FAULT_LINK] = "link",
    [FAULT_RENAME] = "rename",       [FAULT_UNLINK] = "unlink",
};

static struct {
	atomic_int err;
	atomic_llong offset;
} faults[FAULTS];

static int errno_of(const char *name)
{
	for (int err = 0; err <= EHWPOISON; err++)
		if (strerrorname_np(err) && !strcmp(name, strerrorname_np(err)))
			return err;
	return -1;
}

int faults_set(const char *text)
{
	char op[16], name[16];
	long long offset = 0;
	int err;

	if (sscanf(text, "%15[a-z]:%15[A-Z0-9]:%lld", op, name, &offset) < 2)
		return -EINVAL;
	err = errno_of(name);
	for (int i = 0; i < FAULTS && err >= 0; i++) {
		if (!strcmp(op, names[i])) {
			faults[i].offset = offset;
			faults[i].err = err;
			return 0;
		}
	}
	return -EINVAL;
}

int faults_at(enum fault_op op, size_t size, off_t offset)
{
	return size && offset + (off_t)size <= faults[op].offset ? 0 : -faults[op].err;
}
