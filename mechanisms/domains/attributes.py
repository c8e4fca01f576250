"""Domains of records: one value for each attribute, only one of which a report is about.

The values of the domain are those of all attributes, one attribute after the other. A device gives
whole records. For each record one attribute is drawn, whatever its values are, and the record is
placed at its value of that attribute. A pair of attributes counts as a further attribute: its
values, all combinations of those of its two attributes, follow from theirs, so that devices do not
give them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar, TypeGuard, overload

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.domains.base import Domain, check_size
from ldpstream.mechanisms.exact.entropy import WORD, Entropy


@dataclass(frozen=True)
class Pair(Domain):
    """Two attributes `names` with their domains `parts`; labels are `[first, second]`.

    Raises:
        SpecError: if there are more combinations than a domain may have values.
    """

    kind: ClassVar[str] = "pair"
    names: tuple[str, str]
    parts: tuple[Domain, Domain]
    ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_size(self.size, "pairs")

    @property
    def name(self) -> str:
        """The name of the pair as an attribute; no other attribute's name has a colon."""
        return ":".join(self.names)

    @property
    def shape(self) -> tuple[int, int]:
        return self.parts[0].size, self.parts[1].size

    @property
    def expected(self) -> str:
        return " with ".join(domain.expected for domain in self.parts)

    def joined(self, first: Indices, second: Indices) -> Indices:
        """Return the indices of n combinations from those of both attributes, int64 `(n,)` each."""
        return first * self.shape[1] + second

    def index(self, labels: Sequence[Any] | NDArray[Any]) -> Indices:
        for position, label in enumerate(labels):
            if not isinstance(label, list | tuple) or len(label) != len(self.parts):
                self.index(labels[:position])  # an earlier bad label is named first
                raise self.outside(position)
        first, second = ([label[place] for label in labels] for place in (0, 1))
        return self._join_indices(lambda domain, column: domain.index(column), first, second)

    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        """Return the indices of rows of text: the columns of the first, then of the second."""
        width = len(self.parts[0].written.shape)
        first, second = [row[:width] for row in rows], [row[width:] for row in rows]
        return self._join_indices(lambda domain, cells: domain.parse_columns(cells), first, second)

    def _join_indices(
        self, find: Callable[[Domain, Any], Indices], first: Any, second: Any
    ) -> Indices:
        try:
            pairs = zip(self.parts, (first, second), strict=True)
            return self.joined(*(find(domain, column) for domain, column in pairs))
        except ValueOutsideDomainError as error:
            raise self.outside(error.position) from None

    def label(self, index: int) -> Json:
        places = np.unravel_index(index, self.shape)
        return [domain.label(int(place)) for domain, place in zip(self.parts, places, strict=True)]

    def canonical(self) -> Json:
        """Return the two names; the domains are listed with the attributes."""
        return {"pair": list(self.names)}


@dataclass(frozen=True, eq=False)
class Columns(Sequence[Mapping[str, Any]]):
    """n records as columns: for each attribute the n labels that its domain takes."""

    columns: Mapping[str, Sequence[Any] | NDArray[Any]]

    def __post_init__(self) -> None:
        if len({len(column) for column in self.columns.values()}) != 1:
            raise ValueError("expected columns of one length, one for each attribute")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @overload
    def __getitem__(self, place: int) -> Mapping[str, Any]: ...

    @overload
    def __getitem__(self, place: slice) -> "Columns": ...

    def __getitem__(self, place: int | slice) -> "Mapping[str, Any] | Columns":
        """Return one record, or a slice of records as columns."""
        some = {name: column[place] for name, column in self.columns.items()}
        return Columns(some) if isinstance(place, slice) else some


Records = Sequence[Any] | NDArray[Any] | Columns
"""n records: mappings from each attribute to its label, or the same as columns."""


@dataclass(frozen=True)
class Attributes(Domain):
    """Attributes `names` with their `domains`, drawn with `probabilities / 2^64`.

    A `Pair` comes after both of its attributes.

    Raises:
        SpecError: if all attributes together have more values than a domain may have, or the
            probabilities are not above 0 with sum 1.
    """

    kind: ClassVar[str] = "attributes"
    names: tuple[str, ...]
    domains: tuple[Domain, ...]
    probabilities: tuple[int, ...]
    ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_size(sum(domain.size for domain in self.domains), "attributes")
        if sum(self.probabilities) != WORD or min(self.probabilities) < 1:
            raise SpecError("attributes", "probabilities above 0 with sum 1")

    @property
    def shape(self) -> tuple[int, ...]:
        return (sum(domain.size for domain in self.domains),)

    @property
    def expected(self) -> str:
        return f"a record with a value for each of {', '.join(self.given)}"

    @cached_property
    def members(self) -> Mapping[str, Domain]:
        return dict(zip(self.names, self.domains, strict=True))

    @cached_property
    def given(self) -> Mapping[str, Domain]:
        """The attributes that records hold, in order: all except pairs."""
        return {name: domain for name, domain in self.members.items() if domain.kind != "pair"}

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The index of the first value of each attribute."""
        return tuple(accumulate((domain.size for domain in self.domains[:-1]), initial=0))

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns of a row of text; with several dimensions `NAME.1`, `NAME.2`."""
        names: list[str] = []
        for name, domain in self.given.items():
            axes = len(domain.written.shape)
            names += [name] if axes == 1 else [f"{name}.{axis}" for axis in range(1, axes + 1)]
        return tuple(names)

    def index(self, labels: Records) -> Indices:
        """Return the indices of n labels as `label` returns them, of one attribute each."""
        indices = np.zeros(len(labels), dtype=np.int64)
        for position, label in enumerate(labels):
            known = [name for name in self.names if _is_table(label) and name in label]
            if len(known) != 1:
                expected = f"a value of one of {', '.join(self.names)}"
                raise ValueOutsideDomainError(position, expected)
            number = self.names.index(known[0])
            try:
                place = self.domains[number].index([label[known[0]]])
            except ValueOutsideDomainError as error:
                raise _of_attribute(known[0], error, position) from None
            indices[position] = self.starts[number] + place[0]
        return indices

    def check(self, labels: Records) -> None:
        """Refuse records that lack an attribute or hold a value outside its domain."""
        self._each(labels, lambda domain, column: domain.index(column))

    def place(self, labels: Records, *, entropy: Entropy) -> Indices:
        """Return each record's index at its value of a randomly drawn attribute, int64 `(n,)`.

        Every attribute is placed, in order, so that neither a refusal nor the time taken depends on
        the draw; then one word for each record draws its attribute.
        """
        placed = self._each(labels, lambda domain, column: domain.place(column, entropy=entropy))
        return self.drawn(placed, entropy)

    def place_columns(self, rows: Sequence[Sequence[str]], *, entropy: Entropy) -> Indices:
        """Do the same as `place` for rows of text, with the cells named by `column_names`."""
        placed = self._indices_of(
            self._cells(rows), lambda domain, cells: domain.place_columns(cells, entropy=entropy)
        )
        return self.drawn(placed, entropy)

    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        """Check whole rows of text, and return the indices of their first attribute."""
        return self._indices_of(
            self._cells(rows), lambda domain, cells: domain.parse_columns(cells)
        )[0]

    def label(self, index: int) -> Json:
        """Return `{attribute: label}` of an index."""
        number = self.attribute_of(index)
        return {self.names[number]: self.domains[number].label(index - self.starts[number])}

    def canonical(self) -> Json:
        """Return the attributes in order, without the probabilities with which they are drawn."""
        members: list[Json] = [
            {"name": name, "domain": domain.canonical()}
            for name, domain in zip(self.names, self.domains, strict=True)
        ]
        return {"attributes": members}

    def attribute_of(self, index: int) -> int:
        """Return the number of the attribute to which a value belongs."""
        return int(np.searchsorted(self.starts, index, side="right")) - 1

    def drawn(self, placed: Sequence[Indices], entropy: Entropy) -> Indices:
        """Draw an attribute for each record, and return the record's index there, int64 `(n,)`.

        `placed` holds the records' values of each attribute in `given`, int64 `(n,)` each.
        """
        of = dict(zip(self.given, placed, strict=True))
        for name, domain in zip(self.names, self.domains, strict=True):
            if isinstance(domain, Pair):
                of[name] = domain.joined(*(of[member] for member in domain.names))
        ends = np.array(list(accumulate(self.probabilities[:-1])), dtype=np.uint64)
        drawn = np.searchsorted(ends, entropy.words(len(placed[0])), side="right")
        starts = zip(self.names, self.starts, strict=True)
        every = np.stack([start + of[name] for name, start in starts])
        indices: Indices = every[drawn, np.arange(len(drawn))]
        return indices

    def _each(self, labels: Records, find: Callable[[Domain, Any], Indices]) -> list[Indices]:
        return self._indices_of(self._columns(labels), find)

    def _indices_of(
        self, columns: Sequence[Any], find: Callable[[Domain, Any], Indices]
    ) -> list[Indices]:
        """Return the indices of each attribute's column, or raise the error of the first record."""
        indices: list[Indices] = []
        bad: list[ValueOutsideDomainError] = []
        for (name, domain), column in zip(self.given.items(), columns, strict=True):
            try:
                indices.append(find(domain, column))
            except ValueOutsideDomainError as error:
                bad.append(_of_attribute(name, error, error.position))
        if bad:
            raise min(bad, key=lambda error: error.position)
        return indices

    def _columns(self, labels: Records) -> list[Sequence[Any] | NDArray[Any]]:
        """Return the labels of each attribute, refusing records that lack one."""
        if isinstance(labels, Columns) and labels.columns.keys() >= set(self.given):
            return [labels.columns[name] for name in self.given]
        for position, record in enumerate(labels):
            for name in self.given:
                if not (_is_table(record) and name in record):
                    self.check(labels[:position])  # an earlier bad record is named first
                    what = f"a value of the attribute {name}: {self.expected}"
                    raise ValueOutsideDomainError(position, what)
        return [[record[name] for record in labels] for name in self.given]

    def _cells(self, rows: Sequence[Sequence[str]]) -> list[list[Sequence[str]]]:
        for position, row in enumerate(rows):
            if len(row) != len(self.column_names):
                self.parse_columns(rows[:position])
                what = f"{len(self.column_names)} columns, {', '.join(self.column_names)}"
                raise ValueOutsideDomainError(position, what)
        widths = [len(domain.written.shape) for domain in self.given.values()]
        ends = list(accumulate(widths, initial=0))
        return [[row[first:last] for row in rows] for first, last in pairwise(ends)]


def _of_attribute(
    name: str, error: ValueOutsideDomainError, position: int
) -> ValueOutsideDomainError:
    return ValueOutsideDomainError(position, f"as {name} {error.expected}")


def _is_table(raw: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(raw, Mapping)
