"""Methods that have one form for every query: Bernstein's bounds, normal ones, and anytime bounds.

A new method is a case of `named_bounds` and its half-width, here or in a file like `anytime`.
Arguments and results are float64 `(q,)` for q queries; `level`, in (0, 1), is the allowed error.
"""

import math
from typing import assert_never

import numpy as np

from ldpstream.estimators.bounds.anytime import anytime_distances, sampling_ceiling
from ldpstream.estimators.bounds.options import Options
from ldpstream.estimators.bounds.two_valued import quantile
from ldpstream.estimators.bounds.types import Pair, Sums
from ldpstream.mechanisms.base.arrays import Floats


def named_bounds(sums: Sums, n: int, se: Floats, level: float, options: Options) -> Pair:
    """Return the bounds of the methods that have a single form."""
    value = sums.total / n
    match options.method:
        case "anytime":
            below, above = anytime_distances(sums, n, level, options)
        case "bernstein":
            below = above = _bernstein(sums, n, level, options)
        case "normal":
            below = above = _normal(sums, n, se, level, options)
        case "padded" | "exact":
            raise ValueError(f"{options.method} has a form for each query")
        case other:
            assert_never(other)
    return value - below, value + above


def _bernstein(sums: Sums, n: int, level: float, options: Options) -> Floats:
    if sums.reach is None:
        return bernstein_half_width(sums.sample_variance(n), sums.spread, n, level)
    # The empirical bound needs the decoded reports' variance itself, not an estimate of it.
    worst, off = sums.noise.ceiling, sums.noise.deviation
    if options.estimand == "population":
        worst, level = sampling_ceiling(sums, n, level)
        # Under the population the weight is random too, and with disclosed groups the group.
        off = sums.spread if sums.disclosed else np.maximum(off, sums.reach)
    return bernstein_worst_half_width(worst / n, off, n, level)


def bernstein_in_range(sums: Sums, n: int, level: float, options: Options) -> Pair:
    """Return Bernstein's bounds, or the range of the weights where reports have no variance."""
    value = sums.total / n
    half = np.broadcast_to(_bernstein(sums, n, level, options), value.shape)
    # A single report has no variance; the range of the weights still holds.
    unknown = np.isnan(half)
    low, high = np.where(unknown, sums.limits.bottom, value - half), value + half
    return low, np.where(unknown, sums.limits.top, high)


def _normal(sums: Sums, n: int, se: Floats, level: float, options: Options) -> Floats:
    if not (options.simultaneous and sums.indicators):
        return normal_half_width(se, level)
    skewed = skewness_half_width(sums.spread, n, level)
    # An error in w moves the noise by the slope, and also w^2 or w, which plug-ins subtract.
    slope = np.maximum(sums.noise.slope, 1.0)
    if options.estimand == "population":
        slope = np.maximum(slope, 2.0 * np.abs(sums.total) / n)
        return joint_normal_half_width(se**2, slope, n, level) + skewed
    most = normal_half_width(np.sqrt(sums.noise.ceiling) / n, level)
    return np.minimum(joint_normal_half_width(se**2, slope, n, level), most) + skewed


def normal_half_width(standard_error: Floats, level: float) -> Floats:
    """Return z times the standard error: asymptotic, two-sided, error `level` in (0, 1)."""
    return standard_error * quantile(level)


def joint_normal_half_width(variance: Floats, slope: Floats, n: int, level: float) -> Floats:
    """Return the normal half-width d for the variance at its ends: `d = z sqrt(V + slope d/n)`.

    The largest of many estimates have the most understated variances. Pointwise this averages out,
    but not for post-selected estimates. As in Wilson's interval, the variance is therefore the
    largest within the bounds; the difference from `z sqrt(V)` is of order 1/n.

    Among respondents, the plug-in of a single value is exactly `V = sigma^2 +- slope e/n` for an
    error e if `h^2` is affine in h: in a Hadamard block (slope 1), for a plain report (c - 1), for
    two values. So `|e| <= z sigma` implies `e^2 <= z^2 (V + slope |e|/n)`, which is `|e| <= d`: the
    interval fails only if one with the true sigma would. For other queries, and for the population,
    whose sampling moves `mean(h^2)` too, this is not a proof; their coverage is measured
    (`benchmarks.accuracy.coverage_grid`).
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
