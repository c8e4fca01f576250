"""Shares of all values pulled towards a power law, with disclosed totals kept."""

from typing import Final, Unpack

import numpy as np

from ldpstream.estimators.bounds.options import OptionKeywords
from ldpstream.estimators.bounds.power import shrink_to_power_law
from ldpstream.estimators.bounds.projection import project_blocks
from ldpstream.estimators.estimate import estimate_values
from ldpstream.estimators.queries.groups import known_totals
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic

_PART: Final = 1 << 15


def project_power(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    shares: Floats,
    **options: Unpack[OptionKeywords],
) -> Floats:
    """Return shares of all values, float64 `(k,)`, >= 0, that keep each disclosed total.

    `shares` are the estimates. `options` (`estimand`, `sampling`) determine their standard errors,
    which are computed in parts, since bounds of all values take much memory.
    """
    if not n:
        return np.full_like(shares, np.nan)
    asked: OptionKeywords = {**options, "method": "normal", "simultaneous": False}
    decoded, errors = shares * n, np.empty_like(shares)
    for start in range(0, shares.size, _PART):
        values = np.arange(start, min(start + _PART, shares.size))
        found = estimate_values(mechanism, statistic, n, values=values, decoded=decoded, **asked)
        errors[values] = found.se
    means = shrink_to_power_law(shares, errors)
    return project_blocks(means, *known_totals(mechanism, statistic, n))
