"""The tree of areas that could be shown.

It does not depend on the reports. Its roots are the groups that reports disclose (or the whole
domain if they disclose nothing). Inside a root every dimension is halved repeatedly, down to single
values. Unordered values cannot be halved: below the root are the single values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Final

import numpy as np

from ldpstream.estimators.queries import SetDecoder, prepare_queries
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.interface.mechanism import Mechanism

MOST_ENTRIES: Final = 1 << 22
"""Most decoder entries of all areas with more than one value together."""


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
    return build_tree(groups, shape, most=MOST_ENTRIES // outputs, at_once=at_once)


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
