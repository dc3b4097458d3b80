# SPDX-License-Identifier: MIT
"""The estimator: medians, and the ratio of two with its interval."""
import random
from statistics import median

RESAMPLES = 1000
FEWEST = 5  # rounds; fewer give no interval

def ratio(ours, rivals):
    """Ratio of two medians with its 95 % bootstrap interval: (ratio, low, high).

    Takes {round: seconds} and a list of them; of several rivals the fastest counts. Rounds are drawn as a
    whole, because what disturbs a round disturbs all its contenders. The generator has a fixed seed, so
    the same samples give the same interval."""
    rounds = sorted(set(ours).intersection(*rivals))
    if not rounds:
        return None

    def estimate(drawn):
        below = min(median(rival[r] for r in drawn) for rival in rivals)
        return median(ours[r] for r in drawn) / below if below else float("inf")

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
