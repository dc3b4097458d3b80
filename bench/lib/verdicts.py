# SPDX-License-Identifier: MIT
"""Checks the verdicts and the estimator on known values, the verdicts of the committed run, and that the pictures are XML."""
from xml.dom.minidom import parse
from case import BENCH
from report import Run
from stats import ratio, verdict

for low, high, wanted in (0.7, 0.9, "met"), (0.7, 1.0, "met"), (0.8, 1.01, "inconclusive"), (1.0, 1.2, "inconclusive"), \
        (1.01, 1.2, "missed"), (None, None, "inconclusive"):
    assert verdict((1, low, high), 1.0) == wanted, (low, high, wanted)
ours = {turn: 1 + turn % 7 / 10 for turn in range(20)}
assert ratio({turn: 2 * value for turn, value in ours.items()}, [ours]) == (2, 2, 2)
assert ratio(ours, [ours, {turn: value / 2 for turn, value in ours.items()}])[0] == 2  # the fastest rival counts
assert all(parse(str(picture)) for picture in BENCH.glob("*.svg"))
for *bar, found in Run(BENCH / "results/first").bars():
    assert found in ("met", "missed", "inconclusive") or found.startswith("not "), (bar, found)
