"""Linear queries of `l1-geometric`, along one dimension after the other, without a k x k matrix.

With m values in a dimension and `a = alpha`, `Q[x, y] = s_y a^|x - y|`, where
`s_y = (1 - a)/(1 + a)`, and `1/(1 + a)` at both ends (docs/theory.md section 8). The inverse is
tridiagonal: row y adds `w_y (2 f_y - f_(y-1) - f_(y+1))` to `f_y` with `w_y = a/(1 - a)^2`, and at
the ends `w_y (f_y - its neighbour)` with `w_y = a/(1 - a)`. Since it is written with differences,
constants decode to themselves without rounding.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from math import prod
from typing import Final

import numpy as np

from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.interface.decoder import Decoded, SingleValues, Statistic
from ldpstream.mechanisms.interface.symbols import CountDecoder

_Factors = tuple[float, float]
"""A factor at places inside the dimension, and one at both ends."""
_Pair = tuple[Floats, Floats]
"""Least and largest values."""
_Places = Sequence[Integers]
"""The places of values along each dimension: arrays that broadcast to one shape."""

_ENDS = (np.minimum, np.maximum)
_KEPT: Final = 1 << 12
"""Up to this many values, what is known of each before any report is kept."""


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
    def _weights(self) -> _Factors:
        """The inverse's `w_y`, inside and at both ends."""
        stop = WORD - self.threshold  # 1 - alpha in floating point would lose its digits
        return self.threshold * WORD / stop**2, self.threshold / stop

    @property
    def _own(self) -> _Factors:
        """The inverse's diagonal, inside and at both ends."""
        inside, end = self._weights
        return 1.0 + 2.0 * inside, 1.0 + end

    @property
    def _scales(self) -> _Factors:
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

    def _at(self, pair: _Factors, places: Integers) -> Floats:
        """Return the first of the pair at places inside, the second at both ends."""
        return np.where((places == 0) | (places == self.length - 1), pair[1], pair[0])

    def _times(self, pair: _Factors, function: Floats) -> Floats:
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
        nearby = self._times(_squares(self._weights), counts)
        out = self._times(_squares(self._own), counts)
        out[..., :-1] += nearby[..., 1:]
        out[..., 1:] += nearby[..., :-1]
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
        nearby = [
            np.where(inside, self._at(self._weights, at), 0.0)
            for at, inside in self._neighbours(places)
        ]
        return -np.maximum(*nearby), self._at(self._own, places)

    def own_noise(self, places: Integers) -> Floats:
        """Return `(Q h_i^2)[i] - 1` of each value i.

        Computed as the variance of `h_i` for a user of i, a sum without cancellation.
        """
        a, m = self.alpha, self.length
        beyond = a**2 / (1.0 + a) * ((places >= 2).astype(float) + (places <= m - 3))
        near = np.zeros(places.shape)
        for at, inside in self._neighbours(places):
            term = self._at(self._scales, at) * (1.0 + self._at(self._weights, at)) ** 2
            near += np.where(inside, term, 0.0)
        squared = self._at(self._scales, places) * (self._at(self._own, places) - 1.0) ** 2
        noise: Floats = squared + a * near + beyond
        return noise

    def cross_noise(self, places: Integers) -> tuple[Floats, Floats]:
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

    def _neighbours(self, places: Integers) -> Iterator[tuple[Integers, Bools]]:
        """Yield the places before and after, clipped to the dimension, and whether they exist."""
        for y in (places - 1, places + 1):
            yield np.clip(y, 0, self.length - 1), (y >= 0) & (y < self.length)

    def _moment(self, i: Integers, x: Integers) -> Floats:
        """Return `(Q h_i^2)[x]`, from the three outputs where `h_i` is not 0."""
        out: Floats = self._at(self._own, i) ** 2 * self._channel(x, i)
        for at, inside in self._neighbours(i):
            out += np.where(inside, self._at(self._weights, at) ** 2 * self._channel(x, at), 0.0)
        return out

    def _channel(self, x: Integers, y: Integers) -> Floats:
        probability: Floats = self._at(self._scales, y) * self.alpha ** np.abs(x - y)
        return probability


class L1GeometricDecoder(CountDecoder):
    """The inverse of a product of channels is the product of their tridiagonal inverses.

    `axes` are the dimensions with two values or more; others add nothing.
    """

    def __init__(self, axes: Sequence[GeometricAxis]) -> None:
        self._axes = tuple(axes)
        self._shape = tuple(axis.length for axis in axes)

    def totals(self, statistic: Statistic) -> Floats:
        """Return `(Q^-1)^T N`."""
        return self._each(statistic, GeometricAxis.solve_transposed)

    def moments(self, decoded: Decoded, at: slice | Integers) -> Floats:
        """Return `totals` with the entries of the inverse squared, which are products too."""
        return self._each(decoded.statistic, GeometricAxis.solve_squared_transposed)[at]

    def extremes(self) -> tuple[Floats, Floats]:
        """Return the extremes of products with one decoder for each dimension."""
        least, largest = self._extremes(self._every())
        return least.ravel(), largest.ravel()

    def _extremes(self, places: _Places) -> _Pair:
        low = high = np.ones(())
        for axis, place in zip(self._axes, places, strict=True):
            pairs = product((low, high), axis.decoder_extremes(place))
            ends = [first * second for first, second in pairs]
            low, high = reduce(np.minimum, ends), reduce(np.maximum, ends)
        return low, high

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        if prod(self._shape) <= _KEPT:
            of_every = (column[at] for column in self._of_every)
            return SingleValues(self.moments(decoded, at), *of_every)
        if isinstance(at, slice):
            return super().single_values(decoded, at)
        places = np.unravel_index(at, self._shape)
        ends = *self._extremes(places), *self._noise_extremes(places)
        return SingleValues(self.moments(decoded, at), *ends)

    @cached_property
    def _of_every(self) -> tuple[Floats, ...]:
        return *self.extremes(), *self.noise_extremes()

    def _every(self) -> _Places:
        """Return the places of all values, ready to be broadcast."""
        return np.ix_(*(np.arange(length) for length in self._shape))

    def decode(self, weights: Floats) -> Floats:
        """Return `h = Q^-1 w`."""
        return self._each(weights, GeometricAxis.solve)

    def expect(self, function: Floats) -> Floats:
        return self._each(function, GeometricAxis.expect)

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the least and the largest noise of one user in each single value's estimate.

        The second moment is a product over the dimensions. A user of another value differs in at
        least one dimension: the extremes are over which one, with all others free.
        """
        least, largest = self._noise_extremes(self._every())
        return least.ravel(), largest.ravel()

    def _noise_extremes(self, places: _Places) -> _Pair:
        at_value, second, free = np.zeros(()), None, (np.ones(()), np.ones(()))
        for axis, place in zip(self._axes, places, strict=True):
            noise, ends = axis.own_noise(place), axis.cross_noise(place)
            # (1 + u)(1 + v) - 1 without losing small noise.
            at_value = at_value + noise + at_value * noise
            either = [extreme(1.0 + noise, end) for extreme, end in zip(_ENDS, ends, strict=True)]
            here = _multiply(free, ends)
            second = here if second is None else _union(_multiply(second, either), here)
            free = _multiply(free, either)
        assert second is not None
        return _union((at_value, at_value), second)

    def _each(
        self, vector: Floats | Statistic, operation: Callable[[GeometricAxis, Floats], Floats]
    ) -> Floats:
        """Apply an operation along every dimension in turn."""
        table = np.asarray(vector, dtype=np.float64).reshape(self._shape)
        for place, axis in enumerate(self._axes):
            table = operation(axis, table.swapaxes(place, -1)).swapaxes(place, -1)
        return np.ascontiguousarray(table).reshape(-1)


def _squares(pair: _Factors) -> _Factors:
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


def _multiply(first: Sequence[Floats], second: Sequence[Floats]) -> _Pair:
    least, largest = (a * b for a, b in zip(first, second, strict=True))
    return least, largest


def _union(first: _Pair, second: _Pair) -> _Pair:
    return np.minimum(first[0], second[0]), np.maximum(first[1], second[1])
