"""Design priors: the shares for which predictions are made. They do not change mechanisms."""

from collections.abc import Sequence
from functools import reduce

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats

ZIPF_EXPONENT = 1.1
"""As in [ML] Figure 1."""


def uniform_shares(size: int) -> Floats:
    """Return equal shares of `size` values, float64 `(size,)`."""
    return np.full(size, 1.0 / size)


def zipf_shares(shape: Sequence[int]) -> Floats:
    """Return `p(x) ~ prod_d (x_d + 1)^-1.1` over a domain's values in row-major order.

    In every dimension, the first values are the most frequent ones.
    """
    axes = [np.arange(1, extent + 1, dtype=np.float64) ** -ZIPF_EXPONENT for extent in shape]
    table = reduce(np.multiply.outer, [axis / axis.sum() for axis in axes])
    return np.array(table).reshape(-1)


def counted_shares(counts: Floats) -> Floats:
    """Return counts, float64 `(k,)`, as shares.

    Raises:
        ValueError: if one is negative or not finite, or none is above 0.
    """
    bad = np.flatnonzero(~(np.isfinite(counts) & (counts >= 0.0)))
    if bad.size:
        raise ValueError(f"count {bad[0] + 1}: expected a finite number >= 0")
    largest = float(counts.max(initial=0.0))
    if largest == 0.0:
        raise ValueError("counts: expected at least one above 0")
    relative = counts / largest  # sums of huge counts would overflow
    return relative / float(relative.sum())
