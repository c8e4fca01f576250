"""Designs with the same information in fewer columns, for shorter files and reports.

An interior-point method ends in the middle of all optimal weights, which may use many more columns
than necessary. I has `k (k + 1)/2` different entries, so that by Caratheodory's theorem as many
columns suffice for it, and hence for the equality `sum_y theta_y v_y = I p = 1`. They are a vertex
of the linear program over all weights with the same I.
"""

import numpy as np
from scipy.optimize import linprog

from ldpstream.estimators.design.cone import DesignError
from ldpstream.estimators.design.master import Master, solve
from ldpstream.mechanisms.base.arrays import Floats

_NEGLIGIBLE = 1e-10
_MOST_VALUES = 32
"""Most values, beyond which the linear program takes longer than a shorter table is worth."""


def thin(gram: Floats, master: Master, tolerance: float) -> Master:
    """Return a solution with at most `k (k + 1)/2` columns, or the given one if that fails.

    Its trace is larger by at most `tolerance`, relatively.
    """
    size = len(master.multipliers)
    first, second = np.triu_indices(size)
    if size > _MOST_VALUES or len(master.weights) <= first.size:
        return master
    entries = (master.columns[:, first] * master.columns[:, second]).T
    scale = np.maximum(entries @ master.weights, 1e-300)
    found = linprog(
        master.slacks / master.trace,
        A_eq=entries / scale[:, None],
        b_eq=np.ones(first.size),
        method="highs-ds",
    )
    if found.x is None:
        return master
    kept = found.x > _NEGLIGIBLE
    try:
        fewer = solve(gram, master.columns[kept], found.x[kept], master.multipliers, tolerance)
    except DesignError:
        return master
    return fewer if fewer.trace <= master.trace * (1.0 + tolerance) else master
