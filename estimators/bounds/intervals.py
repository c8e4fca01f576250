"""Variances of estimates, and confidence intervals that follow from them.

Variances are computed from the same statistic as estimates (docs/theory.md section 0). Intervals
are half-widths, or bounds that hold even if few reports, or none, carry the variance: then
pseudo-reports stand for those that could have been missed. Arguments and results are float64 `(q,)`
for q queries; z is the normal quantile of the allowed error.
"""

import math
from typing import Final

import numpy as np

from ldpstream.estimators.bounds.options import Estimand
from ldpstream.estimators.bounds.two_valued import Pair, quantile
from ldpstream.estimators.bounds.types import Sums
from ldpstream.mechanisms.base.arrays import Floats

_ROUNDING: Final = 1e-14
"""Relative to the mean square; a single different report among up to 10^14 has more variance."""


def sample_variance(sums: Sums, n: int) -> Floats:
    """Return the sample variance of the decoded reports, float64 `(q,)`; NaN for n < 2."""
    if n < 2:
        return np.full_like(sums.total, np.nan)
    centred = (sums.squares - sums.total * (sums.total / n)) / (n - 1)
    return np.maximum(centred, 0.0)


def plug_in(sums: Sums, n: int, estimand: Estimand) -> Floats:
    """Return the unbiased plug-in variance, before any clamp; n >= 1.

    Population: `(mean(h^2) - w_hat^2)/(n - 1)`. Respondents: `(mean(h^2) - [estimate of w^2])/n`.
    """
    if estimand == "population":
        return sample_variance(sums, n) / n
    return (sums.squares - sums.offset) / n**2


def clamped_variance(sums: Sums, n: int, estimand: Estimand) -> Floats:
    """Return the plug-in variance, kept within what the channel can produce; NaN if undefined.

    If groups are disclosed, their shares are known, and the respondents' variance is clamped to
    `[sum_g P_g min_x v_x, sum_g P_g max_x v_x]/n`, which loses nothing: an empty block is exactly
    0. Otherwise `_stand_in` replaces a plug-in at or below the channel's least noise.

    The population's variance also has a sampling part: with groups it is kept above the noise
    alone. If the reports show no variance at all (a block that nobody reported), the influence of
    one report replaces the standard error, because such a block's share is small but not known to
    be 0. For the same reason no share's error is below one respondent of n: at large epsilon a
    value that nobody reported has hardly any noise.
    """
    raw = plug_in(sums, n, estimand)
    floor, ceiling = sums.floor / n**2, sums.ceiling / n**2
    if not sums.disclosed:
        kept = np.where(raw <= floor, _stand_in(sums, n), raw)
    elif estimand == "respondents":
        kept = np.clip(raw, floor, ceiling)
    else:
        kept = np.maximum(raw, floor)
    if estimand == "respondents":
        return kept
    rounding = _ROUNDING * np.maximum(sums.squares, 0.0) / n**2
    one = np.minimum(sums.spread, 1.0) if sums.indicators else 0.0
    least = np.where(kept <= rounding, sums.spread, one)
    return np.maximum(kept, (least / n) ** 2)


def _stand_in(sums: Sums, n: int) -> Floats:
    """Return the variance to use if the plug-in is at or below the channel's least noise: `(q,)`.

    It is the worst noise, `max_x v_x/n`, if such a plug-in says little: if the least noise is 0, or
    n is so small that an estimate of 0 agrees with much more. With a slope b of the variance in the
    share, the largest variance within two standard errors solves `V = floor + 2 b sqrt(V)`. Up to
    2.5 times the floor, the floor itself is used, as in blocks.

    In theory the worst noise is right in both cases. But it may belong to users of a single value
    while almost all users hold others: under `randomized-response` on one block of 40 values
    (eps = 0.5, 5,000 reports) 95% bounds covered 0.98 with the worst noise and 0.96 with the least.
    """
    floor, ceiling = sums.floor / n**2, sums.ceiling / n**2
    slope = sums.slope / n
    most = (slope + np.hypot(slope, np.sqrt(floor))) ** 2
    return np.where(most <= 2.5 * floor, floor, ceiling)


def padded_bounds(sums: Sums, n: int, z: float) -> Pair:
    """Return the population's bounds with `z^2/2` pseudo-reports at each end of the decoder.

    This is Agresti and Coull's interval for any decoder: `n' = n + z^2`, with the mean and the
    variance of all reports and pseudo-reports. If the far end carries no mass, the pseudo-reports
    move the centre by up to `z/sqrt(2)` standard errors and the interval covers 0.92. Each end is
    therefore the outer one of this interval and of z times the plug-in error. Of 95% bounds none
    then covers significantly less than 0.94 (docs/performance.md).

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


def noise_bounds(sums: Sums, n: int, z: float) -> Pair:
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


def normal_half_width(standard_error: Floats, level: float) -> Floats:
    """Return z times the standard error: asymptotic, two-sided, error `level` in (0, 1)."""
    return standard_error * quantile(level)


def joint_normal_half_width(variance: Floats, slope: Floats, n: int, level: float) -> Floats:
    """Return the normal half-width d for the variance at its ends: `d = z sqrt(V + slope d/n)`.

    The largest of many estimates have the most understated variances. Pointwise this averages out,
    but not for post-selected estimates (at eps = 3 all of the top 20 of 1,000 were covered in 0 to
    98% of the repetitions, depending on the blocks). As in Wilson's interval, the variance is
    therefore the largest within the bounds; the difference from `z sqrt(V)` is of order 1/n.

    Among respondents, the plug-in of a single value is exactly `V = sigma^2 +- slope e/n` for an
    error e if `h^2` is affine in h: in a Hadamard block (slope 1), for a plain report (c - 1), for
    two values. So `|e| <= z sigma` implies `e^2 <= z^2 (V + slope |e|/n)`, which is `|e| <= d`: the
    interval fails only if one with the true sigma would. For other queries, and for the population,
    whose sampling moves `mean(h^2)` too, this is not a proof; their coverage is measured
    (`benchmarks.accuracy.coverage`).
    """
    z = quantile(level)
    half = z**2 * slope / (2.0 * n)
    return half + np.hypot(half, z * np.sqrt(variance))


def skewness_half_width(spread: Floats, n: int, level: float) -> Floats:
    """Return what skewed noise adds far out in the tails: `R z^2/(6 n)`, of order 1/n.

    The first term of Cornish and Fisher's expansion moves a quantile by
    `skewness sigma (z^2 - 1) / 6`, and the skewness of a mean of n reports is at most
    `R/(n sigma)`. Pointwise this hardly matters (z = 2, on one side), but for lists of values it
    does. Under randomized response on 40 blocks of 25 values, where few reports move an estimate a
    lot, the top 20 of 1,000 were covered in 24% of repetitions without it (200 reports, eps = 0.5).
    """
    z = quantile(level)
    return spread * z**2 / (6.0 * n)


def bernstein_worst_half_width(variance: Floats, spread: Floats, n: int, level: float) -> Floats:
    """Return Bernstein's half-width for a bound on the variance of one decoded report; n >= 1.

    `sqrt(2 V L/n) + R L/(3 n)`, `L = log(2/level)`: Boucheron, Lugosi, Massart 2013, Corollary
    2.11, on both sides, where no decoded report is further than R from its mean. Valid for any
    independent reports whose average variance is at most V, and hence for both estimands.
    """
    scale = math.log(2.0 / level)
    width: Floats = np.sqrt(2.0 * variance * scale / n) + spread * scale / (3.0 * n)
    return width


def bernstein_half_width(sample_variance: Floats, spread: Floats, n: int, level: float) -> Floats:
    """Return the empirical Bernstein half-width, valid at every n >= 2; NaN below.

    `sqrt(2 V L/n) + 7 R L/(3 (n - 1))`, `L = log(4/level)`: Maurer and Pontil 2009, Theorem 4, on
    both sides (hence 4 in place of their 2). V is the sample variance of the decoded reports, with
    the denominator `n - 1`, and R is the length of the interval in which they lie. It also holds
    for independent reports that are not identically distributed, and hence for both estimands:
    Bernstein's inequality needs only the mean of their variances, their Theorem 10 bounds `E[V]`
    for any independent reports, and `E[V]` is at least that mean.
    """
    if n < 2:
        return np.full_like(sample_variance, np.nan)
    scale = math.log(4.0 / level)
    return np.sqrt(2.0 * sample_variance * scale / n) + 7.0 * spread * scale / (3.0 * (n - 1))


def hoeffding_half_width(spread: Floats, n: int, level: float) -> Floats:
    """Return Hoeffding's half-width, `R sqrt(log(2/level)/(2 n))`; n >= 1.

    Hoeffding 1963, Theorem 2, on both sides: for n independent decoded reports, each in an interval
    of length at most R, and hence for both estimands. It needs no variance and no reports.
    """
    width: Floats = spread * math.sqrt(math.log(2.0 / level) / (2.0 * n))
    return width
