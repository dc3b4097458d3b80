/* SPDX-License-Identifier: MIT
 *
 * deny: runs a command under a seccomp filter that answers one system call with an error.
 *
 *     deny CALL ERRNO COMMAND [ARG]...
 *
 * CALL and ERRNO are names, such as openat and EPERM; ERRNO may be a number that has none. The
 * command's own execve cannot be denied. Exits 125 if the filter cannot be installed, 126 if
 * COMMAND cannot be run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int errno_of(const char *name)
{
	for (int err = 1; err <= EHWPOISON; err++)
		if (strerrorname_np(err) && !strcmp(name, strerrorname_np(err)))
			return err;
	return atoi(name) > 0 ? atoi(name) : -1;
}

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int call, err, r;

	if (argc < 4) {
		fputs("usage: deny CALL ERRNO COMMAND [ARG]...\n", stderr);
		return 125;
	}
	call = seccomp_syscall_resolve_name(argv[1]);
	err = errno_of(argv[2]);
	if (!filter || call == __NR_SCMP_ERROR || err < 0) {
		fprintf(stderr, "deny: no such call or errno: %s %s\n", argv[1], argv[2]);
		return 125;
	}
	r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(err), call, 0);
	if (r == 0)
		r = seccomp_load(filter);
	if (r < 0) {
		fprintf(stderr, "deny: %s %s: %s\n", argv[1], argv[2], strerror(-r));
		return 125;
	}
	seccomp_release(filter);
	execvp(argv[3], argv + 3);
	fprintf(stderr, "deny: %s: %s\n", argv[3], strerror(errno));
	return 126;
}
