#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/comments.py FILE...: does each word() and each file.c or file.h that a comment of these C
files names exist? `make lint` runs it. A function must be used or defined in one of them; one of the
kernel is named with its file, as in "name() in fs/dir/file.c"."""
import os
import re
import sys

COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
KERNEL = re.compile(r'(?:\w+\(\) in )?\b(?:drivers|fs|kernel|linux|mm|net)/[\w./-]+')

comments, words = [], set()
for file in sys.argv[1:]:
    with open(file, encoding="utf-8") as f:
        text = f.read()
    found = [c for c in COMMENT.findall(text) if c[0] == '/']
    comments += [(file, re.sub(r'\n[\s*]*', ' ', c)) for c in found]
    words.update(re.findall(r'\w+(?:[\w/]*\.h)?', COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else ' ', text)))
files = {os.path.basename(file) for file in sys.argv[1:]} | {os.path.basename(w) for w in words}

wrong = []
for file, comment in comments:
    comment = KERNEL.sub('', comment)
    wrong += [f"{file}: {name}()" for name in re.findall(r'\b([a-z_]\w*)\(\)', comment) if name not in words]
    for path in re.findall(r'[\w/.-]*\w\.[ch]\b', comment):
        if os.path.basename(path) not in files and not os.path.exists(path) and not path[:4].isupper():
            wrong.append(f"{file}: {path}")
for line in wrong:
    print(f"{line} does not exist", file=sys.stderr)
sys.exit(bool(wrong))
