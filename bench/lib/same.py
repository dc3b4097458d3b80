#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""same.py A B: are two files alike?  Holes of both are skipped, so a sparse giant takes no time.

Prints "maps N" (how many data extents differ in place or length) and "blocks N" (difference of
st_blocks), as they were before anything was read: reading changes the map of unwritten extents.
Exit 1 if the bytes differ.
"""
import errno
import os
import sys

STEP = 1 << 20


def data(fd, size):
    extents, at = [], 0
    while at < size:
        try:
            start = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break
        at = os.lseek(fd, start, os.SEEK_HOLE)
        extents.append((start, at))
    return extents


def same_bytes(a, b, extents):
    for start, end in extents:
        for at in range(start, end, STEP):
            count = min(STEP, end - at)
            if os.pread(a, count, at) != os.pread(b, count, at):
                return False
    return True


def main():
    a, b = (os.open(name, os.O_RDONLY) for name in sys.argv[1:3])
    stat_a, stat_b = os.fstat(a), os.fstat(b)
    map_a, map_b = data(a, stat_a.st_size), data(b, stat_b.st_size)
    print("maps", len(set(map_a) ^ set(map_b)))
    print("blocks", abs(stat_a.st_blocks - stat_b.st_blocks))
    alike = stat_a.st_size == stat_b.st_size and same_bytes(a, b, map_a + map_b)
    sys.exit(0 if alike else 1)


main()
