"""Exact bounds on the respondents' share from decisive reports, a sum of two binomials.

If a of N respondents are inside, D is `Bin(a, own) + Bin(N - a, other)`, which grows with a. The
bounds are the least and the largest a for which D is not in a tail of half the level. They hold at
every N, since the test of each a is exact.
"""

from typing import Final

import numpy as np
from scipy.special import betainc, gammaln, xlog1py, xlogy

from ldpstream.estimators.bounds.two_valued import Pair, Tosses
from ldpstream.mechanisms.base.arrays import Floats

_REACH: Final = 8.0
"""How many standard deviations are summed on either side, in addition to `_MORE` integers."""
_MORE: Final = 25.0
_PART: Final = 1 << 19
"""Most probabilities in memory at a time."""


def enumerated(tosses: Tosses, level: float) -> Pair:
    """Return the least and largest share, float64 `(q,)` each; arrays of `tosses` are `(q,)`."""
    rows = np.stack([tosses.reports, tosses.decisive, tosses.own, tosses.other], axis=1)
    # Values with equally many supporting reports have the same bounds.
    distinct, place = np.unique(rows, axis=0, return_inverse=True)
    low, high = np.empty((2, len(distinct)))
    n, _, own, other = distinct.T
    spread = np.sqrt(n * np.maximum(own * (1.0 - own), other * (1.0 - other)))
    summed = np.minimum(2.0 * (_REACH * spread + _MORE), n) + 1.0
    step = max(1, int(_PART / summed.max(initial=1.0)))
    for first in range(0, len(distinct), step):
        some = slice(first, first + step)
        low[some], high[some] = _invert(distinct[some], level / 2.0)
    place = place.reshape(-1)
    return low[place], high[place]


def _invert(rows: Floats, tail: float) -> Pair:
    """Return the least a with `P(D >= d) > tail`, and the largest with `P(D <= d) > tail`."""
    n, d, own, other = np.concatenate([rows, rows]).T
    upper = np.arange(n.size) >= len(rows)
    most = np.where(upper, d, d - 1.0)
    # Bisect for both at once: the first a in 0..n at which the condition starts or stops, or n + 1.
    low, high = np.zeros_like(n), n + 1.0
    while (searching := low < high).any():
        middle = np.floor((low + high) / 2.0)
        chance = below(np.minimum(middle, n), n, own, other, most)
        found = np.where(upper, chance <= tail, 1.0 - chance > tail) | (middle > n)
        high = np.where(searching & found, middle, high)
        low = np.where(searching & ~found, middle + 1.0, low)
    least, beyond = np.split(low, 2)
    n = rows[:, 0]
    return np.minimum(least, n) / n, np.maximum(beyond - 1.0, 0.0) / n


def below(a: Floats, n: Floats, own: Floats, other: Floats, most: Floats) -> Floats:
    """Return `P(Bin(a, own) + Bin(n - a, other) <= most)`; all arrays are float64 `(q,)`.

    The sum runs over the binomial with less spread; 8 standard deviations and 25 more on either
    side leave out less than 1e-14.
    """
    swap = a * own * (1.0 - own) > (n - a) * other * (1.0 - other)
    size, chance = np.where(swap, n - a, a), np.where(swap, other, own)
    rest, turned = np.where(swap, a, n - a), np.where(swap, own, other)
    centre = np.rint(size * chance)
    reach = np.ceil(_REACH * np.sqrt(size * chance * (1.0 - chance)) + _MORE)
    first = np.maximum(centre - reach, 0.0)
    last = np.minimum(centre + reach, size)
    steps = np.arange(float((last - first).max(initial=0.0)) + 1.0)
    at = first[:, None] + steps
    inside = at <= last[:, None]
    at = np.where(inside, at, last[:, None])
    # The other binomial's distribution function at `most - at`, by summing its probabilities.
    left = (most - first)[:, None] - steps
    possible = (left >= 0.0) & (left <= rest[:, None])
    # The binomial probabilities of both.
    some = np.stack([at, np.clip(left, 0.0, rest[:, None])])
    many, p = np.stack([size, rest])[..., None], np.stack([chance, turned])[..., None]
    ways = gammaln(many + 1.0) - gammaln(some + 1.0) - gammaln(many - some + 1.0)
    weights, found = np.exp(ways + xlogy(some, p) + xlog1py(many - some, -p))
    weights = np.where(inside, weights, 0.0)
    held = np.cumsum(np.where(possible, found, 0.0)[:, ::-1], axis=1)[:, ::-1]
    # The probability below the least of them is an incomplete beta integral.
    least = left[:, -1] - 1.0
    inner = (least >= 0.0) & (least < rest)
    ends = np.where(inner, rest - least, 1.0), np.where(inner, least + 1.0, 1.0)
    integral = betainc(*ends, 1.0 - turned)
    held += np.where(inner, integral, np.where(least < 0.0, 0.0, 1.0))[:, None]
    summed: Floats = (weights * held).sum(axis=1)
    return np.clip(summed, 0.0, 1.0)
