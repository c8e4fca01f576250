"""How often each level is reported: least mean error of a workload.

The least-squares decoder has the variance `sum_l N_l / lambda_l` for the workload's mean squares
N_l and `lambda_l = sum_(j >= l) pi_j p_j`, p_j the precision of level j: convex in pi. Its minimum
is where all `g_j = p_j sum_(l <= j) N_l / lambda_l^2` of levels in use are equal.
"""

from typing import Final

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.exact.entropy import WORD

_STEPS: Final = 200
_UNITS: Final = 1 << 20
"""Probabilities are multiples of one part in this many: coarser than any rounding of floats."""
_RARE: Final = 2.0**-10
_FINEST: Final = 2.0**-6
"""Reports of the finest level at least, which alone say something of every query."""


def level_probabilities(parts: Floats, precisions: Floats) -> list[int]:
    """Return the probability of each level in units of 2^-64, in row-major order; 0: never used.

    `parts` are N and `precisions` p, of shape `(L_1 + 1, ..)`: index 0 in each dimension is the
    root, index L the finest level. Only sums in order, products and roots of floats: the same on
    every machine.
    """
    used = precisions > 0.0
    asked = np.where(used, parts, 0.0)
    if not asked.any():
        asked = used.astype(np.float64)
    precision = precisions / precisions.max()
    shares = used / used.sum()
    for _ in range(_STEPS):
        found = np.maximum(shares * precision, used * np.finfo(np.float64).tiny)
        gains = precision * _below(asked / _above(found) ** 2)
        shares = shares * np.sqrt(gains)
        shares /= np.cumsum(shares)[-1]
    kept = np.where(shares < _RARE, 0.0, shares).ravel()
    kept[-1] = max(kept[-1], _FINEST)
    units = np.floor(kept / np.cumsum(kept)[-1] * _UNITS).astype(np.int64)
    units[-1] += _UNITS - units.sum()
    return [unit * (WORD // _UNITS) for unit in units.tolist()]


def _below(table: Floats) -> Floats:
    """Return the sums over all levels that are nowhere finer."""
    for axis in range(table.ndim):
        table = np.cumsum(table, axis=axis)
    return table


def _above(table: Floats) -> Floats:
    """Return the sums over all levels that are nowhere coarser."""
    return np.flip(_below(np.flip(table)))
