"""Ranges on lines, grids and boxes as sets of values."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def range_values(shape: Sequence[int], bounds: Sequence[Sequence[int]]) -> Integers:
    """Return the indices of the values inside a range, int64, ascending.

    `bounds` holds one pair `(first, last)` for each dimension, both ends included, 0-based; values
    are numbered row by row, the last dimension fastest.

    >>> range_values((3, 4), [(0, 1), (2, 3)]).tolist()
    [2, 3, 6, 7]

    Raises:
        ValueError: where the pairs do not fit the shape, or are out of order or outside of it.
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
