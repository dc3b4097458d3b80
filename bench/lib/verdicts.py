#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""verdicts.py: checks the verdicts on known intervals, and those of the committed run."""
from case import BENCH
from report import Run
from stats import q25, ratio, verdict

KNOWN = (((0.8, 0.7, 0.9), "met"), ((0.8, 0.7, 1.0), "met"), ((0.9, 0.8, 1.01), "inconclusive"), ((1.1, 1.0, 1.2), "inconclusive"),
         ((1.1, 1.01, 1.2), "missed"), ((0.5, None, None), "inconclusive"))

for answer, wanted in KNOWN:
    assert verdict(answer, 1.0) == wanted, (answer, verdict(answer, 1.0), wanted)
assert q25([4, 1, 3, 2, 5]) == 2 and q25([1, 2, 3, 4]) == 1.75
ours = {turn: 1 + turn % 7 / 10 for turn in range(20)}
twice = ratio({turn: 2 * value for turn, value in ours.items()}, [ours])
assert twice == (2, 2, 2), twice
assert ratio(ours, [ours, {turn: value / 2 for turn, value in ours.items()}])[0] == 2  # of several rivals the fastest counts

for name, bar, _, found in Run(BENCH / "results/first").bars():
    assert found in ("met", "missed", "inconclusive") or found.startswith("not "), (name, bar, found)
