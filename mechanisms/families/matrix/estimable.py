"""Which linear queries the rows of a strategy answer, decided in exact arithmetic.

In a group whose number of reports is known, a query w is answered without bias iff w is in the row
space of the rows and of ones: iff the differences of w from its first weight are a combination of
the rows' differences. Rounding never decides: up to 256 different columns are eliminated without
fractions, more modulo two primes near 2^61, and again without fractions should these disagree.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.families.matrix.strategy import Entries

_EXACT: Final = 256
"""So many different columns are eliminated over the rationals."""
PRIMES: Final = (2**61 - 1, 2**61 - 31)

_Row = NDArray[Any]
"""Python's integers, which do not overflow."""


@dataclass(eq=False)
class RowSpace:
    """The span of integer rows, over the rationals or modulo a prime.

    `basis` holds pivots with rows that are 0 at all earlier pivots.
    """

    modulus: int | None
    basis: list[tuple[int, _Row]] = field(default_factory=list)

    def add(self, row: _Row) -> None:
        """Add a row to the span."""
        rest = self.reduce(row)
        if rest.any():
            self.basis.append((int(np.argmax(rest != 0)), rest))

    def reduce(self, row: _Row) -> _Row:
        """Return what is left of a row, up to a factor; 0 everywhere iff the span holds it."""
        row = self._small(row)
        for pivot, base in self.basis:
            if row[pivot]:
                row = self._small(row * base[pivot] - base * row[pivot])
        return row

    def _small(self, row: _Row) -> _Row:
        return row % self.modulus if self.modulus else row // (math.gcd(*row) or 1)


@dataclass(frozen=True, eq=False)
class EstimableQueries:
    """The queries that rows answer in a group of values, `members`, int64 `(s,)`.

    `column` is the place of each of these among the different columns of the rows, of which
    `first` holds one value each.
    """

    differences: _Row
    members: Integers
    column: Integers
    first: Integers

    @classmethod
    def of(cls, entries: Entries, members: Integers) -> "EstimableQueries":
        """Prepare rows `(m, k)` for a group."""
        _, first, column = np.unique(
            entries[:, members], axis=1, return_index=True, return_inverse=True
        )
        distinct = entries[:, members[first]].astype(object)
        return cls(distinct[:, 1:] - distinct[:, :1], members, column.reshape(-1), members[first])

    @cached_property
    def rank(self) -> int:
        """The rank of the rows' differences."""
        ranks = [len(space.basis) for space in self._spaces]
        return max(ranks) if len({*ranks}) == 1 else len(self._rational.basis)

    @property
    def complete(self) -> bool:
        """Whether every query is answered."""
        return self.rank == len(self.members) - 1

    def unanswered(self, weights: Floats) -> tuple[int, int] | None:
        """Return two values whose shares the rows do not separate, if these weights need them."""
        here = weights[self.members]
        own = weights[self.first][self.column]
        if (here != own).any():
            place = int(np.argmax(here != own))
            return int(self.first[self.column[place]]), int(self.members[place])
        row = _integers(weights[self.first].tolist())
        rest = self._remainder(row[1:] - row[0])
        if rest is None:
            return None
        # The share of this value is not known, so neither is its difference from some other.
        left = int(np.argmax(rest != 0)) + 1
        others = sorted(range(len(row)), key=lambda other: row[other] == row[left])
        for other in others:
            pair = np.zeros(len(row), dtype=object)
            pair[left], pair[other] = 1, -1
            if other != left and self._remainder(pair[1:] - pair[0]) is not None:
                first, second = sorted((int(self.first[left]), int(self.first[other])))
                return first, second
        raise AssertionError("the shares' sum is known, so two are unknown")

    def _remainder(self, row: _Row) -> _Row | None:
        """Return what the span leaves of a row; None if it holds it."""
        rests = [space.reduce(row) for space in self._spaces]
        if len({bool(rest.any()) for rest in rests}) > 1:
            rests = [self._rational.reduce(row)]
        return rests[0] if rests[0].any() else None

    @cached_property
    def _spaces(self) -> Sequence[RowSpace]:
        if len(self.first) <= _EXACT:
            return [self._rational]
        return [self._span(prime) for prime in PRIMES]

    @cached_property
    def _rational(self) -> RowSpace:
        return self._span(None)

    def _span(self, modulus: int | None) -> RowSpace:
        space = RowSpace(modulus)
        for row in self.differences:
            if len(space.basis) < len(row):
                space.add(row)
        return space


def _integers(weights: Sequence[float]) -> _Row:
    """Return weights as whole numbers, up to a factor; a float stands for its shortest decimal."""
    exact = [Fraction(repr(weight)) for weight in weights]
    common = math.lcm(*(one.denominator for one in exact))
    return np.array([int(one * common) for one in exact], dtype=object)
