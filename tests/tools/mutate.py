#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# mutate.py ROOT ROOM SEED: makes one random change in the C files of ROOT/src/ROOM and prints where and which. Each line that can
# be changed is drawn as often as any other one. Left out is what has no effect that a test could see:
# - what frees memory or takes a lock: its loss is found by sanitizers;
# - how long a process sleeps, and a hint to the kernel about memory: nanosleep, madvise;
# - how much memory is there: a number from 16 on, or added to a constant, in brackets, or in a call of malloc, calloc or realloc;
# - ahead.c, which only asks the kernel to read what is read later anyway;
# - which one a minimum or maximum, as a < b ? a : b, takes of two equal numbers;
# - whether a descriptor is 0: from its start on, the program has 0, 1 and 2 open (src/cli/start.c);
# - the 0 of an option without a letter: any unprintable character would do.
# A -1, which means none, becomes 0, as any other negative number would mean none, too.
import glob, os, random, re, sys

ROOT, ROOM, SEED = sys.argv[1:4]
r = random.Random(SEED)

TURNED = {"<": ["<=", ">"], "<=": ["<", ">"], ">": [">=", "<"], ">=": [">", "<"], "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"]}
TEXT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|/\*.*?\*/|//.*')
OPERATOR = re.compile(r"(?<= )(<=|>=|==|!=|&&|\|\||<|>)(?= )")
ERRNO = re.compile(r"-errno\b|-E[A-Z]{3,}\b|\berrno [!=]= E[A-Z]+|\br [!=]= -E[A-Z]+")
NUMBER = re.compile(r"(?<![\w.\"%'])(\d+)(?![\w.\"'])")
EXTREME = re.compile(r"(([\w.>-]+) [<>] )(?:\(\w+\))?([\w.>-]+) \? (?:\(\w+\))?\2 : (?:\(\w+\))?\3")
DESCRIPTOR = re.compile(
    r"\b(?:fd|src|dst|dir|directory|parent|part|path|source|target|link|found|again|lock|log|data|marker|aside|up|listener) (?:<|>=) 0\b"
)
MEMORY = re.compile(r"\w\[(?:(?:1[6-9]|[2-9]\d|\d{3,})(?: \+ \d+)?|[A-Z_]+ \+ \d+)\]|\b(?:malloc|calloc|realloc)\(.*\d")
NONE = re.compile(r"(?:^|[^\w)\] ]|[=?:,(] |return )-1$")
NO_EFFECT = re.compile(r"\b(?:nanosleep|madvise)\(|^\t\{\"_+\", 0,")
RELEASES = r"free|return|pthread_mutex_lock|rivals_lock|while|if|for|switch|\w*_(?:free|unref|destroy)(?:_\w+)?\b"
CALL = re.compile(r"^\t+(?:\w+ = |\(void\))?(?!%s)[a-z_0-9]+\(.*\);$" % RELEASES)
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
    if NO_EFFECT.search(code):
        return
    only_turned = [m.span() for m in DESCRIPTOR.finditer(code)] + [m.span(1) for m in EXTREME.finditer(code)]
    is_only_turned = lambda m: any(start < m.start() < end for start, end in only_turned)
    for m in OPERATOR.finditer(code):
        for new in TURNED[m.group()][is_only_turned(m) :]:
            yield "comparison", line[: m.start()] + new + line[m.end() :]
    for m in ERRNO.finditer(code):
        yield "errno", line[: m.start()] + ("0" if m.group()[0] == "-" else "false") + line[m.end() :]
    for m in NUMBER.finditer(MEMORY.sub(lambda m: "_" * len(m.group()), code)):
        if is_only_turned(m):
            continue
        by = 1 if m.group() == "0" else -1 if NONE.search(code[: m.end()]) else r.choice([1, -1])
        yield "constant", line[: m.start()] + str(int(m.group()) + by) + line[m.end() :]
    if CALL.match(code) and balanced(code):
        yield "call", re.match(r"\t+", line).group() + ";"
    m = CONDITION.match(code)
    if m and balanced(m.group(2)):
        yield "condition", m.group(1) + "(!(" + line[m.start(2) : m.end(2)] + "))" + (m.group(3) or "")


def sites():
    """Each line that can be changed, as (path, number, {what: [the line afterwards]})."""
    for path in sorted(glob.glob(os.path.join(ROOT, "src", ROOM, "*.c"))):
        if os.path.basename(path) == "ahead.c":
            continue
        comment = False
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")
        for i, line in enumerate(lines):
            starts, ends = "/*" in line, "*/" in line
            inside, comment = comment or (starts and line.strip().startswith("/*")), (comment or starts) and not ends
            if inside or not line.startswith("\t") or line.lstrip().startswith("case "):
                continue
            found = {}
            for what, new in changes(line):
                found.setdefault(what, []).append(new)
            if found:
                yield path, i, found


path, i, found = r.choice(list(sites()))
what = r.choice(sorted(found))
new = r.choice(found[what])
with open(path, encoding="utf-8") as f:
    lines = f.read().split("\n")
print("%s:%d: %s: %s -> %s" % (os.path.relpath(path, ROOT), i + 1, what, lines[i].strip(), new.strip()))
lines[i] = new
with open(path, "w", encoding="utf-8") as f:
    f.write("\n".join(lines))
