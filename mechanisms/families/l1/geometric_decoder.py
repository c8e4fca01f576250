"""Linear queries of `l1-geometric`, along one dimension after the other, without a k x k matrix."""

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.families.l1.geometric_axis import GeometricAxis
from ldpstream.mechanisms.interface.decoder import CountDecoder, Decoded, SingleValues, Statistic

Pair = tuple[Floats, Floats]
"""Least and largest values."""
Places = Sequence[Integers]
"""The places of values along each dimension: arrays that broadcast to one shape."""

_ENDS = (np.minimum, np.maximum)


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

    def second_moments(self, statistic: Statistic) -> Floats:
        """Return `totals` with the entries of the inverse squared, which are products too."""
        return self._each(statistic, GeometricAxis.solve_squared_transposed)

    def extremes(self) -> tuple[Floats, Floats]:
        """Return the extremes of products with one decoder for each dimension."""
        least, largest = self._extremes(self._every())
        return least.ravel(), largest.ravel()

    def _extremes(self, places: Places) -> Pair:
        low = high = np.ones(())
        for axis, place in zip(self._axes, places, strict=True):
            pairs = product((low, high), axis.decoder_extremes(place))
            ends = [first * second for first, second in pairs]
            low, high = reduce(np.minimum, ends), reduce(np.maximum, ends)
        return low, high

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        if isinstance(at, slice):
            return super().single_values(decoded, at)
        places = np.unravel_index(at, self._shape)
        moments = self.second_moments(decoded.statistic)[at]
        return SingleValues(moments, *self._extremes(places), *self._noise_extremes(places))

    def _every(self) -> Places:
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

    def _noise_extremes(self, places: Places) -> Pair:
        own, others, free = np.zeros(()), None, (np.ones(()), np.ones(()))
        for axis, place in zip(self._axes, places, strict=True):
            noise, ends = axis.own_noise(place), axis.others(place)
            # (1 + u)(1 + v) - 1 without losing small noise.
            own = own + noise + own * noise
            either = [extreme(1.0 + noise, end) for extreme, end in zip(_ENDS, ends, strict=True)]
            here = _multiply(free, ends)
            others = here if others is None else _extremes(_multiply(others, either), here)
            free = _multiply(free, either)
        assert others is not None
        return _extremes((own, own), others)

    def _each(
        self, vector: Floats | Statistic, operation: Callable[[GeometricAxis, Floats], Floats]
    ) -> Floats:
        """Apply an operation along every dimension in turn."""
        table = np.asarray(vector, dtype=np.float64).reshape(self._shape)
        for place, axis in enumerate(self._axes):
            turned = operation(axis, np.moveaxis(table, place, -1))
            table = np.moveaxis(turned, -1, place)
        return np.ascontiguousarray(table).reshape(-1)


def _multiply(first: Sequence[Floats], second: Sequence[Floats]) -> Pair:
    least, largest = (a * b for a, b in zip(first, second, strict=True))
    return least, largest


def _extremes(first: Pair, second: Pair) -> Pair:
    return np.minimum(first[0], second[0]), np.maximum(first[1], second[1])
