"""How many bins an interval deserves where numbers are protected by their distance.

More bins have smaller steps and more noise: the budget `a` of the whole interval is spread over
them. A prefix has the noise variance `B (B + a)/(a^2 n)` with B bins and n reports (`l1-bits`), and
a straight line through it misses a distribution whose density is up to kappa times the even one by
some `kappa/(8 B)`. The sum of this variance and this square is least where
`B^3 (2 B + a) = kappa^2 a^2 n/32`.
"""

from typing import Final

PEAK: Final = 4.0
"""Kappa: the density is expected to be at most so many times the even one."""
NOISE: Final = 4
"""More bins than this many times the recommended number resolve noise alone."""
_FEWEST: Final = 2
_STEPS: Final = 100
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
