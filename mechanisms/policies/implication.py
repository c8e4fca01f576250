"""Whether one policy implies another; a planner checks this before it proposes a mechanism."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from ldpstream.mechanisms.base.arrays import Bools, Indices
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.policies.budgets import by_entries
from ldpstream.mechanisms.policies.composition import closure
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.lip import LipPolicy
from ldpstream.mechanisms.policies.matrix import MAX_MATRIX_VALUES, MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy, HighLowPolicy, Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy

Pairs = Iterator[tuple[int, int]]


def implies(stronger: Policy, weaker: Policy) -> tuple[int, int] | None:
    """Return None if every channel that keeps one policy keeps another, or a pair that it violates.

    This holds if the stronger policy's shortest-path closure is at most the weaker policy in every
    entry. If no budget of the stronger policy is 0, the condition is also necessary: for each pair
    some channel attains its closure's budget. Block, high-low, metric and graph policies equal
    their closures, and between the first three a few pairs decide at any size. Localized
    information privacy demands more than its entries: it is implied by itself, and by any policy
    that implies its `budgets.by_entries`.

    Raises:
        SpecError: if the numbers of values differ, or exceed 1000 where all pairs are needed.

    >>> implies(MetricPolicy(0.5, (3,)), MetricPolicy(1.0, (3,))) is None
    True
    >>> implies(MetricPolicy(1.0, (3,)), MatrixPolicy.of([[0, 1, 1], [1, 0, 1], [1, 1, 0]]))
    (0, 2)
    """
    if stronger.size != weaker.size:
        raise SpecError("policy", f"one over {weaker.size} values, got {stronger.size}")
    if isinstance(weaker, LipPolicy | PriorPolicy):
        if stronger == weaker:
            return None
        weaker = by_entries(weaker)
    closed = closure(stronger) if isinstance(stronger, MatrixPolicy) else stronger
    pairs = _deciding_pairs(closed, weaker)
    if pairs is None:
        constraints = weaker.constraints()
    else:
        constraints = ((x, z, e) for x, z in pairs if (e := weaker.entry(x, z)) is not None)
    for value, other, allowed in constraints:
        if not _at_most(closed, value, other, allowed):
            return value, other
    return None


def _at_most(policy: Policy, value: int, other: int, allowed: Fraction) -> bool:
    # If an edge is short enough, no shorter path has to be searched for.
    arc = policy.arcs.get((value, other)) if isinstance(policy, GraphPolicy) else None
    if arc is not None and arc <= allowed:
        return True
    entry = policy.entry(value, other)
    return entry is not None and entry <= allowed


def _deciding_pairs(stronger: Policy, weaker: Policy) -> Pairs | None:
    """Return pairs that decide whether the stronger policy is stronger everywhere.

    None stands for the weaker policy's own pairs (`Policy.constraints`).
    """
    if isinstance(stronger, BlockPolicy | HighLowPolicy):
        if isinstance(weaker, BlockPolicy):
            return _first_unprotected(stronger, *_in_blocks(weaker))
        if isinstance(weaker, HighLowPolicy):
            return _first_unprotected(stronger, *_from_sensitive(weaker))
        if isinstance(weaker, MetricPolicy):
            return _single_steps(stronger, weaker)
    if isinstance(stronger, MetricPolicy):
        if isinstance(weaker, BlockPolicy):
            return _farthest_in_blocks(stronger, weaker)
        if isinstance(weaker, HighLowPolicy):
            return _farthest_from_sensitive(stronger, weaker)
        if isinstance(weaker, MetricPolicy) and weaker.shape == stronger.shape:
            return _differences(stronger, weaker)
    few = isinstance(weaker, GraphPolicy) or (isinstance(weaker, MetricPolicy) and weaker.p == 1)
    if weaker.size > MAX_MATRIX_VALUES and not few:
        raise SpecError(
            "policy", f"at most {MAX_MATRIX_VALUES} values to compare these, got {weaker.size}"
        )
    return None


def _first_unprotected(
    stronger: BlockPolicy | HighLowPolicy, values: Indices, others: Indices
) -> Pairs:
    """Yield the first unprotected pair, or else any pair, since all finite budgets are equal."""
    if not values.size:
        return
    if isinstance(stronger, BlockPolicy):
        of = stronger.blocks.of_value
        unprotected = of[values] != of[others]
    else:
        unprotected = ~_is_sensitive(stronger)[values]
    place = int(np.argmax(unprotected))
    yield int(values[place]), int(others[place])


def _is_sensitive(policy: HighLowPolicy) -> Bools:
    mask = np.zeros(policy.size, dtype=np.bool_)
    mask[list(policy.sensitive)] = True
    return mask


def _in_blocks(weaker: BlockPolicy) -> tuple[Indices, Indices]:
    """Return each value with the next one of its block, in both directions: chains of all pairs."""
    of = weaker.blocks.of_value
    order = np.argsort(of, kind="stable")
    first, second = order[:-1], order[1:]
    same = of[first] == of[second]
    first, second = first[same], second[same]
    return np.concatenate([first, second]), np.concatenate([second, first])


def _from_sensitive(weaker: HighLowPolicy) -> tuple[Indices, Indices]:
    """Return one sensitive value with every other value, and each sensitive one with some other."""
    sensitive = np.array(sorted(weaker.sensitive), dtype=np.int64)
    others = np.delete(np.arange(weaker.size), sensitive[:1])
    beside = (sensitive + 1) % weaker.size
    first = np.concatenate([np.full(others.size, sensitive[:1]), sensitive])
    return first, np.concatenate([others, beside])


def _single_steps(stronger: BlockPolicy | HighLowPolicy, weaker: MetricPolicy) -> Pairs:
    """Yield the neighbours that decide in each dimension; they have the smallest budgets."""
    grid = np.arange(weaker.size).reshape(weaker.shape)
    for axis in range(grid.ndim):
        low = np.moveaxis(grid, axis, 0)[:-1].ravel()
        high = np.moveaxis(grid, axis, 0)[1:].ravel()
        both = np.concatenate([low, high]), np.concatenate([high, low])
        yield from _first_unprotected(stronger, *both)


def _differences(stronger: MetricPolicy, weaker: MetricPolicy) -> Pairs:
    """Yield one pair for each vector of steps, or only single steps if no others can be worse.

    Single steps decide if the weaker policy is a sum of steps (p = 1), or if the scales are equal
    and its p is not above the stronger one's: `|d|_q <= |d|_p` for q >= p, with equality for single
    steps.
    """
    same_scale = stronger.scale == weaker.scale
    if weaker.p == 1 or (same_scale and stronger.p >= weaker.p):
        strides = np.cumprod((1, *weaker.shape[:0:-1]), dtype=np.int64)[::-1]
        steps = (int(s) for s, extent in zip(strides, weaker.shape, strict=True) if extent > 1)
        return ((0, stride) for stride in steps)
    return ((0, value) for value in range(1, weaker.size))


def _farthest_in_blocks(stronger: MetricPolicy, weaker: BlockPolicy) -> Pairs:
    """Yield, for each block, one pair for each vector of steps between its outermost values."""
    of = weaker.blocks.of_value
    order = np.argsort(of, kind="stable")
    coordinates = np.stack(np.unravel_index(order, stronger.shape), axis=1)
    start = 0
    for count in weaker.blocks.sizes.tolist():
        members = slice(start, start + count)
        start += count
        if count > 1:
            yield from _farthest(order[members], coordinates[members], stronger.shape)


def _farthest(values: Indices, points: Indices, shape: tuple[int, ...]) -> Pairs:
    kept = _outermost(points)
    values, points = values[kept], points[kept]
    seen = np.zeros(int(np.prod(shape)), dtype=np.bool_)
    for value, point in zip(values.tolist(), points, strict=True):
        steps = np.ravel_multi_index(tuple(np.abs(points - point).T), shape)
        for other in np.flatnonzero(~seen[steps]).tolist():
            if values[other] != value:
                seen[steps[other]] = True
                yield value, int(values[other])


def _outermost(points: Indices) -> Indices:
    """Return places of points that include the two farthest apart in any norm.

    A norm is convex: a point between two others on a line along an axis is closer to any third
    point than one of these two. Points between others are dropped until there are none.
    """
    kept = np.arange(len(points))
    while True:
        before = len(kept)
        for axis in range(points.shape[1]):
            here = points[kept]
            rest = np.delete(here, axis, axis=1)
            order = np.lexsort((here[:, axis], *rest.T))
            new_line = np.any(np.diff(rest[order], axis=0) != 0, axis=1)
            ends = np.append(True, new_line) | np.append(new_line, True)
            kept = kept[order[ends]]
        if len(kept) == before:
            return kept


def _farthest_from_sensitive(stronger: MetricPolicy, weaker: HighLowPolicy) -> Pairs:
    """Yield each sensitive value with the corner of the domain that is farthest from it."""
    for value in sorted(weaker.sensitive):
        point = np.unravel_index(value, stronger.shape)
        corner = [
            0 if 2 * int(c) >= extent - 1 else extent - 1
            for c, extent in zip(point, stronger.shape, strict=True)
        ]
        yield value, int(np.ravel_multi_index(corner, stronger.shape))
