#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memcpy.py BYTES: prints the seconds that one memcpy of touched memory takes: the bound for a copy
that the CPU makes once."""
import ctypes
import sys
import time

size = int(sys.argv[1])
src, dst = ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)
ctypes.memset(src, 1, size)
ctypes.memset(dst, 2, size)
start = time.perf_counter()
ctypes.memmove(dst, src, size)
print(f"{time.perf_counter() - start:.9f}")
