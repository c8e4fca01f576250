"""What reports decode to for the areas of a level.

A report of one group does not affect the others, so that the decoder of a union of areas, one for
each group, contains the decoder of each area. One decoder for each round of areas suffices.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from ldpstream.estimators.areas.tree import MOST_ENTRIES, AreaTree
from ldpstream.estimators.bounds.e_values import Tally, tally_each
from ldpstream.estimators.bounds.types import Coins, Limits, Noise, Sums
from ldpstream.estimators.estimate import ROUNDING, set_sums, value_sums
from ldpstream.estimators.queries import CountQuery, Query, SetDecoder, prepare_queries
from ldpstream.mechanisms.base.arrays import Floats, Integers, joined, map_arrays
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
        return set_sums(queries, statistic, (_union(tree, number) for number in members))
    rounds, prepared = _rounds(queries, tree, areas)
    of_rounds = _each_group(queries, statistic, prepared)
    columns = [
        _select_sums(sums, tree.group[areas[places]])
        for places, sums in zip(rounds, of_rounds, strict=True)
    ]
    back = np.argsort(np.concatenate(rounds))
    return _select_sums(joined(columns), back)


def _rounds(
    queries: SetDecoder, tree: AreaTree, areas: Integers
) -> tuple[list[Integers], Iterator[Query]]:
    """Return rounds of areas with one of each group at most, and the query of each round's union.

    Rounds hold the places of their areas in `areas`.
    """
    of_group = tree.group[areas]
    by_group = np.argsort(of_group, kind="stable")
    firsts = np.searchsorted(of_group[by_group], np.arange(queries.groups.count))
    round_of = np.empty(areas.size, dtype=np.int64)
    round_of[by_group] = np.arange(areas.size) - firsts[of_group[by_group]]
    rounds = [np.flatnonzero(round_of == number) for number in range(int(round_of.max()) + 1)]
    unions = (_union(tree, areas[places].tolist()) for places in rounds)
    return rounds, queries.set_queries(unions)


def tally_areas(
    queries: SetDecoder, statistic: Statistic, tree: AreaTree, areas: Integers
) -> list[Tally]:
    """Return what reports decode to for each area; those of other groups decode to 0.

    None at all if it takes too much to decode or to bound them, whatever the reports are.
    """
    if areas.size * queries.slack.size > MOST_ENTRIES * queries.groups.count or not areas.size:
        return []
    of_output = queries.outputs.of_place
    outputs = np.argsort(of_output, kind="stable")
    ends = np.searchsorted(of_output[outputs], np.arange(queries.groups.count + 1))
    rounds, prepared = _rounds(queries, tree, areas)

    def decoded() -> Iterator[tuple[Floats, Statistic]]:
        for places, query in zip(rounds, prepared, strict=True):
            assert isinstance(query, CountQuery), "reports count symbols"
            for group in tree.group[areas[places]].tolist():
                here = outputs[ends[group] : ends[group + 1]]
                yield query.h[here], statistic[here]

    tallies = tally_each(decoded(), int(statistic.sum()))
    back = np.argsort(np.concatenate(rounds)).tolist()
    return [tallies[place] for place in back] if tallies else []


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
        moments, quietest, noisiest, lightest, heaviest = query.in_groups
        # An area's decoder is 0 outside its group.
        least, largest = queries.outputs.extremes(h)
        least, largest = np.minimum(least, 0.0), np.maximum(largest, 0.0)
        total = queries.outputs.sums(statistic * h)
        inside = groups.sums(query.weights) / size
        yield Sums(
            total=total,
            squares=queries.outputs.sums(statistic * h**2),
            offset=total,
            noise=Noise.in_groups(
                counts,
                (quietest, noisiest),
                moments,
                typical=groups.sums(query.noise) / size,
                deviation=np.maximum(largest, 1.0 - least),
            ),
            limits=Limits(
                least=least,
                largest=largest,
                bottom=np.zeros_like(total),
                top=np.ones_like(total),
                fewest=counts * lightest,
                most=counts * heaviest,
            ),
            typical_sampling=inside * (1.0 - inside),
            coins=_coins(query, queries, (least, largest), (counts, noisiest)),
            disclosed=True,
            indicators=True,
        )


def _coins(
    query: CountQuery,
    queries: SetDecoder,
    ends: tuple[Floats, Floats],
    known: tuple[Integers, Floats],
) -> Coins:
    """Return the coins of each area, as for single values."""
    (least, largest), (counts, noisiest) = ends, known
    of_value, spread = queries.groups.of_place, largest - least
    most = (largest[of_value] - query.weights) * (query.weights - least[of_value])
    off = queries.groups.extremes(np.abs(query.noise - most))[1]
    whole = noisiest == 0.0
    two = (spread > 0.0) & (whole | (off <= ROUNDING * spread**2))
    step = np.where(two, spread, 1.0)
    # Whole groups are reported without noise, as a part of all reports.
    return Coins(
        tosses=np.where(two, np.where(whole, counts.sum(), counts), 0.0),
        own=np.where(two, np.where(whole, 1.0, (1.0 - least) / step), 0.0),
        other=np.where(two & ~whole, -least / step, 0.0),
    )


def _select_sums(sums: Sums, places: Integers) -> Sums:
    return map_arrays(lambda column: column[places], sums)
