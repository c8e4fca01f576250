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

    Where the statistic only estimates the sum of squares, the variance is at least the noise that
    is known, and a report lies no further out than its user's weight and a deviation.
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
    """Return the respondents' bounds, whose error is the noise of their reports alone.

    The noise V is the plug-in `sum h^2 - [estimate of sum w^2]`, kept within what the disclosed
    groups can produce. It is estimated from the same reports: it errs with them, by at most B for
    each unit, B the most that a report departs from its user's weight. As in Wilson's interval it
    is therefore taken where it is largest within the bounds: `d^2 = z^2 (V + B d)`, in sums. Where
    no report shows noise that is `d = z^2 B`, 3.84 reports at 95% (the rule of three has 3.69).

    Where V is known, as that of all users is alike, no such error is allowed for, but the noise's
    skewness, at most B, which moves a quantile by `(z^2 - 1) B/6` (Cornish and Fisher), and half of
    the step that it comes in, at most B too: `d = z sqrt(V) + (z^2 + 2) B/6`, V being the most that
    the users can have. It is used where it is narrower than the least that the other can be: that
    depends on the numbers of reports alone, never on what they say.
    """
    unit = z**2 * sums.deviation / 2.0
    noise = np.clip(sums.squares - sums.offset, sums.floor, sums.ceiling)
    estimated = unit + np.sqrt(unit**2 + z**2 * noise)
    least = unit + np.sqrt(unit**2 + z**2 * sums.floor)
    known = z * np.sqrt(sums.ceiling) + (z**2 + 2.0) / 6.0 * sums.deviation
    half = np.where(known <= least, known, estimated) / n
    value = sums.total / n
    return value - half, value + half
