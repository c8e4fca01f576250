"""Distances between distributions."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def total_variation(first: Floats, second: Floats) -> float:
    """Return the total-variation distance of two share vectors, half their l1 distance.

    >>> total_variation(np.array([1.0, 0.0]), np.array([0.25, 0.75]))
    0.75
    """
    return float(np.abs(first - second).sum() / 2.0)
