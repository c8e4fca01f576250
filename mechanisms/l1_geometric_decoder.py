"""Linear queries of `l1-geometric`: one dimension after the other, never a k x k matrix."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from ldpstream.mechanisms.decoder import CountDecoder, Floats, Statistic
from ldpstream.mechanisms.geometric_axis import GeometricAxis

Pair = tuple[Floats, Floats]
"""The least and the largest of something."""

_ENDS = (np.minimum, np.maximum)


class L1GeometricDecoder(CountDecoder):
    """The inverse of a product of channels is the product of their tridiagonal inverses.

    `axes` are the dimensions of two values or more: others add nothing.
    """

    def __init__(self, axes: Sequence[GeometricAxis]) -> None:
        self._axes = tuple(axes)
        self._shape = tuple(axis.length for axis in axes)

    def shares(self, statistic: Statistic) -> Floats:
        """Return `(Q^-1)^T N`."""
        return self._each(statistic, GeometricAxis.solve_transposed)

    def second_moments(self, statistic: Statistic) -> Floats:
        """Return the same with the inverse's entries squared: these are products too."""
        return self._each(statistic, GeometricAxis.solve_squared_transposed)

    def extremes(self) -> tuple[Floats, Floats]:
        """Return the extremes of products of one decoder a dimension."""
        low = high = np.ones(())
        for axis in self._axes:
            pairs = product((low, high), axis.decoder_extremes())
            ends = np.stack([np.multiply.outer(*pair) for pair in pairs])
            low, high = ends.min(axis=0), ends.max(axis=0)
        return low.ravel(), high.ravel()

    def decode(self, weights: Floats) -> Floats:
        """Return `h = Q^-1 w`."""
        return self._each(weights, GeometricAxis.solve)

    def expect(self, function: Floats) -> Floats:
        """Return `Q f`."""
        return self._each(function, GeometricAxis.expect)

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the least and the largest noise of one user in each single value's estimate.

        The second moment is a product over the dimensions. A user of another value differs in one
        dimension at least: the extremes over which one it is, the others being free.
        """
        own, others, free = np.zeros(()), None, (np.ones(()), np.ones(()))
        for axis in self._axes:
            noise, ends = axis.own_noise(), axis.others()
            # (1 + u)(1 + v) - 1 without losing small noise.
            own = np.add.outer(own, noise) + np.multiply.outer(own, noise)
            either = [extreme(1.0 + noise, end) for extreme, end in zip(_ENDS, ends, strict=True)]
            here = _outer(free, ends)
            others = here if others is None else _extremes(_outer(others, either), here)
            free = _outer(free, either)
        assert others is not None
        least, largest = _extremes((own, own), others)
        return least.ravel(), largest.ravel()

    def _each(
        self, vector: Floats | Statistic, operation: Callable[[GeometricAxis, Floats], Floats]
    ) -> Floats:
        """Apply an operation along every dimension in turn."""
        table = np.asarray(vector, dtype=np.float64).reshape(self._shape)
        for place, axis in enumerate(self._axes):
            turned = operation(axis, np.moveaxis(table, place, -1))
            table = np.moveaxis(turned, -1, place)
        return np.array(table).reshape(-1)


def _outer(first: Sequence[Floats], second: Sequence[Floats]) -> Pair:
    least, largest = (np.multiply.outer(a, b) for a, b in zip(first, second, strict=True))
    return least, largest


def _extremes(first: Pair, second: Pair) -> Pair:
    return np.minimum(first[0], second[0]), np.maximum(first[1], second[1])
