"""Workloads: the queries whose total variance a design minimises, as Gram matrices.

A workload of queries `w_1, ..., w_q` matters only through `G = sum_i w_i w_i^T` (docs/theory.md
section 8), which is a product over the dimensions for prefixes and ranges.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.families.matrix.workload import WORKLOADS


@dataclass(frozen=True, eq=False)
class Workload:
    """A name, the Gram matrix `G`, float64 `(k, k)`, and the number of queries in it."""

    name: str
    gram: Floats
    queries: int

    @property
    def size(self) -> int:
        """Number of values k."""
        return len(self.gram)


def histogram(size: int) -> Workload:
    """Return every single value: `G` is the identity."""
    return Workload("histogram", WORKLOADS["values"](size), size)


def prefixes(shape: Sequence[int]) -> Workload:
    """Return all boxes that begin at the first value of every dimension, the whole included."""
    return Workload("prefixes", _product("prefixes", shape), prod(shape))


def ranges(shape: Sequence[int]) -> Workload:
    """Return all boxes."""
    return Workload("ranges", _product("ranges", shape), prod(m * (m + 1) // 2 for m in shape))


def sets(size: int, members: Sequence[Integers], *, name: str = "sets") -> Workload:
    """Return the indicators of given sets of values, each an array of different indices.

    Raises:
        ValueError: if there is no set, or one holds an index outside `0..size-1` or one twice.
    """
    if not members:
        raise ValueError("workload: expected at least one set, got none")
    gram = np.zeros((size, size))
    for number, given in enumerate(members):
        places = np.asarray(given, dtype=np.int64)
        if places.size and (places.min() < 0 or places.max() >= size):
            raise ValueError(f"set {number}: expected indices in 0..{size - 1}")
        if np.unique(places).size < places.size:
            raise ValueError(f"set {number}: expected every index once")
        gram[np.ix_(places, places)] += 1.0
    return Workload(name, gram, len(members))


def _product(name: str, shape: Sequence[int]) -> Floats:
    return reduce(_kron, (WORKLOADS[name](m) for m in shape))


def _kron(first: Floats, second: Floats) -> Floats:
    return np.asarray(np.kron(first, second), dtype=np.float64)
