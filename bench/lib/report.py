#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""report.py write DIR       the runner's notes in DIR become results.json, results.csv, README.md
report.py forget DIR      removes the notes
report.py wide DIR CASE   exit 0 if CASE's spread asks for more rounds
report.py slower DIR      prints the bars of a comparison; exit 1 if one was missed, 2 if one was not measured
report.py agree DIR… DIR  does the last run agree within 5 % on the ratios of the 1 GiB cases with those before it, of
                          which the later counts?
"""
import sys
from functools import reduce
from operator import or_
from pathlib import Path

import markdown
import results

AGREE = 0.05


def write(directory):
    found = results.read(directory)
    results.write(found, directory)
    Path(directory, "README.md").write_text(markdown.page(found))


def forget(directory):
    for name in results.NOTES:
        Path(directory, name).unlink(missing_ok=True)


def wide(directory, name):
    case = next(case for case in results.read(directory)["cases"] if case["name"] == name)
    sys.exit(0 if results.is_wide(case) else 1)


def ratios(directory):
    return {(case["name"], who): own["ratio"]["median"]
            for case in results.load(directory)["cases"] if case["size"] == 2**30
            for who, own in case["contenders"].items() if own.get("ratio") and who != case["baseline"]}


def agree(*directories):
    *before, last = map(ratios, directories)
    first, second = reduce(or_, before), last
    rows, apart = [], 0
    for key in first.keys() & second.keys():
        change = second[key] / first[key] - 1
        apart += abs(change) > AGREE
        rows.append([*key, f"{first[key]:.3f}", f"{second[key]:.3f}", f"{change:+.1%}"])
    print(markdown.table(("case", "contender", "first", "second", "change"), sorted(rows), left=2))
    print(f"\n{len(rows) - apart} of {len(rows)} ratios agree within {AGREE:.0%}.")
    sys.exit(1 if apart else 0)


def slower(directory):
    cases = results.load(directory)["cases"]
    print(markdown.bars(cases))
    met = {bar["met"] for case in cases for bar in case["bars"]}
    sys.exit(1 if False in met else 2 if None in met else 0)


{"write": write, "forget": forget, "slower": slower, "wide": wide, "agree": agree}[sys.argv[1]](*sys.argv[2:])
