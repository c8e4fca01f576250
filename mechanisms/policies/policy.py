"""Policies: which values may be distinguished, and how well ([CA] Definition 1).

A policy is a matrix E of shape `(k, k)`, rows "from" and columns "to": a channel Q satisfies it
iff `Q[x, y] <= e^E[x, x'] Q[x', y]` for all x, x', y. Entries are exact rationals here (see
`dyadic.budget`), or None for infinity: such an ordered pair is unprotected.
"""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.canonical import Json, json_number
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import budget


class Policy(ABC):
    """The matrix E of a mechanism over `size` values."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of values k."""

    @abstractmethod
    def entry(self, value: int, other: int) -> Fraction | None:
        """Return `E[value, other]`, or None if it is infinite; 0 on the diagonal."""

    @property
    @abstractmethod
    def unprotected_pairs(self) -> int:
        """Number of ordered pairs of different values whose entry is infinite."""

    @property
    @abstractmethod
    def unprotected(self) -> str | None:
        """Return which ordered pairs are unprotected, or None if all are protected."""

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield ordered pairs of different values whose budgets imply those of all others.

        By default every pair. A channel that keeps the budgets along a chain of pairs keeps their
        sum between the ends, so that the edges of a graph suffice under its shortest-path metric.
        """
        return permutations(range(self.size), 2)

    def constraints(self) -> Iterator[tuple[int, int, Fraction]]:
        """Yield `(value, other, budget)` for each of these pairs that has a finite budget."""
        for value, other in self.pairs():
            entry = self.entry(value, other)
            if entry is not None:
                yield value, other, entry

    @abstractmethod
    def describe(self) -> dict[str, Json]:
        """Return a JSON description: `kind`, `size`, and what determines the matrix."""

    def matrix(self) -> NDArray[np.float64]:
        """Return E as float64 `(k, k)`, `inf` where unprotected. For small k."""
        k = self.size
        entries = [[self.entry(x, other) for other in range(k)] for x in range(k)]
        return np.array([[math.inf if e is None else float(e) for e in row] for row in entries])


@dataclass(frozen=True)
class BinaryPolicy(Policy):
    """Two values: `E[0, 1] = first` and `E[1, 0] = second`, either of which may be infinite."""

    first: float
    second: float

    @property
    def size(self) -> int:
        return 2

    def entry(self, value: int, other: int) -> Fraction | None:
        if value == other:
            return Fraction(0)
        epsilon = self.first if value == 0 else self.second
        return None if math.isinf(epsilon) else budget(epsilon)

    @property
    def unprotected_pairs(self) -> int:
        return math.isinf(self.first) + math.isinf(self.second)

    @property
    def unprotected(self) -> str | None:
        if math.isinf(self.first):
            return "the first value against the second: a report may reveal the first"
        if math.isinf(self.second):
            return "the second value against the first: a report may reveal the second"
        return None

    def describe(self) -> dict[str, Json]:
        budgets: list[Json] = [json_number(self.first), json_number(self.second)]
        return {"kind": "binary", "size": 2, "epsilon": budgets}


@dataclass(frozen=True)
class HighLowPolicy(Policy):
    """`E[x, x'] = epsilon` for sensitive x and every x', infinity for other x ([CA] Definition 3).

    A report never reveals a sensitive value, but it may reveal one that is not sensitive. If all
    values are sensitive, this is classical LDP.
    """

    epsilon: float
    values: int
    sensitive: frozenset[int]

    @property
    def size(self) -> int:
        return self.values

    def entry(self, value: int, other: int) -> Fraction | None:
        if value == other:
            return Fraction(0)
        return budget(self.epsilon) if value in self.sensitive else None

    @property
    def unprotected_pairs(self) -> int:
        return (self.values - len(self.sensitive)) * (self.values - 1)

    @property
    def unprotected(self) -> str | None:
        if len(self.sensitive) == self.values:
            return None
        return "a value that is not sensitive against any other: a report may reveal it"

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex, of the sensitive values' indices, ascending, as little-endian int32."""
        listed = np.array(sorted(self.sensitive), dtype="<i4")
        return hashlib.sha256(listed.tobytes()).hexdigest()

    def describe(self) -> dict[str, Json]:
        return {
            "kind": "high-low",
            "size": self.values,
            "epsilon": self.epsilon,
            "sensitive": len(self.sensitive),
            "sha256": self.digest,
        }


@dataclass(frozen=True)
class BlockPolicy(Policy):
    """`E[x, x'] = epsilon` within a block, infinity between blocks ([CA] Definition 4).

    One block is classical LDP.
    """

    epsilon: float
    blocks: Blocks

    @property
    def size(self) -> int:
        return self.blocks.size

    def entry(self, value: int, other: int) -> Fraction | None:
        if value == other:
            return Fraction(0)
        of = self.blocks.of_value
        return budget(self.epsilon) if of[value] == of[other] else None

    @property
    def unprotected_pairs(self) -> int:
        return self.size**2 - sum(int(n) ** 2 for n in self.blocks.sizes)

    @property
    def unprotected(self) -> str | None:
        if self.blocks.count == 1:
            return None
        return "values in different blocks: a report reveals the block"

    def describe(self) -> dict[str, Json]:
        sizes, several = self.blocks.sizes, self.blocks.count > 1
        return {
            "kind": "block" if several else "classical",
            "size": self.size,
            "epsilon": self.epsilon,
            "blocks": self.blocks.count,
            "smallest_block": int(sizes.min()),
            "largest_block": int(sizes.max()),
            **({"sha256": self.blocks.digest} if several else {}),
        }


@dataclass(frozen=True)
class PublicWeightPolicy(Policy):
    """`E[(x, v), (x', v)] = values.E[x, x']`, infinity between different weights.

    The pair of value x and weight v in `0..weights - 1` is numbered `weights * x + v`.
    """

    values: Policy
    weights: int

    @property
    def size(self) -> int:
        return self.values.size * self.weights

    def entry(self, value: int, other: int) -> Fraction | None:
        (x, weight), (z, another) = divmod(value, self.weights), divmod(other, self.weights)
        return self.values.entry(x, z) if weight == another else None

    @property
    def unprotected_pairs(self) -> int:
        across = self.values.size**2 * self.weights * (self.weights - 1)
        return across + self.weights * self.values.unprotected_pairs

    @property
    def unprotected(self) -> str:
        own = self.values.unprotected
        across = "values with different weights: a report reveals the weight"
        return across if own is None else f"{across}; {own}"

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the values' pairs under each weight; between two weights there is no budget."""
        for value, other in self.values.pairs():
            for weight in range(self.weights):
                yield value * self.weights + weight, other * self.weights + weight

    def describe(self) -> dict[str, Json]:
        return {
            "kind": "public weights",
            "size": self.size,
            "largest_weight": self.weights - 1,
            "values": self.values.describe(),
        }
