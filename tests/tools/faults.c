/* SPDX-License-Identifier: MIT
 *
 * Parses and applies the rules of faultfs.
 */
#define _GNU_SOURCE
#include "faults.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const names[FAULTS] = {
    [FAULT_READ] = "read",
    [FAULT_WRITE] = "write",
    [FAULT_FLUSH] = "flush",
    [FAULT_FSYNC] = "fsync",
    [FAULT_RELEASE] = "release",
    [FAULT_CREATE] = "create",
    [FAULT_FALLOCATE] = "fallocate",
    [FAULT_TRUNCATE] = "truncate",
    [FAULT_LINK] = "link",
    [FAULT_RENAME] = "rename",
    [FAULT_UNLINK] = "unlink",
    [FAULT_CHMOD] = "chmod",
    [FAULT_CHOWN] = "chown",
    [FAULT_UTIMENS] = "utimens",
    [FAULT_SYMLINK] = "symlink",
    [FAULT_MKNOD] = "mknod",
    [FAULT_MKDIR] = "mkdir",
    [FAULT_STATFS] = "statfs",
    [FAULT_LSEEK] = "lseek",
    [FAULT_SETXATTR] = "setxattr",
    [FAULT_GETXATTR] = "getxattr",
    [FAULT_LISTXATTR] = "listxattr",
    [FAULT_RENAMEDIR] = "renamedir",
    [FAULT_RENAMEOVER] = "renameover",
    [FAULT_RENAMEOPEN] = "renameopen",
    [FAULT_RENAMEFULL] = "renamefull",
};

enum action { FAIL, SHORTEN, DELAY, ACTIONS };

static struct rule {
	atomic_int value;    /* an errno, a number of bytes, milliseconds; 0: no rule */
	atomic_llong offset; /* the first byte that the rule is about */
	atomic_llong times;  /* how many operations it still applies to */
} rules[FAULTS][ACTIONS];

static atomic_ullong applied;

static int errno_of(const char *name)
{
	for (int err = 1; err <= EHWPOISON; err++)
		if (strerrorname_np(err) && !strcmp(name, strerrorname_np(err)))
			return err;
	return -1;
}

/* Parses "ERRNO", "short=BYTES" or "delay=MS". Returns the value, or -1. */
static int parse_action(const char *text, enum action *action)
{
	int value = -1;

	*action = SHORTEN;
	if (sscanf(text, "short=%d", &value) == 1)
		return value;
	*action = DELAY;
	if (sscanf(text, "delay=%d", &value) == 1)
		return value;
	*action = FAIL;
	return errno_of(text);
}

static int find_op(const char *name)
{
	for (int op = 0; op < FAULTS; op++)
		if (!strcmp(name, names[op]))
			return op;
	return -1;
}

int faults_set(const char *text)
{
	char name[16], what[24];
	long long offset = 0, times = -1;
	enum action action;
	int op, value;

	if (sscanf(text, "%15[a-z]:%23[^:]:%lli:%lli", name, what, &offset, &times) < 2)
		return -EINVAL;
	op = find_op(name);
	if (op < 0)
		return -EINVAL;
	if (!strcmp(what, "0")) {
		for (int i = 0; i < ACTIONS; i++)
			rules[op][i].value = 0;
		return 0;
	}
	value = parse_action(what, &action);
	if (value <= 0)
		return -EINVAL;
	rules[op][action].value = 0;
	rules[op][action].offset = offset;
	rules[op][action].times = times;
	rules[op][action].value = value;
	return 0;
}

/* The value of the rule, if it applies to bytes before `end`; otherwise 0. */
static int apply(struct rule *rule, off_t end)
{
	int value = rule->value;

	if (value == 0 || end <= rule->offset)
		return 0;
	/* Negative: for ever; it does not get to 0 by counting down. */
	if (rule->times >= 0 && atomic_fetch_sub(&rule->times, 1) <= 0) {
		rule->value = 0;
		return 0;
	}
	applied++;
	return value;
}

int faults_at(enum fault_op op, size_t *size, off_t offset)
{
	const off_t past = (off_t)(~0ULL >> 1); /* every OFFSET */
	int ms = apply(&rules[op][DELAY], size ? offset + (off_t)*size : past);

	if (ms > 0) {
		struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
		nanosleep(&pause, NULL);
	}
	if (size && *size > (size_t)rules[op][SHORTEN].value) {
		int most = apply(&rules[op][SHORTEN], offset + (off_t)*size);
		if (most > 0)
			*size = (size_t)most;
	}
	return -apply(&rules[op][FAIL], size ? offset + (off_t)*size : past);
}

unsigned long long faults_applied(void)
{
	return applied;
}

int faults_shorten(enum fault_op op)
{
	return rules[op][SHORTEN].value > 0;
}
