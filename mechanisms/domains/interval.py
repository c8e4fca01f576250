"""Domains of real numbers, cut into bins."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite, nextafter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Indices, unmasked
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import number_text
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.axis import Axis, Numbers, parse_rows, read_labels
from ldpstream.mechanisms.domains.base import Domain, check_extents


@dataclass(frozen=True)
class Interval(Domain):
    """Real numbers in D intervals, each cut into equal bins, half-open except for the last.

    The edges are exact decimals or fractions, with which numbers are compared as the decimals that
    they were read as (`axis`): 0.3 is in the fourth of ten bins of `[0, 1]`. Numbers outside are
    refused.
    """

    kind: ClassVar[str] = "interval"
    bounds: tuple[tuple[float, float], ...]
    bins: tuple[int, ...]
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.bounds or len(self.bins) != len(self.bounds):
            raise SpecError("bins", f"one number of bins for each of {len(self.bounds)} intervals")
        check_extents(self.bins, "bins")
        for number, (low, high) in enumerate(self.bounds):
            key = f"interval[{number}]" if len(self.bounds) > 1 else "interval"
            if not (isfinite(low) and isfinite(high) and low < high and isfinite(high - low)):
                raise SpecError(key, f"[low, high], finite and low < high, got [{low}, {high}]")
        if not all(axis.is_resolved for axis in self.axes):
            raise SpecError("bins", "bins wide enough for double precision")

    @property
    def ends(self) -> tuple[tuple[float, float], ...]:
        return self.bounds

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The interval of each dimension, with its bins as steps."""
        pairs = zip(self.bounds, self.bins, strict=True)
        return tuple(Axis(low, high, bins) for (low, high), bins in pairs)

    @property
    def edges(self) -> tuple[Floats, ...]:
        """The edges of the bins of each dimension, float64 `(bins + 1,)`."""
        return tuple(axis.edges for axis in self.axes)

    @property
    def widths(self) -> tuple[float, ...]:
        """The width of the bins of each dimension, rounded by `width_below`."""
        return tuple(width_below(axis.width) for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of bins of each dimension."""
        return self.bins

    @property
    def expected(self) -> str:
        ranges = [f"[{number_text(low)}, {number_text(high)}]" for low, high in self.bounds]
        if len(ranges) == 1:
            return f"a number in {ranges[0]}"
        return f"{len(ranges)} numbers in {', '.join(ranges)}"

    def read(self, labels: Sequence[Any] | NDArray[Any]) -> list[Numbers]:
        """Return the numbers of each dimension of labels, `(n,)`, or `(n, D)` for D > 1.

        Raises:
            ValueOutsideDomainError: naming the position of the first number outside.
        """
        return self._inside(read_labels(unmasked(labels), len(self.bins)))

    def parse(self, rows: Sequence[Sequence[str]]) -> list[Numbers]:
        """Return the numbers of each column of rows of text; raises as `read` does."""
        return self._inside(parse_rows(rows, len(self.bins)))

    def _inside(self, columns: list[Numbers]) -> list[Numbers]:
        first, *rest = zip(self.axes, columns, strict=True)
        inside = first[0].holds(first[1])
        for axis, column in rest:
            inside &= axis.holds(column)
        if not inside.all():
            raise self.outside(int(np.argmin(inside)))
        return columns

    def index(self, labels: Sequence[Any] | NDArray[Any]) -> Indices:
        """Return the bins of numbers: `(n,)`, or `(n, D)` in D > 1 dimensions."""
        return self._bins(self.read(labels))

    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        return self._bins(self.parse(rows))

    def _bins(self, columns: list[Numbers]) -> Indices:
        first, *rest = (
            np.minimum(axis.floors(column), axis.steps - 1)
            for axis, column in zip(self.axes, columns, strict=True)
        )
        for extent, column in zip(self.bins[1:], rest, strict=True):
            first = first * extent + column
        return first

    def label(self, index: int) -> Json:
        """Return the bin `[low, high]` of an index, or a list of bins in D > 1 dimensions."""
        return self.labels(np.array([index]))[0]

    def labels(self, indices: Indices) -> list[Json]:
        """Return the bins of indices, int64 `(n,)`."""
        axes = zip(self.axes, np.unravel_index(indices, self.shape), strict=True)
        bins = np.stack(
            [[axis.edges_at(places), axis.edges_at(places + 1)] for axis, places in axes]
        )
        listed: list[Json] = (bins[0].T if len(bins) == 1 else bins.transpose(2, 0, 1)).tolist()
        return listed

    def canonical(self) -> Json:
        bounds: list[Json] = [[float(low), float(high)] for low, high in self.bounds]
        return {"interval": bounds, "bins": list(self.bins)}


def width_below(exact: Fraction) -> float:
    """Return the nearest float whose shortest decimal is not above a width.

    >>> width_below(Fraction(1, 10)), width_below(Fraction(2, 3)) < Fraction(2, 3)
    (0.1, True)
    """
    nearest = float(exact)
    return nearest if Fraction(repr(nearest)) <= exact else nextafter(nearest, 0.0)
