"""Domains of integer coordinates: a size, a grid, or sizes in D dimensions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Indices, numbers_of, unmasked
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import describe, is_integer, is_whole
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.numbers import parse_whole
from ldpstream.mechanisms.domains.base import Domain, check_extents, check_size


class Lattice(Domain):
    """Integer coordinates: a label is an integer, or a list of D integers in D > 1 dimensions."""

    kind: ClassVar[str] = "sizes"
    ordered: ClassVar[bool] = True
    whole: ClassVar[bool] = True

    @property
    def ends(self) -> list[tuple[float, float]]:
        return [(0, extent - 1) for extent in self.shape]

    @property
    def expected(self) -> str:
        ranges = [f"0..{extent - 1}" for extent in self.shape]
        if len(ranges) == 1:
            return f"an integer in {ranges[0]}"
        return f"{len(ranges)} integers in {', '.join(ranges)}"

    def index(self, labels: Sequence[Any] | NDArray[Any]) -> Indices:
        """Return the row-major indices of coordinates: `(n,)`, or `(n, D)` in D > 1 dimensions."""
        array = numbers_of(labels)
        shape = (len(labels),) if len(self.shape) == 1 else (len(labels), len(self.shape))
        if array is None or array.dtype.kind == "f" or array.shape != shape:
            rows = unmasked(labels)
            array = self._coordinates([[v] for v in rows] if len(self.shape) == 1 else rows)
        array = array.reshape(len(labels), len(self.shape))
        extents = np.array(self.shape, dtype=np.int64)
        inside = np.all((array >= 0) & (array < extents), axis=1)
        if not inside.all():
            raise self.outside(int(np.argmin(inside)))
        if len(self.shape) == 1:
            return array[:, 0].astype(np.int64)
        strides = np.cumprod((1, *self.shape[:0:-1]), dtype=np.int64)[::-1]
        return array.astype(np.int64) @ strides

    def _coordinates(self, rows: Sequence[Any] | NDArray[Any]) -> Indices:
        """Return the coordinates of arbitrary objects one by one, to find the first invalid one."""
        table = np.empty((len(rows), len(self.shape)), dtype=np.int64)
        for position, row in enumerate(rows):
            try:
                coordinates = list(row)
            except TypeError:
                raise self.outside(position) from None
            whole = [is_integer(v) for v in coordinates]
            if not all(whole) or len(whole) != len(self.shape):
                raise self.outside(position)
            if not all(0 <= v < extent for v, extent in zip(coordinates, self.shape, strict=True)):
                raise self.outside(position)
            table[position] = coordinates
        return table

    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        dimensions = len(self.shape)
        table = np.full((len(rows), dimensions), -1, dtype=np.int64)
        for position, row in enumerate(rows):
            if len(row) == dimensions:
                table[position] = [parse_whole(text) for text in row]
        return self.index(table if dimensions > 1 else table[:, 0])

    def label(self, index: int) -> Json:
        """Return the coordinates of an index: an integer, or a list in D > 1 dimensions."""
        coordinates = np.unravel_index(index, self.shape)
        numbers: list[Json] = [int(c) for c in coordinates]
        return numbers[0] if len(numbers) == 1 else numbers

    def labels(self, indices: Indices) -> list[Json]:
        if len(self.shape) == 1:
            labels: list[Json] = indices.tolist()
            return labels
        coordinates: list[Json] = np.stack(np.unravel_index(indices, self.shape), axis=1).tolist()
        return coordinates


@dataclass(frozen=True)
class Size(Lattice):
    """The integers `0..values-1`."""

    kind: ClassVar[str] = "size"
    values: int

    def __post_init__(self) -> None:
        if not is_whole(self.values):
            raise SpecError("size", f"a whole number, got {describe(self.values)}")
        check_size(self.values, "size")

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return (self.values,)

    def canonical(self) -> Json:
        return {"size": self.values}


@dataclass(frozen=True)
class Grid(Lattice):
    """Cells of a map: `rows` x `columns`."""

    kind: ClassVar[str] = "grid"
    rows: int
    columns: int

    def __post_init__(self) -> None:
        check_extents((self.rows, self.columns), "grid")

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return (self.rows, self.columns)

    def canonical(self) -> Json:
        return {"grid": [self.rows, self.columns]}


@dataclass(frozen=True)
class Sizes(Lattice):
    """Ordered coordinates in D dimensions of the given sizes."""

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.sizes:
            raise SpecError("sizes", "at least one size")
        check_extents(self.sizes, "sizes")

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return self.sizes

    def canonical(self) -> Json:
        return {"sizes": list(self.sizes)}
