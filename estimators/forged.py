"""How many forged reports it would take to move an estimate beyond its bounds."""

import numpy as np

from ldpstream.estimators.bounds.bounded import Estimate
from ldpstream.mechanisms.base.arrays import Floats


def forged_reports(estimate: Estimate) -> Floats:
    """Return, for each estimate, the least number of forged reports among the n that can move it.

    Moving an estimate means changing it by more than the distance to its nearer bound, before
    bounds are cut to the range of shares. Among n reports, m forged ones change `sum h(y_i) / n` by
    at most `m (max h - min h) / n`, which is m times the influence, whether they replace honest
    reports or come in addition to n - m of them. They attain this if the honest reports would have
    had the other extreme. Fewer therefore never suffice, and this many can.

    float64 of shape `(q,)`, integers from 1 to n; NaN if the value or a bound is undefined, or if
    all n reports would not suffice.
    """
    distance = np.minimum(estimate.value - estimate.lowest, estimate.highest - estimate.value)
    with np.errstate(divide="ignore", invalid="ignore"):
        number = np.floor(np.maximum(distance, 0.0) / estimate.influence) + 1.0
    possible = np.isfinite(number) & (number <= estimate.n)
    return np.where(possible, number, np.nan)
