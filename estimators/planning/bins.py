"""How many bins an interval deserves.

Where numbers are protected by their distance, more bins have smaller steps and more noise: the
budget `a` of the whole interval is spread over them. A prefix has the noise variance
`B (B + a)/(a^2 n)` with B bins and n reports (`l1-bits`), and a straight line through it misses a
distribution whose density is up to kappa times the even one by some `kappa/(8 B)`. The sum of this
variance and this square is least where `B^3 (2 B + a) = kappa^2 a^2 n/32`. Under one epsilon for
any two values the noise of `tree` grows with bins too, but slowly.
"""

from typing import Final

import numpy as np

from ldpstream.estimators.planning.predictions import predicted_linear_variances
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.tree.tree import Tree

PEAK: Final = 4.0
"""Kappa: the density is expected to be at most so many times the even one."""
NOISE: Final = 4
"""More bins than this many times the recommended number resolve noise alone."""
_FEWEST: Final = 2
_STEPS: Final = 100
_MOST: Final = 512
_ENDS: Final = np.arange(1, 33) * 0.6180339887498949 % 1.0
"""Where prefixes end whose noise stands for all: even, and at no multiples of a power of two."""
_LARGEST: Final = 1e50
"""Far beyond any number of bins, and its powers are still floats."""


def recommended_bins(budget: float, n: int, *, peak: float = PEAK) -> int:
    """Return the number of bins for a budget of the whole interval and n reports, at least 2.

    >>> recommended_bins(2.0, 10_000)
    10
    """
    budget = min(budget, _LARGEST)
    target = (peak * budget) ** 2 * n / 32.0
    # The function is convex and increasing, so Newton's steps from above only descend.
    bins: float = max(1.0, (target / 2.0) ** 0.25)
    for _ in range(_STEPS):
        excess = bins**3 * (2.0 * bins + budget) - target
        bins = max(1.0, bins - excess / (bins**2 * (8.0 * bins + 3.0 * budget)))
    return max(_FEWEST, round(bins))


def recommended_tree_bins(epsilon: float, n: int, *, peak: float = PEAK) -> int:
    """Return the number of bins for `tree` and n reports, a power of two up to 512.

    It has the least error by the same sum, with the noise of unbiased prefixes.
    """
    least, best, bins = np.inf, _FEWEST, _FEWEST
    while bins <= _MOST:
        tree = Tree(epsilon, Blocks.one(bins), (), "levels")
        ends = np.ceil(_ENDS * (bins - 1))
        prefixes = ((np.arange(bins) < end).astype(np.float64) for end in ends)
        noise = float(predicted_linear_variances(tree, prefixes).mean())
        error = noise / n + (peak / (8.0 * bins)) ** 2
        if error > least:
            break
        least, best, bins = error, bins, 2 * bins
    return best
