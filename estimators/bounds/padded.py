"""Bounds of any linear query that hold where few reports, or none, carry the variance.

Reports that have not been seen have no plug-in variance. So pseudo-reports stand for them, as many
as could have been missed. z is the normal quantile of the error allowed.
"""

import numpy as np

from ldpstream.estimators.bounds.two_valued import Pair
from ldpstream.estimators.queries.sums import Sums


def padded(sums: Sums, n: int, z: float) -> Pair:
    """Return the population's bounds with `z^2/2` pseudo-reports at each end of the decoder.

    Agresti and Coull's interval for any decoder: `n' = n + z^2`, mean and variance those of all
    reports. Where the far end carries no mass the pseudo-reports move the centre by as much as
    `z/sqrt(2)` standard errors and cover 0.92; so each end is the outer one of this interval and of
    z times the plug-in error. 95% bounds cover 0.94 and more (docs/performance.md).

    Where the statistic only estimates the sum of squares, a negative variance counts as 0.
    """
    least, largest = sums.least, sums.largest
    total, many = n + z**2, z**2 / 2.0
    centre = (sums.total + many * (least + largest)) / total
    spread = (sums.squares + many * (least**2 + largest**2)) / total - centre**2
    half = z * np.sqrt(np.maximum(spread, 0.0) / total)
    value = sums.total / n
    plain = z * np.sqrt(np.maximum(sums.squares / n - value**2, 0.0) / n)
    return np.minimum(centre - half, value - plain), np.maximum(centre + half, value + plain)


def noisy(sums: Sums, n: int, z: float) -> Pair:
    """Return the respondents' bounds, whose error is the noise of their reports alone.

    The noise V is the plug-in `sum h^2 - [estimate of sum w^2]`, kept within what the disclosed
    groups can produce. It is estimated from the same reports: it errs with them, by at most B for
    each unit, B the most that a report departs from its user's weight. As in Wilson's interval it
    is therefore taken where it is largest within the bounds: `d^2 = z^2 (V + B d)`, in sums. Where
    no report shows noise that is `d = z^2 B`, 3.84 reports at 95% (the rule of three has 3.69).
    """
    noise = np.clip(sums.squares - sums.offset, sums.floor, sums.ceiling)
    unit = z**2 * sums.deviation / 2.0
    half = (unit + np.sqrt(unit**2 + z**2 * noise)) / n
    value = sums.total / n
    return value - half, value + half
