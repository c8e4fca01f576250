"""Linear queries of `subset-selection`, from the number of reports that hold each value."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Indices, Integers
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.design.design import SupportTables
from ldpstream.mechanisms.families.subset.subsets import SubsetLayout, Subsets
from ldpstream.mechanisms.interface.decoder import (
    ROUNDING,
    Decoded,
    LinearDecoder,
    SingleValues,
    Statistic,
    parts,
)


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
        own = [Fraction(s.threshold, WORD) for s in subsets]
        self._spread = np.array([float(s.spread) for s in subsets])
        self._own_spread = np.array([float(a * (1 - a)) for a in own])

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
        held, reports = self._split(statistic)
        sums = np.empty(held.size)
        for at in parts(held.size):
            in_block = reports[self._blocks.of_value[at]]
            sums[at] = self._tables.totals(self._kind(at), held[at], in_block)
        return sums

    def second_moments(self, statistic: Statistic) -> Floats:
        """Return `high^2 I_x + low^2 (N_j - I_x)`: the exact sums."""
        return self._single_values(statistic, slice(None)).second_moments

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        return self._single_values(decoded.statistic, at)

    def _single_values(self, statistic: Statistic, at: slice | Integers) -> SingleValues:
        held, reports = self._split(statistic)
        in_block = reports[self._blocks.of_value[at]]
        return self._tables.single_values(self._kind(at), held[at], in_block)

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
            others = np.maximum(squares[of_value[at]] - u[at] ** 2 * stretch, 0.0)
            own = self._own_spread[kinds] * (u[at] * stretch) ** 2
            step = self._tables.step[kinds]
            found = step**2 * (self._spread[kinds] * others + own)
            # Equal weights deviate from their mean by rounding only, which is not noise.
            found[found <= (ROUNDING * step * largest) ** 2] = 0.0
            noise[at] = found
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
        held, reports = self._split(statistic)
        means, u = self._centred(weights)
        steps = self._tables.step[self._kind(slice(None))]
        return float((means * reports).sum() + (steps * u * held).sum())

    def span(self, weights: Floats) -> tuple[float, float]:
        """Return the extremes of `h_w`: the reports of the least and the largest weights."""
        of_value, sizes, count = self._blocks.of_value, self._blocks.sizes, self._blocks.count
        means, u = self._centred(weights)
        order = np.lexsort((u, of_value))
        block = of_value[order]
        rank = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[block]
        steps = (self._tables.step[self._kind(slice(None))] * u)[order]
        lowest = rank < self._chosen[block]
        highest = rank >= (sizes - self._chosen)[block]
        least = means + np.bincount(block[lowest], steps[lowest], count)
        largest = means + np.bincount(block[highest], steps[highest], count)
        return float(least.min()), float(largest.max())

    def groups(self) -> Indices | None:
        return None if self._blocks.count == 1 else self._blocks.of_value

    def group_reports(self, statistic: Statistic) -> Indices:
        return self._split(statistic)[1].copy()
