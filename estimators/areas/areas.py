"""The areas that could be shown, and the choice of those that differ from their surroundings.

All bounds hold simultaneously. Each of the L levels gets an L-th of the error, for every area of
the level that could have been shown, named or not. Roots that reports disclose are exact among
respondents, and take no part of the error.

At first every root is one area with an even share. Let the rest r of an area be the area without
the areas named in it. Every candidate v in r, again without what is named in it, is compared with
its even share of r, where s are numbers of values: `|w_v - w_r s_v/s_r|` in units of the sum of
their half-widths. The candidate with the largest score is named if the score is above 1, that is if
the two bounds exclude each other. This is repeated in r and in v. Half-widths add up, so that all
bounds follow from those of the levels and hold together with them, whatever is named.

The areas are a tree over the values that does not depend on the reports. Its roots are the groups
that reports disclose (or the whole domain if they disclose nothing). Inside a root every dimension
is halved repeatedly, down to single values. Unordered values cannot be halved: below the root are
the single values.

A report of one group does not affect the others, so that the decoder of a union of areas, one for
each group, contains the decoder of each area. One decoder for each round of areas suffices.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Final, Unpack

import numpy as np

from ldpstream.estimators.bounds.bounded import bound
from ldpstream.estimators.bounds.options import UNCUT, OptionKeywords, Options
from ldpstream.estimators.bounds.types import Coins, Estimate, Limits, Noise, Sums
from ldpstream.estimators.estimate import ROUNDING, set_sums, value_sums
from ldpstream.estimators.queries import CountQuery, Query, SetDecoder, prepare_queries
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers, joined, map_arrays
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic

_WORK: Final = 1 << 22
"""Most decoder entries of all areas with more than one value together."""

MOST_NAMED: Final = 2_000
"""Most areas below the roots, as many as a picture can show; those that differ most come first."""
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, eq=False)
class AreaTree:
    """Areas as runs `order[start:end]` of values, int64 `(m,)`, each before the areas inside it.

    `order`, int64 `(k,)`, holds every value once. `level` is 0 for roots, and equal for areas whose
    bounds are computed together. `group` is the disclosed group, which numbers the roots.
    """

    order: Integers
    start: Integers
    end: Integers
    level: Integers
    group: Integers

    @property
    def levels(self) -> int:
        """Number of levels below the roots: at least one."""
        return max(1, int(self.level.max(initial=0)))

    def last(self, area: int) -> int:
        """Return the place after the last area inside this one."""
        return int(np.searchsorted(self.start, self.end[area], side="left"))

    def values(self, area: int) -> Integers:
        """Return the indices of an area's values, ascending."""
        return np.sort(self.order[self.start[area] : self.end[area]])


def prepare_tree(mechanism: Mechanism, shape: Sequence[int], *, ordered: bool) -> AreaTree:
    """Return the cached tree over a mechanism's values, in row-major order of `shape`."""
    return _prepared(mechanism, tuple(shape) if ordered else None)


@lru_cache(maxsize=16)
def _prepared(mechanism: Mechanism, shape: tuple[int, ...] | None) -> AreaTree:
    known = mechanism.decoder.groups()
    groups = np.zeros(mechanism.size, dtype=np.int64) if known is None else known
    queries = prepare_queries(mechanism)
    # If reports count symbols, areas of different groups are decoded together.
    at_once = isinstance(queries, SetDecoder)
    outputs = queries.slack.size if isinstance(queries, SetDecoder) else mechanism.statistic_size
    return build_tree(groups, shape, most=_WORK // outputs, at_once=at_once)


def build_tree(
    groups: Integers, shape: tuple[int, ...] | None, *, most: int, at_once: bool = True
) -> AreaTree:
    """Return the tree over values in these groups, int64 `(k,)`; without `shape` not ordered.

    Halving stops, and single values follow, before it takes more than `most` decoders: one for each
    area, or, with `at_once`, one for an area of every group.
    """
    ranking = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    ends = np.cumsum(sizes)
    nodes = [(int(end - size), int(end), 0) for size, end in zip(sizes, ends, strict=True)]
    if shape is not None:
        places = np.stack(np.unravel_index(ranking, shape), axis=1)
        boxes = [
            (places[start:end].min(axis=0), places[start:end].max(axis=0) + 1)
            for start, end, _ in nodes
        ]
        depth = _depth(boxes, most, at_once=at_once)
        for (start, end, _), box in zip(nodes[: sizes.size], boxes, strict=True):
            _halve(nodes, ranking, places, (start, end), box, (1, depth))
    runs = np.array(nodes, dtype=np.int64)
    alone = np.arange(groups.size)[np.repeat(sizes > 1, sizes)]
    deepest = int(runs[:, 2].max()) + 1
    single = np.stack([alone, alone + 1, np.full(alone.size, deepest)], axis=1)
    runs = np.concatenate([runs, single])
    start, end, level = runs[np.lexsort((runs[:, 0] - runs[:, 1], runs[:, 0]))].T
    # Levels without an area would waste their part of the error.
    level = np.unique(level, return_inverse=True)[1].astype(np.int64)
    return AreaTree(ranking, start, end, level, groups[ranking[start]])


def _depth(boxes: Sequence[tuple[Integers, Integers]], most: int, *, at_once: bool) -> int:
    """Return how often boxes can be halved with at most this many decoders."""
    depth, total = 0, 0
    while True:
        depth += 1
        areas = [prod(min(1 << depth, int(extent)) for extent in high - low) for low, high in boxes]
        total += max(areas) if at_once else sum(areas)
        halved = max(int((high - low).max()) for low, high in boxes) > 1 << (depth - 1)
        if total > most or not halved:
            return depth - 1


def _halve(
    nodes: list[tuple[int, int, int]],
    members: Integers,
    places: Integers,
    run: tuple[int, int],
    box: tuple[Integers, Integers],
    depths: tuple[int, int],
) -> None:
    """Sort a run by the halves of its box, and append those of more than one value to `nodes`."""
    (start, end), (low, high), (depth, most) = run, box, depths
    if end - start < 2 or depth > most:
        return
    middle = (low + high + 1) // 2
    upper = places[start:end] >= middle
    codes = upper @ (1 << np.arange(low.size)[::-1])
    sorting = np.argsort(codes, kind="stable")
    members[start:end], places[start:end] = members[start:end][sorting], places[start:end][sorting]
    at = start
    for code, size in zip(*np.unique(codes, return_counts=True), strict=True):
        half = (code >> np.arange(low.size)[::-1]) & 1 == 1
        inside = np.where(half, middle, low), np.where(half, high, middle)
        if 1 < size < end - start:
            nodes.append((at, at + int(size), depth))
        _halve(nodes, members, places, (at, at + int(size)), inside, (depth + 1, most))
        at += int(size)


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
    of_group = tree.group[areas]
    by_group = np.argsort(of_group, kind="stable")
    firsts = np.searchsorted(of_group[by_group], np.arange(queries.groups.count))
    round_of = np.empty(areas.size, dtype=np.int64)
    round_of[by_group] = np.arange(areas.size) - firsts[of_group[by_group]]
    rounds = [np.flatnonzero(round_of == number) for number in range(int(round_of.max()) + 1)]
    unions = (_union(tree, areas[places].tolist()) for places in rounds)
    of_rounds = _each_group(queries, statistic, queries.set_queries(unions))
    columns = [
        _select_sums(sums, of_group[places]) for places, sums in zip(rounds, of_rounds, strict=True)
    ]
    back = np.argsort(np.concatenate(rounds))
    return _select_sums(joined(columns), back)


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


@dataclass(frozen=True)
class NamedAreas:
    """The named areas: places in the tree, int64 `(a,)`, including every root, in tree order.

    `inside` is the entry of the area around each, -1 for roots. `estimate` is for whole areas.
    `rest`, `rest_low` and `rest_high`, float64 `(a,)`, are for the `rest_size` values that are in
    no area named inside. `family` is the number of areas that could have been shown, and `levels`
    is the number of parts of the error.
    """

    tree: AreaTree
    places: Integers
    inside: Integers
    estimate: Estimate
    rest: Floats
    rest_low: Floats
    rest_high: Floats
    rest_size: Integers
    family: int
    levels: int


def estimate_areas(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    tree: AreaTree,
    *,
    divided: Bools | None = None,
    **options: Unpack[OptionKeywords],
) -> NamedAreas:
    """Estimate areas at the resolution that n reports allow; all bounds hold simultaneously.

    `divided`, bool `(groups,)`, says inside which roots areas are searched for, by default all.
    """
    rests = _Rests(tree, bound_areas(mechanism, statistic, n, tree, **options))
    rests.name(divided)
    return rests.areas(error_levels(tree, Options(**options)))


def bound_areas(
    mechanism: Mechanism,
    statistic: Statistic,
    n: int,
    tree: AreaTree,
    **options: Unpack[OptionKeywords],
) -> Estimate:
    """Estimate all areas that could be shown, in tree order; all bounds hold simultaneously."""
    chosen = Options(**options)
    confidence = 1.0 - (1.0 - chosen.confidence) / error_levels(tree, chosen)
    bounds = []
    for level in range(int(tree.level.max()) + 1):
        places = np.flatnonzero(tree.level == level)
        each = replace(chosen, confidence=confidence, simultaneous=True, family=places.size)
        bounds.append((places, bound(area_sums(mechanism, statistic, n, tree, places), n, each)))
    back = np.argsort(np.concatenate([places for places, _ in bounds]))
    in_order = joined([estimate for _, estimate in bounds]).take(back)
    return replace(in_order, confidence=chosen.confidence)


def error_levels(tree: AreaTree, options: Options) -> int:
    """Return into how many parts the error is split; roots that are exact have none."""
    exact = options.estimand == "respondents" or int((tree.level == 0).sum()) == 1
    return tree.levels + (not exact)


class _Rests:
    """The areas named so far, and the rest of every area: share, half-widths and size, `(m,)`.

    `owner` is the innermost named area around each area, -1 for roots.
    """

    def __init__(self, tree: AreaTree, estimate: Estimate) -> None:
        self._tree, self._estimate = tree, estimate
        self._share = estimate.value.copy()
        self._whole_below = estimate.value - estimate.lowest
        self._whole_above = estimate.highest - estimate.value
        self._below, self._above = self._whole_below.copy(), self._whole_above.copy()
        self._size = tree.end - tree.start
        self._named = tree.level == 0
        roots = np.flatnonzero(self._named)
        self._owner = np.repeat(roots, np.diff(roots, append=tree.start.size))
        self._owner[roots] = -1

    def name(self, divided: Bools | None) -> None:
        """Name areas, beginning with the one that differs most, until none differs."""
        heap: list[tuple[float, int, int]] = []
        for root in np.flatnonzero(self._named).tolist():
            if divided is None or divided[self._tree.group[root]]:
                self._look(root, heap)
        named = 0
        while heap and named < MOST_NAMED:
            _, area, inner = heapq.heappop(heap)
            self._name(area, inner)
            named += 1
            self._look(area, heap)
            self._look(inner, heap)

    def _look(self, area: int, heap: list[tuple[float, int, int]]) -> None:
        """Push the area that differs most from the rest of this one, if any differs."""
        inside = slice(area + 1, self._tree.last(area))
        rest = float(self._size[area])
        candidates = (self._owner[inside] == area) & ~self._named[inside]
        candidates &= (self._size[inside] > 0) & (self._size[inside] < rest)
        places = area + 1 + np.flatnonzero(candidates)
        if places.size == 0:
            return
        share = self._size[places] / rest
        gap = self._share[places] - share * self._share[area]
        more = gap > 0.0
        width = np.where(more, self._below[places], self._above[places])
        width += share * np.where(more, self._above[area], self._below[area])
        gap = np.where(np.abs(gap) > _ROUNDING, np.abs(gap), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.nan_to_num(gap / width, nan=0.0, posinf=np.inf)
        best = int(score.argmax())
        if score[best] > 1.0:
            heapq.heappush(heap, (-float(score[best]), area, int(places[best])))

    def _name(self, area: int, inner: int) -> None:
        tree, inside = self._tree, slice(inner + 1, self._tree.last(inner))
        owner = self._owner[inside]
        owner[owner == area] = inner
        self._named[inner] = True
        # What is already named inside it was subtracted from all areas around it before.
        around = area + np.flatnonzero(tree.end[area:inner] >= tree.end[inner])
        self._share[around] -= self._share[inner]
        self._size[around] -= self._size[inner]
        above = self._whole_below[inner] - (self._above[inner] - self._whole_above[inner])
        below = self._whole_above[inner] - (self._below[inner] - self._whole_below[inner])
        self._below[around] += below
        self._above[around] += above

    def areas(self, levels: int) -> NamedAreas:
        """Return all named areas, and cut the bounds of rests as those of whole areas are."""
        places = np.flatnonzero(self._named)
        estimate = self._estimate.take(places)
        entry = np.full(self._tree.start.size, -1, dtype=np.int64)
        entry[places] = np.arange(places.size)
        owner = self._owner[places]
        share = self._share[places]
        low, high = share - self._below[places], share + self._above[places]
        if estimate.method != UNCUT:
            low, high = np.maximum(low, 0.0), np.minimum(high, estimate.high)
        return NamedAreas(
            tree=self._tree,
            places=places,
            inside=np.where(owner < 0, -1, entry[owner]),
            estimate=estimate,
            rest=share,
            rest_low=low,
            rest_high=high,
            rest_size=self._size[places],
            family=entry.size,
            levels=levels,
        )
