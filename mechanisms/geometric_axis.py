"""One dimension of the clamped two-sided geometric channel, and its inverse.

With m values, `a = alpha`: `Q[x, y] = s_y a^|x - y|`, `s_y = (1 - a)/(1 + a)`, at both ends
`1/(1 + a)` (docs/theory.md section 8). The inverse is tridiagonal: row y adds
`w_y (2 f_y - f_(y-1) - f_(y+1))`, at the ends `w_y (f_y - its neighbour)`, to `f_y`, where
`w_y = a/(1 - a)^2`, at the ends `a/(1 - a)`. Written with differences, constants decode to
themselves without rounding. No m x m matrix is ever built.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.entropy import WORD
from ldpstream.mechanisms.mechanism import Floats

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class GeometricAxis:
    """`length` values, m >= 2, and `alpha = threshold / 2^64`; methods work along the last axis."""

    threshold: int
    length: int

    @cached_property
    def alpha(self) -> float:
        """The ratio of neighbouring probabilities."""
        return self.threshold / WORD

    @cached_property
    def weight(self) -> Floats:
        """The inverse's `w_y`, float64 `(m,)`."""
        stop = WORD - self.threshold  # 1 - alpha in floating point would lose its digits
        out = np.full(self.length, self.threshold * WORD / stop**2)
        out[[0, -1]] = self.threshold / stop
        return out

    @cached_property
    def own(self) -> Floats:
        """The inverse's diagonal, float64 `(m,)`."""
        neighbours = np.full(self.length, 2.0)
        neighbours[[0, -1]] = 1.0
        diagonal: Floats = 1.0 + neighbours * self.weight
        return diagonal

    @property
    def peak(self) -> float:
        """The largest entry of the inverse, without its arrays: what a device can afford."""
        stop = WORD - self.threshold
        if self.length == 2:
            return WORD / stop
        return (WORD**2 + self.threshold**2) / stop**2

    @cached_property
    def scale(self) -> Floats:
        """The channel's `s_y`, float64 `(m,)`."""
        out = np.full(self.length, (WORD - self.threshold) / (WORD + self.threshold))
        out[[0, -1]] = WORD / (WORD + self.threshold)
        return out

    def solve(self, weights: Floats) -> Floats:
        """Return `h = Q^-1 w`."""
        decoded: Floats = weights + self.weight * _bend(weights)
        return decoded

    def solve_transposed(self, counts: Floats) -> Floats:
        """Return `(Q^-1)^T N`: the sums over counts of every single value's decoder."""
        return counts + _bend(self.weight * counts)

    def solve_squared_transposed(self, counts: Floats) -> Floats:
        """Return the same with every entry of the inverse squared."""
        beside = self.weight**2 * counts
        out: Floats = self.own**2 * counts
        out[..., :-1] += beside[..., 1:]
        out[..., 1:] += beside[..., :-1]
        return out

    def expect(self, function: Floats) -> Floats:
        """Return `Q f`: both one-sided sums `sum a^d f`, by doubling the reach d; all terms add."""
        scaled = self.scale * function
        before, after = scaled.copy(), scaled.copy()
        reach, power = 1, self.alpha
        while reach < self.length and power > 0.0:
            before[..., reach:] += power * before[..., :-reach]
            after[..., :-reach] += power * after[..., reach:]
            reach, power = 2 * reach, power * power
        both: Floats = before + after - scaled
        return both

    def decoder_extremes(self) -> tuple[Floats, Floats]:
        """Return the least and largest of each value's decoder, a column of the inverse: `(m,)`."""
        beside = np.zeros(self.length)
        beside[1:] = self.weight[:-1]
        beside[:-1] = np.maximum(beside[:-1], self.weight[1:])
        return -beside, self.own

    def own_noise(self) -> Floats:
        """Return `(Q h_i^2)[i] - 1` of each value i, float64 `(m,)`.

        As the variance of `h_i` for a user of i, whose mean is 1: a sum without cancellation.
        """
        a, m = self.alpha, self.length
        places = np.arange(m)
        beyond = a**2 / (1.0 + a) * ((places >= 2).astype(float) + (places <= m - 3))
        near = np.zeros(m)
        near[1:] += (self.scale * (1.0 + self.weight) ** 2)[:-1]
        near[:-1] += (self.scale * (1.0 + self.weight) ** 2)[1:]
        noise: Floats = self.scale * (self.own - 1.0) ** 2 + a * near + beyond
        return noise

    def others(self) -> tuple[Floats, Floats]:
        """Return the least and the largest `(Q h_i^2)[x]` over users of x, not i: `(m,)` each.

        Falls with the distance of x, so the neighbours and the ends of the dimension decide.
        """
        least, largest = np.full(self.length, np.inf), np.zeros(self.length)
        i = np.arange(self.length)
        for x in (i - 1, i + 1, np.zeros_like(i), np.full_like(i, self.length - 1)):
            at = np.flatnonzero((x >= 0) & (x < self.length) & (x != i))
            moment = self._moment(i[at], x[at])
            least[at] = np.minimum(least[at], moment)
            largest[at] = np.maximum(largest[at], moment)
        return least, largest

    def _moment(self, i: Integers, x: Integers) -> Floats:
        """Return `(Q h_i^2)[x]`, from the three outputs where `h_i` is not 0."""
        out: Floats = self.own[i] ** 2 * self._channel(x, i)
        for y in (i - 1, i + 1):
            inside = (y >= 0) & (y < self.length)
            at = np.clip(y, 0, self.length - 1)
            out += np.where(inside, self.weight[at] ** 2 * self._channel(x, at), 0.0)
        return out

    def _channel(self, x: Integers, y: Integers) -> Floats:
        probability: Floats = self.scale[y] * self.alpha ** np.abs(x - y)
        return probability


def _bend(function: Floats) -> Floats:
    """Return how much each entry lies above its neighbours, `2 f_y - f_(y-1) - f_(y+1)`.

    An entry that has no neighbour on a side counts as its own.
    """
    slopes = np.diff(function, axis=-1)
    out = np.zeros_like(function)
    out[..., 1:] += slopes
    out[..., :-1] -= slopes
    return out
