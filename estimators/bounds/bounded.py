"""Estimates with bounds from sums over reports, for every estimand and sampling of devices."""

from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np

from ldpstream.estimators.bounds.choose import Ends, Forms, choose_bounds
from ldpstream.estimators.bounds.intervals import clamped_variance
from ldpstream.estimators.bounds.options import FALLBACK, ONE_REPORT_EACH, Estimand, Method, Options
from ldpstream.estimators.bounds.types import Sums, taken
from ldpstream.mechanisms.base.arrays import Floats, Integers, arrays_of

_PER_REPORT: Final = (
    *("total", "squares", "offset", "floor", "ceiling", "noisy", "moment"),
    *("fewest", "most", "tossed"),
)
"""The sums that grow with the number of reports."""


@dataclass(frozen=True)
class Estimate:
    """Estimates of q shares from n reports.

    `value`, `se`, `low`, `high` and `influence` are float64 of shape `(q,)`. NaN means undefined:
    everything at n = 0; at n = 1 the population's standard error, and `bernstein` bounds of counted
    symbols that are not known exactly. `influence` is the most that one forged report moves the
    value. `confidence` holds for each query, or for all together if `simultaneous`. `form`
    names the kind of bound of each query, text `(q,)`, empty at n = 0. `lowest` and `highest` are
    the bounds before they are cut to the range of shares.
    """

    value: Floats
    se: Floats
    low: Floats
    high: Floats
    influence: Floats
    lowest: Floats
    highest: Floats
    form: Forms
    n: int
    confidence: float
    method: Method
    estimand: Estimand
    simultaneous: bool

    def take(self, queries: Integers | slice) -> Self:
        """Return the estimates of some queries, in that order."""
        arrays = arrays_of(self)
        # Some columns share one array; take from it once.
        parts: Any = {id(one): taken(one, queries) for one in arrays.values()}
        return replace(self, **{name: parts[id(one)] for name, one in arrays.items()})


def bound(sums: Sums, n: int, options: Options) -> Estimate:
    """Return estimates with bounds from sums over n reports.

    Except with the anytime methods, sums may have the shape `(..., q)` for many statistics at once.
    Likelihoods need more than sums: here their methods return the bounds of `FALLBACK`.
    """
    if options.method in FALLBACK:
        found = bound(sums, n, replace(options, method=FALLBACK[options.method]))
        return replace(found, method=options.method)
    if options.sampling.noise > 1.0 and n > 0:
        return _held(sums, n, options)
    if options.estimand == "active" or options.sampling.population != 1.0:
        return _sampled(sums, n, options)
    # Each report is another device's.
    if n == 0:
        undefined = np.full(sums.total.size, np.nan)
        value = se = influence = undefined
        unbounded = np.full(undefined.shape, "", dtype=np.object_)
        ends = Ends(undefined, undefined, undefined, undefined, unbounded)
    else:
        value, influence = sums.total / n, (sums.largest - sums.least) / n
        se = np.sqrt(clamped_variance(sums, n, options.estimand))
        ends = choose_bounds(sums, n, se, options)
    return Estimate(
        value=value,
        se=se,
        low=ends.low,
        high=ends.high,
        influence=influence,
        lowest=ends.lowest,
        highest=ends.highest,
        form=ends.form,
        n=n,
        confidence=options.confidence,
        method=options.method,
        estimand=options.estimand,
        simultaneous=options.simultaneous,
    )


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


def _held(sums: Sums, n: int, options: Options) -> Estimate:
    """Return the estimate for reports that share their noise, by counting devices.

    Bounds that are proved for independent tosses do not apply: `exact` uses Bernstein's bounds on
    the means of devices.
    """
    devices = max(1, int(n / options.sampling.noise))
    method = "bernstein" if options.method == "exact" else options.method
    alone = replace(options, method=method, sampling=options.sampling.of_one())
    few = bound(_thinned(sums, n / devices), devices, alone)
    return replace(few, influence=sums.spread / n, n=n, method=options.method)


def _sampled(sums: Sums, n: int, options: Options) -> Estimate:
    """Return the estimate for those from whom respondents were drawn, by `options.sampling`."""
    factor = options.sampling.factor(options.estimand) if n > 0 else 0.0
    drawn_from: Estimand = "population" if factor else "respondents"
    alone = replace(options, estimand=drawn_from, sampling=ONE_REPORT_EACH)
    plain = bound(sums, n, alone)
    if factor not in (0.0, 1.0):
        plain = _resampled(sums, n, plain, factor, alone)
    return replace(plain, estimand=options.estimand)


def _resampled(sums: Sums, n: int, plain: Estimate, factor: float, options: Options) -> Estimate:
    """Return the population's estimate with the sampling part of its variance times a factor.

    Asymptotic bounds are stretched. Bounds that hold at every n become Bernstein's with n / factor
    reports, since reports of one device are not independent; with a factor below 1 they stay as
    they are.
    """
    squared = plain.se**2
    se = np.sqrt(_with_sampling(sums, n, squared, factor))
    if options.method in {"normal", "padded"}:
        distances = plain.value - plain.lowest, plain.highest - plain.value
        below, above = _stretched(sums, n, squared, distances, factor)
        lowest, highest = plain.value - below, plain.value + above
        low, high = lowest, highest
        if options.method == "padded":
            low, high = (np.clip(end, sums.bottom, sums.top) for end in (lowest, highest))
        return replace(plain, se=se, low=low, high=high, lowest=lowest, highest=highest)
    if factor > 1.0:
        devices = max(1, int(n / factor))
        if options.method == "exact":
            options = replace(options, method="bernstein")
        few = bound(_thinned(sums, n / devices), devices, options)
        ends = ("low", "high", "lowest", "highest", "form")
        return replace(plain, se=se, **{name: getattr(few, name) for name in ends})
    return replace(plain, se=se)


def _with_sampling(sums: Sums, n: int, plain: Floats, factor: float) -> Floats:
    """Return the population's variance `(q,)` with its sampling part times a factor; n >= 1."""
    if factor == 1.0:
        return plain
    sampled = np.maximum(plain - clamped_variance(sums, n, "respondents"), 0.0)
    return np.maximum(plain + (factor - 1.0) * sampled, 0.0)


def _stretched(
    sums: Sums, n: int, plain: Floats, distances: tuple[Floats, Floats], factor: float
) -> tuple[Floats, Floats]:
    """Return distances of population bounds, scaled to the variance of `_with_sampling`.

    With more than one report for each device, the sampling part for indicators is that of the share
    within the bounds that is closest to 1/2, since a rare value may have hardly any report.
    """
    changed = _with_sampling(sums, n, plain, factor)
    if factor > 1.0 and sums.indicators:
        value = sums.total / n
        near = np.clip(0.5, value - distances[0], value + distances[1])
        near = np.clip(near, 0.0, 1.0)
        changed = np.maximum(changed, plain + (factor - 1.0) * near * (1.0 - near) / n)
    # Few reports may show no variance; their bounds then grow as if all of it were sampling.
    unknown = np.full_like(plain, max(factor, 1.0))
    ratio = np.sqrt(np.divide(changed, plain, out=unknown, where=plain > 0.0))
    below, above = (np.maximum(distance, 0.0) * ratio for distance in distances)
    return below, above


def _thinned(sums: Sums, factor: float) -> Sums:
    """Return the sums of 1/factor of the reports, with the same means.

    Bounds that hold for every number n of independent reports also hold for n/m devices with m
    reports each: their means are independent, lie in the same interval, and vary no more than one
    report.
    """
    return replace(sums, **{name: getattr(sums, name) / factor for name in _PER_REPORT})
