"""Quantiles of one ordered dimension, with bounds (docs/theory.md section 6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import scipy

from ldpstream.estimators.bounds.options import ANYTIME, OptionKeywords, Options
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic


@dataclass(frozen=True)
class Quantiles:
    """Quantiles as positions on the ordered dimension, 0-based.

    `p`, `value`, `low` and `high` are float64 of shape `(q,)`. The last three hold integers, or NaN
    if undefined: all at n = 0, and bounds if those of the prefixes are undefined.
    """

    p: Floats
    value: Floats
    low: Floats
    high: Floats


def estimate_quantiles(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    probabilities: Sequence[float],
    *,
    prefixes: Prefixes | None = None,
    **options: Unpack[OptionKeywords],
) -> Quantiles:
    """Estimate the smallest positions whose prefixes hold at least the given shares.

    `prefixes` selects the dimension (and saves its preparation); by default it is the domain's
    order. With `simultaneous=True` the bounds of all prefixes hold together, and hence those of any
    number of quantiles, also post-selected ones; they do not depend on which quantiles are
    requested. Without it, the bounds of each quantile hold by themselves. Anytime bounds on the
    respondents' quantiles always use simultaneous ones: the quantile moves as more devices report,
    so that any prefix may come to decide it.

    Raises:
        ValueError: if a probability is not in (0, 1), the statistic does not count n reports, or an
            option is invalid.
    """
    prepared = Prefixes.of(mechanism) if prefixes is None else prefixes
    chosen = Options(**options)
    if chosen.method == ANYTIME and chosen.estimand == "respondents":
        options["simultaneous"] = True
    return invert(prepared.estimate(statistic, n, **options), probabilities)


def positions(shares: Floats, probabilities: Sequence[float]) -> Floats:
    """Return the smallest positions up to which shares, `(k,)`, sum to the probabilities, `(q,)`.

    They are integers as floats, or NaN if a share is NaN.
    """
    p = check_probabilities(probabilities)
    if np.isnan(shares).any():
        return np.full(p.size, np.nan)
    places = np.searchsorted(np.cumsum(shares), p)
    return np.minimum(places, shares.size - 1).astype(np.float64)


def invert(prefixes: Estimate, probabilities: Sequence[float]) -> Quantiles:
    """Invert the cumulative distribution and its bounds (Woodruff 1952).

    The value is the smallest x with `sigma(x) >= p`, after making sigma monotone. Its interval goes
    from `min{x : high(x) >= p}` to `1 + max{x : low(x) < p}`. With pointwise bounds each quantile
    has the prefixes' confidence, because only two prefixes can be wrong about it. [ML] Algorithm 2
    bisects the raw estimates; these are not monotone, and a first crossing covers too little.
    """
    p = check_probabilities(probabilities)
    undefined = np.full(p.size, np.nan)
    if prefixes.n == 0:
        return Quantiles(p, undefined, undefined, undefined)
    value = np.searchsorted(monotone(prefixes), p).astype(np.float64)
    if np.isnan(prefixes.high).any():
        return Quantiles(p, value, undefined, undefined)
    low, high = crossings(prefixes.low, prefixes.high, p)
    # Bounds that were cut to the range of shares may exclude the estimate.
    value = np.clip(value, low, high)
    return Quantiles(p, value, low.astype(np.float64), high.astype(np.float64))


def crossings(low: Floats, high: Floats, p: Floats) -> tuple[Integers, Integers]:
    """Return `min{x : high(x) >= p}` and `1 + max{x : low(x) < p}`, int64 `(..., q)`.

    `low` and `high` bound m prefixes, float64 `(..., m)`, p is float64 `(q,)`.
    """
    # Count the positions whose running extremes are below p.
    most = np.maximum.accumulate(high, axis=-1)
    least = np.minimum.accumulate(low[..., ::-1], axis=-1)[..., ::-1]
    # The last prefix is the whole domain, whatever the bounds of its estimate say.
    last = high.shape[-1] - 1
    first, end = ((ends[..., None] < p).sum(axis=-2) for ends in (most, least))
    return np.minimum(first, last), np.minimum(end, last)


def monotone(prefixes: Estimate) -> Floats:
    """Return the nearest cumulative distribution by isotonic regression, float64 `(m,)`.

    Weights are the inverse variances. Prefixes without error stay, and the last entry is 1. The
    largest error does not grow: an entry is at most the mean of some estimates up to its place, and
    at least that of some from its place on, where the true distribution is no larger and no less.
    """
    variance = prefixes.se**2
    fixed = variance == 0.0
    fixed[-1] = True
    out = np.where(fixed, prefixes.value, np.nan)
    out[-1] = 1.0
    weights = np.where(np.isfinite(variance) & ~fixed, variance, 1.0) ** -1.0
    start, lowest = 0, 0.0
    for end in np.flatnonzero(fixed):
        if end > start:
            group = slice(start, end)
            fitted = scipy.optimize.isotonic_regression(
                prefixes.value[group], weights=weights[group]
            ).x
            # Clipping the unbounded solution solves the bounded problem.
            out[group] = np.clip(fitted, lowest, out[end])
        start, lowest = int(end) + 1, float(out[end])
    return out


def monotone_shares(prefixes: Estimate) -> Floats:
    """Return the shares between the steps of the monotone cumulative curve, float64 `(m,)`."""
    return np.diff(monotone(prefixes), prepend=0.0)


def check_probabilities(probabilities: Sequence[float]) -> Floats:
    """Return the probabilities of quantiles, float64 `(q,)`.

    Raises:
        ValueError: naming the first that is not in (0, 1): there is no 0-quantile, and the
            1-quantile, the largest value that anybody has, is indistinguishable from noise.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    for outside in p[~((p > 0.0) & (p < 1.0))]:
        raise ValueError(f"quantile: expected a number above 0 and below 1, got {outside:g}")
    return p
