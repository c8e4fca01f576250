"""Unbiased estimates of linear queries, with bounds: docs/theory.md section 0.

Nothing here is clipped to [0, 1]: projections are a separate, named step (`projection`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np

from ldpstream.estimators.bounds.bounded import Estimate, bound
from ldpstream.estimators.bounds.options import OTHERWISE, OptionKeywords, Options
from ldpstream.estimators.bounds.pays import pays
from ldpstream.estimators.likelihood.line import Line
from ldpstream.estimators.likelihood.profile import Profile
from ldpstream.estimators.queries.counts import prepare_queries, prepare_sets
from ldpstream.estimators.queries.distinct import Distinct
from ldpstream.estimators.queries.queries import PreparedSets
from ldpstream.estimators.queries.sums import (
    Sums,
    check_counts,
    linear_sums,
    query_sums,
    share_sums,
    value_sums,
)
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic


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
            del decoded
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
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Estimate the shares of sets of values, each an int64 array of value indices.

    In each group whose total the reports disclose (all values, where they disclose nothing) the
    less noisy of two decoders is used: the sum of the set's values, or the total less the others'.
    So whole blocks are exact among respondents, the whole domain is always 1, and a set's estimate
    is the sum of its values' wherever it holds the smaller part of each group.

    Raises:
        ValueError: where an index is outside the domain, the statistic does not count n reports,
            or an option is impossible.
    """
    check_counts(mechanism, statistic, n)
    prepared = prepare_sets(mechanism, sets)
    return estimate_prepared(mechanism, statistic, n, sets, prepared, **options)


def estimate_prepared(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    sets: Sequence[Integers],
    prepared: PreparedSets,
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Return what `estimate_sets` does, given the `prepare_sets` of these sets.

    The statistic must count n reports, which is not checked.

    Raises:
        ValueError: where an option is impossible.
    """
    queries, of_sets = prepared
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
    return replace(
        estimate,
        value=origin + unit * estimate.value,
        se=unit * estimate.se,
        low=origin + unit * estimate.low,
        high=origin + unit * estimate.high,
        influence=unit * estimate.influence,
        lowest=origin + unit * estimate.lowest,
        highest=origin + unit * estimate.highest,
    )
