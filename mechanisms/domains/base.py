"""The interface of domains: what a device may report about, as values numbered 0..k-1.

A domain turns labels (what people write) into value indices and back. It is part of the spec: its
canonical form is hashed into the fingerprint.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any, ClassVar

from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import describe, is_whole
from ldpstream.mechanisms.base.errors import SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.exact.entropy import Entropy

MAX_VALUES = 10_000_000
"""Largest number of values of a domain: a statistic of int64 counts then takes some 160 MB."""


def check_size(size: int, key: str) -> None:
    """Raise `SpecError` if a domain of this many values is too small or too large."""
    if not 2 <= size <= MAX_VALUES:
        raise SpecError(key, f"2..{MAX_VALUES} values in the domain, got {size}")


def check_extents(extents: Sequence[object], key: str) -> None:
    """Raise `SpecError` if the sizes of the dimensions make no domain."""
    for axis, extent in enumerate(extents):
        if not is_whole(extent) or extent < 1:
            raise SpecError(f"{key}[{axis}]", f"a whole number above 0, got {describe(extent)}")
    check_size(prod(e for e in extents if is_whole(e)), key)


class Domain(ABC):
    """The values of a collection.

    Constructors raise `SpecError` whose path is the key within the `domain` table.
    """

    ordered: ClassVar[bool]
    """Whether ranges make sense, in every dimension."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Number of values of each dimension; indices count in row-major order."""

    @property
    @abstractmethod
    def expected(self) -> str:
        """What a value must be, for error messages."""

    @abstractmethod
    def index(self, labels: Sequence[Any] | NDArray[Any]) -> Indices:
        """Return the indices of n labels, int64 of shape `(n,)`.

        A label has the form that `label` returns; for intervals it is a number (or one
        number a dimension). Arrays of integers or floats take a fast path.

        Raises:
            ValueOutsideDomainError: naming the position of the first label outside the domain.
        """

    def check(self, labels: Sequence[Any] | NDArray[Any]) -> None:
        """Refuse what `place` would refuse, without drawing anything."""
        self.index(labels)

    def place(self, labels: Sequence[Any] | NDArray[Any], *, entropy: Entropy) -> Indices:
        """Return the indices of n labels of a device: `index`, unless rounding is at random."""
        del entropy
        return self.index(labels)

    def place_columns(self, rows: Sequence[Sequence[str]], *, entropy: Entropy) -> Indices:
        """Return the same for n rows of text: `parse_columns`, unless rounding is at random."""
        del entropy
        return self.parse_columns(rows)

    @abstractmethod
    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        """Return the indices of n rows of text, one column a dimension; int64 of shape `(n,)`.

        Raises:
            ValueOutsideDomainError: naming the position of the first invalid row.
        """

    @abstractmethod
    def label(self, index: int) -> Json:
        """Return the label of an index; of an interval's bin `[low, high]`."""

    def labels(self, indices: Indices) -> list[Json]:
        """Return the labels of indices `(n,)`."""
        return [self.label(index) for index in indices.tolist()]

    @abstractmethod
    def canonical(self) -> Json:
        """Return what the fingerprint hashes: the domain's content, wherever it was read from."""

    @cached_property
    def size(self) -> int:
        """Number of values k."""
        return prod(self.shape)

    @cached_property
    def estimated(self) -> "Domain":
        """The domain that queries and estimates are about: by default this one.

        Another one where devices give more than the estimated value, such as a prior.
        """
        return self

    @cached_property
    def estimated_indices(self) -> Indices | None:
        """The index in `estimated` of each own value, int64 `(k,)`; None: the same."""
        return None

    def outside(self, position: int) -> ValueOutsideDomainError:
        """Return the error for the label at a position; without the label itself."""
        return ValueOutsideDomainError(position, self.expected)
