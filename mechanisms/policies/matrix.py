"""Policies given entry by entry, possibly asymmetric or infinite: lists, files or a function."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from ldpstream.mechanisms.base.canonical import Json, canonical_json
from ldpstream.mechanisms.base.checks import describe, read_budget
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.policies.budgets import MAX_LISTED_VALUES
from ldpstream.mechanisms.policies.policy import ListedPolicy, Policy

Entries = tuple[tuple[Fraction | None, ...], ...]


@dataclass(frozen=True)
class MatrixPolicy(ListedPolicy):
    """`E[x, x'] = entries[x][x']`, exact rationals, None for infinity ([CA] Definition 1).

    Rows are "from", columns "to"; `E[x, x']` and `E[x', x]` are independent, and no entry has to be
    a shortest path (see `composition.closure`). `of` reads numbers, `of_function` calls a function,
    `file.read_matrix` reads a file. Policies with the same entries are equal.

    Raises:
        SpecError: if the matrix is not square, has fewer than 2 or more than 1000 rows, a negative
            entry, or a diagonal entry that is not 0.

    >>> policy = MatrixPolicy.of([[0, 0.5], [float("inf"), 0]])
    >>> policy.entry(0, 1), policy.entry(1, 0)
    (Fraction(1, 2), None)
    """

    is_closed: ClassVar[bool] = False
    entries: Entries

    def __post_init__(self) -> None:
        size = len(self.entries)
        _check_size(size)
        for x, row in enumerate(self.entries):
            if len(row) != size:
                raise SpecError(f"policy[{x}]", f"a square matrix, {size} budgets, got {len(row)}")
            for other, entry in enumerate(row):
                if entry is not None and entry < 0:
                    raise SpecError(
                        f"policy[{x}][{other}]", f"a budget of at least 0, got {float(entry)}"
                    )
            if row[x] != 0:
                budget = "inf" if row[x] is None else float(row[x] or 0)
                raise SpecError(f"policy[{x}][{x}]", f"0 on the diagonal, got {budget}")

    @classmethod
    def of(cls, rows: object, *, size: int | None = None) -> Self:
        """Return the policy of k rows of k numbers each: lists, or an array of shape `(k, k)`.

        A number is an integer, a float (`inf` is infinity), a Fraction, or the text "inf". Floats
        are read by `dyadic.budget`. `size`, if given, is the required number of values.

        Raises:
            SpecError: as for the class, and if an entry is not a number of at least 0 or there are
                not `size` rows; paths are `policy[row][column]`.
        """
        listed = _list(rows, "policy", "a list of rows of budgets")
        if size is not None and len(listed) != size:
            raise SpecError("policy", f"{size} rows, one for each value, got {len(listed)}")
        read = []
        for x, row in enumerate(listed):
            budgets = _list(row, f"policy[{x}]", "a row of budgets")
            read.append(tuple(read_budget(e, f"policy[{x}][{o}]") for o, e in enumerate(budgets)))
        return cls(tuple(read))

    @classmethod
    def of_function(
        cls, function: Callable[[Any, Any], object], values: Domain | Sequence[Any] | int
    ) -> Self:
        """Return the policy `E[x, x'] = function(x, x')`, called once for each ordered pair.

        The arguments are the labels of a domain or the members of a sequence, or the indices
        `0..values-1` of a number of values. The diagonal is 0 without a call.

        Raises:
            SpecError: as for `of`.

        >>> ages = [20, 25, 60]
        >>> policy = MatrixPolicy.of_function(lambda age, other: abs(age - other) / 10, ages)
        >>> policy.entry(0, 2)
        Fraction(4, 1)
        """
        label: Callable[[int], Any]
        if isinstance(values, Domain):
            size, label = values.size, values.label
        else:
            listed = range(values) if isinstance(values, int) else values
            size, label = len(listed), listed.__getitem__
        _check_size(size)
        labels = [label(x) for x in range(size)]
        return cls.of(
            [
                [0 if x == other else function(labels[x], labels[other]) for other in range(size)]
                for x in range(size)
            ]
        )

    @property
    def size(self) -> int:
        return len(self.entries)

    def entry(self, value: int, other: int) -> Fraction | None:
        return self.entries[value][other]

    @cached_property
    def unprotected_pairs(self) -> int:
        return sum(row.count(None) for row in self.entries)

    @property
    def unprotected(self) -> str | None:
        if not self.unprotected_pairs:
            return None
        pairs = self.size * (self.size - 1)
        return f"{self.unprotected_pairs} of {pairs} ordered pairs: those with an infinite entry"

    def _times(self, factor: float | Fraction) -> Policy:
        exact = factor if isinstance(factor, Fraction) else budget(factor)
        rows = (tuple(e if e is None else e * exact for e in row) for row in self.entries)
        return MatrixPolicy(tuple(rows))

    @property
    def content(self) -> bytes:
        """The entries as exact fractions in canonical JSON."""
        return canonical_json(self._rows)

    @property
    def _rows(self) -> list[Json]:
        return [["inf" if entry is None else str(entry) for entry in row] for row in self.entries]

    def document(self) -> dict[str, Json]:
        return {"kind": "matrix", "budgets": self._rows}

    def describe(self) -> dict[str, Json]:
        finite = [e for x, o in self.pairs() if (e := self.entries[x][o]) is not None]
        return {
            "kind": "matrix",
            "size": self.size,
            "smallest": float(min(finite)) if finite else None,
            "largest": float(max(finite)) if finite else None,
            "sha256": self.digest,
        }


def _check_size(size: int) -> None:
    if not 2 <= size <= MAX_LISTED_VALUES:
        raise SpecError("policy", f"a matrix of 2..{MAX_LISTED_VALUES} values, got {size}")


def _list(raw: object, path: str, expected: str) -> list[object]:
    """Return a list or array as a list, with Python numbers in place of numpy's."""
    if isinstance(raw, np.ndarray) and raw.ndim:
        return list(raw.tolist())
    if not isinstance(raw, Sequence) or isinstance(raw, str | bytes):
        raise SpecError(path, f"{expected}, got {describe(raw)}")
    return [entry.item() if isinstance(entry, np.generic) else entry for entry in raw]
