# SPDX-License-Identifier: MIT
"""Statistics that hold without an assumption about how times are spread."""
from math import comb
from statistics import median

CONFIDENCE = 0.95
FEWEST = 6  # values that have such an interval: with five, 2 / 2**5 is more than 0.05


def interval(values):
    """The median's interval by the sign test: from order statistics, exact for any distribution.

    None with fewer values than FEWEST: no pair of them is 95 % sure."""
    n = len(values)
    outside, k = 0.0, 0
    while True:
        outside += 2 * comb(n, k) / 2**n
        if outside > 1 - CONFIDENCE:
            break
        k += 1
    if k == 0:
        return None
    ordered = sorted(values)
    return ordered[k - 1], ordered[n - k]


def ratio(ours, theirs):
    """Median and interval of the ratios of two contenders, round by round: {round: seconds} each."""
    pairs = [ours[r] / theirs[r] for r in ours if r in theirs and theirs[r] > 0]
    if not pairs:
        return None
    low, high = interval(pairs) or (None, None)
    return {"median": median(pairs), "low": low, "high": high, "pairs": len(pairs)}


def width(answer):
    """Half the interval's width, relative to the ratio; infinite when there is no interval."""
    if answer is None or answer["low"] is None:
        return float("inf")
    return (answer["high"] - answer["low"]) / 2 / answer["median"]
