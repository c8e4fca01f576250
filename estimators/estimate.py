"""Unbiased estimates of linear queries, with bounds: docs/theory.md section 0.

Nothing here is clipped to [0, 1]: projections are a separate, named step (`projection`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from ldpstream.estimators.bounds.choose import Ends, Forms, choose_bounds
from ldpstream.estimators.bounds.clustered import stretched, thinned, with_sampling
from ldpstream.estimators.bounds.options import (
    OTHERWISE,
    Estimand,
    Method,
    OptionKeywords,
    Options,
)
from ldpstream.estimators.bounds.pays import pays
from ldpstream.estimators.bounds.variance import variance
from ldpstream.estimators.likelihood.line import Line
from ldpstream.estimators.likelihood.profile import Profile
from ldpstream.estimators.queries.counts import prepare_queries, prepare_sets
from ldpstream.estimators.queries.distinct import Distinct, taken
from ldpstream.estimators.queries.queries import PreparedSets
from ldpstream.estimators.queries.sums import (
    Sums,
    check_counts,
    linear_sums,
    query_sums,
    share_sums,
    value_sums,
)
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_ENDS: Final = ("low", "high", "lowest", "highest")


@dataclass(frozen=True)
class Estimate:
    """Estimates of q shares from n reports.

    `value`, `se`, `low`, `high` and `influence` are float64 of shape `(q,)`; NaN is undefined
    (everything at n = 0; at n = 1 the population's error, and all inexact Bernstein bounds of
    counted symbols).
    `influence` is the most that one forged report moves the value. `confidence` is each query's
    own, or where `simultaneous` that of all of them together. `form` says of each how it was
    bounded, text `(q,)`, empty at n = 0; `lowest` and `highest` are the bounds before they were cut
    to what shares can be.
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
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {name: one for name, one in columns.items() if isinstance(one, np.ndarray)}
        # Some columns are one array.
        parts: Any = {id(one): taken(one, queries) for one in arrays.values()}
        return replace(self, **{name: parts[id(one)] for name, one in arrays.items()})


def estimate_values(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    *,
    values: Integers | None = None,
    decoded: Floats | None = None,
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Estimate the share of every value, q = k, or of some, given by index, int64 `(q,)`.

    The estimates of some values are those that `take` returns of all, bit for bit; where they are
    simultaneous they hold over all values, since whoever lists some may have looked at all.
    `decoded` are the `share_sums` of all values, where the caller has them.

    Raises:
        ValueError: where the statistic does not count n reports, or an option is impossible.
    """
    many = mechanism.size
    if options.get("simultaneous") and options.get("family") is None:
        options["family"] = many
    if values is None:
        decoded = share_sums(mechanism, statistic, n) if decoded is None else decoded
        if (distinct := Distinct.of(mechanism.decoder(), decoded)) is not None:
            given, told = (mechanism, statistic, n), distinct.values
            found = estimate_values(*given, values=told, decoded=decoded, **options)
            return found.take(distinct.places)
    # Of a single column numpy adds the rows in another order.
    asked = np.repeat(values, 2) if values is not None and values.size == 1 else values
    sums = value_sums(mechanism, statistic, n, values=asked, decoded=decoded)
    chosen = Options(**options)
    found = bound(sums, n, chosen)
    if chosen.method in OTHERWISE:
        line, listed = Line.of(mechanism, statistic), np.arange(many) if asked is None else asked
        found = _with_likelihood(found, sums, line, chosen, listed, many)
    return found if asked is values else found.take(slice(1))


def estimate_sets(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    sets: Sequence[Integers],
    *,
    prepared: PreparedSets | None = None,
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Estimate the shares of sets of values, each an int64 array of value indices.

    `prepared` are the `prepare_sets` of these, where the caller has kept them.

    In each group whose total the reports disclose (all values, where they disclose nothing) the
    less noisy of two decoders is used: the sum of the set's values, or the total less the others'.
    So whole blocks are exact among respondents, the whole domain is always 1, and a set's estimate
    is the sum of its values' wherever it holds the smaller part of each group.

    Raises:
        ValueError: where an index is outside the domain, the statistic does not count n reports,
            or an option is impossible.
    """
    check_counts(mechanism, statistic, n)
    queries, of_sets = prepared or prepare_sets(mechanism, sets)
    sums = query_sums(queries, statistic, of_sets, indicators=True)
    chosen = Options(**options)
    found = bound(sums, n, chosen)
    if chosen.method in OTHERWISE:
        line = Line.of(mechanism, statistic)
        found = _with_likelihood(found, sums, line, chosen, sets, len(sets))
    return found


def _with_likelihood(
    found: Estimate,
    sums: Sums,
    line: Line,
    options: Options,
    sets: Sequence[Integers] | Integers,
    many: int,
) -> Estimate:
    """Return estimates of sets with bounds by likelihood where these pay.

    `sets[i]` are the values of the i-th, and `many` is the length of the list that they are out of.
    """
    chosen = pays(sums, found.n, found.form, options, many=many)
    if not chosen.any():
        return found
    profile = Profile.of(line, options.method, options.confidence)
    low, high, form = found.low.copy(), found.high.copy(), found.form.copy()
    for place in np.flatnonzero(chosen).tolist():
        inside = np.zeros(line.size, dtype=np.bool_)
        inside[sets[place]] = True
        low[place], high[place] = profile.share(inside)
        form[place] = options.method
    lowest = np.where(chosen, low, found.lowest)
    highest = np.where(chosen, high, found.highest)
    return replace(found, low=low, high=high, lowest=lowest, highest=highest, form=form)


def estimate_linear(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    weights: Floats,
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Estimate the means of functions of the value: finite weights, float64 `(q, k)`.

    The decoder of least noise under uniform data is used (see `queries.counts`). Weights are
    decoded as parts of their own range, from 0 to 1: squares of anything else lose the variance, or
    all of it, where weights are large and differ by little (years, times) or are counted in a large
    unit.

    Raises:
        ValueError: where the weights have another shape or are not finite, the statistic does not
            count n reports, or an option is impossible.
    """
    if weights.ndim != 2 or weights.shape[1] != mechanism.size:
        raise ValueError(f"weights: expected shape (q, {mechanism.size}), got {weights.shape}")
    if not np.isfinite(weights).all():
        raise ValueError("weights: expected finite numbers")
    check_counts(mechanism, statistic, n)
    # Halves, because the difference of two large weights need not be a number.
    least = weights.min(axis=1) / 2.0
    span = weights.max(axis=1) / 2.0 - least
    unit = np.where(span > 0.0, span, 1.0)
    # One after the other: all together may be larger than memory.
    parts = ((row / 2.0 - low) / one for row, low, one in zip(weights, least, unit, strict=True))
    found = bound(linear_sums(prepare_queries(mechanism), statistic, parts), n, Options(**options))
    return _moved(found, 2.0 * least, 2.0 * unit)


def _moved(estimate: Estimate, origin: Floats, unit: Floats) -> Estimate:
    """Return the estimate of `origin + unit w` from that of w, arrays `(q,)`."""
    placed = {name: origin + unit * getattr(estimate, name) for name in ("value", *_ENDS)}
    return replace(estimate, se=unit * estimate.se, influence=unit * estimate.influence, **placed)


def bound(sums: Sums, n: int, options: Options) -> Estimate:
    """Turn sums over n reports into estimates with bounds.

    Of many statistics at once too, but with the anytime methods: sums of shape `(..., q)`, each row
    a call of its own. Likelihoods need more than sums: of their methods the others' bounds.
    """
    otherwise = OTHERWISE.get(options.method)
    if otherwise is not None:
        found = bound(sums, n, replace(options, method=otherwise))
        return replace(found, method=options.method)
    if options.sampling.noise > 1.0 and n > 0:
        return _held(sums, n, options)
    if options.estimand == "respondents" or n == 0:
        return _independent(sums, n, options)
    factor = options.sampling.factor(options.estimand)
    as_if = replace(options, estimand="population" if factor else "respondents")
    plain = _independent(sums, n, as_if)
    if factor not in (0.0, 1.0):
        plain = _resampled(sums, n, plain, factor, as_if)
    return replace(plain, estimand=options.estimand)


def _held(sums: Sums, n: int, options: Options) -> Estimate:
    """Return the estimate of n reports as if they were as many fewer as share their noise.

    What is proved of independent tosses is not of these: `exact` bounds are Bernstein's, of
    devices' means.
    """
    devices = max(1, int(n / options.sampling.noise))
    method = "bernstein" if options.method == "exact" else options.method
    alone = replace(options, method=method, sampling=options.sampling.of_one())
    few = bound(thinned(sums, n / devices), devices, alone)
    return replace(few, influence=sums.spread / n, n=n, method=options.method)


def _resampled(sums: Sums, n: int, plain: Estimate, factor: float, options: Options) -> Estimate:
    """Return the population's estimate with the sampling part of its variance multiplied.

    Asymptotic bounds are stretched. Those that hold at every n become Bernstein's of as many fewer
    reports, since reports of one device are no longer tossed independently; where a part of an
    error is less they stay as they are.
    """
    squared = plain.se**2
    se = np.sqrt(with_sampling(sums, n, squared, factor))
    if options.method in {"normal", "padded"}:
        distances = plain.value - plain.lowest, plain.highest - plain.value
        below, above = stretched(sums, n, squared, distances, factor)
        lowest, highest = plain.value - below, plain.value + above
        low, high = lowest, highest
        if options.method == "padded":
            low, high = (np.clip(end, sums.bottom, sums.top) for end in (lowest, highest))
        return replace(plain, se=se, low=low, high=high, lowest=lowest, highest=highest)
    if factor > 1.0:
        devices = max(1, int(n / factor))
        if options.method == "exact":
            options = replace(options, method="bernstein")
        few = _independent(thinned(sums, n / devices), devices, options)
        ends: dict[str, Any] = {name: getattr(few, name) for name in (*_ENDS, "form")}
        return replace(plain, se=se, **ends)
    return replace(plain, se=se)


def _independent(sums: Sums, n: int, options: Options) -> Estimate:
    """Return the estimates where each report is another device's."""
    if n == 0:
        undefined = np.full(sums.total.size, np.nan)
        value = se = influence = undefined
        unbounded = np.full(undefined.shape, "", dtype=np.object_)
        ends = Ends(undefined, undefined, undefined, undefined, unbounded)
    else:
        value, influence = sums.total / n, sums.spread / n
        se = np.sqrt(variance(sums, n, options.estimand))
        ends = choose_bounds(sums, n, se, options)
    return Estimate(
        **{name: getattr(ends, name) for name in (*_ENDS, "form")},
        value=value,
        se=se,
        influence=influence,
        n=n,
        confidence=options.confidence,
        method=options.method,
        estimand=options.estimand,
        simultaneous=options.simultaneous,
    )
