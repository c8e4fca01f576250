"""Random subsets of a block: their sizes, probabilities and draws.

In a block of k values a report is a subset of d of them. It holds the user's own value with
probability `T / 2^64`; the rest of it is a uniform subset of the other values.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.dyadic import exp_floor, set_threshold
from ldpstream.mechanisms.exact.entropy import WORD, Entropy
from ldpstream.mechanisms.families.design.support import ALONE, Support

_LARGEST_BUDGET = 64
_LARGEST_KEY = (1 << 32) - 1
_BATCH = 1 << 20
"""Number of keys drawn together, which decides which words a value uses (docs/vectors.md)."""


@dataclass(frozen=True)
class Subsets:
    """Subsets of `chosen` of the `size` values of a block, with the realised threshold T."""

    size: int
    chosen: int
    threshold: int

    @property
    def support(self) -> Support:
        """How often a report holds its user's value, and any other value."""
        if self.size == 1:
            return ALONE
        own = Fraction(self.threshold, WORD)
        others = self.size - 1
        other = (own * (self.chosen - 1) + (1 - own) * self.chosen) / others
        return Support(own, other)

    @property
    def likely(self) -> Fraction:
        """Probability of each subset that holds the user's value."""
        return Fraction(self.threshold, WORD * comb(self.size - 1, self.chosen - 1))

    @property
    def unlikely(self) -> Fraction:
        """Probability of each subset that does not hold it, in a block of several values."""
        return Fraction(WORD - self.threshold, WORD * comb(self.size - 1, self.chosen))

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of a subset's probabilities for two values of the block."""
        odds = Fraction(self.threshold, WORD - self.threshold)
        return odds * Fraction(self.size - self.chosen, self.chosen)

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        """The fraction of all subsets that hold a value, and of those that hold any two values."""
        held = Fraction(self.chosen, self.size)
        return held, held * Fraction(self.chosen - 1, self.size - 1)

    @property
    def spread(self) -> Fraction:
        """The variance of a sum over a report, in units of the sum of squares of the other values.

        A uniform subset of m out of M = size - 1 values, around their mean, has
        `m (M - m)/(M (M - 1))`; here m is `chosen - 1` with probability `own`, else `chosen`.
        """
        if self.size <= 2:
            return Fraction(0)
        own, others = Fraction(self.threshold, WORD), self.size - 1
        with_own = (self.chosen - 1) * (others - self.chosen + 1)
        without = self.chosen * (others - self.chosen)
        return (own * with_own + (1 - own) * without) / (others * (others - 1))


def best_subsets(epsilon: Fraction, size: int) -> Subsets:
    """Return the subsets of least variance, with `chosen` next to `size / (e^epsilon + 1)`.

    Ye and Barg 2018 (Theorem IV.3) show that one of the two integers around it is best. The exact
    variance of the realised channel, averaged over uniform users, decides between them.
    """
    if size == 1:
        return Subsets(1, 1, WORD)
    below = int(size / (exp_floor(min(epsilon, Fraction(_LARGEST_BUDGET))) + 1))
    choices = {min(max(chosen, 1), size - 1) for chosen in (below, below + 1)}
    realised = [Subsets(size, d, set_threshold(epsilon, d, size - d)) for d in sorted(choices)]
    usable = [subsets for subsets in realised if subsets.support.gap > 0]
    # If none carries information, the caller refuses epsilon.
    return min(usable, key=lambda s: s.support.mean_noise(size), default=realised[0])


def stronger_subsets(epsilon: Fraction, like: Subsets) -> Subsets:
    """Return subsets of the same sizes as `like` with another budget."""
    size, chosen = like.size, like.chosen
    return (
        like if size == 1 else Subsets(size, chosen, set_threshold(epsilon, chosen, size - chosen))
    )


def draw_subsets(
    entropy: Entropy, subsets: Subsets, places: NDArray[np.int64], wanted: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return a subset for each value, by its place in its block: bool `(n, size)`.

    It holds the value if `wanted`, else not, and is otherwise uniform: it takes the other values
    with the smallest of independent 32-bit keys. If keys tie for the last place, all keys of that
    subset are drawn again. Since this treats all values alike, every subset stays equally likely.
    """
    out = np.empty((len(places), subsets.size), dtype=np.bool_)
    step = max(1, _BATCH // subsets.size)
    for first in range(0, len(places), step):
        rows = np.arange(first, min(first + step, len(places)))
        while rows.size:
            out[rows] = _smallest(entropy, subsets, places[rows], wanted[rows])
            rows = rows[out[rows].sum(axis=1) > subsets.chosen]
    return out


def _smallest(
    entropy: Entropy, subsets: Subsets, places: NDArray[np.int64], wanted: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which keys are at most the d-th smallest; these are more than d if keys tie."""
    n = len(places) * subsets.size
    halves = entropy.words(-(-n // 2)).astype("<u8").view("<u4")[:n]
    keys = halves.reshape(len(places), subsets.size)
    # The largest key is taken only if it is the d-th smallest; then all are, and are drawn again.
    keys[np.arange(len(places)), places] = np.where(wanted, 0, _LARGEST_KEY)
    last = np.partition(keys, subsets.chosen - 1, axis=1)[:, subsets.chosen - 1]
    taken: NDArray[np.bool_] = keys <= last[:, None]
    return taken
