"""Whether one policy implies another; a planner checks this before it proposes a mechanism."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.policies.budgets import MAX_LISTED_VALUES, unit_strides
from ldpstream.mechanisms.policies.composition import closure
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy, HighLowPolicy, Policy, UniformPolicy

Pairs = Iterator[tuple[int, int]]


def implies(stronger: Policy, weaker: Policy) -> tuple[int, int] | None:
    """Return None if every channel that keeps one policy keeps another, or a pair that it violates.

    This holds if the stronger policy's shortest-path closure is at most the weaker policy in every
    entry. If no budget of the stronger policy is 0, the condition is also necessary: for each pair
    some channel attains its closure's budget. Block, high-low, metric and graph policies equal
    their closures, and between the first three a few pairs decide at any size. Localized
    information privacy demands more than its entries: it is implied by itself, and by any policy
    that implies its `by_entries`.

    Raises:
        SpecError: if the numbers of values differ, or exceed 1000 where all pairs are needed.

    >>> implies(MetricPolicy(0.5, (3,)), MetricPolicy(1.0, (3,))) is None
    True
    >>> from ldpstream.mechanisms.policies.matrix import MatrixPolicy
    >>> implies(MetricPolicy(1.0, (3,)), MatrixPolicy.of([[0, 1, 1], [1, 0, 1], [1, 1, 0]]))
    (0, 2)
    """
    if stronger.size != weaker.size:
        raise SpecError("policy", f"one over {weaker.size} values, got {stronger.size}")
    if stronger == weaker:
        return None
    weaker = weaker.by_entries()
    closed = stronger if stronger.is_closed else closure(stronger)
    pairs = _deciding_pairs(closed, weaker)
    if pairs is None:
        constraints = weaker.constraints()
    else:
        constraints = ((x, z, e) for x, z in pairs if (e := weaker.entry(x, z)) is not None)
    for value, other, allowed in constraints:
        if not closed.is_within(value, other, allowed):
            return value, other
    return None


def _deciding_pairs(stronger: Policy, weaker: Policy) -> Pairs | None:
    """Return pairs that decide whether the stronger policy is stronger everywhere.

    None stands for the weaker policy's own pairs (`Policy.constraints`).
    """
    decide = _DECIDING.get((type(stronger), type(weaker)))
    pairs = None if decide is None else decide(stronger, weaker)
    if pairs is None and weaker.size > MAX_LISTED_VALUES and not weaker.few_pairs:
        raise SpecError(
            "policy", f"at most {MAX_LISTED_VALUES} values to compare these, got {weaker.size}"
        )
    return pairs


def _first_unprotected(stronger: UniformPolicy, values: Indices, partners: Indices) -> Pairs:
    """Yield the first unprotected pair, or else any pair, since all finite budgets are equal."""
    if values.size:
        place = int(np.argmax(~stronger.protects(values, partners)))
        yield int(values[place]), int(partners[place])


def _in_blocks(stronger: UniformPolicy, weaker: BlockPolicy) -> Pairs:
    """Yield the one that decides of neighbours in a block, in both directions: of all chains."""
    of = weaker.blocks.of_value
    by_block = np.argsort(of, kind="stable")
    first, second = by_block[:-1], by_block[1:]
    same = of[first] == of[second]
    first, second = first[same], second[same]
    both = np.concatenate([first, second]), np.concatenate([second, first])
    return _first_unprotected(stronger, *both)


def _from_sensitive(stronger: UniformPolicy, weaker: HighLowPolicy) -> Pairs:
    """Yield the one that decides of the pairs of sensitive values.

    These are one sensitive value with every other value, and each sensitive one with some other.
    """
    sensitive = np.array(sorted(weaker.sensitive), dtype=np.int64)
    partners = np.delete(np.arange(weaker.size), sensitive[:1])
    beside = (sensitive + 1) % weaker.size
    first = np.concatenate([np.full(partners.size, sensitive[:1]), sensitive])
    return _first_unprotected(stronger, first, np.concatenate([partners, beside]))


def _single_steps(stronger: UniformPolicy, weaker: MetricPolicy) -> Pairs:
    """Yield the neighbours that decide in each dimension; they have the smallest budgets."""
    grid = np.arange(weaker.size).reshape(weaker.shape)
    for axis in range(grid.ndim):
        low = np.moveaxis(grid, axis, 0)[:-1].ravel()
        high = np.moveaxis(grid, axis, 0)[1:].ravel()
        both = np.concatenate([low, high]), np.concatenate([high, low])
        yield from _first_unprotected(stronger, *both)


def _differences(stronger: MetricPolicy, weaker: MetricPolicy) -> Pairs | None:
    """Yield one pair for each vector of steps, or only single steps if no others can be worse.

    Single steps decide if the weaker policy is a sum of steps (p = 1), or if the scales are equal
    and its p is not above the stronger one's: `|d|_q <= |d|_p` for q >= p, with equality for single
    steps. None if the shapes differ.
    """
    if weaker.shape != stronger.shape:
        return None
    same_scale = stronger.scale == weaker.scale
    if weaker.p == 1 or (same_scale and stronger.p >= weaker.p):
        return ((0, stride) for stride in unit_strides(weaker.shape))
    return ((0, value) for value in range(1, weaker.size))


def _farthest_in_blocks(stronger: MetricPolicy, weaker: BlockPolicy) -> Pairs:
    """Yield, for each block, one pair for each vector of steps between its outermost values."""
    of = weaker.blocks.of_value
    by_block = np.argsort(of, kind="stable")
    coordinates = np.stack(np.unravel_index(by_block, stronger.shape), axis=1)
    start = 0
    for count in weaker.blocks.sizes.tolist():
        members = slice(start, start + count)
        start += count
        if count > 1:
            yield from _farthest(by_block[members], coordinates[members], stronger.shape)


def _farthest(values: Indices, points: Indices, shape: tuple[int, ...]) -> Pairs:
    outermost = _outermost(points)
    values, points = values[outermost], points[outermost]
    visited = np.zeros(int(np.prod(shape)), dtype=np.bool_)
    for value, point in zip(values.tolist(), points, strict=True):
        steps = np.ravel_multi_index(tuple(np.abs(points - point).T), shape)
        for other in np.flatnonzero(~visited[steps]).tolist():
            if values[other] != value:
                visited[steps[other]] = True
                yield value, int(values[other])


def _outermost(points: Indices) -> Indices:
    """Return places of points that include the two farthest apart in any norm.

    A norm is convex: a point between two others on a line along an axis is closer to any third
    point than one of these two. Points between others are dropped until there are none.
    """
    places = np.arange(len(points))
    while True:
        before = len(places)
        for axis in range(points.shape[1]):
            here = points[places]
            rest = np.delete(here, axis, axis=1)
            ranking = np.lexsort((here[:, axis], *rest.T))
            new_line = np.any(np.diff(rest[ranking], axis=0) != 0, axis=1)
            ends = np.append(True, new_line) | np.append(new_line, True)
            places = places[ranking[ends]]
        if len(places) == before:
            return places


def _farthest_from_sensitive(stronger: MetricPolicy, weaker: HighLowPolicy) -> Pairs:
    """Yield each sensitive value with the corner of the domain that is farthest from it."""
    for value in sorted(weaker.sensitive):
        point = np.unravel_index(value, stronger.shape)
        corner = [
            0 if 2 * int(c) >= extent - 1 else extent - 1
            for c, extent in zip(point, stronger.shape, strict=True)
        ]
        yield value, int(np.ravel_multi_index(corner, stronger.shape))


_Decide = Callable[[Any, Any], Pairs | None]
_DECIDING: Final[Mapping[tuple[type[Policy], type[Policy]], _Decide]] = {
    (BlockPolicy, BlockPolicy): _in_blocks,
    (BlockPolicy, HighLowPolicy): _from_sensitive,
    (BlockPolicy, MetricPolicy): _single_steps,
    (HighLowPolicy, BlockPolicy): _in_blocks,
    (HighLowPolicy, HighLowPolicy): _from_sensitive,
    (HighLowPolicy, MetricPolicy): _single_steps,
    (MetricPolicy, BlockPolicy): _farthest_in_blocks,
    (MetricPolicy, HighLowPolicy): _farthest_from_sensitive,
    (MetricPolicy, MetricPolicy): _differences,
}
"""What yields the pairs that decide, by the types of the stronger and of the weaker policy."""
