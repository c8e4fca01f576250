"""Random subsets of a block, and the form and statistic of the reports that hold them.

In a block of k values a report holds a subset of d of them. It holds the user's own value with
probability `T / 2^64`; the rest of it is a uniform subset of the other values.

A report is its block's number, little-endian in the fewest whole bytes (none if there is one
block), and a mask with one bit for each value of the largest block: the bit of the value at place i
is bit `i mod 8` of byte `i / 8`. A statistic counts, for each value, the reports that hold it, and
then the reports of each block.

The mask could be replaced by the subset's rank among all subsets. That is shorter (by a sixth at
epsilon = 1, by three quarters at 3), but takes integers of thousands of bits for each report, on
devices and servers. If length matters, projective geometry has the same variance in `log2 K` bits.

Linear queries are decoded from the number of reports that hold each value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Bools, Floats, Indices, Integers
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import exp_floor, set_threshold
from ldpstream.mechanisms.exact.entropy import WORD, Entropy, Words
from ldpstream.mechanisms.families.design.design import ALONE, Support, SupportTables
from ldpstream.mechanisms.interface.decoder import (
    ROUNDING,
    Decoded,
    LinearDecoder,
    SingleValues,
    Statistic,
    parts,
)
from ldpstream.mechanisms.interface.symbols import from_bytes, to_bytes

Payload = NDArray[np.uint8]
_LARGEST_BUDGET = 64
_LARGEST_KEY = (1 << 32) - 1
_BATCH_KEYS = 1 << 20
"""Number of keys drawn together: the vectors' order depends on it (tests/vectors/README.md)."""
_BATCH_BITS = 1 << 22


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
        tau = Fraction(self.threshold, WORD)
        rest = self.size - 1
        other = (tau * (self.chosen - 1) + (1 - tau) * self.chosen) / rest
        return Support(tau, other)

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
        `m (M - m)/(M (M - 1))`; here m is `chosen - 1` with probability `tau`, else `chosen`.
        """
        if self.size <= 2:
            return Fraction(0)
        tau, rest = Fraction(self.threshold, WORD), self.size - 1
        with_own = (self.chosen - 1) * (rest - self.chosen + 1)
        without = self.chosen * (rest - self.chosen)
        return (tau * with_own + (1 - tau) * without) / (rest * (rest - 1))


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


def draw_subsets(entropy: Entropy, subsets: Subsets, places: Indices, supporting: Bools) -> Bools:
    """Return a subset for each value, by its place in its block: bool `(n, size)`.

    It holds the value if `supporting`, else not, and is otherwise uniform: it takes the other
    values with the smallest of independent 32-bit keys. Place -1 stands for a uniform subset. If
    keys tie for the last place, all keys of that subset are drawn again. Since this treats all
    values alike, every subset stays equally likely.
    """
    out = np.empty((len(places), subsets.size), dtype=np.bool_)
    step = max(1, _BATCH_KEYS // subsets.size)
    for first in range(0, len(places), step):
        rows = np.arange(first, min(first + step, len(places)))
        while rows.size:
            out[rows] = _smallest(entropy, subsets, places[rows], supporting[rows])
            rows = rows[out[rows].sum(axis=1) > subsets.chosen]
    return out


def _smallest(entropy: Entropy, subsets: Subsets, places: Indices, supporting: Bools) -> Bools:
    """Return which keys are at most the d-th smallest; these are more than d if keys tie."""
    n = len(places) * subsets.size
    halves = entropy.words(-(-n // 2)).astype("<u8").view("<u4")[:n]
    keys = halves.reshape(len(places), subsets.size)
    # The largest key is taken only if it is the d-th smallest; then all are, and are drawn again.
    inside = np.flatnonzero(places >= 0)
    keys[inside, places[inside]] = np.where(supporting[inside], 0, _LARGEST_KEY)
    last = np.partition(keys, subsets.chosen - 1, axis=1)[:, subsets.chosen - 1]
    chosen: Bools = keys <= last[:, None]
    return chosen


class SubsetLayout:
    """The tables with which reports are written, checked and counted.

    For each block, `kinds`, int64 `(blocks,)`, is the number of its kind of subsets, and
    `thresholds`, uint64 `(blocks,)`, their T (2^64 - 1 for a value alone, where it is never used).
    """

    def __init__(
        self, blocks: Blocks, subsets: Sequence[Subsets], kinds: Indices | None = None
    ) -> None:
        sizes = np.array([s.size for s in subsets], dtype=np.int64)
        self.blocks = blocks
        # By default the size of a block decides its kind, and kinds ascend by size.
        self.kinds: Indices = np.searchsorted(sizes, blocks.sizes) if kinds is None else kinds
        thresholds = [min(s.threshold, WORD - 1) for s in subsets]
        self.thresholds: Words = np.array(thresholds, dtype=np.uint64)[self.kinds]
        self.block_bytes = -(-(blocks.count - 1).bit_length() // 8)
        self.mask_bytes = int(-(-sizes.max() // 8))
        self.report_bytes = self.block_bytes + self.mask_bytes
        self._chosen = np.array([s.chosen for s in subsets], dtype=np.int64)[self.kinds]
        places = np.arange(8 * self.mask_bytes)
        self._allowed = _pack(places < sizes[:, None])
        # Values block by block, in order of their places.
        self._values: Indices = np.argsort(blocks.of_value, kind="stable")
        self._starts: Indices = np.cumsum(blocks.sizes) - blocks.sizes

    def write(self, blocks: Indices, masks: Payload) -> Payload:
        """Return reports, uint8 `(n, report_bytes)`: blocks `(n,)`, masks `(n, mask_bytes)`."""
        return np.concatenate((to_bytes(blocks, self.block_bytes), masks), axis=1)

    def pack(self, members: Bools) -> Payload:
        """Return the masks of subsets, bool `(n, size)` -> uint8 `(n, mask_bytes)`."""
        masks = np.zeros((len(members), self.mask_bytes), dtype=np.uint8)
        packed = _pack(members)
        masks[:, : packed.shape[1]] = packed
        return masks

    def valid(self, reports: Payload) -> Bools:
        """Return which reports some value can produce: an existing block and d of its values."""
        blocks = self.block_of(reports)
        exists = blocks < self.blocks.count
        blocks = np.where(exists, blocks, 0)
        masks = reports[:, self.block_bytes :]
        beyond = (masks & ~self._allowed[self.kinds[blocks]]).any(axis=1)
        ones = np.bitwise_count(masks).sum(axis=1, dtype=np.int64)
        out: Bools = exists & ~beyond & (ones == self._chosen[blocks])
        return out

    def count(self, reports: Payload, times: Indices | None = None) -> Indices:
        """Return the statistic of reports, each once or `times`, int64 `(n,)`: `(k + blocks,)`."""
        counts = np.zeros(self.blocks.size, dtype=np.int64)
        blocks = self.block_of(reports)
        ranking = np.argsort(blocks, kind="stable")
        step = max(1, _BATCH_BITS // (8 * self.mask_bytes))
        for first in range(0, len(reports), step):
            batch = ranking[first : first + step]
            masks = reports[batch, self.block_bytes :]
            self._add(counts, blocks[batch], masks, None if times is None else times[batch])
        of_blocks = np.zeros(self.blocks.count, dtype=np.int64)
        np.add.at(of_blocks, blocks, 1 if times is None else times)
        return np.concatenate((counts, of_blocks))

    def _add(self, counts: Indices, blocks: Indices, masks: Payload, times: Indices | None) -> None:
        """Add masks of ascending blocks to the counts of values."""
        first = np.flatnonzero(np.concatenate(([True], blocks[1:] != blocks[:-1])))
        bits: NDArray[Any] = np.unpackbits(masks, axis=1, bitorder="little")
        if times is not None:
            bits = bits * times[:, None]
        sums = np.add.reduceat(bits, first, axis=0, dtype=np.int64)
        present = blocks[first]
        places = np.arange(bits.shape[1])
        inside = places < self.blocks.sizes[present][:, None]
        slots = (self._starts[present][:, None] + places)[inside]
        counts[self._values[slots]] += sums[inside]

    def block_of(self, reports: Payload) -> Indices:
        """Return the number of each report's block, int64 `(n,)`."""
        return from_bytes(reports[:, : self.block_bytes])


def _pack(bits: Bools) -> Payload:
    return np.packbits(bits, axis=1, bitorder="little")


class SubsetDecoder(LinearDecoder):
    """`h_x` is `high` at reports that hold x, `low` at the others of its block, 0 elsewhere.

    All reports of a block hold equally many values, so that `sum_x h_x = 1` over the block. A query
    is split into its mean in each block and the deviations u from it, and decoded by
    `h_w = mean_j + step sum_(x in report) u_x`. Whole blocks are therefore exact.
    """

    scratch = 1.0

    def __init__(self, layout: SubsetLayout, subsets: Sequence[Subsets]) -> None:
        self._blocks = layout.blocks
        self._kinds = layout.kinds
        self._tables = SupportTables.of([s.support for s in subsets])
        self._chosen = np.array([s.chosen for s in subsets], dtype=np.int64)[layout.kinds]
        self._shares = [s.chosen / s.size for s in subsets]
        supporting = [Fraction(s.threshold, WORD) for s in subsets]
        self._spread = np.array([float(s.spread) for s in subsets])
        self._own_spread = np.array([float(a * (1 - a)) for a in supporting])

    def _kind(self, at: slice | Integers) -> Indices:
        """Return the number of each value's kind of subsets."""
        return self._kinds[self._blocks.of_value[at]]

    def _split(self, statistic: Statistic) -> tuple[Statistic, Statistic]:
        return statistic[: self._blocks.size], statistic[self._blocks.size :]

    def _centred(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the mean of each block, `(blocks,)`, and each value's deviation, `(k,)`."""
        of_value, count = self._blocks.of_value, self._blocks.count
        means: Floats = np.bincount(of_value, weights, count) / self._blocks.sizes
        return means, weights - means[of_value]

    def totals(self, statistic: Statistic) -> Floats:
        """Return `step I_x + low N_j`, I_x being the number of reports that hold x."""
        (counts, reports), tables = self._split(statistic), self._tables
        sums = np.empty(counts.size)
        for at in parts(counts.size):
            kinds, in_block = self._kind(at), reports[self._blocks.of_value[at]]
            sums[at] = tables.step[kinds] * counts[at] + tables.low[kinds] * in_block
        return sums

    def moments(self, decoded: Decoded, at: slice | Integers) -> Floats:
        """Return `high^2 I_x + low^2 (N_j - I_x)`."""
        in_block = decoded.reports[self._blocks.of_value[at]]
        return self._tables.moments(self._kind(at), decoded.totals[at], in_block)

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        return self._tables.single_values(self._kind(at), self.moments(decoded, at))

    def extremes(self) -> tuple[Floats, Floats]:
        """Return `low` and `high`; 0 and 1 for a value alone in its block."""
        kinds = self._kind(slice(None))
        return self._tables.low[kinds], self._tables.high[kinds]

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the smaller and the larger of the noise of the value's own users and of others."""
        return self._tables.noise_extremes(self._kind(slice(None)))

    def noise_levels(self, at: slice | Integers) -> tuple[Floats, Floats, Floats]:
        """Return the noise of users of each value, and the least and largest of its block's."""
        return self._tables.noise_levels(self._kind(at))

    def uniform_moments(self, at: slice | Integers) -> Floats:
        """Return the mean of `h_x^2` over uniform reports of the block of each value."""
        return self._tables.uniform_moments(self._kind(at), self._shares)

    def noise(self, weights: Floats) -> Floats:
        """Return `step^2 (spread SS_x + a (1 - a) (w_x - mean of the others)^2)`.

        SS_x is the sum of squares of the weights of the block's other values around their mean: a
        report's sum varies by which of the others it holds, and by whether it holds x.
        """
        of_value = self._blocks.of_value
        _, u = self._centred(weights)
        squares = np.bincount(of_value, u**2, self._blocks.count)
        noise, largest = np.empty(weights.size), np.abs(weights).max()
        for at in parts(weights.size):
            kinds, sizes = self._kind(at), self._blocks.sizes[of_value[at]]
            # A value's distance from the mean of the others, over that from the mean of all.
            stretch = sizes / np.maximum(sizes - 1, 1)
            elsewhere = np.maximum(squares[of_value[at]] - u[at] ** 2 * stretch, 0.0)
            at_value = self._own_spread[kinds] * (u[at] * stretch) ** 2
            step = self._tables.step[kinds]
            moments = step**2 * (self._spread[kinds] * elsewhere + at_value)
            # Equal weights deviate from their mean by rounding only, which is not noise.
            moments[moments <= (ROUNDING * step * largest) ** 2] = 0.0
            noise[at] = moments
        return noise

    def uniform_variances(self, weights: Floats) -> Floats:
        """Return the variance of `h_w` over uniform reports of each block, float64 `(blocks,)`."""
        blocks, kinds = self._blocks, self._kinds
        _, u = self._centred(weights)
        squares = np.bincount(blocks.of_value, u**2, blocks.count)
        sizes, chosen = blocks.sizes, self._chosen
        spread = chosen * (sizes - chosen) / (sizes * np.maximum(sizes - 1, 1))
        variances: Floats = self._tables.step[kinds] ** 2 * spread * squares
        return variances

    def total(self, weights: Floats, statistic: Statistic) -> float:
        """Return `sum_j mean_j N_j + sum_x step u_x I_x`."""
        counts, reports = self._split(statistic)
        means, u = self._centred(weights)
        steps = self._tables.step[self._kind(slice(None))]
        return float((means * reports).sum() + (steps * u * counts).sum())

    def span(self, weights: Floats) -> tuple[float, float]:
        """Return the extremes of `h_w`: the reports of the least and the largest weights."""
        of_value, sizes, count = self._blocks.of_value, self._blocks.sizes, self._blocks.count
        means, u = self._centred(weights)
        ranking = np.lexsort((u, of_value))
        block = of_value[ranking]
        rank = np.arange(len(ranking)) - (np.cumsum(sizes) - sizes)[block]
        steps = (self._tables.step[self._kind(slice(None))] * u)[ranking]
        lowest = rank < self._chosen[block]
        highest = rank >= (sizes - self._chosen)[block]
        least = means + np.bincount(block[lowest], steps[lowest], count)
        largest = means + np.bincount(block[highest], steps[highest], count)
        return float(least.min()), float(largest.max())

    def groups(self) -> Indices | None:
        return None if self._blocks.count == 1 else self._blocks.of_value

    def group_reports(self, statistic: Statistic) -> Indices:
        return self._split(statistic)[1].copy()
