/* SPDX-License-Identifier: MIT
 *
 * The rules by which faultfs fails, shortens and delays operations.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include <sys/types.h>

/* Their names are these in lower case, without FAULT_. The kernel drops the error of a release. */
enum fault_op {
	FAULT_READ,
	FAULT_WRITE,
	FAULT_FLUSH,
	FAULT_FSYNC,
	FAULT_RELEASE,
	FAULT_CREATE,
	FAULT_FALLOCATE,
	FAULT_TRUNCATE,
	FAULT_LINK,
	FAULT_RENAME,
	FAULT_UNLINK,
	FAULT_CHMOD,
	FAULT_CHOWN,
	FAULT_UTIMENS,
	FAULT_SYMLINK,
	FAULT_MKNOD,
	FAULT_MKDIR,
	FAULT_STATFS,
	FAULT_LSEEK,
	FAULT_SETXATTR,
	FAULT_GETXATTR,
	FAULT_LISTXATTR,
	FAULT_RENAMEDIR,
	FAULT_RENAMEOVER,
	FAULT_RENAMEOPEN,
	FAULT_RENAMEFULL,
	FAULTS
};

/* Adds a rule, in the language of faultfs.c's head comment. A rule replaces an earlier one of the
 * same operation and action. Any thread may add rules while others ask. Returns 0, or -EINVAL with
 * nothing changed. */
int faults_set(const char *text);

/* Applies the rules to op on *size bytes from offset: sleeps, shortens *size, or returns the -errno
 * to answer with; 0: go on. An op without bytes passes NULL, 0; rules about short counts do not
 * apply to it. */
int faults_at(enum fault_op op, size_t *size, off_t offset);

/* How many operations a rule has failed, shortened or delayed. */
unsigned long long faults_applied(void);

/* Is there a rule that shortens op? */
int faults_shorten(enum fault_op op);

#endif
