"""Linear queries of `l1-bits`, by differences along each dimension.

Let `Rt[j]` be entry j divided by t if it is noisy, 1 for the last entry, and `Rt[-1] = -1`. The
value x of a dimension is decoded by `(Rt[x] - Rt[x - 1]) / 2`, and in D dimensions by the product.
Weights `w` are decoded by `h = sum_j g[j] prod_d Rt[d, j_d]`, where g is w with differences taken
along every dimension. Entries are independent with `E[Rt] = b`, and noisy ones have the variance
`u = 1/t^2 - 1`. Therefore

    (Q h^2)[x] = sum over subsets S of the dimensions of
                 u^|S| sum over noisy j_S of (D_S w)[j_S, x_rest]^2,

where `D_S` takes half the differences of neighbours along the dimensions of S only; along the
others, the signs b of x undo them. The term of the empty S is `w^2`; the rest is the noise, a sum
of squares without cancellation. It has 2^D terms, and the general form has k.
"""

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.interface.decoder import Decoded, LinearDecoder, PrefixNoise, Statistic

_Pair = tuple[Floats, Floats]
"""Least and largest values."""


class L1BitsDecoder(LinearDecoder):
    """Decodes sums of products of signs that are kept with probability `threshold / 2^64`.

    `extents` are the sizes of the dimensions with two values or more; others add nothing.
    """

    def __init__(self, threshold: int, extents: Sequence[int]) -> None:
        self._shape = tuple(extents)
        contrast = 2 * threshold - WORD
        self._inverse = WORD / contrast
        # 1/t^2 - 1 in floating point would lose its digits.
        self._noise = 4 * threshold * (WORD - threshold) / contrast**2

    def totals(self, statistic: Statistic) -> Floats:
        """Return the differences of the sums along every dimension: `(Rt[x] - Rt[x - 1]) / 2`."""
        return self._each(statistic, self._share)

    def moments(self, decoded: Decoded, at: slice | Integers) -> Floats:
        """Return the estimates of the sums of `prod_d (v_d + 1{x_d is the value's})`.

        v is the noise of a dimension's decoder: u/4 for each noisy end. The last sum along a
        dimension has the factor 1 there.
        """
        moments = self._each(
            decoded.statistic, lambda sums: self._share(sums) + self._ends(sums) * sums[..., -1:]
        )
        return moments[at]

    def extremes(self) -> tuple[Floats, Floats]:
        """Return the extremes of products with one decoder for each dimension."""
        low = high = np.ones(())
        for extent in self._shape:
            # A value at an end of the line has one exact end; for all others both ends are noisy.
            least, largest = np.full(extent, -self._inverse), np.full(extent, self._inverse)
            least[[0, -1]] = (1.0 - self._inverse) / 2.0
            largest[[0, -1]] = (1.0 + self._inverse) / 2.0
            low, high = _multiply((low, high), (least, largest))
        return low.ravel(), high.ravel()

    def noise(self, weights: Floats) -> Floats:
        """Return the sum over all nonempty subsets, exactly 0 if w is constant."""
        table = weights.reshape(self._shape)
        out: Floats = np.ascontiguousarray(self._subsets(table, (), 0)).reshape(-1)
        return out

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the noise of one user in each single value's estimate, least and largest.

        `prod(v_d + 1{x_d}) - prod(1{x_d})`: least if all coordinates differ, largest for the
        value's own users.
        """
        least, largest = np.ones(()), np.zeros(())
        for extent in self._shape:
            noise = self._ends(np.zeros(extent))
            least = np.multiply.outer(least, noise)
            # (1 + a)(1 + b) - 1 without losing small noise.
            largest = np.add.outer(largest, noise) + np.multiply.outer(largest, noise)
        return least.ravel(), largest.ravel()

    def group_reports(self, statistic: Statistic) -> Integers:
        """Return the sum of the products of last entries: the number of reports."""
        return statistic[-1:].copy()

    def total(self, weights: Floats, statistic: Statistic) -> float:
        """Return `sum_j g[j] sum_i prod_d Rt_i[d, j_d]`."""
        return float((self._each(weights, self._coefficients) * statistic).sum())

    def span(self, weights: Floats) -> tuple[float, float]:
        """Return the extremes of `h`.

        They are exact on a line and for products of one factor for each dimension, such as boxes.
        Otherwise they are the constant entry's coefficient, minus and plus the sum of the absolute
        values of the others.
        """
        factors = _factors(weights.reshape(self._shape))
        if factors is None:
            return self._reach(self._each(weights, self._coefficients))
        low = high = np.ones(())
        for factor in factors:
            ends = self._reach(self._coefficients(factor))
            low, high = _multiply((low, high), (np.array(ends[0]), np.array(ends[1])))
        return float(low), float(high)

    def deviation(self, weights: Floats) -> float:
        """Return, on a line, the most that one sign moves the query; signs are independent."""
        if len(self._shape) != 1:
            return super().deviation(weights)
        step = float(np.abs(np.diff(weights)).max(initial=0.0))
        return step * (1.0 + self._inverse) / 2.0

    def value_deviations(self) -> Floats | None:
        if len(self._shape) != 1:
            return None
        return np.full(self._shape, (1.0 + self._inverse) / 2.0)

    def prefix_noise(self, positions: Integers) -> PrefixNoise | None:
        """Return the prefixes of one dimension: each has one noisy end, and the last has none."""
        for axis, extent in enumerate(self._shape):
            along = np.arange(extent).reshape(-1, *[1] * (len(self._shape) - axis - 1))
            if np.array_equal(np.broadcast_to(along, self._shape).reshape(-1), positions):
                noise = np.full(extent, self._noise / 4.0)
                ends = np.full(extent, self._inverse)
                noise[-1], ends[-1] = 0.0, 1.0
                least = (1.0 - ends) / 2.0
                least[-1] = 1.0
                return PrefixNoise(noise, least, (1.0 + ends) / 2.0)
        return None

    def _share(self, sums: Floats) -> Floats:
        entries = sums * self._inverse
        entries[..., -1] = sums[..., -1]
        shares = entries / 2.0
        shares[..., 1:] -= entries[..., :-1] / 2.0
        shares[..., 0] += entries[..., -1] / 2.0
        return shares

    def _coefficients(self, weights: Floats) -> Floats:
        """Return g: the transpose of `_share`."""
        out: Floats = np.empty_like(weights)
        np.subtract(weights[..., :-1], weights[..., 1:], out=out[..., :-1])
        out[..., :-1] *= self._inverse / 2.0
        out[..., -1] = weights[..., -1] / 2.0 + weights[..., 0] / 2.0
        return out

    def _ends(self, along: Floats) -> Floats:
        """Return the noise of each value's decoder in one dimension: `(m,)`."""
        noise = np.full(along.shape[-1], self._noise / 2.0)
        noise[[0, -1]] = self._noise / 4.0
        return noise

    def _subsets(self, table: Floats, chosen: tuple[int, ...], axis: int) -> Floats:
        """Sum the squares over the subsets of the dimensions from `axis` on, added to `chosen`."""
        if axis == len(self._shape):
            if not chosen:
                return np.zeros_like(table)
            scale = self._noise ** len(chosen)
            squares: Floats = scale * (table**2).sum(axis=chosen, keepdims=True)
            return squares
        without = self._subsets(table, chosen, axis + 1)
        halves = np.diff(table, axis=axis) / 2.0
        both: Floats = without + self._subsets(halves, (*chosen, axis), axis + 1)
        return both

    def _each(self, vector: Floats | Statistic, operation: Callable[[Floats], Floats]) -> Floats:
        """Apply an operation along every dimension in turn."""
        table = np.asarray(vector, dtype=np.float64).reshape(self._shape)
        for place in range(len(self._shape)):
            table = operation(table.swapaxes(place, -1)).swapaxes(place, -1)
        return np.array(table).reshape(-1)

    def _reach(self, coefficients: Floats) -> tuple[float, float]:
        """Return bounds on a sum of products of entries, of which the last is always 1."""
        flat = coefficients.reshape(-1)
        centre, reach = float(flat[-1]), float(np.abs(flat[:-1]).sum())
        return centre - reach, centre + reach


def _factors(table: Floats) -> list[Floats] | None:
    """Return factors, one for each dimension, whose outer product is the table, or None."""
    peak = [int(i) for i in np.unravel_index(int(np.abs(table).argmax()), table.shape)]
    lines = []
    for axis in range(table.ndim):
        singles = [slice(i, i + 1) for i in peak]
        singles[axis] = slice(None)
        lines.append(table[tuple(singles)].reshape(-1))
    height = float(np.abs(lines[0]).max())
    if height == 0.0:
        return lines
    factors = [lines[0], *(line / line[i] for line, i in zip(lines[1:], peak[1:], strict=True))]
    outer: Floats = reduce(np.multiply.outer, factors)
    return factors if np.array_equal(outer, table) else None


def _multiply(first: _Pair, second: _Pair) -> _Pair:
    """Return the extremes of products of independent factors, as an outer product."""
    ends = np.stack([np.multiply.outer(a, b) for a in first for b in second])
    return ends.min(axis=0), ends.max(axis=0)
