"""One dimension of the clamped two-sided geometric channel, and its inverse.

With m values and `a = alpha`, `Q[x, y] = s_y a^|x - y|`, where `s_y = (1 - a)/(1 + a)`, and
`1/(1 + a)` at both ends (docs/theory.md section 8). The inverse is tridiagonal: row y adds
`w_y (2 f_y - f_(y-1) - f_(y+1))` to `f_y` with `w_y = a/(1 - a)^2`, and at the ends
`w_y (f_y - its neighbour)` with `w_y = a/(1 - a)`. Since it is written with differences, constants
decode to themselves without rounding. No m x m matrix is built.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.exact.entropy import WORD

Pair = tuple[float, float]


@dataclass(frozen=True)
class GeometricAxis:
    """A dimension with `length` >= 2 values and `alpha = threshold / 2^64`.

    Methods on functions work along the last axis. Methods on values take places along the
    dimension, int64 of any shape, and return float64 of that shape.
    """

    threshold: int
    length: int

    @cached_property
    def alpha(self) -> float:
        """The ratio of neighbouring probabilities."""
        return self.threshold / WORD

    @property
    def beta(self) -> float:
        """`1 - alpha` without loss of digits."""
        return (WORD - self.threshold) / WORD

    @property
    def _weights(self) -> Pair:
        """The inverse's `w_y`, inside and at both ends."""
        stop = WORD - self.threshold  # 1 - alpha in floating point would lose its digits
        return self.threshold * WORD / stop**2, self.threshold / stop

    @property
    def _own(self) -> Pair:
        """The inverse's diagonal, inside and at both ends."""
        inside, end = self._weights
        return 1.0 + 2.0 * inside, 1.0 + end

    @property
    def _scales(self) -> Pair:
        """The channel's `s_y`, inside and at both ends."""
        both = WORD + self.threshold
        return (WORD - self.threshold) / both, WORD / both

    @property
    def peak(self) -> float:
        """The largest entry of the inverse, computed without arrays for devices."""
        stop = WORD - self.threshold
        if self.length == 2:
            return WORD / stop
        return (WORD**2 + self.threshold**2) / stop**2

    def _at(self, pair: Pair, places: Integers) -> Floats:
        """Return the first of the pair at places inside, the second at both ends."""
        return np.where((places == 0) | (places == self.length - 1), pair[1], pair[0])

    def _times(self, pair: Pair, function: Floats) -> Floats:
        """Return a function times the first of the pair inside, the second at both ends."""
        out: Floats = pair[0] * function
        for end in (0, -1):
            out[..., end] = pair[1] * function[..., end]
        return out

    def solve(self, weights: Floats) -> Floats:
        """Return `h = Q^-1 w`."""
        decoded = self._times(self._weights, _bend(weights))
        decoded += weights
        return decoded

    def solve_transposed(self, counts: Floats) -> Floats:
        """Return `(Q^-1)^T N`: the sums over counts of every single value's decoder."""
        sums = _bend(self._times(self._weights, counts))
        sums += counts
        return sums

    def solve_squared_transposed(self, counts: Floats) -> Floats:
        """Return `solve_transposed` with every entry of the inverse squared."""
        beside = self._times(_squares(self._weights), counts)
        out = self._times(_squares(self._own), counts)
        out[..., :-1] += beside[..., 1:]
        out[..., 1:] += beside[..., :-1]
        return out

    def expect(self, function: Floats) -> Floats:
        """Return `Q f` from both one-sided sums `sum a^d f`, doubling the distance in each step."""
        scaled = self._times(self._scales, function)
        before, after = scaled.copy(), scaled.copy()
        reach, power = 1, self.alpha
        while reach < self.length and power > 0.0:
            before[..., reach:] += power * before[..., :-reach]
            after[..., :-reach] += power * after[..., reach:]
            reach, power = 2 * reach, power * power
        before += after
        before -= scaled
        return before

    def decoder_extremes(self, places: Integers) -> tuple[Floats, Floats]:
        """Return the least and largest decoder of each value, a column of the inverse."""
        beside = [
            np.where(inside, self._at(self._weights, at), 0.0)
            for at, inside in self._beside(places)
        ]
        return -np.maximum(*beside), self._at(self._own, places)

    def own_noise(self, places: Integers) -> Floats:
        """Return `(Q h_i^2)[i] - 1` of each value i.

        Computed as the variance of `h_i` for a user of i, a sum without cancellation.
        """
        a, m = self.alpha, self.length
        beyond = a**2 / (1.0 + a) * ((places >= 2).astype(float) + (places <= m - 3))
        near = np.zeros(places.shape)
        for at, inside in self._beside(places):
            term = self._at(self._scales, at) * (1.0 + self._at(self._weights, at)) ** 2
            near += np.where(inside, term, 0.0)
        own = self._at(self._scales, places) * (self._at(self._own, places) - 1.0) ** 2
        noise: Floats = own + a * near + beyond
        return noise

    def others(self, places: Integers) -> tuple[Floats, Floats]:
        """Return the least and the largest `(Q h_i^2)[x]` over users of x, not i, of each value i.

        It falls with the distance of x from i, so that neighbours and the ends of the dimension
        decide.
        """
        i = places
        least, largest = np.full(i.shape, np.inf), np.zeros(i.shape)
        for x in (i - 1, i + 1, np.zeros_like(i), np.full_like(i, self.length - 1)):
            other = (x >= 0) & (x < self.length) & (x != i)
            moment = self._moment(i, np.clip(x, 0, self.length - 1))
            least = np.where(other, np.minimum(least, moment), least)
            largest = np.where(other, np.maximum(largest, moment), largest)
        return least, largest

    def _beside(self, places: Integers) -> Iterator[tuple[Integers, NDArray[np.bool_]]]:
        """Yield the places before and after, clipped to the dimension, and whether they exist."""
        for y in (places - 1, places + 1):
            yield np.clip(y, 0, self.length - 1), (y >= 0) & (y < self.length)

    def _moment(self, i: Integers, x: Integers) -> Floats:
        """Return `(Q h_i^2)[x]`, from the three outputs where `h_i` is not 0."""
        out: Floats = self._at(self._own, i) ** 2 * self._channel(x, i)
        for at, inside in self._beside(i):
            out += np.where(inside, self._at(self._weights, at) ** 2 * self._channel(x, at), 0.0)
        return out

    def _channel(self, x: Integers, y: Integers) -> Floats:
        probability: Floats = self._at(self._scales, y) * self.alpha ** np.abs(x - y)
        return probability


def _squares(pair: Pair) -> Pair:
    return pair[0] * pair[0], pair[1] * pair[1]


def _bend(function: Floats) -> Floats:
    """Return the negative second difference `2 f_y - f_(y-1) - f_(y+1)` of each entry.

    An entry without a neighbour on one side counts as its own neighbour there.
    """
    slopes = np.diff(function, axis=-1)
    out = np.zeros_like(function)
    # Frees the array early if nothing else refers to it.
    del function
    out[..., 1:] += slopes
    out[..., :-1] -= slopes
    return out
