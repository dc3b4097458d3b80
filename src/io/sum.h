/* SPDX-License-Identifier: MIT
 *
 * A checksum of bytes that pass only once, for --verify of a stream: CRC-64 with the polynomial of
 * ECMA-182, reflected. Verification has to find faults of memory, cables and disks, not forgeries.
 * A CRC of 64 bits finds every change that lies within 64 consecutive bits; it misses one of 2^64
 * other changes. A CRC-32 would miss one of 2^32. A cryptographic hash would need a library, and
 * several times as much CPU time where the CPU has no instructions for it.
 */
#ifndef IO_SUM_H
#define IO_SUM_H

#include <stddef.h>
#include <stdint.h>

/* The sum of `sum`'s bytes followed by n more; 0 is the sum of no bytes. */
uint64_t sum_add(uint64_t sum, const void *bytes, size_t n);

#endif
