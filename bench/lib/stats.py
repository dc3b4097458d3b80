# SPDX-License-Identifier: MIT
"""The estimator. Noise only adds time, so a low quantile repeats better than a median; a minimum has no valid bootstrap."""
import random

PERCENT = 10  # fixed before a run, which records it
RESAMPLES = 1000
FEWEST = 5  # rounds; fewer give no interval

def percentile(values, percent=PERCENT):
    """Interpolated."""
    ordered = sorted(values)
    at = (len(ordered) - 1) * percent / 100
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)

def ratio(ours, rivals, percent=PERCENT):
    """Ratio of two percentiles with its 95 % bootstrap interval: (ratio, low, high).

    Takes {round: seconds} and a list of them; of several rivals the fastest counts. Rounds are drawn as a
    whole, because what disturbs a round disturbs all its contenders. The generator has a fixed seed, so
    the same samples give the same interval."""
    rounds = sorted(set(ours).intersection(*rivals))
    if not rounds:
        return None

    def estimate(drawn):
        below = min(percentile([rival[r] for r in drawn], percent) for rival in rivals)
        return percentile([ours[r] for r in drawn], percent) / below if below else float("inf")

    point = estimate(rounds)
    if len(rounds) < FEWEST:
        return point, None, None
    draw = random.Random(20)
    found = sorted(estimate([rounds[int(draw.random() * len(rounds))] for _ in rounds]) for _ in range(RESAMPLES))
    return point, found[int(RESAMPLES * 0.025)], found[int(RESAMPLES * 0.975) - 1]

def verdict(answer, limit):
    """met, missed, or inconclusive if the interval reaches over the limit."""
    point, low, high = answer
    if low is None or low <= limit < high:
        return "inconclusive"
    return "met" if high <= limit else "missed"
