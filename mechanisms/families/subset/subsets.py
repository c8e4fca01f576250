"""Random subsets of a block: their sizes, their probabilities, and how they are drawn.

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
"""Keys drawn together; which words a value uses depends on it (docs/wire.md)."""


@dataclass(frozen=True)
class Subsets:
    """Subsets of `chosen` of the `size` values of a block, with the realised threshold T."""

    size: int
    chosen: int
    threshold: int

    @property
    def support(self) -> Support:
        """How often a value is in a report: of its own user, and of another."""
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
        """Probability of each subset that does not; of several values."""
        return Fraction(WORD - self.threshold, WORD * comb(self.size - 1, self.chosen))

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of two values' probabilities of one subset, of several values."""
        odds = Fraction(self.threshold, WORD - self.threshold)
        return odds * Fraction(self.size - self.chosen, self.chosen)

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        """Of all subsets, those that hold a value, and those that hold both of any two."""
        held = Fraction(self.chosen, self.size)
        return held, held * Fraction(self.chosen - 1, self.size - 1)

    @property
    def spread(self) -> Fraction:
        """The variance of a sum over a report, for each unit of the others' sum of squares.

        Other values around their mean, M = size - 1 of them: `m (M - m)/(M (M - 1))` for a uniform
        subset of m, here of `chosen - 1` with probability `own`, else of `chosen`.
        """
        if self.size <= 2:
            return Fraction(0)
        own, others = Fraction(self.threshold, WORD), self.size - 1
        with_own = (self.chosen - 1) * (others - self.chosen + 1)
        without = self.chosen * (others - self.chosen)
        return (own * with_own + (1 - own) * without) / (others * (others - 1))


def best_subsets(epsilon: Fraction, size: int) -> Subsets:
    """Return the subsets of least variance: `chosen` is next to `size / (e^epsilon + 1)`.

    Ye and Barg 2018 (Theorem IV.3) show that one of the two whole numbers around it is best; the
    exact variance of the realised channel, mean over uniform users, decides between them.
    """
    if size == 1:
        return Subsets(1, 1, WORD)
    below = int(size / (exp_floor(min(epsilon, Fraction(_LARGEST_BUDGET))) + 1))
    choices = {min(max(chosen, 1), size - 1) for chosen in (below, below + 1)}
    realised = [Subsets(size, d, set_threshold(epsilon, d, size - d)) for d in sorted(choices)]
    usable = [subsets for subsets in realised if subsets.support.gap > 0]
    # If none carries information the caller refuses epsilon.
    return min(usable, key=lambda s: s.support.mean_noise(size), default=realised[0])


def stronger_subsets(epsilon: Fraction, like: Subsets) -> Subsets:
    """Return as many values of a block as `like` chooses, drawn with another budget."""
    size, chosen = like.size, like.chosen
    return (
        like if size == 1 else Subsets(size, chosen, set_threshold(epsilon, chosen, size - chosen))
    )


def draw_subsets(
    entropy: Entropy, subsets: Subsets, places: NDArray[np.int64], wanted: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return a subset for each value, by its place in its block: bool `(n, size)`.

    It holds the value where `wanted`, and is uniform otherwise: the others with the smallest of
    independent 32-bit keys. Where keys tie for the last place all keys of that value are drawn
    again; as this depends on no names, every subset stays equally likely.
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
    """Return which keys are at most the d-th smallest: more than d of them where keys tie."""
    n = len(places) * subsets.size
    halves = entropy.words(-(-n // 2)).astype("<u8").view("<u4")[:n]
    keys = halves.reshape(len(places), subsets.size)
    # The largest key is taken only where it is the d-th smallest: then all are, and drawn again.
    keys[np.arange(len(places)), places] = np.where(wanted, 0, _LARGEST_KEY)
    last = np.partition(keys, subsets.chosen - 1, axis=1)[:, subsets.chosen - 1]
    taken: NDArray[np.bool_] = keys <= last[:, None]
    return taken
