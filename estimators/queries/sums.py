"""Sums of linear queries over the reports of a statistic, before any division by n."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpstream.estimators.queries.queries import Groups, Queries, Query, all_in_one
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import Decoded, LinearDecoder, SingleValues
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic

ROUNDING: Final = 1e-9
"""Relative to the squared spread; noise this close to its maximum is that of a two-valued query."""


@dataclass(frozen=True)
class Sums:
    """Sums over n reports of q queries' decoders `h`, arrays float64 of shape `(q,)`.

    - `total` is `sum_i h(y_i)`, `squares` is `sum_i h(y_i)^2`, and `offset` is an unbiased estimate
      of `sum_i w(x_i)^2` (for an indicator, `total` itself).
    - `floor` and `ceiling` bound the noise `sum_i v(x_i)`, `v(x) = (Q h^2)[x] - w[x]^2`, over all
      data that agree with what the reports disclose: `sum_g N_g min_{x in g} v(x)`, and max.
    - `least` and `largest` are `min h` and `max h` over the outputs. `slope` is the largest
      difference in noise between two users of one group.
    - `noisy` counts the reports of groups with noise. `moment` is at least
      `sum_g N_g max_{x in g} (Q h^2)[x]`, and `peak` is the largest of these maxima.
    - For one report of uniform data, `typical_noise` is roughly the mean noise, and
      `typical_sampling` the variance of w.
    - `bottom` and `top` are the least and largest weight, `fewest` and `most` the bounds on
      `sum_i w(x_i)` that disclosed groups give.
    - `deviation` is as in `Query`.
    - `tossed`, `own` and `other` describe two-valued queries (`bounds.two_valued`): the number of
      tosses and the two probabilities, all 0 for other queries.
    - `disclosed` says whether the channel discloses groups, `indicators` whether all weights are 0
      or 1.
    - `reach` is `max w - min w` if the statistic does not determine `sum_i h(y_i)^2`, so that
      `squares` is an estimate; None if it does.
    - `heaviest` is the worst noise of any possible user if `ceiling` uses the respondents' public
      weights; None if it does not, and `ceiling / n` is the worst noise.
    """

    disclosed: bool
    indicators: bool
    reach: Floats | None
    total: Floats
    squares: Floats
    offset: Floats
    floor: Floats
    ceiling: Floats
    least: Floats
    largest: Floats
    slope: Floats
    noisy: Floats
    moment: Floats
    peak: Floats
    typical_noise: Floats
    typical_sampling: Floats
    bottom: Floats
    top: Floats
    fewest: Floats
    most: Floats
    deviation: Floats
    tossed: Floats
    own: Floats
    other: Floats
    heaviest: Floats | None = None

    @property
    def spread(self) -> Floats:
        """The length of the interval of decoded reports, `max h - min h`."""
        return self.largest - self.least


def share_sums(mechanism: Mechanism, statistic: Statistic, n: int) -> Floats:
    """Return the sums of all single values' decoders, float64 `(k,)`: n times their shares.

    Raises:
        ValueError: if the statistic does not count n reports.
    """
    check_counts(mechanism, statistic, n)
    return mechanism.decoder.totals(statistic)


def value_sums(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    *,
    values: Integers | None = None,
    decoded: Floats | None = None,
) -> Sums:
    """Return the sums of all single values, q = k, or of those with the indices `values`, `(q,)`.

    `decoded` are the `share_sums` of all values, if the caller has them. The sums of some values
    equal, bit for bit, these entries for all values, and with `decoded` take memory for q entries.

    Raises:
        ValueError: if the statistic does not count n reports.
    """
    total = share_sums(mechanism, statistic, n) if decoded is None else decoded
    decoder = mechanism.decoder
    of_value = decoder.groups()
    at = slice(None) if values is None else values
    of_group = decoder.group_reports(statistic)
    single, total = decoder.single_values(Decoded(statistic, total, of_group), at), total[at]
    if values is None:
        group = all_in_one(mechanism.size) if of_value is None else of_value
    else:
        group = np.zeros(values.size, dtype=np.int64) if of_value is None else of_value[values]
    sizes = np.array([mechanism.size]) if of_value is None else np.bincount(of_value)
    reports, others = of_group[group], sizes[group] - 1
    quietest, noisiest = single.quietest, single.noisiest
    share = 1.0 / mechanism.size
    deviations = decoder.value_deviations() if isinstance(decoder, LinearDecoder) else None
    deviation = (
        np.maximum(single.largest, 1.0 - single.least) if deviations is None else deviations[at]
    )
    tossed, own, other = _value_tosses(single, reports, n)
    return Sums(
        total=total,
        squares=single.second_moments,
        offset=total,
        floor=reports * quietest,
        ceiling=reports * noisiest,
        least=single.least,
        largest=single.largest,
        slope=noisiest - quietest,
        noisy=np.where(noisiest > 0.0, reports, 0.0),
        moment=reports * (noisiest + 1.0),
        peak=noisiest + 1.0,
        # Few values are as noisy as the noisiest of a group; often it is only the value itself.
        typical_noise=(noisiest + others * quietest) * share,
        typical_sampling=np.full_like(total, share * (1.0 - share)),
        bottom=np.zeros_like(total),
        top=np.ones_like(total),
        fewest=np.zeros_like(total),
        most=reports.astype(np.float64),
        deviation=deviation,
        tossed=tossed,
        own=own,
        other=other,
        disclosed=of_value is not None,
        indicators=True,
        reach=np.ones(total.size) if isinstance(decoder, LinearDecoder) else None,
    )


def _value_tosses(single: SingleValues, reports: Integers, n: int) -> tuple[Floats, ...]:
    """Return `tossed`, `own` and `other` of single values in groups of this many reports, `(q,)`.

    A decoder with mean w between `least` and `largest` has at most the noise
    `(largest - w)(w - least)`, with equality if it takes only these two values (Bhatia, Davis
    2000). The noise therefore shows whether it does.
    """
    spread = single.largest - single.least
    own = (single.largest - 1.0) * (1.0 - single.least)
    other = -single.largest * single.least
    slack = ROUNDING * spread**2
    two = (
        (spread > 0.0)
        & (np.abs(np.minimum(own, other) - single.quietest) <= slack)
        & (np.abs(np.maximum(own, other) - single.noisiest) <= slack)
    )
    step = np.where(two, spread, 1.0)
    # Values that are reported without noise are a share of all reports, not of their group's.
    held = np.where(single.noisiest > 0.0, reports, n)
    return (
        np.where(two, held, 0.0),
        np.where(two, (1.0 - single.least) / step, 0.0),
        np.where(two, -single.least / step, 0.0),
    )


def set_sums(queries: Queries, statistic: Statistic, indicators: Iterable[Floats]) -> Sums:
    """Return the sums of sets of values, given by their indicators, each of shape `(k,)`."""
    return query_sums(queries, statistic, queries.set_queries(indicators), indicators=True)


def linear_sums(queries: Queries, statistic: Statistic, weights: Iterable[Floats]) -> Sums:
    """Return the sums of any weights, each of shape `(k,)`."""
    prepared = (queries.linear_query(row) for row in weights)
    return query_sums(queries, statistic, prepared, indicators=False)


def query_sums(
    queries: Queries, statistic: Statistic, prepared: Iterable[Query], *, indicators: bool
) -> Sums:
    """Return the sums of prepared queries; `indicators` says that all weights are 0 or 1."""
    groups, reports = queries.groups, queries.decoder.group_reports(statistic)
    rows = []
    for query in prepared:
        (quietest, noisiest), (_, moments), (lightest, heaviest) = groups.extremes_each(
            query.noise, query.noise + query.weights**2, query.weights
        )
        of_groups = reports, heaviest, noisiest
        tosses = _set_tosses(query, groups, *of_groups) if indicators else (0.0, 0.0, 0.0)
        rows.append(
            (
                *query.sums(statistic),
                float((reports * quietest).sum()),
                float((reports * noisiest).sum()),
                query.least,
                query.largest,
                float((noisiest - quietest).max()),
                float(reports[noisiest > 0.0].sum()),
                float((reports * moments).sum()),
                float(moments.max()),
                float(query.noise.mean()),
                float(query.weights.var()),
                float(lightest.min()),
                float(heaviest.max()),
                float((reports * lightest).sum()),
                float((reports * heaviest).sum()),
                query.deviation,
                *tosses,
                float(query.weights.max() - query.weights.min()),
            )
        )
    columns = np.asarray(rows, dtype=np.float64).reshape(len(rows), 22).T
    reach = columns[-1] if isinstance(queries.decoder, LinearDecoder) else None
    return Sums(groups.disclosed, indicators, reach, *columns[:-1])


def _set_tosses(
    query: Query,
    groups: Groups,
    reports: Integers,
    heaviest: Floats,
    noisiest: Floats,
) -> tuple[float, float, float]:
    """Return `tossed`, `own` and `other` of a set, as for single values."""
    nothing = 0.0, 0.0, 0.0
    held = np.flatnonzero(heaviest > 0.0)
    spread = query.largest - query.least
    if spread <= 0.0:
        return nothing
    if not noisiest.any():
        # Whole groups are reported without noise.
        return float(reports.sum()), 1.0, 0.0
    if held.size != 1 or noisiest.sum() > noisiest[held[0]]:
        return nothing
    inside = groups.of_place == held[0]
    weights, noise = query.weights[inside], query.noise[inside]
    most = (query.largest - weights) * (weights - query.least)
    if (np.abs(noise - most) > ROUNDING * spread**2).any():
        return nothing
    return float(reports[held[0]]), (1.0 - query.least) / spread, -query.least / spread


def check_counts(mechanism: Mechanism, statistic: Statistic, n: int) -> None:
    """Refuse a statistic that does not count n reports.

    Raises:
        ValueError: naming both numbers.
    """
    counted = mechanism.count(statistic)
    if counted != n:
        raise ValueError(
            f"n: expected the {counted} reports that the statistic counts, got {n}; "
            "a statistic is what accumulate makes of reports, not the reports"
        )
