"""Probabilities of the levels that give a workload the least mean error.

For the workload's mean squares N_l, the least-squares decoder has the variance
`sum_l N_l / lambda_l` with `lambda_l = sum_(j >= l) pi_j p_j`, where p_j is the precision of level
j. This is convex in pi, and minimal where `g_j = p_j sum_(l <= j) N_l / lambda_l^2` is equal for
all levels in use.
"""

from typing import Final

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.exact.entropy import WORD

_STEPS: Final = 200
_UNITS: Final = 1 << 20
"""Probabilities are multiples of `1 / _UNITS`, which is coarser than the rounding of floats."""
_RARE: Final = 2.0**-10
_FINEST: Final = 2.0**-6
"""Least probability of the finest level, the only one that contributes to every query."""


def level_probabilities(parts: Floats, precisions: Floats) -> list[int]:
    """Return the probability of each level in units of 2^-64, in row-major order; 0 if unused.

    `parts` are N and `precisions` are p, of shape `(L_1 + 1, ..)`: in each dimension, index 0 is
    the root and index L the finest level. Uses only ordered sums, products and roots of floats, so
    that the result is the same on every machine.
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
