"""What follows from the budgets of pairs of values, whatever policy they are of.

A mechanism may be used wherever its own policy is at least as strict. Under any policy E there is
therefore a largest epsilon for each form: classical inside blocks, per step of an L1 metric, or
from sensitive values only. The results are exact rationals.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.blocks import Blocks

MAX_LISTED_VALUES = 1000
"""Largest number of values of a matrix, which then has a million exact entries, and of a policy
without a structure of its own, which is searched pair by pair."""


@dataclass(frozen=True)
class BlockBudget:
    """The weakest `BlockPolicy(epsilon, blocks)` that satisfies a policy.

    `protected` are the values with a finite budget to some other value, int64, ascending.
    """

    epsilon: Fraction
    blocks: Blocks
    protected: Indices


def unit_strides(shape: Sequence[int]) -> list[int]:
    """Return the index one step from value 0 along each dimension of two or more values."""
    places = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return [stride for stride, extent in zip(places, shape, strict=True) if extent > 1]


def widest_block(blocks: Blocks, shape: Sequence[int]) -> int:
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


def above_zero(epsilon: Fraction) -> Fraction:
    """Return a budget, or raise `SpecError` if it is 0."""
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


def shortest_paths(entries: Sequence[Sequence[Fraction | None]]) -> list[list[Fraction | None]]:
    """Return the least budgets that chains of these, `(k, k)`, imply; None is infinite.

    Computed by Floyd and Warshall's algorithm in exact integers over one denominator.
    """
    unit = math.lcm(*(e.denominator for row in entries for e in row if e is not None))
    far = 1 + sum(int(e * unit) for row in entries for e in row if e is not None)
    # No finite path is longer than the sum of all entries: `far` and above is infinite.
    table = [[far if e is None else int(e * unit) for e in row] for row in entries]
    # Sums of two lengths stay below `2 far`; Python's integers take over if 64 bits are too few.
    lengths = np.array(table, dtype=np.int64 if far < 1 << 62 else object)
    for middle in range(len(entries)):
        lengths = np.minimum(lengths, lengths[:, middle, None] + lengths[middle])
    return [[Fraction(n, unit) if n < far else None for n in row] for row in lengths.tolist()]
