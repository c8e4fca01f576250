"""Ranges on lines, grids and boxes as sets of values, and indicators of sets."""

from collections.abc import Sequence

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Integers


def range_values(shape: Sequence[int], bounds: Sequence[Sequence[int]]) -> Integers:
    """Return the indices of the values inside a range, int64, ascending.

    `bounds` holds one pair `(first, last)` for each dimension, both ends included, 0-based. Values
    are in row-major order.

    >>> range_values((3, 4), [(0, 1), (2, 3)]).tolist()
    [2, 3, 6, 7]

    Raises:
        ValueError: if the pairs do not fit the shape, or are out of order or range.
    """
    if len(bounds) != len(shape):
        raise ValueError(f"range: expected {len(shape)} pairs, got {len(bounds)}")
    out = np.zeros(1, dtype=np.int64)
    for size, pair in zip(shape, bounds, strict=True):
        if len(pair) != 2:
            raise ValueError(f"range: expected pairs, got {len(pair)} numbers")
        first, last = pair
        if not 0 <= first <= last < size:
            raise ValueError(
                f"range: expected 0 <= first <= last <= {size - 1}, got [{first}, {last}]"
            )
        out = (out[:, None] * size + np.arange(first, last + 1)).ravel()
    return out


def indicator(size: int, members: Integers) -> Floats:
    """Return the indicator of a set of values, float64 of shape `(size,)`.

    Raises:
        ValueError: if an index is outside `0..size-1`.
    """
    if members.size and (members.min() < 0 or members.max() >= size):
        raise ValueError(f"set: expected values in 0..{size - 1}")
    out = np.zeros(size)
    out[members] = 1.0
    return out
