"""Bounds on any linear query that hold even if few reports, or none, carry the variance.

Reports that have not been seen have no plug-in variance. Pseudo-reports stand for them, as many as
could have been missed. z is the normal quantile of the allowed error.
"""

import numpy as np

from ldpstream.estimators.bounds.two_valued import Pair
from ldpstream.estimators.queries.sums import Sums


def padded(sums: Sums, n: int, z: float) -> Pair:
    """Return the population's bounds with `z^2/2` pseudo-reports at each end of the decoder.

    This is Agresti and Coull's interval for any decoder: `n' = n + z^2`, with the mean and the
    variance of all reports and pseudo-reports. If the far end carries no mass, the pseudo-reports
    move the centre by up to `z/sqrt(2)` standard errors and the interval covers 0.92. Each end is
    therefore the outer one of this interval and of z times the plug-in error. 95% bounds then cover
    0.94 and more (docs/performance.md).

    If the statistic only estimates the sum of squares, the variance is at least the known noise,
    and a report lies no further out than its user's weight plus a deviation.
    """
    least, largest, known = sums.least, sums.largest, np.zeros(())
    if sums.reach is not None:
        least = np.maximum(least, sums.bottom - sums.deviation)
        largest = np.minimum(largest, sums.top + sums.deviation)
        known = sums.floor
    total, many = n + z**2, z**2 / 2.0
    centre = (sums.total + many * (least + largest)) / total
    spread = (sums.squares + many * (least**2 + largest**2)) / total - centre**2
    half = z * np.sqrt(np.maximum(spread, known / total) / total)
    value = sums.total / n
    plain = z * np.sqrt(np.maximum(sums.squares / n - value**2, known / n) / n)
    return np.minimum(centre - half, value - plain), np.maximum(centre + half, value + plain)


def noisy(sums: Sums, n: int, z: float) -> Pair:
    """Return the respondents' bounds, whose only error is the noise of their reports.

    The noise V is the plug-in `sum h^2 - [estimate of sum w^2]`, kept within what the disclosed
    groups can produce. It is estimated from the same reports and errs with them, by at most B for
    each unit of error, where B is the most that a report departs from its user's weight. As in
    Wilson's interval, the largest value within the bounds is used: `d^2 = z^2 (V + B d)`, in sums.
    If no report shows noise, `d = z^2 B`, which is 3.84 reports at 95% (3.69 by the rule of three).

    If V is known, because it is the same for all users, that error does not arise. What remains is
    the noise's skewness, at most B, which moves a quantile by `(z^2 - 1) B/6` (Cornish and Fisher),
    and half of its step, which is at most B: `d = z sqrt(V) + (z^2 + 2) B/6` with the largest
    possible V. This form is used if it is narrower than the other can ever be, which depends only
    on the numbers of reports and not on their content.
    """
    unit = z**2 * sums.deviation / 2.0
    noise = np.clip(sums.squares - sums.offset, sums.floor, sums.ceiling)
    estimated = unit + np.sqrt(unit**2 + z**2 * noise)
    least = unit + np.sqrt(unit**2 + z**2 * sums.floor)
    known = z * np.sqrt(sums.ceiling) + (z**2 + 2.0) / 6.0 * sums.deviation
    half = np.where(known <= least, known, estimated) / n
    value = sums.total / n
    return value - half, value + half
