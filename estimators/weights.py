"""Means of weights: of functions of the value, and of weights that differ among devices.

The latter are sums over sets of values (docs/theory.md section 5). Private weights: with
`largest + 1` weights for each value and pairs of both numbered weight by weight, the sum over a set
is the linear query `w[x, v] = v 1{x in the set}`. Under `l1-bits` its decoder has one term for each
step of the weight: the sum over all values has the noise `largest (1/t^2 - 1)/4` a user.

Public weights w_i are known and not randomised. With h the decoder of a set, `sum_i w_i h(y_i)`
follows from the statistic of reports multiplied by w_i, as the plain sum follows from the plain
statistic; its noise `sum_i w_i^2 v(x_i)` follows from that of reports multiplied by w_i^2.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np

from ldpstream.estimators.bounds.bounded import bound
from ldpstream.estimators.bounds.e_values import Tally, replace_bernstein, use_e_values
from ldpstream.estimators.bounds.options import Estimand, OptionKeywords, Options
from ldpstream.estimators.bounds.types import Estimate, Limits, Sums
from ldpstream.estimators.estimate import (
    check_counts,
    query_sums,
    set_sums,
    tally_queries,
    value_sums,
)
from ldpstream.estimators.queries import (
    CountQuery,
    Queries,
    Query,
    SetDecoder,
    indicator,
    prepare_queries,
)
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.families.weights.public import PublicWeights
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic
from ldpstream.mechanisms.interface.symbols import CountDecoder


def estimate_linear(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    weights: Floats,
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Estimate the means of functions of the value: finite weights, float64 `(q, k)`.

    The decoder with the least noise under uniform data is used (see `queries`). Weights are
    first scaled to 0..1: otherwise squares would lose digits of the variance if weights are large
    and differ by little (years, times) or have a large unit.

    Raises:
        ValueError: if the weights have another shape or are not finite, the statistic does not
            count n reports, or an option is invalid.
    """
    if weights.ndim != 2 or weights.shape[1] != mechanism.size:
        raise ValueError(f"weights: expected shape (q, {mechanism.size}), got {weights.shape}")
    if not np.isfinite(weights).all():
        raise ValueError("weights: expected finite numbers")
    check_counts(mechanism, statistic, n)
    # Halves, because the difference of two large weights may overflow.
    least = weights.min(axis=1) / 2.0
    span = weights.max(axis=1) / 2.0 - least
    unit = np.where(span > 0.0, span, 1.0)
    # One at a time: all together may not fit into memory.
    rows = ((row / 2.0 - low) / step for row, low, step in zip(weights, least, unit, strict=True))
    chosen, queries, tallies = Options(**options), prepare_queries(mechanism), list[Tally]()
    prepared: Iterable[Query] = linear_queries(queries, rows)
    if use_e_values(chosen):
        prepared = tally_queries(prepared, statistic, tallies)
    sums = query_sums(queries, statistic, prepared, indicators=False)
    estimate = replace_bernstein(bound(sums, n, chosen), sums, chosen, tallies)
    return _moved(estimate, 2.0 * least, 2.0 * unit)


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


def linear_sums(queries: Queries, statistic: Statistic, weights: Iterable[Floats]) -> Sums:
    """Return the sums of any weights, each of shape `(k,)`."""
    return query_sums(queries, statistic, linear_queries(queries, weights), indicators=False)


def linear_queries(queries: Queries, weights: Iterable[Floats]) -> Iterator[Query]:
    """Prepare queries with any weights, each float64 `(k,)`."""
    if isinstance(queries, SetDecoder):
        return (_mixed(queries, row) for row in weights)
    return queries.set_queries(weights)


def _mixed(queries: SetDecoder, weights: Floats) -> Query:
    """Prepare any weights, float64 `(k,)`, with the decoder of least noise.

    Each group's weights are scaled to 0..1 before decoding, so that noise that is small
    compared with the squared weights is not lost to rounding, and equal weights have none.
    """
    least, largest = queries.groups.extremes(weights)
    unit = np.where(largest > least, largest - least, 1.0)
    of_value = queries.groups.of_place
    scaled = (weights - least[of_value]) / unit[of_value]
    decoded = queries.decode(scaled)
    noise = queries.decoder.noise_of(decoded, scaled) * unit[of_value] ** 2
    h = decoded * unit[queries.outputs.of_place] + least[queries.outputs.of_place]
    return CountQuery(
        queries.groups,
        weights,
        noise,
        float(h.min()),
        float(h.max()),
        _deviation(queries.decoder, h, weights, noise),
        h=h,
        of_square=queries.decode(weights**2),
    )


def _deviation(decoder: CountDecoder, h: Floats, weights: Floats, noise: Floats) -> float:
    """Return the deviation that bounds use: the largest `sqrt(E d^4 / E d^2)` of any user.

    If a user's reports are either exact or off by one fixed number, it is this number, however
    rare. For noise whose far tails practically never occur (ages that are off by a year or two)
    it is a few standard errors, and not the length of the domain.
    """
    most = max(float(h.max() - weights.min()), float(weights.max() - h.min()))
    some = noise > 0.0
    if not some.any():
        return 0.0
    first, second, third, fourth = (decoder.expect(h**power) for power in (1, 2, 3, 4))
    # Moments around the weight itself, which is E h up to rounding.
    fourths = (
        fourth
        - 4.0 * weights * third
        + 6.0 * weights**2 * second
        - 4.0 * weights**3 * first
        + weights**4
    )
    return min(most, float(np.sqrt(np.maximum(fourths[some] / noise[some], 0.0).max())))


def estimate_weights(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    sets: Sequence[Integers],
    *,
    largest: int,
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Estimate respondents' mean weights in sets of values, counting 0 outside the set.

    Times n these are the sums of weights. `sets` are int64 arrays of indices of values, without
    weights; weights are `0..largest`, the last dimension of the mechanism.
    """
    check_counts(mechanism, statistic, n)
    values, weights = mechanism.size // (largest + 1), np.arange(largest + 1.0)

    def queries() -> Iterator[Floats]:
        # One at a time: all together may not fit into memory.
        for members in sets:
            yield np.multiply.outer(indicator(values, members), weights).ravel()

    sums = linear_sums(prepare_queries(mechanism), statistic, queries())
    return bound(sums, n, Options(**options))


def estimate_public_weights(
    mechanism: PublicWeights,
    statistic: Statistic,
    n: int,
    sets: Sequence[Integers] | None = None,
    *,
    values: Integers | None = None,
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Estimate respondents' mean public weights in sets of values, counting 0 outside the set.

    Times n these are the sums of weights. `sets` are int64 arrays of indices of values, without
    weights; without `sets`, every single value is a set, or each of `values`, int64 `(q,)`. A set
    that holds most values is decoded as in `estimate_sets`, so that the sum of all weights is
    exact.
    """
    check_counts(mechanism, statistic, n)
    chosen = Options(**options)
    if values is not None and values.size == 1:
        # As in `estimate_values`.
        twice = weight_sums(
            mechanism, statistic, sets, chosen.estimand, values=np.repeat(values, 2)
        )
        return bound(twice, n, chosen).take(slice(1))
    return bound(weight_sums(mechanism, statistic, sets, chosen.estimand, values=values), n, chosen)


def weight_sums(
    mechanism: PublicWeights,
    statistic: Statistic,
    sets: Sequence[Integers] | None,
    estimand: Estimand,
    *,
    values: Integers | None = None,
) -> Sums:
    """Return the sums of `w_i h(y_i)` from the sums of h over the three parts of a statistic."""
    alone, largest = mechanism.values, mechanism.largest

    def sums_of(power: Statistic) -> Sums:
        if sets is None:
            return value_sums(alone, power, alone.count(power), values=values)
        indicators = (indicator(alone.size, members) for members in sets)
        return set_sums(prepare_queries(alone), power, indicators)

    plain, weighted, squared = mechanism.powers(statistic)
    first, second = sums_of(weighted), sums_of(squared)
    typical = largest * (2 * largest + 1) / 6.0  # the mean square of uniform weights
    sums = replace(
        second,
        total=first.total,
        offset=second.total,
        noise=replace(
            second.noise,
            # A weight w adds w to a sum and w^2 times the noise of 1: at most `largest` for each
            # unit.
            slope=largest * first.noise.slope,
            # A report of weight w within w/largest of the spread counts as (w/largest)^2 of one.
            reports=second.noise.reports / largest**2,
            peak=largest**2 * first.noise.peak,
            typical=typical * first.noise.typical,
            deviation=largest * first.noise.deviation,
        ),
        limits=Limits(
            least=np.minimum(largest * first.limits.least, 0.0),
            largest=np.maximum(largest * first.limits.largest, 0.0),
            bottom=np.zeros_like(first.total),
            top=largest * first.limits.top,
            fewest=first.limits.fewest,
            most=first.limits.most,
        ),
        typical_sampling=typical * first.typical_sampling,
        coins=None,
        indicators=False,
        reach=None if first.reach is None else np.full(first.total.size, float(largest)),
    )
    if estimand == "respondents":
        return sums
    # Without noise, and if no two weights differ, the influence of one report replaces the error.
    silent = sums.noise.ceiling <= 0.0
    noise = replace(
        sums.noise,
        ceiling=np.where(silent, sums.spread**2, sums.noise.ceiling),
        slope=np.where(silent, sums.spread, sums.noise.slope),
    )
    if first.reach is not None:
        # Others than the respondents may all have the largest weight.
        worst = sums_of(plain).noise.ceiling / max(alone.count(plain), 1)
        noise = replace(noise, heaviest=largest**2 * worst)
    return replace(sums, noise=noise)
