"""Sums of disjoint areas, one in each disclosed group, decoded together.

A report of one group does not affect the others, so that the decoder of a union of areas, one for
each group, contains the decoder of each area. One decoder for each round of areas suffices.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from ldpstream.estimators.areas.tree import AreaTree
from ldpstream.estimators.queries.counts import CountQuery, SetDecoder, prepare_queries
from ldpstream.estimators.queries.queries import Query
from ldpstream.estimators.queries.sums import ROUNDING, Sums, set_sums, value_sums
from ldpstream.mechanisms.base.arrays import Floats, Integers, arrays_of, joined
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic


def area_sums(
    mechanism: Mechanism, statistic: Statistic, n: int, tree: AreaTree, areas: Integers
) -> Sums:
    """Return the sums of areas of one level, which are given by places in the tree, `(q,)`."""
    starts, sizes = tree.start[areas], tree.end[areas] - tree.start[areas]
    if (sizes == 1).all():
        return value_sums(mechanism, statistic, n, values=tree.order[starts])
    queries = prepare_queries(mechanism)
    if not isinstance(queries, SetDecoder) or queries.groups.count == 1:
        members = ([area] for area in areas.tolist())
        return set_sums(queries, statistic, (_union(tree, one) for one in members))
    of_group = tree.group[areas]
    by_group = np.argsort(of_group, kind="stable")
    firsts = np.searchsorted(of_group[by_group], np.arange(queries.groups.count))
    round_of = np.empty(areas.size, dtype=np.int64)
    round_of[by_group] = np.arange(areas.size) - firsts[of_group[by_group]]
    rounds = [np.flatnonzero(round_of == one) for one in range(int(round_of.max()) + 1)]
    unions = (_union(tree, areas[places].tolist()) for places in rounds)
    of_rounds = _each_group(queries, statistic, queries.set_queries(unions))
    parts = [_taken(sums, of_group[places]) for places, sums in zip(rounds, of_rounds, strict=True)]
    back = np.argsort(np.concatenate(rounds))
    return _taken(joined(parts), back)


def _union(tree: AreaTree, areas: list[int]) -> Floats:
    indicator = np.zeros(tree.order.size)
    for area in areas:
        indicator[tree.order[tree.start[area] : tree.end[area]]] = 1.0
    return indicator


def _each_group(
    queries: SetDecoder, statistic: Statistic, prepared: Iterable[Query]
) -> Iterator[Sums]:
    """Yield, for each union, the sums of its part in every group, arrays `(groups,)`."""
    groups, counts = queries.groups, queries.decoder.group_reports(statistic)
    size = queries.groups.of_place.size
    for query in prepared:
        assert isinstance(query, CountQuery), "reports count symbols"
        h = query.h
        (quietest, noisiest), (_, moments), (lightest, heaviest) = groups.extremes_each(
            query.noise, query.noise + query.weights**2, query.weights
        )
        # An area's decoder is 0 outside its group.
        least, largest = queries.outputs.extremes(h)
        least, largest = np.minimum(least, 0.0), np.maximum(largest, 0.0)
        total = queries.outputs.sums(statistic * h)
        inside = groups.sums(query.weights) / size
        tosses = _tosses(query, queries, (least, largest), (counts, noisiest))
        yield Sums(
            disclosed=True,
            indicators=True,
            reach=None,
            total=total,
            squares=queries.outputs.sums(statistic * h**2),
            offset=total,
            floor=counts * quietest,
            ceiling=counts * noisiest,
            least=least,
            largest=largest,
            slope=noisiest - quietest,
            noisy=np.where(noisiest > 0.0, counts, 0.0),
            moment=counts * moments,
            peak=moments,
            typical_noise=groups.sums(query.noise) / size,
            typical_sampling=inside * (1.0 - inside),
            bottom=np.zeros_like(total),
            top=np.ones_like(total),
            fewest=counts * lightest,
            most=counts * heaviest,
            deviation=np.maximum(largest, 1.0 - least),
            tossed=tosses[0],
            own=tosses[1],
            other=tosses[2],
        )


def _tosses(
    query: CountQuery,
    queries: SetDecoder,
    ends: tuple[Floats, Floats],
    known: tuple[Integers, Floats],
) -> tuple[Floats, Floats, Floats]:
    """Return `tossed`, `own` and `other` of each area, as for single values."""
    (least, largest), (counts, noisiest) = ends, known
    of_value, spread = queries.groups.of_place, largest - least
    most = (largest[of_value] - query.weights) * (query.weights - least[of_value])
    off = queries.groups.extremes(np.abs(query.noise - most))[1]
    whole = noisiest == 0.0
    two = (spread > 0.0) & (whole | (off <= ROUNDING * spread**2))
    step = np.where(two, spread, 1.0)
    # Whole groups are reported without noise, as a part of all reports.
    return (
        np.where(two, np.where(whole, counts.sum(), counts), 0.0),
        np.where(two, np.where(whole, 1.0, (1.0 - least) / step), 0.0),
        np.where(two & ~whole, -least / step, 0.0),
    )


def _taken(sums: Sums, places: Integers) -> Sums:
    return replace(sums, **{name: one[places] for name, one in arrays_of(sums).items()})
