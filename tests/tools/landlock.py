# SPDX-License-Identifier: MIT
# landlock.py COMMAND…: runs it under a Landlock rule set. Any such set refuses, with EXDEV, to rename
# or link a file to another directory. Exits with 77 if the kernel has no Landlock.
import ctypes
import os
import struct
import sys

CREATE_RULESET, RESTRICT_SELF, PR_SET_NO_NEW_PRIVS = 444, 446, 38
MAKE_BLOCK = 1 << 11  # the set must handle something: nobody makes block devices here

libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
handled = struct.pack("Q", MAKE_BLOCK)
rules = libc.syscall(CREATE_RULESET, handled, ctypes.c_size_t(len(handled)), 0)
if rules < 0 or libc.syscall(RESTRICT_SELF, rules, 0) < 0:
    sys.exit(77)
os.execvp(sys.argv[1], sys.argv[1:])
