"""Unbiased estimates of values and sets, with bounds (docs/theory.md section 0).

Decoders are summed over the reports of a statistic; `bounds.bounded` makes estimates of these sums.
Estimates are not clipped to [0, 1]; projections are a separate step (`projection`).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Unpack

import numpy as np

from ldpstream.estimators.bounds.bounded import bound
from ldpstream.estimators.bounds.e_values import (
    MOST_DISTINCT,
    Tally,
    replace_bernstein,
    use_e_values,
    with_e_values,
)
from ldpstream.estimators.bounds.options import OptionKeywords, Options
from ldpstream.estimators.bounds.types import Coins, Distinct, Estimate, Limits, Noise, Sums
from ldpstream.estimators.queries import (
    CountQuery,
    PreparedSets,
    Queries,
    Query,
    all_in_one,
    indicator,
    prepare_sets,
)
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import Decoded, Decoder, LinearDecoder, SingleValues
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic
from ldpstream.mechanisms.interface.symbols import CountDecoder

_MOST_TALLIED: Final = 1 << 12
"""Up to this many values of a domain have bounds by e-values, which take a decoder each."""
ROUNDING: Final = 1e-9
"""Relative to the squared spread; noise this close to its maximum is that of a two-valued query."""


def estimate_values(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    *,
    values: Integers | None = None,
    decoded: Decoded | None = None,
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Estimate the share of every value, q = k, or of values given by index, int64 `(q,)`.

    Estimates of some values equal, bit for bit, what `take` returns from those of all. Simultaneous
    bounds always hold over all values, since listed values may be post-selected. `decoded` is what
    `decode_values` returns, if the caller has it.
    """
    many = mechanism.size
    if options.get("simultaneous") and options.get("family") is None:
        options["family"] = many
    if values is None:
        decoded = decode_values(mechanism, statistic, n) if decoded is None else decoded
        if (distinct := Distinct.of(mechanism.decoder, decoded.totals)) is not None:
            estimate = estimate_values(
                mechanism, statistic, n, values=distinct.values, decoded=decoded, **options
            )
            del decoded
            return estimate.take(distinct.places)
    # For a single column numpy adds the rows in another order; estimate it twice instead.
    listed_values = np.repeat(values, 2) if values is not None and values.size == 1 else values
    sums = value_sums(mechanism, statistic, n, values=listed_values, decoded=decoded)
    chosen = Options(**options)
    estimate = bound(sums, n, chosen)
    decoder = mechanism.decoder
    if use_e_values(chosen) and isinstance(decoder, CountDecoder) and _tallies_all(decoder, many):
        places = np.flatnonzero(estimate.form == "bernstein")
        indices = np.arange(many)[slice(None) if listed_values is None else listed_values][places]
        decoded_values = (
            decoder.decode(indicator(many, indices[i : i + 1])) for i in range(indices.size)
        )
        tallies = [Tally.of(h, statistic) for h in decoded_values]
        estimate = with_e_values(estimate, sums, chosen, places.tolist(), tallies)
    return estimate if listed_values is values else estimate.take(slice(1))


def _tallies_all(decoder: CountDecoder, values: int) -> bool:
    """Return whether all values can be bounded by e-values, which must not depend on the reports.

    All of them are taken to decode to as many different numbers as the first.
    """
    if values > _MOST_TALLIED:
        return False
    distinct = np.unique(decoder.decode(indicator(values, np.array([0])))).size
    return bool(distinct * values <= MOST_DISTINCT)


def decode_values(mechanism: Mechanism, statistic: Statistic, n: int) -> Decoded:
    """Decode the reports once, for all estimates of single values."""
    check_counts(mechanism, statistic, n)
    return mechanism.decoder.decode_values(statistic)


def value_sums(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    *,
    values: Integers | None = None,
    decoded: Decoded | None = None,
) -> Sums:
    """Return the sums of all single values, q = k, or of those with the indices `values`, `(q,)`.

    `decoded` is what `decode_values` returns, if the caller has it. The sums of some values equal,
    bit for bit, these entries for all values, and with `decoded` take memory for q entries.
    """
    decoded = decode_values(mechanism, statistic, n) if decoded is None else decoded
    decoder = mechanism.decoder
    of_value = decoder.groups()
    at = slice(None) if values is None else values
    single, total = decoder.single_values(decoded, at), decoded.totals[at]
    if values is None:
        group = all_in_one(mechanism.size) if of_value is None else of_value
    else:
        group = np.zeros(values.size, dtype=np.int64) if of_value is None else of_value[values]
    sizes = np.array([mechanism.size]) if of_value is None else np.bincount(of_value)
    reports, rest = decoded.reports[group], sizes[group] - 1
    quietest, noisiest = single.quietest, single.noisiest
    share = 1.0 / mechanism.size
    deviations = decoder.value_deviations() if isinstance(decoder, LinearDecoder) else None
    deviation = (
        np.maximum(single.largest, 1.0 - single.least) if deviations is None else deviations[at]
    )
    return Sums(
        total=total,
        squares=single.second_moments,
        offset=total,
        noise=Noise.in_groups(
            reports,
            (quietest, noisiest),
            noisiest + 1.0,
            # Few values are as noisy as the noisiest of a group; often it is only the value itself.
            typical=(noisiest + rest * quietest) * share,
            deviation=deviation,
        ),
        limits=Limits(
            least=single.least,
            largest=single.largest,
            bottom=np.zeros_like(total),
            top=np.ones_like(total),
            fewest=np.zeros_like(total),
            most=reports.astype(np.float64),
        ),
        typical_sampling=np.full_like(total, share * (1.0 - share)),
        coins=_value_coins(single, reports, n),
        disclosed=of_value is not None,
        indicators=True,
        reach=np.ones(total.size) if isinstance(decoder, LinearDecoder) else None,
    )


def _value_coins(single: SingleValues, reports: Integers, n: int) -> Coins:
    """Return the coins of single values in groups of this many reports, `(q,)`.

    A decoder with mean w between `least` and `largest` has at most the noise
    `(largest - w)(w - least)`, with equality if it takes only these two values (Bhatia, Davis
    2000). The noise therefore shows whether it does.
    """
    spread = single.largest - single.least
    product = (single.largest - 1.0) * (1.0 - single.least)
    other = -single.largest * single.least
    slack = ROUNDING * spread**2
    two = (
        (spread > 0.0)
        & (np.abs(np.minimum(product, other) - single.quietest) <= slack)
        & (np.abs(np.maximum(product, other) - single.noisiest) <= slack)
    )
    step = np.where(two, spread, 1.0)
    # Values that are reported without noise are a share of all reports, not of their group's.
    counted = np.where(single.noisiest > 0.0, reports, n)
    return Coins(
        tosses=np.where(two, counted, 0.0),
        own=np.where(two, (1.0 - single.least) / step, 0.0),
        other=np.where(two, -single.least / step, 0.0),
    )


def estimate_sets(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    sets: Sequence[Integers],
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Estimate the shares of sets of values, each an int64 array of value indices.

    In each group whose total the reports disclose (all values if they disclose nothing), the less
    noisy of two decoders is used: the sum of the set's values, or the total minus the others.
    Whole blocks are therefore exact among respondents, the whole domain is always 1, and a set that
    holds the smaller part of each group is estimated by the sum of its values' estimates.

    Raises:
        ValueError: if an index is outside the domain, the statistic does not count n reports, or an
            option is invalid.
    """
    check_counts(mechanism, statistic, n)
    prepared = prepare_sets(mechanism, sets)
    return estimate_prepared(statistic, n, prepared, **options)


def estimate_prepared(
    statistic: Statistic, n: int, prepared: PreparedSets, **options: Unpack[OptionKeywords]
) -> Estimate:
    """Do the same as `estimate_sets`, given the `prepare_sets` of the sets.

    The statistic must count n reports, which is not checked.
    """
    queries, of_sets = prepared
    chosen, tallies = Options(**options), list[Tally]()
    if use_e_values(chosen):
        of_sets = tally_queries(of_sets, statistic, tallies)
    sums = query_sums(queries, statistic, of_sets, indicators=True)
    return replace_bernstein(bound(sums, n, chosen), sums, chosen, tallies)


def tally_queries(
    queries: Iterable[Query], statistic: Statistic, tallies: list[Tally]
) -> Iterator[Query]:
    """Pass queries on, and append the tally of each whose statistic counts symbols."""
    for query in queries:
        if isinstance(query, CountQuery):
            tallies.append(Tally.of(query.h, statistic))
        yield query


def set_sums(queries: Queries, statistic: Statistic, indicators: Iterable[Floats]) -> Sums:
    """Return the sums of sets of values, given by their indicators, each of shape `(k,)`."""
    return query_sums(queries, statistic, queries.set_queries(indicators), indicators=True)


def query_sums(
    queries: Queries, statistic: Statistic, prepared: Iterable[Query], *, indicators: bool
) -> Sums:
    """Return the sums of prepared queries; `indicators` says that all weights are 0 or 1."""
    groups, decoder = queries.groups, queries.decoder
    reports = decoder.group_reports(statistic)
    rows = []
    for query in prepared:
        moments, quietest, noisiest, lightest, heaviest = query.in_groups
        rows.append(
            (
                *_decoded(query, decoder, statistic),
                # `Noise`
                float((reports * quietest).sum()),
                float((reports * noisiest).sum()),
                float((noisiest - quietest).max()),
                float(reports[noisiest > 0.0].sum()),
                float((reports * moments).sum()),
                float(moments.max()),
                float(query.noise.mean()),
                query.deviation,
                # `Limits`
                query.least,
                query.largest,
                float(lightest.min()),
                float(heaviest.max()),
                float((reports * lightest).sum()),
                float((reports * heaviest).sum()),
                # `Coins`, and the two columns by themselves
                *(_set_coins(query, reports) if indicators else (0.0, 0.0, 0.0)),
                float(query.weights.var()),
                float(query.weights.max() - query.weights.min()),
            )
        )
    columns = np.asarray(rows, dtype=np.float64).reshape(len(rows), 22).T
    total, squares, offset = columns[:3]
    typical_sampling, reach = columns[-2:]
    return Sums(
        total=total,
        squares=squares,
        offset=offset,
        noise=Noise(*columns[3:11]),
        limits=Limits(*columns[11:17]),
        typical_sampling=typical_sampling,
        coins=Coins(*columns[17:20]) if indicators else None,
        disclosed=groups.disclosed,
        indicators=indicators,
        reach=reach if isinstance(decoder, LinearDecoder) else None,
    )


def _decoded(query: Query, decoder: Decoder, statistic: Statistic) -> tuple[float, float, float]:
    """Return `sum_i h(y_i)`, `sum_i h(y_i)^2`, and an unbiased estimate of `sum_i w(x_i)^2`.

    Statistics of sums do not determine the second. Its mean is `sum_i (v + w^2)(x_i)`, another
    linear query, which is estimated without bias (docs/theory.md section 0).
    """
    if isinstance(query, CountQuery):
        # sum() adds in one fixed order; a dot product would depend on the BLAS in use.
        decoders = query.h, query.h**2, query.of_square
        total, squares, offset = (float((statistic * h).sum()) for h in decoders)
    else:
        assert isinstance(decoder, LinearDecoder), "all but counts are sums"
        squared = query.weights**2
        weights = query.weights, query.noise + squared, squared
        total, squares, offset = (decoder.total(w, statistic) for w in weights)
    return total, squares, offset


def _set_coins(query: Query, reports: Integers) -> tuple[float, float, float]:
    """Return the fields of `Coins` of a set, as for single values."""
    nothing = 0.0, 0.0, 0.0
    noisiest, groups = query.in_groups.noisiest, np.flatnonzero(query.in_groups.heaviest > 0.0)
    spread = query.largest - query.least
    if spread <= 0.0:
        return nothing
    if not noisiest.any():
        # Whole groups are reported without noise.
        return float(reports.sum()), 1.0, 0.0
    if groups.size != 1 or noisiest.sum() > noisiest[groups[0]]:
        return nothing
    inside = query.groups.of_place == groups[0]
    weights, noise = query.weights[inside], query.noise[inside]
    most = (query.largest - weights) * (weights - query.least)
    if (np.abs(noise - most) > ROUNDING * spread**2).any():
        return nothing
    return float(reports[groups[0]]), (1.0 - query.least) / spread, -query.least / spread


def check_counts(mechanism: Mechanism, statistic: Statistic, n: int) -> None:
    """Refuse a statistic that does not count n reports."""
    counted = mechanism.count(statistic)
    if counted != n:
        raise ValueError(
            f"n: expected the {counted} reports that the statistic counts, got {n}; "
            "a statistic is what accumulate makes of reports, not the reports"
        )
