#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# mutate.py ROOT ROOM SEED: makes one random change in the C files of ROOT/src/ROOM and prints where and which. Calls that only
# free memory or take a lock stay: their loss is found by sanitizers.
import glob, os, random, re, sys

ROOT, ROOM, SEED = sys.argv[1:4]
r = random.Random(SEED)

TURNED = {"<": ["<=", ">"], "<=": ["<", ">"], ">": [">=", "<"], ">=": [">", "<"], "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"]}
TEXT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|/\*.*?\*/|//.*')
OPERATOR = re.compile(r"(?<= )(<=|>=|==|!=|&&|\|\||<|>)(?= )")
ERRNO = re.compile(r"-errno\b|-E[A-Z]{3,}\b|\berrno [!=]= E[A-Z]+|\br [!=]= -E[A-Z]+")
NUMBER = re.compile(r"(?<![\w.\"%'])(\d+)(?![\w.\"'])")
CALL = re.compile(r"^\t+(?:\w+ = |\(void\))?(?!free|return|pthread_mutex_lock|while|if|for|switch|\w*_free\b)[a-z_0-9]+\(.*\);$")
CONDITION = re.compile(r"^(\t+(?:\} else )?(?:if|while) )\((.*)\)( \{)?$")


def balanced(text):
    depth = 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if depth < 0:
            return False
    return depth == 0


def changes(line):
    """Each as (what, the line afterwards)."""
    code = TEXT.sub(lambda m: m.group()[0] + "_" * (len(m.group()) - 2) + m.group()[-1], line)
    for m in OPERATOR.finditer(code):
        for new in TURNED[m.group()]:
            yield "comparison", line[: m.start()] + new + line[m.end() :]
    for m in ERRNO.finditer(code):
        yield "errno", line[: m.start()] + ("0" if m.group()[0] == "-" else "false") + line[m.end() :]
    for m in NUMBER.finditer(code):
        yield "constant", line[: m.start()] + str(int(m.group()) + r.choice([1, -1] if m.group() != "0" else [1])) + line[m.end() :]
    if CALL.match(code) and balanced(code):
        yield "call", re.match(r"\t+", line).group() + ";"
    m = CONDITION.match(code)
    if m and balanced(m.group(2)):
        yield "condition", m.group(1) + "(!(" + line[m.start(2) : m.end(2)] + "))" + (m.group(3) or "")


def sites():
    found = {}
    for path in sorted(glob.glob(os.path.join(ROOT, "src", ROOM, "*.c"))):
        comment = False
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")
        for i, line in enumerate(lines):
            starts, ends = "/*" in line, "*/" in line
            inside, comment = comment or (starts and line.strip().startswith("/*")), (comment or starts) and not ends
            if inside or not line.startswith("\t") or line.lstrip().startswith("case "):
                continue
            for what, new in changes(line):
                found.setdefault(what, []).append((path, i, new))
    return found


found = sites()
what = r.choice(sorted(found))
path, i, new = r.choice(found[what])
with open(path, encoding="utf-8") as f:
    lines = f.read().split("\n")
print("%s:%d: %s: %s -> %s" % (os.path.relpath(path, ROOT), i + 1, what, lines[i].strip(), new.strip()))
lines[i] = new
with open(path, "w", encoding="utf-8") as f:
    f.write("\n".join(lines))
