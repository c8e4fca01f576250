"""The interface of domains: the values that a device may report, numbered 0..k-1.

A domain turns labels (what people write) into value indices and back. It is part of the spec, whose
fingerprint hashes its canonical form.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, ClassVar

from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Indices
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import describe, is_whole
from ldpstream.mechanisms.base.errors import SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.domains.axis import Axis
from ldpstream.mechanisms.domains.rows import CodedRows
from ldpstream.mechanisms.exact.entropy import Entropy

MAX_VALUES = 10_000_000
"""Largest number of values of a domain, with which int64 counts take some 160 MB."""


def check_size(size: int, key: str) -> None:
    """Raise `SpecError` if a domain of this many values is too small or too large."""
    if not 2 <= size <= MAX_VALUES:
        raise SpecError(key, f"2..{MAX_VALUES} values in the domain, got {size}")


def check_extents(extents: Sequence[object], key: str) -> None:
    """Raise `SpecError` unless the sizes of the dimensions are whole and above 0, and fit."""
    for axis, extent in enumerate(extents):
        if not is_whole(extent) or extent < 1:
            raise SpecError(f"{key}[{axis}]", f"a whole number above 0, got {describe(extent)}")
    check_size(prod(e for e in extents if is_whole(e)), key)


class Domain(ABC):
    """The values of a collection.

    Constructors raise `SpecError`, whose path is the key within the `domain` table.
    """

    kind: ClassVar[str] = "values"
    """The form of the `domain` table: its key, `pair` for two attributes, else `values`."""
    ordered: ClassVar[bool]
    """Whether ranges make sense, in every dimension."""
    whole: ClassVar[bool] = False
    """Whether every number among its labels is whole."""
    rounded: ClassVar[bool] = False
    """Whether numbers are rounded to its values at random."""

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

        A label has the form that `label` returns, except that intervals take a number (or one
        number for each dimension). Arrays of integers or floats take a fast path.

        Raises:
            ValueOutsideDomainError: naming the position of the first label outside the domain.
        """

    def check(self, labels: Sequence[Any] | NDArray[Any]) -> None:
        """Refuse what `place` would refuse, without drawing anything."""
        self.index(labels)

    def place(self, labels: Sequence[Any] | NDArray[Any], *, entropy: Entropy) -> Indices:
        """Return the indices of n labels of a device: `index`, unless a draw decides."""
        del entropy
        return self.index(labels)

    def place_columns(self, rows: Sequence[Sequence[str]], *, entropy: Entropy) -> Indices:
        """Do the same for n rows of text: `parse_columns`, unless a draw decides."""
        del entropy
        coded = CodedRows.of(rows)
        if coded is None:
            return self.parse_columns(rows)
        # Equal texts have equal indices: looking one up takes a fraction of the time of parsing it.
        try:
            return self.parse_columns(coded.distinct)[coded.codes]
        except ValueOutsideDomainError:
            return self.parse_columns(rows)  # It names the position among all rows.

    @abstractmethod
    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        """Return the indices of n rows of text, one column a dimension: int64 `(n,)`.

        Raises:
            ValueOutsideDomainError: naming the position of the first invalid row.
        """

    @abstractmethod
    def label(self, index: int) -> Json:
        """Return the label of an index; for an interval this is the bin `[low, high]`."""

    def labels(self, indices: Indices) -> list[Json]:
        """Return the labels of indices, int64 `(n,)`."""
        return [self.label(index) for index in indices.tolist()]

    @abstractmethod
    def canonical(self) -> Json:
        """Return what the fingerprint hashes: the content, whether from a table or a file."""

    @cached_property
    def size(self) -> int:
        """Number of values k."""
        return prod(self.shape)

    @property
    def ends(self) -> Sequence[tuple[float, float]] | None:
        """The least and the largest number of each dimension; None if there are none."""
        return None

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The interval of real numbers of each dimension; none for other values."""
        return ()

    @property
    def widths(self) -> tuple[float, ...] | None:
        """The distance between neighbouring edges of each of these intervals, if there are any."""
        return None

    @property
    def largest_weight(self) -> int | None:
        """The largest weight that a label may hold; None if labels hold no weights."""
        return None

    @property
    def members(self) -> Mapping[str, "Domain"]:
        """The domains of a record's attributes by name, pairs included; none for other values."""
        return {}

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns of a row of text, if they have names."""
        return ()

    def check_use(self, table: Mapping[str, object], path: str, *, in_blocks: bool) -> None:
        """Refuse keys of a collection's table that these values do not allow: by default none."""
        del table, path, in_blocks

    @property
    def written(self) -> "Domain":
        """The domain in whose labels values and queries are written: by default this one."""
        return self

    def merge(self, values: Indices) -> Indices:
        """Return the values that make up a set of `written` ones, by default the same.

        Raises:
            QueryError: if they do not make it up, with what to ask for.
        """
        return values

    def merge_weights(self, weights: Floats) -> Floats:
        """Return the weights of the values for those of the `written` ones, by default the same.

        Raises:
            QueryError: if `written` values that are one here have different weights.
        """
        return weights

    @cached_property
    def estimated(self) -> "Domain":
        """The domain of queries and estimates: by default this one.

        It differs if devices give more than the estimated value, such as a prior.
        """
        return self

    @cached_property
    def estimated_indices(self) -> Indices | None:
        """The index in `estimated` of each value, int64 `(k,)`; None if the two are the same."""
        return None

    def outside(self, position: int) -> ValueOutsideDomainError:
        """Return the error for the label at a position, which does not repeat the label."""
        return ValueOutsideDomainError(position, self.expected)
