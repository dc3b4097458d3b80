#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""figures.py data RUNS DIR         writes the tables that plots/*.gp read
figures.py readme RUNS FILE…      puts the figures between <!-- figure:NAME --> and <!-- end -->
figures.py check RUNS FILE…       exit 1 if that would change a file

RUNS is a file that names directories beside it, one a line; what several of them have, the last one tells.
"""
import re
import sys
from pathlib import Path

import markdown
import results

# IBM's Table 1, Linux 2.6, milliseconds: read + send of 4 KiB, and transferTo.
IBM = {7: (156, 45), 21: (337, 128), 63: (843, 387), 98: (1320, 617), 200: (2124, 1150),
       350: (3631, 1762), 700: (13498, 4422), 1024: (18399, 8537)}
COUNTED = ("calls", "profile")  # what calls.sh and profile.sh printed, kept beside the results
REGION = re.compile(r"(<!-- figure:([a-z0-9-]+) -->\n).*?(<!-- end -->)", re.S)


def own(cases, name):
    """The contenders of a case that were timed, in order."""
    case = cases.get(name, {"with": "", "contenders": {}})
    return [(who, case["contenders"][who]) for who in case["with"].split()
            if case["contenders"].get(who, {}).get("median_wall")]


def label(who):
    return re.sub(r"^\d:", "", who).replace("_", " ")


def times(cases, name):
    for who, runs in own(cases, name):
        yield [f'"{label(who)}"', runs["median_user"], runs["median_sys"], runs["median_wall"]]


def sizes(cases):
    """A block per mode: bytes, bytes a second."""
    found = {}
    for name, case in cases.items():
        if case["group"] == "sizes":
            for who, runs in own(cases, name):
                found.setdefault(who, []).append([case["size"], case["size"] / runs["median_wall"]])
    for who, points in found.items():
        yield [f'"{label(who)}"']
        yield from sorted(points)
        yield []
        yield []


def replayed(cases, net):
    """MiB, IBM's two figures and our runs over that network; a published figure alone compares nothing."""
    for mib, published in IBM.items():
        runs = dict(own(cases, f"socket-{net}-{'1G' if mib == 1024 else f'{mib}M'}"))
        if runs:
            yield mib, published, runs


def sockets(cases):
    """MiB, then ms of read + send and sendfile: IBM's, ours. One size alone is no curve."""
    rows = [[mib, *published, *(runs[who]["median_wall"] * 1000 if who in runs else "NaN"
                                for who in ("send-rw4k", "send-sendfile"))]
            for mib, published, runs in replayed(cases, "loopback")]
    return rows if len(rows) > 1 else []


def ibm(cases, net):
    """IBM's Table 1 beside ours, as Markdown."""
    senders = ("send-rw4k", "send-rw8k", "send-sendfile", "send-splice")
    rows = ["| MiB | IBM: read + send, ms | transferTo | × | here: 4 KiB, ms | 8 KiB | sendfile | splice | sendfile × 4 KiB | CPU × |",
            "|" + " ---: |" * 10]
    for mib, (copied, transferred), runs in replayed(cases, net):
        ours = " | ".join(f"{runs[who]['median_wall'] * 1000:.1f}" if who in runs else "" for who in senders)
        ratios = " | ".join(f"{runs['send-sendfile'][what]['median']:.2f}" for what in ("ratio", "ratio_cpu"))
        rows.append(f"| {mib} | {copied} | {transferred} | {transferred / copied:.2f} | {ours} | {ratios} |")
    return "\n".join(rows)


def data(cases, directory):
    source = {"modes": "modes-random-warm-new", "rivals": "ext4"}
    tables = {name: times(cases, case) for name, case in source.items()}
    tables |= {"sizes": sizes(cases), "sockets": sockets(cases)}
    for name, rows in tables.items():
        case = cases.get(source.get(name))
        Path(directory, name + ".size").write_text(markdown.size(case["size"]) if case else "")
        text = "\n".join(" ".join(str(field) for field in row) for row in rows)
        Path(directory, name + ".dat").write_text(text.rstrip() + "\n")


def counted(runs, name):
    found = [path for path in (Path(run, name + ".md") for run in runs) if path.exists()]
    return found[-1].read_text().rstrip() if found else sys.exit(f"figures: no run has {name}.md")


def origins(runs):
    """Where the published figures come from, a line a run."""
    rows = []
    for run in runs:
        facts = results.load(run)["circumstances"]
        command = re.sub(r" --output \S+", "", facts["command"])
        rows.append([f"[{run.name}](results/{run.name}/README.md)", f"`{command}`",
                     facts["revision"], facts["kernel"], facts["cpu"]])
    return markdown.table(("run", "command", "revision", "kernel", "machine"), rows, left=5)


def measured(case):
    return any(own["wall"] for own in case["contenders"].values())


def figure(runs, cases, name):
    if name == "bars":
        return markdown.bars(cases.values())
    if name == "runs":
        return origins(runs)
    if name.startswith("ibm-"):
        return ibm(cases, name.removeprefix("ibm-"))
    if name in COUNTED:
        return counted(runs, name)
    if name not in cases:
        sys.exit(f"figures: the run has no case {name}")
    case = cases[name]
    return f"{markdown.setting(case)[0].upper()}{markdown.setting(case)[1:]}.\n\n{markdown.case_table(case)}"


def filled(runs, cases, text):
    return REGION.sub(lambda m: f"{m[1]}{figure(runs, cases, m[2])}\n{m[3]}", text)


def readme(runs, cases, names, write):
    stale = []
    for path in map(Path, names):
        before = path.read_text()
        after = filled(runs, cases, before)
        if after != before:
            stale.append(str(path))
            if write:
                path.write_text(after)
    if stale and not write:
        sys.exit("figures: not what the results say: " + ", ".join(stale) + "; run make figures")


def main():
    what, published, *rest = sys.argv[1:]
    runs = [Path(published).parent / name for name in Path(published).read_text().split()]
    cases = {case["name"]: case for run in runs for case in results.load(run)["cases"] if measured(case)}
    if what == "data":
        data(cases, rest[0])
    else:
        readme(runs, cases, rest, what == "readme")


main()
