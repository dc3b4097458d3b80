#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""orders.py FCOPY OLD: each line of standard input has options, --, and several SRC, which fcopy copies in every order into
copies of the directory OLD, named d. Each order must have the same exit status and leave the same DST. Prints the exit status
for each line."""
import itertools, os, shutil, subprocess, sys

fcopy, old = os.path.abspath(sys.argv[1]), sys.argv[2]


def state(top):
    """All that DST has. Only -a sets the times of directories, and the names in one change them afterwards."""
    found = set()
    for path, directories, files in os.walk(top):
        for name in directories + files + ["."]:
            entry = os.path.normpath(os.path.join(path, name))
            st = os.lstat(entry)
            known = (entry, oct(st.st_mode), st.st_uid, st.st_gid)
            if os.path.islink(entry):
                known += (st.st_mtime_ns, st.st_nlink, os.readlink(entry))
            elif not os.path.isdir(entry):
                content = open(entry, "rb").read() if os.path.isfile(entry) else None
                known += (st.st_mtime_ns, st.st_nlink, content)
            found.add(known)
    return found


for line in sys.stdin:
    options, sources = (part.split() for part in line.split(" -- "))
    first = None
    for order in itertools.permutations(sources):
        shutil.rmtree("d", ignore_errors=True)
        subprocess.run(["cp", "-a", old, "d"], check=True)
        command = options + list(order) + ["d"]
        done = subprocess.run([fcopy] + command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=120)
        left = state("d")
        first = first or (command, done.returncode, left)
        if (done.returncode, left) != first[1:]:
            sys.exit("%s: exit status %d, %s: %d: %s: %s" % (
                " ".join(first[0]), first[1], " ".join(command), done.returncode, done.stdout,
                sorted(left ^ first[2], key=str)))
    print(first[1])
