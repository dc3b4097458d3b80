#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ballast.py BYTES: holds that much memory, touched, in large pages; says so, and lets go at the end of its input."""
import mmap
import sys

size = -(-int(sys.argv[1]) // (1 << 21)) << 21
memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_HUGEPAGE)
for offset in range(0, size, mmap.PAGESIZE):
    memory[offset] = 1
print("held", flush=True)
sys.stdin.read()
