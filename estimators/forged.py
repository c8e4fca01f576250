"""How many forged reports it would take to move an estimate beyond its bounds."""

import numpy as np

from ldpstream.estimators.bounds.bounded import Estimate
from ldpstream.mechanisms.base.arrays import Floats


def forged_reports(estimate: Estimate) -> Floats:
    """Return of each estimate the least number of forged reports, of the n, that can move it.

    To move it is to change its value by more than the distance to its nearer bound, before bounds
    are cut to what shares can be. Of n reports m
    forged ones change `sum h(y_i) / n` by at most `m (max h - min h) / n`, m times the influence,
    whether they replace honest ones or are added to the other n - m; and by exactly that where the
    honest ones would have had the other extreme. So fewer never suffice, whatever the data are, and
    this many can.

    float64 of shape `(q,)`, whole numbers from 1 to n; NaN where the value or a bound is undefined,
    and where all n reports would not do.
    """
    distance = np.minimum(estimate.value - estimate.lowest, estimate.highest - estimate.value)
    with np.errstate(divide="ignore", invalid="ignore"):
        number = np.floor(np.maximum(distance, 0.0) / estimate.influence) + 1.0
    possible = np.isfinite(number) & (number <= estimate.n)
    return np.where(possible, number, np.nan)
