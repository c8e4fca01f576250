"""The largest budget with which a mechanism satisfies a policy of another form, and scaled budgets.

A mechanism may be used wherever its own policy is at least as strict. Under any policy E there is
therefore a largest epsilon for each form: classical inside blocks, per step of an L1 metric, or
from sensitive values only. The results are exact rationals; `float_below` rounds them down.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.lip import LipPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BinaryPolicy, BlockPolicy, HighLowPolicy, Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy

_MOST_LISTED = 1000
"""Policies without a structure of their own are searched pair by pair, up to this many values."""


@dataclass(frozen=True)
class BlockBudget:
    """The weakest `BlockPolicy(epsilon, blocks)` that satisfies a policy.

    `protected` are the values with a finite budget to some other value, int64, ascending.
    """

    epsilon: Fraction
    blocks: Blocks
    protected: Indices


def block_budget(policy: Policy) -> BlockBudget:
    """Return the finest blocks and the largest epsilon inside them that satisfy a policy.

    Finite budgets, in either direction, connect the values of a block; epsilon is the least of
    them.

    Raises:
        SpecError: if no budget is finite, one is 0, or more than 1000 values would be searched.
    """
    every = np.arange(policy.size)
    if isinstance(policy, BlockPolicy):
        shared = policy.blocks.sizes[policy.blocks.of_value] > 1
        return BlockBudget(budget(policy.epsilon), policy.blocks, every[shared])
    if isinstance(policy, HighLowPolicy):
        sensitive = np.array(sorted(policy.sensitive), dtype=np.int64)
        return BlockBudget(budget(policy.epsilon), Blocks.one(policy.size), sensitive)
    if isinstance(policy, MetricPolicy):
        least = min(policy.entry(0, stride) for stride in _strides(policy.shape))
        return BlockBudget(least, Blocks.one(policy.size), every)
    pairs, budgets = _finite_pairs(policy)
    least = _above_zero(min(budgets))
    lowest = components(policy.size, pairs[:, 0], pairs[:, 1])
    blocks = Blocks(np.unique(lowest, return_inverse=True)[1])
    return BlockBudget(least, blocks, np.unique(pairs[:, 0]))


def l1_budget(policy: Policy, shape: Sequence[int]) -> Fraction:
    """Return the largest epsilon for which `epsilon * |x - x'|_1` satisfies a policy.

    Values are in row-major order of `shape`; distances are in index steps.

    Raises:
        SpecError: if no budget is finite, one is 0, or more than 1000 values would be searched.
    """
    if isinstance(policy, MetricPolicy) and policy.shape == tuple(shape):
        return policy.step
    if isinstance(policy, BlockPolicy):
        return budget(policy.epsilon) / _widest_block(policy.blocks, shape)
    points = np.stack(np.unravel_index(np.arange(policy.size), tuple(shape)), axis=1)
    if isinstance(policy, HighLowPolicy):
        sensitive = points[sorted(policy.sensitive)]
        farthest = np.maximum(sensitive, np.array(shape) - 1 - sensitive).sum(axis=1)
        return budget(policy.epsilon) / int(farthest.max())
    pairs, budgets = _finite_pairs(policy)
    steps = np.abs(points[pairs[:, 0]] - points[pairs[:, 1]]).sum(axis=1).tolist()
    return _above_zero(min(b / step for b, step in zip(budgets, steps, strict=True)))


def by_entries(policy: Policy) -> Policy:
    """Return a policy that is defined by its entries and implies the given one.

    This is the policy itself, except for localized information privacy, which bounds the odds
    against priors. There it is LDP with the least epsilon, inside each level of `lip`, which
    implies LIP at every prior (docs/theory.md section 7).
    """
    if isinstance(policy, PriorPolicy):
        return BlockPolicy(policy.epsilon, Blocks.one(policy.size))
    if isinstance(policy, LipPolicy):
        levels = np.repeat(np.arange(len(policy.levels)), 2)
        epsilon = min(level.epsilon for level in policy.levels)
        return BlockPolicy(float_below(epsilon), Blocks(levels))
    return policy


def scaled(policy: Policy, factor: float | Fraction) -> Policy:
    """Return the policy with every budget times a finite factor above 0; infinity stays.

    An exact factor keeps exact budgets exact.

    Raises:
        SpecError: if the factor is invalid, or the policy's budgets cannot be chosen freely.

    >>> scaled(BinaryPolicy(1.0, math.inf), 0.5)
    BinaryPolicy(first=0.5, second=inf)
    """
    if not (math.isfinite(factor) and factor > 0):
        raise SpecError("factor", f"a finite number above 0, got {factor}")
    if isinstance(policy, BlockPolicy | HighLowPolicy | MetricPolicy):
        return replace(policy, epsilon=policy.epsilon * float(factor))
    if isinstance(policy, BinaryPolicy):
        return BinaryPolicy(policy.first * float(factor), policy.second * float(factor))
    exact = factor if isinstance(factor, Fraction) else budget(factor)
    if isinstance(policy, MatrixPolicy):
        rows = (tuple(e if e is None else e * exact for e in row) for row in policy.entries)
        return MatrixPolicy(tuple(rows))
    if isinstance(policy, GraphPolicy):
        edges = tuple((start, end, length * exact) for start, end, length in policy.edges)
        return replace(policy, edges=edges)
    raise SpecError("policy", "a policy with budgets of its own")


def float_below(epsilon: Fraction) -> float:
    """Return the nearest float that stands for at most this budget (`dyadic.budget`).

    >>> float_below(Fraction(1, 10)), float_below(Fraction(1, 3)) <= Fraction(1, 3)
    (0.1, True)
    """
    nearest = float(epsilon)
    while budget(nearest) > epsilon:
        nearest = math.nextafter(nearest, 0.0)
    return nearest


def _strides(shape: Sequence[int]) -> list[int]:
    """Return the index one step from value 0 along each dimension of two or more values."""
    places = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return [stride for stride, extent in zip(places, shape, strict=True) if extent > 1]


def _widest_block(blocks: Blocks, shape: Sequence[int]) -> int:
    """Return the largest L1 distance of two values of one block.

    This is the largest extent along any of the directions `(1, +-1, .., +-1)`.
    """
    coordinates = np.unravel_index(np.arange(blocks.size), tuple(shape))
    widest = 0
    for signs in product((1, -1), repeat=len(shape) - 1):
        along = sum(
            sign * axis for sign, axis in zip((1, *signs), coordinates, strict=True)
        ) + np.zeros(blocks.size, dtype=np.int64)
        low = np.full(blocks.count, np.iinfo(np.int64).max)
        high = np.full(blocks.count, np.iinfo(np.int64).min)
        np.minimum.at(low, blocks.of_value, along)
        np.maximum.at(high, blocks.of_value, along)
        widest = max(widest, int((high - low).max()))
    if widest == 0:
        raise SpecError("policy", "a pair of values that is protected, got none")
    return widest


def _finite_pairs(policy: Policy) -> tuple[Indices, list[Fraction]]:
    """Return the pairs with finite budgets that imply all others, `(pairs, 2)`, and the budgets."""
    if policy.size > _MOST_LISTED:
        raise SpecError("policy", f"at most {_MOST_LISTED} values, got {policy.size}")
    found = list(policy.constraints())
    if not found:
        raise SpecError("policy", "a pair of values that is protected, got none")
    pairs = np.array([(value, other) for value, other, _ in found], dtype=np.int64)
    return pairs, [entry for _, _, entry in found]


def _above_zero(epsilon: Fraction) -> Fraction:
    if epsilon <= 0:
        raise SpecError("policy", "budgets above 0 between values that it protects, got 0")
    return epsilon


def components(size: int, first: Indices, second: Indices) -> Indices:
    """Return, for each value, the least value that chains of pairs join to it: int64 `(size,)`."""
    lowest = np.arange(size)
    while True:
        ends = np.minimum(lowest[first], lowest[second])
        joined = lowest.copy()
        for side in (first, second):
            np.minimum.at(joined, side, ends)
            np.minimum.at(joined, lowest[side], ends)
        joined = joined[joined]
        if np.array_equal(joined, lowest):
            return lowest
        lowest = joined
