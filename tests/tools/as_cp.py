#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""as_cp.py FCOPY PREPARED: each line of standard input has the arguments of a command, which cp and fcopy run in copies of the
directory PREPARED. Both must succeed, or both fail; if they succeed, they must leave the same names, types, modes, targets of
symlinks and contents. A command that failed may leave other things: cp may have created its directory."""
import os, shutil, subprocess, sys

fcopy, prepared = os.path.abspath(sys.argv[1]), sys.argv[2]


def layout(top):
    found = {}
    for path, directories, files in os.walk(top):
        for name in directories + files + ["."]:
            entry = os.path.join(path, name)
            mode = os.lstat(entry).st_mode
            is_link = os.path.islink(entry)
            content = os.readlink(entry) if is_link else open(entry, "rb").read() if os.path.isfile(entry) else None
            found[os.path.relpath(entry, top)] = (mode, content)
    return found


def run(name, program, arguments):
    """Runs the program in a copy of the directory. Returns the exit status, the messages, and what is there afterwards."""
    shutil.rmtree(name, ignore_errors=True)
    shutil.copytree(prepared, name, symlinks=True)
    done = subprocess.run([program] + arguments, cwd=name, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=120)
    return done.returncode, done.stderr, layout(name)


lines = [line.split() for line in sys.stdin]
for arguments in lines:
    status, said, left = run("cp", "cp", arguments)
    status2, said2, left2 = run("fcopy", fcopy, arguments)
    if (status, status2) not in ((0, 0), (1, 1), (1, 2)):
        sys.exit("cp and fcopy %s: exit status %d:%d\n%s%s" % (" ".join(arguments), status, status2, said, said2))
    if status == 0 and left != left2:
        sys.exit("differs: %s: %s" % (" ".join(arguments), sorted(set(left.items()) ^ set(left2.items()), key=str)))
if not lines:
    sys.exit("no command")
