"""Policies: which values may be distinguished, and how well ([CA] Definition 1).

A policy is a matrix E of shape `(k, k)`, rows "from" and columns "to": a channel Q satisfies it
iff `Q[x, y] <= e^E[x, x'] Q[x', y]` for all x, x', y. Entries are exact rationals here (see
`dyadic.budget`), or None for infinity: such an ordered pair is unprotected.
"""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Bools, Indices
from ldpstream.mechanisms.base.canonical import Json, json_number, text_table
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.policies.budgets import (
    MAX_LISTED_VALUES,
    BlockBudget,
    above_zero,
    components,
    shortest_paths,
    widest_block,
)


class Policy(ABC):
    """The matrix E of a mechanism over `size` values."""

    is_closed: ClassVar[bool] = True
    """Whether every entry is the shortest path that entries imply."""

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

    @property
    def known_shares(self) -> tuple[Fraction, ...] | None:
        """The shares of the values with which the policy compares, if it does."""
        return None

    @property
    def members(self) -> Mapping[str, "Policy"]:
        """The policies of a record's attributes by name; none for other values."""
        return {}

    @property
    def disclosed_blocks(self) -> Blocks | None:
        """The blocks between which no budget is finite, if the policy is one of blocks."""
        return None

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

    @property
    def few_pairs(self) -> bool:
        """Whether these are few of all pairs, so that large domains need not be searched."""
        return False

    def is_within(self, value: int, other: int, allowed: Fraction) -> bool:
        """Return whether a pair has a budget, and at most this one."""
        entry = self.entry(value, other)
        return entry is not None and entry <= allowed

    def listed(self) -> list[list[Fraction | None]]:
        """Return all entries, `(k, k)`.

        Raises:
            SpecError: for more than 1000 values.
        """
        self._check_listed()
        values = range(self.size)
        return [[self.entry(x, other) for other in values] for x in values]

    def _check_listed(self, why: str = "") -> None:
        if self.size > MAX_LISTED_VALUES:
            raise SpecError("policy", f"at most {MAX_LISTED_VALUES} values{why}, got {self.size}")

    def reports_per_error(self) -> float | None:
        """Return the order of `a^2 n`, if n reports can estimate all shares within a.

        a is the mean total variation distance. Every mechanism of the policy needs that many
        reports, up to a constant, and one attains it ([CA] Theorems 3 and 4, for budgets of at most
        1). None for other policies.
        """
        return None

    def least_budgets(self) -> Iterator[Fraction]:
        """Yield the least finite budget above 0, or several that include it; none if none is."""
        return (entry for *_, entry in self.constraints() if entry)

    def largest_loss(self) -> Fraction:
        """Return the largest finite budget of any ordered pair: the most that one report loses.

        Pairs without a budget are left out, since they are unprotected by any number of reports.

        Raises:
            SpecError: for more than 1000 values, unless the policy is one of blocks, sensitive
                values, a metric or priors.
        """
        self._check_listed(" to add up budgets that are given one by one")
        entries = shortest_paths(self.listed())
        return max(entry for row in entries for entry in row if entry is not None)

    def block_budget(self) -> BlockBudget:
        """Return the finest blocks and the largest epsilon inside them that satisfy this policy.

        Finite budgets, in either direction, connect the values of a block; epsilon is the least of
        them.

        Raises:
            SpecError: if no budget is finite, one is 0, or more than 1000 values would be searched.
        """
        pairs, budgets = self._finite_pairs()
        least = above_zero(min(budgets))
        lowest = components(self.size, pairs[:, 0], pairs[:, 1])
        blocks = Blocks(np.unique(lowest, return_inverse=True)[1])
        return BlockBudget(least, blocks, np.unique(pairs[:, 0]))

    def l1_budget(self, shape: Sequence[int]) -> Fraction:
        """Return the largest epsilon for which `epsilon * |x - x'|_1` satisfies this policy.

        Values are in row-major order of `shape`; distances are in index steps.

        Raises:
            SpecError: if no budget is finite, one is 0, or more than 1000 values would be searched.
        """
        points = np.stack(np.unravel_index(np.arange(self.size), tuple(shape)), axis=1)
        pairs, budgets = self._finite_pairs()
        steps = np.abs(points[pairs[:, 0]] - points[pairs[:, 1]]).sum(axis=1).tolist()
        return above_zero(min(b / step for b, step in zip(budgets, steps, strict=True)))

    def _finite_pairs(self) -> tuple[Indices, list[Fraction]]:
        """Return pairs with finite budgets that imply all others, `(pairs, 2)`, and the budgets."""
        self._check_listed()
        constraints = list(self.constraints())
        if not constraints:
            raise SpecError("policy", "a pair of values that is protected, got none")
        pairs = np.array([(value, other) for value, other, _ in constraints], dtype=np.int64)
        return pairs, [entry for _, _, entry in constraints]

    def by_entries(self) -> "Policy":
        """Return a policy that is defined by its entries and implies this one.

        This is the policy itself, except for localized information privacy, which bounds the odds
        against priors. There it is LDP with the least epsilon, inside each level of `lip`, which
        implies LIP at every prior (docs/theory.md section 7).
        """
        return self

    def scaled(self, factor: float | Fraction) -> "Policy":
        """Return the policy with every budget times a finite factor above 0; infinity stays.

        An exact factor keeps exact budgets exact.

        Raises:
            SpecError: if the factor is invalid, or the policy's budgets cannot be chosen freely.

        >>> BinaryPolicy(1.0, math.inf).scaled(0.5)
        BinaryPolicy(first=0.5, second=inf)
        """
        if not (math.isfinite(factor) and factor > 0):
            raise SpecError("factor", f"a finite number above 0, got {factor}")
        return self._times(factor)

    def _times(self, factor: float | Fraction) -> "Policy":
        del factor
        raise SpecError("policy", "a policy with budgets of its own")

    def tables(self) -> dict[str, Json]:
        """Return what its description does not state: blocks, edges or budgets, for devices."""
        return {}

    def document(self) -> dict[str, Json]:
        """Return a matrix, graph or prior as JSON: budgets are fractions, infinity is "inf".

        Raises:
            TypeError: for a policy of another form.
        """
        raise TypeError(f"a policy of another form: {type(self).__name__}")

    @abstractmethod
    def describe(self) -> dict[str, Json]:
        """Return a JSON description: `kind`, `size`, and what determines the matrix."""

    def matrix(self) -> NDArray[np.float64]:
        """Return E as float64 `(k, k)`, `inf` where unprotected. For small k."""
        k = self.size
        entries = [[self.entry(x, other) for other in range(k)] for x in range(k)]
        return np.array([[math.inf if e is None else float(e) for e in row] for row in entries])


class ListedPolicy(Policy):
    """Policies whose budgets are given one by one, however the numbers were written."""

    @property
    @abstractmethod
    def content(self) -> bytes:
        """The exact budgets as canonical JSON, of which `digest` is the hash."""

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex, of the content: what fingerprints hash."""
        return hashlib.sha256(self.content).hexdigest()

    def tables(self) -> dict[str, Json]:
        return text_table("policy", self.content)


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

    def largest_loss(self) -> Fraction:
        return max(entry for *_, entry in self.constraints())

    def _times(self, factor: float | Fraction) -> Policy:
        return BinaryPolicy(self.first * float(factor), self.second * float(factor))

    def describe(self) -> dict[str, Json]:
        budgets: list[Json] = [json_number(self.first), json_number(self.second)]
        return {"kind": "binary", "size": 2, "epsilon": budgets}


@dataclass(frozen=True)
class UniformPolicy(Policy):
    """Policies whose finite budgets are all `epsilon`."""

    epsilon: float

    @abstractmethod
    def protects(self, values: Indices, partners: Indices) -> Bools:
        """Return which pairs have a budget, bool of the indices' shape."""

    def least_budgets(self) -> Iterator[Fraction]:
        yield budget(self.epsilon)

    def largest_loss(self) -> Fraction:
        return budget(self.epsilon)

    def _times(self, factor: float | Fraction) -> Policy:
        return replace(self, epsilon=self.epsilon * float(factor))


@dataclass(frozen=True)
class HighLowPolicy(UniformPolicy):
    """`E[x, x'] = epsilon` for sensitive x and every x', infinity for other x ([CA] Definition 3).

    A report never reveals a sensitive value, but it may reveal one that is not sensitive. If all
    values are sensitive, this is classical LDP.
    """

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

    def protects(self, values: Indices, partners: Indices) -> Bools:
        del partners
        mask = np.zeros(self.size, dtype=np.bool_)
        mask[list(self.sensitive)] = True
        return mask[values]

    def reports_per_error(self) -> float | None:
        s = len(self.sensitive)
        if self.epsilon > 1.0 or 2 * s >= self.size:
            return None
        return s**2 / self.epsilon**2 + self.size / self.epsilon

    def block_budget(self) -> BlockBudget:
        sensitive = np.array(sorted(self.sensitive), dtype=np.int64)
        return BlockBudget(budget(self.epsilon), Blocks.one(self.size), sensitive)

    def l1_budget(self, shape: Sequence[int]) -> Fraction:
        places = np.array(sorted(self.sensitive), dtype=np.int64)
        sensitive = np.stack(np.unravel_index(places, tuple(shape)), axis=1)
        farthest = np.maximum(sensitive, np.array(shape) - 1 - sensitive).sum(axis=1)
        return budget(self.epsilon) / int(farthest.max())

    def describe(self) -> dict[str, Json]:
        return {
            "kind": "high-low",
            "size": self.values,
            "epsilon": self.epsilon,
            "sensitive": len(self.sensitive),
            "sha256": self.digest,
        }


@dataclass(frozen=True)
class BlockPolicy(UniformPolicy):
    """`E[x, x'] = epsilon` within a block, infinity between blocks ([CA] Definition 4).

    One block is classical LDP.
    """

    blocks: Blocks

    @property
    def disclosed_blocks(self) -> Blocks:
        return self.blocks

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

    def protects(self, values: Indices, partners: Indices) -> Bools:
        of = self.blocks.of_value
        return np.equal(of[values], of[partners])

    def reports_per_error(self) -> float | None:
        if self.epsilon > 1.0:
            return None
        return float((self.blocks.sizes.astype(np.float64) ** 2).sum()) / self.epsilon**2

    def block_budget(self) -> BlockBudget:
        shared = self.blocks.sizes[self.blocks.of_value] > 1
        return BlockBudget(budget(self.epsilon), self.blocks, np.arange(self.size)[shared])

    def l1_budget(self, shape: Sequence[int]) -> Fraction:
        return budget(self.epsilon) / widest_block(self.blocks, shape)

    def tables(self) -> dict[str, Json]:
        return self.blocks.tables()

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
