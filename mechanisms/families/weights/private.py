"""Domains with weights, and private weights as one more dimension (docs/theory.md section 5).

A device gives a weight in `0..largest` after its value. A private weight is randomised like any
coordinate, so that weights that differ by w are protected by w epsilon. For public weights see
`public`. Estimates are about the values and about the sums of their weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Indices, unmasked
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import check_keys, describe, is_integer, is_whole
from ldpstream.mechanisms.base.errors import SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.base.numbers import parse_whole
from ldpstream.mechanisms.domains.base import MAX_VALUES, Domain
from ldpstream.mechanisms.exact.entropy import Entropy
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.policies.metric import MetricPolicy

_LARGEST_WEIGHT: Final = 65_535


@dataclass(frozen=True)
class WeightedDomain(Domain):
    """Labels `[value, weight]`, or `[coordinate, .., weight]` in D > 1 dimensions.

    `values` is the collection's own domain; weights are whole numbers in `0..largest`. An index is
    `(largest + 1) * value + weight`. Lines of text hold the weight in their last column. `public`
    says that weights are sent in the clear.
    """

    ordered: ClassVar[bool] = True
    values: Domain
    largest: int
    public: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.values.shape, self.largest + 1)

    @property
    def largest_weight(self) -> int:
        return self.largest

    @cached_property
    def estimated(self) -> Domain:
        return self.values

    @cached_property
    def estimated_indices(self) -> Indices:
        return np.repeat(np.arange(self.values.size), self.largest + 1)

    @property
    def expected(self) -> str:
        return f"{self.values.expected}, with {self._weight_expected} after it"

    @property
    def _weight_expected(self) -> str:
        return f"a weight, a whole number in 0..{self.largest},"

    def index(self, labels: Sequence[Any] | NDArray[Any]) -> Indices:
        rows, weights = self._split(labels)
        return self._joined(self.values.index(rows), weights, len(labels))

    def place(self, labels: Sequence[Any] | NDArray[Any], *, entropy: Entropy) -> Indices:
        rows, weights = self._split(labels)
        return self._joined(self.values.place(rows, entropy=entropy), weights, len(labels))

    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        """Return the indices of rows of text: the value's columns, then the weight."""
        weights = self._weights([row[-1] if row else None for row in rows])
        values = self.values.parse_columns([row[:-1] for row in rows[: len(weights)]])
        return self._joined(values, weights, len(rows))

    def place_columns(self, rows: Sequence[Sequence[str]], *, entropy: Entropy) -> Indices:
        """Do the same for rows of text: the value's columns, then the weight."""
        weights = self._weights([row[-1] if row else None for row in rows])
        columns = [row[:-1] for row in rows[: len(weights)]]
        return self._joined(self.values.place_columns(columns, entropy=entropy), weights, len(rows))

    def label(self, index: int) -> Json:
        """Return the value's label, or its entries, and the weight."""
        value, weight = divmod(index, self.largest + 1)
        label = self.values.label(value)
        if len(self.values.shape) > 1 and isinstance(label, list):
            return [*label, weight]
        return [label, weight]

    def canonical(self) -> Json:
        values = self.values.canonical()
        assert isinstance(values, dict)
        return {**values, "weights": {"public" if self.public else "private": self.largest}}

    def _split(self, labels: Sequence[Any] | NDArray[Any]) -> tuple[Any, Indices]:
        """Return the values' labels up to the first bad weight, and these weights."""
        columns, labels = len(self.values.shape), unmasked(labels)
        if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.shape[1] == columns + 1:
            weights = self._weights(labels[:, -1].tolist())
            values = labels[: len(weights), :-1]
            return (values[:, 0] if columns == 1 else values), weights
        rows = [row if isinstance(row, list | tuple) else () for row in labels]
        weights = self._weights([row[-1] if len(row) == columns + 1 else None for row in rows])
        rows = rows[: len(weights)]
        return [row[0] if columns == 1 else list(row[:-1]) for row in rows], weights

    def _weights(self, column: Sequence[object]) -> Indices:
        """Return the weights up to the first invalid one, int64."""
        weights: list[int] = []
        for entry in column:
            weight = _whole(entry)
            if not 0 <= weight <= self.largest:
                break
            weights.append(weight)
        return np.array(weights, dtype=np.int64)

    def _joined(self, values: Indices, weights: Indices, n: int) -> Indices:
        """Return the indices of labels; a bad weight raises if all values before it are good."""
        if len(weights) < n:
            raise ValueOutsideDomainError(len(weights), f"{self._weight_expected} after the value")
        return values * (self.largest + 1) + weights


def _whole(entry: object) -> int:
    """Return a weight, or -1 if it is not a whole number."""
    if isinstance(entry, str):
        return parse_whole(entry)
    if isinstance(entry, float | np.floating) and float(entry).is_integer():
        return int(entry)
    return int(entry) if is_integer(entry) else -1


def weighted_shape(settings: Settings, policy: MetricPolicy) -> tuple[int, ...] | None:
    """Return the shape with a dimension for a collection's weights, or None if it has none.

    Raises:
        SpecError: if `weights` is not `{ private = N }`, there are too many pairs of value and
            weight, or the policy is not the L1 metric, the only one that makes sense with weights.
    """
    if "weights" not in settings.keys:
        return None
    path = f"{settings.path}.weights"
    table = check_keys(settings.keys["weights"], frozenset({"private"}), path)
    largest = table.get("private")
    if not is_whole(largest) or not 1 <= largest <= _LARGEST_WEIGHT:
        received = "none" if largest is None else describe(largest)
        raise SpecError(
            f"{path}.private",
            f"the largest weight, a number in 1..{_LARGEST_WEIGHT}, got {received}",
        )
    if policy.p != 1:
        raise SpecError(path, "weights under the L1 metric only")
    shape = (*policy.shape, largest + 1)
    if prod(shape) > MAX_VALUES:
        raise SpecError(path, f"at most {MAX_VALUES} pairs of value and weight, got {prod(shape)}")
    return shape
