"""From sums over reports to estimates with bounds: value, standard error, bounds by the method.

The rule that chooses the bounds of a query, by method, estimand and kind of report:

| method | query | bounds |
|---|---|---|
| any | no noise and no sampling error | `known`: low = high = the estimate |
| `padded` | two-valued, one group, population | `wilson`; `clopper-pearson` for few, and in lists |
| | two-valued, respondents | `score`; `enumerated` where the noise is below 3 reports |
| | a value of a disclosed block, population | `block`; `product` for few, and in lists |
| | any other, population | `padded` |
| | any other, respondents | `noise` |
| `exact` | two-valued, as above | `clopper-pearson`, `enumerated`, `product`: proved at every n |
| | any other | `bernstein`: proved at every n |
| | sets, weights, values of 4,096: counted symbols | `e-value`: the same, narrower (`e_values`) |
| others | any other | the method's own, by its name |

With fewer than 5 reports `padded` and `noise` become `range`: from the least weight to the largest,
which is known without reports. `two_valued` has the forms of two-valued queries, and `methods` the
methods with one form for every query. z is the normal quantile of the allowed error.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from ldpstream.estimators.bounds.methods import bernstein_in_range, named_bounds
from ldpstream.estimators.bounds.options import UNCUT, Estimand, Options
from ldpstream.estimators.bounds.sampled import grown, of_devices, resampled_error, shrunk
from ldpstream.estimators.bounds.two_valued import Rule, quantile, tossed_rules
from ldpstream.estimators.bounds.types import Estimate, Forms, Pair, Sums, repeat_form
from ldpstream.mechanisms.base.arrays import Bools, Floats

_ROUNDING: Final = 1e-14
"""Relative to the mean square; a single different report among up to 10^14 has more variance."""
_FEWEST: Final = 5
"""With fewer reports, many-valued queries have no bounds but their range."""


def bound(sums: Sums, n: int, options: Options) -> Estimate:
    """Return estimates with bounds from sums over n reports.

    The order of the steps is decided here and nowhere else: bounds form by form, the change of the
    sampling error, the cut to what shares can be. `lowest` and `highest` are the ends before the
    cut. Except with the anytime methods, sums may have the shape `(..., q)` for many statistics at
    once.
    """
    reports, requested = n, options
    if n == 0:
        value = se = influence = low = high = lowest = highest = np.full(sums.total.size, np.nan)
        form = repeat_form("", value.shape)
    else:
        # 1. Count devices in place of reports that share their noise.
        if options.sampling.noise > 1.0:
            sums, n, options = of_devices(sums, n, options, options.sampling.noise)
        # 2. Without a sampling error every estimand is that of the respondents.
        factor = options.sampling.factor(options.estimand)
        options = replace(options, estimand="population" if factor else "respondents")
        # 3. The estimates, and the bounds of n reports of different devices.
        value, influence = sums.total / n, sums.spread / reports
        se = np.sqrt(clamped_variance(sums, n, options.estimand))
        # Only these two methods correct bounds by the error.
        corrected = options.method in ("padded", "normal")
        thinned = factor > 1.0 and not corrected
        arguments = of_devices(sums, n, options, factor) if thinned else (sums, n, options)
        lowest, highest, form = choose_bounds(*arguments, se)
        # 4. Correct the sampling error if devices report several times, or are a known part.
        if factor not in (0.0, 1.0):
            noise = clamped_variance(sums, n, "respondents")
            plain, se = se, resampled_error(se, noise, factor)
            ends, errors = (lowest, highest), (plain, se)
            if corrected and factor < 1.0:
                alone = replace(options, estimand="respondents")
                chosen = choose_bounds(sums, n, alone, np.sqrt(noise))
                step = 1.0 / n if sums.indicators else 0.0
                lowest, highest = shrunk(value, ends, form, errors, chosen, factor, step)
            elif corrected:
                lowest, highest = grown(sums, n, ends, errors, factor)
        # 5. Cut.
        low, high = cut_bounds(sums, n, (lowest, highest), options)
    return Estimate(
        value=value,
        se=se,
        low=low,
        high=high,
        influence=influence,
        lowest=lowest,
        highest=highest,
        form=form,
        n=reports,
        method=requested.method,
    )


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
    floor, ceiling = sums.noise.floor / n**2, sums.noise.ceiling / n**2
    if not sums.disclosed:
        clamped = np.where(raw <= floor, _stand_in(sums, n), raw)
    elif estimand == "respondents":
        clamped = np.clip(raw, floor, ceiling)
    else:
        clamped = np.maximum(raw, floor)
    if estimand == "respondents":
        return clamped
    rounding = _ROUNDING * np.maximum(sums.squares, 0.0) / n**2
    largest = np.minimum(sums.spread, 1.0) if sums.indicators else 0.0
    least = np.where(clamped <= rounding, sums.spread, largest)
    return np.maximum(clamped, (least / n) ** 2)


def plug_in(sums: Sums, n: int, estimand: Estimand) -> Floats:
    """Return the unbiased plug-in variance, before any clamp; n >= 1.

    Population: `(mean(h^2) - w_hat^2)/(n - 1)`. Respondents: `(mean(h^2) - [estimate of w^2])/n`.
    """
    if estimand == "population":
        return sums.sample_variance(n) / n
    return (sums.squares - sums.offset) / n**2


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
    floor, ceiling = sums.noise.floor / n**2, sums.noise.ceiling / n**2
    slope = sums.noise.slope / n
    most = (slope + np.hypot(slope, np.sqrt(floor))) ** 2
    return np.where(most <= 2.5 * floor, floor, ceiling)


def choose_bounds(sums: Sums, n: int, options: Options, se: Floats) -> tuple[Floats, Floats, Forms]:
    """Return the ends and forms of queries over n >= 1 reports, by the rule above, not cut."""
    level, value = options.error_level(se.shape[-1]), sums.total / n
    if options.method in ("padded", "exact"):
        rules, two = tossed_rules(sums, n, level, options)
        low, high, form = _fill(_many_valued_rule(sums, n, level, options, ~two), *rules)
    else:
        low, high = named_bounds(sums, n, se, level, options)
        form = repeat_form(options.method, value.shape)
    # Among respondents, a query whose worst noise is 0 is known exactly and needs no bound: a block
    # of one value, a whole block, a block that nobody reported.
    error = sums.spread if options.estimand == "population" else sums.noise.ceiling
    known = error <= 0.0
    if known.any():
        low, high = (np.where(known, value, end) for end in (low, high))
        form = np.where(known, "known", form)
    return low, high, form


def cut_bounds(sums: Sums, n: int, ends: Pair, options: Options) -> Pair:
    """Return bounds cut to what shares can be; those of `UNCUT` stay as they are.

    The population's weights lie between the least and the largest of the query. Of respondents it
    is also known what each disclosed group adds.
    """
    if options.method == UNCUT:
        return ends
    if options.estimand == "population":
        bottom, top = sums.limits.bottom, sums.limits.top
    else:
        bottom, top = sums.limits.fewest / n, sums.limits.most / n
    # What is known exactly is not moved by the rounding of its range.
    known = ends[0] == ends[1]
    low, high = (np.clip(end, bottom, top) for end in ends)
    if known.any():
        low, high = np.where(known, ends, (low, high))
    # Bounds that are not cut share one array.
    return (
        ends[0] if (low == ends[0]).all() else low,
        ends[1] if (high == ends[1]).all() else high,
    )


def _many_valued_rule(sums: Sums, n: int, level: float, options: Options, places: Bools) -> Rule:
    """Return the form of queries that are no tosses, under `padded` or `exact`."""
    if options.method == "exact":
        return Rule(places, "bernstein", lambda _: bernstein_in_range(sums, n, level, options))
    if n < _FEWEST:
        return Rule(places, "range", lambda _: (sums.limits.bottom, sums.limits.top))
    if options.estimand == "population":
        return Rule(places, "padded", lambda _: padded_bounds(sums, n, quantile(level)))
    return Rule(places, "noise", lambda _: noise_bounds(sums, n, quantile(level)))


def _fill(*rules: Rule) -> tuple[Floats, Floats, Forms]:
    """Return the ends and forms of all queries, from rules whose places are disjoint."""
    shape = rules[0].places.shape
    for places, form, ends in rules:
        if places.all():
            every = (
                np.reshape(end, shape) if end.size == places.size else end for end in ends(places)
            )
            low, high = (np.full(shape, end) for end in every)
            return low, high, repeat_form(form, shape)
    low, high = np.full(shape, np.nan), np.full(shape, np.nan)
    forms = repeat_form("", shape)
    for places, form, ends in rules:
        if not places.any():
            continue
        for out, end in zip((low, high), ends(places), strict=True):
            column = np.asarray(end)
            if column.shape != shape and column.shape != (np.count_nonzero(places),):
                column = np.broadcast_to(column, shape)
            out[places] = column[places] if column.shape == shape else column
        forms[places] = form
    return low, high, forms


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
    unit = z**2 * sums.noise.deviation / 2.0
    noise = np.clip(sums.squares - sums.offset, sums.noise.floor, sums.noise.ceiling)
    estimated = unit + np.sqrt(unit**2 + z**2 * noise)
    least = unit + np.sqrt(unit**2 + z**2 * sums.noise.floor)
    known = z * np.sqrt(sums.noise.ceiling) + (z**2 + 2.0) / 6.0 * sums.noise.deviation
    half = np.where(known <= least, known, estimated) / n
    value = sums.total / n
    return value - half, value + half


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
    least, largest, known = sums.limits.least, sums.limits.largest, np.zeros(())
    if sums.reach is not None:
        least = np.maximum(least, sums.limits.bottom - sums.noise.deviation)
        largest = np.minimum(largest, sums.limits.top + sums.noise.deviation)
        known = sums.noise.floor
    total, many = n + z**2, z**2 / 2.0
    centre = (sums.total + many * (least + largest)) / total
    spread = (sums.squares + many * (least**2 + largest**2)) / total - centre**2
    half = z * np.sqrt(np.maximum(spread, known / total) / total)
    value = sums.total / n
    plain = z * np.sqrt(np.maximum(sums.squares / n - value**2, known / n) / n)
    return np.minimum(centre - half, value - plain), np.maximum(centre + half, value + plain)


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
