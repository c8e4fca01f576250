"""The change of the population between two spans, with bounds of the difference.

For example, 21% of yesterday's reports and 25% of today's say "bus": did the share rise? Both are
estimates `a` and `b` of the population's shares, so `b - a` errs by sampling even where reports are
exact. A function of the options stands for each span (`Bounds`), since some rules need its bounds
at several levels. Two facts decide which rule holds (docs/theory.md, section 14).

**How the errors of both spans depend on each other** (`Devices`).

- `different`: no device reports in both spans. The errors are independent.
- `fresh`: devices may report in both, with fresh noise. The noise is independent, and sampling
  errors are not: a device that leaves a value in one span may be the one that enters it in the
  other. Their covariance is at least `-s_a s_b`, so the variance of the difference is at most
  `v_a + v_b + (s_a + s_b)^2`, with the noise `v` and the sampling error `s`. In terms of the
  standard errors it is `e_a^2 + e_b^2 + 2 r e_a e_b`, with `r = (s_a/e_a)(s_b/e_b)`.
- `held`: devices may send reports of one permanent draw in both. Nothing is known of how their
  noise depends on each other: r = 1.

**Whether the bounds of the method are proved at every n.**

- *Measured* (`padded`, `normal`): the distances of the ends from the estimates are
  combined as errors are, `d^2 = d_a^2 + d_b^2 + 2 r d_a d_b`, on each side with the end that counts
  there. That is Newcombe's hybrid interval (1998, method 10; Zou and Donner 2008), exact where both
  estimates are normal, and equal to `z e` under `normal`. An end that is only the limit of what can
  be is no error: there the change goes as far as both spans' ends allow.
- *Proved* (`exact`, `bernstein`, `anytime`): see
  `independent_levels`, and where errors may depend on each other, half of the level for each span:
  the change then lies between `low_b - high_a` and `high_b - low_a` by the union bound.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias, Unpack

import numpy as np
import scipy

from ldpstream.estimators.bounds.options import UNCUT, Method, OptionKeywords, Options
from ldpstream.estimators.bounds.two_valued import quantile
from ldpstream.estimators.bounds.types import Estimate, Pair
from ldpstream.estimators.quantiles.quantiles import Quantiles
from ldpstream.mechanisms.base.arrays import Floats

Devices = Literal["different", "fresh", "held"]
"""Whether devices may report in both spans, and how."""
Bounds: TypeAlias = Callable[[OptionKeywords], Estimate]
"""The estimates of one span, with bounds by these options."""
QuantileBounds: TypeAlias = Callable[[OptionKeywords], Quantiles]

Ends: TypeAlias = tuple[Floats, Floats, Floats]
"""An estimate inside its bounds, and both of these, `(q,)`."""

MEASURED: Final[frozenset[Method]] = frozenset({"padded", "normal"})
"""The methods whose bounds are not proved at every n."""
_STEPS: Final = 6
"""Levels of each span; with more, proved bounds of a change are hardly narrower."""


@dataclass(frozen=True)
class Change:
    """The changes of q shares, float64 `(q,)` each; NaN means undefined.

    `value` is `after - before`; `se` is the largest standard error that agrees with how devices
    report. `low` and `high` hold at the confidence asked for.
    """

    before: Floats
    after: Floats
    value: Floats
    se: Floats
    low: Floats
    high: Floats


def estimate_change(
    before: Bounds,
    after: Bounds,
    *,
    devices: Devices,
    reach: Floats | float = 1.0,
    **options: Unpack[OptionKeywords],
) -> Change:
    """Estimate what changed in the population from one span to another, of the same q queries.

    Spans must not share reports. `reach` is the difference of the largest and the least weight,
    `(q,)`, 1 for shares: no change is larger, and bounds are cut to that (not those of `normal`).

    Raises:
        ValueError: for an estimand other than the population, and for invalid options.
    """
    chosen = Options(**options)
    if chosen.estimand != "population":
        raise ValueError("estimand: expected population, of which a change is told")
    first, then = before(options), after(options)
    correlation = _correlation(before, after, (first, then), devices, options)
    level = chosen.error_level(first.value.shape[-1])
    if chosen.method in MEASURED:
        z, furthest = quantile(level), 2.0 * reach
        outer = _outer(first, z, furthest), _outer(then, z, furthest)
        low, high = combine(outer[0], outer[1], correlation)
        if outer[0][1] is not first.lowest or outer[1][1] is not then.lowest:
            hull = then.lowest - first.highest, then.highest - first.lowest
            low, high = np.clip(low, *hull), np.clip(high, *hull)
    else:

        def ends(bounds: Bounds, allowed: float) -> Pair:
            estimate = bounds(options | {"confidence": 1.0 - allowed, "simultaneous": False})
            return estimate.low, estimate.high

        low, high = _proved(
            lambda allowed: ends(before, allowed),
            lambda allowed: ends(after, allowed),
            level,
            devices,
        )
    if chosen.method != UNCUT:
        low, high = np.clip(low, -reach, reach), np.clip(high, -reach, reach)
    errors = first.se**2 + then.se**2 + 2.0 * correlation * first.se * then.se
    return Change(first.value, then.value, then.value - first.value, np.sqrt(errors), low, high)


def quantile_change(
    before: QuantileBounds,
    after: QuantileBounds,
    *,
    devices: Devices,
    last: int,
    correlation: float = 1.0,
    **options: Unpack[OptionKeywords],
) -> Change:
    """Estimate by how many positions quantiles moved; `se` is undefined.

    The same rules as for shares. Positions are whole numbers, so that bounds are rounded outward.
    They are `0..last`: a bound at either end does not say how far the estimate errs.
    `correlation` is the largest r of the prefixes from which quantiles follow.
    """
    chosen = Options(**options)
    first, then = before(options), after(options)
    if chosen.method in MEASURED:
        outer: list[Ends] = [
            (
                each.value,
                np.where(each.low <= 0.0, -2.0 * last, each.low),
                np.where(each.high >= last, 3.0 * last, each.high),
            )
            for each in (first, then)
        ]
        low, high = combine(outer[0], outer[1], correlation)
        hull = then.low - first.high, then.high - first.low
        low, high = np.clip(low, *hull), np.clip(high, *hull)
    else:

        def ends(bounds: QuantileBounds, allowed: float) -> Pair:
            quantiles = bounds(options | {"confidence": 1.0 - allowed})
            return quantiles.low, quantiles.high

        low, high = _proved(
            lambda allowed: ends(before, allowed),
            lambda allowed: ends(after, allowed),
            1.0 - chosen.confidence,
            devices,
        )
    moved = then.value - first.value
    # Distances of whole numbers that are combined to a whole number must not be rounded up.
    low, high = np.floor(low + 1e-9), np.ceil(high - 1e-9)
    return Change(first.value, then.value, moved, np.full(moved.shape, np.nan), low, high)


def _outer(estimate: Estimate, z: float, furthest: Floats | float) -> Ends:
    """Return an estimate and bounds whose distances are those of errors, not of what can be.

    Two forms end where shares can be, however far estimates err: those of few reports, and of
    values inside of blocks. Squared and added, such distances would exclude large changes.
    """
    # A form of all of many queries is a view of one, as long as that.
    form = estimate.form if any(estimate.form.strides) else estimate.form[:1]
    inside, few = form == "product", form == "range"
    low, high = estimate.lowest, estimate.highest
    if inside.any() or few.any():
        beyond = np.where(inside, z * estimate.se, -np.inf)
        beyond = np.where(few | np.isnan(beyond), furthest, beyond)
        low = np.minimum(estimate.value - beyond, low)
        high = np.maximum(estimate.value + beyond, high)
    return np.clip(estimate.value, low, high), low, high


def combine(before: Ends, after: Ends, correlation: Floats | float) -> Pair:
    """Return the bounds of a difference from those of both estimates: square and add.

    The lower bound counts with the lower end of `after` and the upper end of `before`, and the
    upper bound with the others. `correlation` is the r of the errors of a difference, 0..1.
    """

    def distance(first: Floats, other: Floats) -> Floats:
        return np.sqrt(first**2 + other**2 + 2.0 * correlation * first * other)

    moved = after[0] - before[0]
    below = distance(after[0] - after[1], before[2] - before[0])
    above = distance(after[2] - after[0], before[0] - before[1])
    return moved - below, moved + above


def sampling_part(estimate: Estimate, bounds: Bounds, options: OptionKeywords) -> Floats:
    """Return which part of standard errors is sampling, `s/e`, in 0..1, `(q,)`."""
    alone = bounds(options | {"estimand": "respondents", "method": "normal"}).se
    noise = np.divide(alone, estimate.se, out=np.ones_like(alone), where=estimate.se > 0.0)
    return np.sqrt(np.maximum(1.0 - noise**2, 0.0))


def _correlation(
    before: Bounds,
    after: Bounds,
    estimates: tuple[Estimate, Estimate],
    devices: Devices,
    options: OptionKeywords,
) -> Floats:
    if devices != "fresh":
        return np.full(estimates[0].value.shape, float(devices == "held"))
    sampling = [
        sampling_part(estimate, bounds, options)
        for estimate, bounds in zip(estimates, (before, after), strict=True)
    ]
    return sampling[0] * sampling[1]


def _proved(
    before: Callable[[float], Pair], after: Callable[[float], Pair], level: float, devices: Devices
) -> Pair:
    """Return bounds of a difference from proved ones, which are functions of the allowed error."""
    levels = independent_levels(level) if devices == "different" else (level / 2.0,)
    of_each = []
    for bounds in (before, after):
        # From the narrowest to the widest; bounds that are tuned to a level may not be nested.
        ends = [bounds(allowed) for allowed in reversed(levels)]
        low = np.minimum.accumulate(np.stack([end[0] for end in ends]))
        high = np.maximum.accumulate(np.stack([end[1] for end in ends]))
        of_each.append((low, high))
    (low_a, high_a), (low_b, high_b) = of_each
    # Where one span has the smallest level, the other one has the largest.
    return (low_b - high_a[::-1]).min(axis=0), (high_b - low_a[::-1]).max(axis=0)


@lru_cache(maxsize=256)
def independent_levels(level: float, steps: int = _STEPS) -> tuple[float, ...]:
    """Return levels `l_1 < ... < l_m` at which two independent spans are bounded together.

    **Theorem.** Let `A(l)` and `B(l)` be intervals for a and b from independent reports that miss
    with probability at most l and grow as l falls. Then (a, b) is in one of the rectangles
    `A(l_i) x B(l_(m+1-i))` with probability at least the area of the union of the rectangles
    `(l_i, 1] x (l_(m+1-i), 1]`, and hence `b - a` in the convex hull of their differences.

    Proof: `p(a) = inf {l: a not in A(l)}` has `P(p <= l) <= l`, so that it is stochastically at
    least a uniform number, as is that of b, independently. (a, b) is in rectangle i if both
    exceed its corner. The union of these corners' quadrants is an increasing set, whose
    probability is least for uniform numbers: its area.

    The levels are `c^((i - 1/2)/m)` for i from m to 1, so that both of a rectangle multiply to c,
    with the c whose area is `1 - level`. With m = 1 that is half of the level for each span, by
    Sidak; with many it is Fisher's combination of two p-values. Of two equal normal errors the
    change is then bounded 1.28 times as widely as by the normal distribution at 5%, and 1.18 times
    at 0.25%; with half of the level for each span it would be 1.61 and 1.51 times.
    """

    def corners(logarithm: float) -> Floats:
        return np.exp(logarithm * (np.arange(steps, 0, -1) - 0.5) / steps)

    def excess(logarithm: float) -> float:
        at = corners(logarithm)
        widths = np.diff(at, append=1.0)
        return float(1.0 - (widths * (1.0 - at[::-1])).sum()) - level

    # From the product of two levels of `level^2 / 16` to that of two of 1.
    root = scipy.optimize.brentq(excess, 4.0 * np.log(level / 4.0), -1e-12, xtol=1e-12)
    return tuple(corners(float(root)).tolist())
