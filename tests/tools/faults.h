/* SPDX-License-Identifier: MIT
 *
 * The faults that faultfs is asked to show: one for each operation.
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
	FAULTS
};

/* Takes OP:ERRNO[:OFFSET], such as "write:ENOSPC:4096"; OP:0 mends OP. Any thread may set a fault
 * while others ask. Returns 0, or -EINVAL with nothing changed. */
int faults_set(const char *text);

/* The answer, 0 or -errno, to op on size bytes from offset: it fails when any of them lies at the
 * fault's offset or beyond. An op without bytes asks with 0, 0. */
int faults_at(enum fault_op op, size_t size, off_t offset);

#endif
