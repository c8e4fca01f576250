"""Domains of real numbers, cut into bins."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite, nextafter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Indices, numbers_of, unmasked
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import number_text, parse_real, real_number
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.base import Domain, check_extents


@dataclass(frozen=True)
class Interval(Domain):
    """Real numbers in D intervals, each cut into equal bins, half-open except for the last.

    The edges are `numpy.linspace(low, high, bins + 1)`; numbers outside are refused.
    """

    bounds: tuple[tuple[float, float], ...]
    bins: tuple[int, ...]
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.bounds or len(self.bins) != len(self.bounds):
            raise SpecError("bins", f"one number of bins for each of {len(self.bounds)} intervals")
        check_extents(self.bins, "bins")
        for axis, (low, high) in enumerate(self.bounds):
            key = f"interval[{axis}]" if len(self.bounds) > 1 else "interval"
            if not (isfinite(low) and isfinite(high) and low < high and isfinite(high - low)):
                raise SpecError(key, f"[low, high], finite and low < high, got [{low}, {high}]")
            if not np.all(np.diff(self.edges[axis]) > 0):
                raise SpecError("bins", "bins wide enough for double precision")

    @cached_property
    def edges(self) -> tuple[Floats, ...]:
        """The edges of the bins of each dimension, float64 `(bins + 1,)`."""
        pairs = zip(self.bounds, self.bins, strict=True)
        return tuple(np.linspace(low, high, bins + 1) for (low, high), bins in pairs)

    @property
    def widths(self) -> tuple[float, ...]:
        """The width of the narrowest bin of each dimension, rounded by `width_below`.

        Floating point makes bins differ in the last digits; policies are stated for the narrowest.
        """
        return tuple(_narrowest(edges) for edges in self.edges)

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

    def points(self, labels: Sequence[Any] | NDArray[Any]) -> Floats:
        """Return numbers, `(n,)` or `(n, D)` in D > 1 dimensions, as float64 of shape `(n, D)`.

        Raises:
            ValueOutsideDomainError: naming the position of the first number outside.
        """
        dimensions = len(self.bins)
        n = len(labels)
        array = numbers_of(labels)
        shape = (n,) if dimensions == 1 else (n, dimensions)
        if array is None or array.shape != shape:
            rows = unmasked(labels)
            array = np.array([self._point(label) for label in rows], dtype=np.float64)
        points = array.astype(np.float64).reshape(n, dimensions)
        low, high = np.array(self.bounds).T
        inside = np.all((points >= low) & (points <= high), axis=1)
        if not inside.all():
            raise self.outside(int(np.argmin(inside)))
        return points

    def index(self, labels: Sequence[Any] | NDArray[Any]) -> Indices:
        """Return the bins of numbers: `(n,)`, or `(n, D)` in D > 1 dimensions."""
        points = self.points(labels)
        indices = np.zeros(len(points), dtype=np.int64)
        for axis, edges in enumerate(self.edges):
            bin_ = np.searchsorted(edges, points[:, axis], side="right") - 1
            indices = indices * self.bins[axis] + np.minimum(bin_, self.bins[axis] - 1)
        return indices

    def _point(self, label: object) -> list[float]:
        """Return the coordinates of one label, NaN for what is not a number."""
        one = len(self.bins) == 1
        numbers = [label] if one else list(label) if isinstance(label, list | tuple) else []
        if len(numbers) != len(self.bins):
            return [np.nan] * len(self.bins)
        return [real_number(v) for v in numbers]

    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        table = self.parse_points(rows)
        return self.index(table if len(self.bins) > 1 else table[:, 0])

    def parse_points(self, rows: Sequence[Sequence[str]]) -> Floats:
        """Return rows of decimal numbers as float64 `(n, D)`; raises as `points` does."""
        dimensions = len(self.bins)
        table = np.full((len(rows), dimensions), np.nan)
        for position, row in enumerate(rows):
            if len(row) == dimensions:
                table[position] = [parse_real(text) for text in row]
        return self.points(table if dimensions > 1 else table[:, 0])

    def label(self, index: int) -> Json:
        """Return the bin `[low, high]` of an index, or a list of bins in D > 1 dimensions."""
        coordinates = np.unravel_index(index, self.shape)
        bins: list[Json] = [
            [float(edges[c]), float(edges[c + 1])]
            for edges, c in zip(self.edges, coordinates, strict=True)
        ]
        return bins[0] if len(bins) == 1 else bins

    def canonical(self) -> Json:
        bounds: list[Json] = [[float(low), float(high)] for low, high in self.bounds]
        return {"interval": bounds, "bins": list(self.bins)}


def _narrowest(edges: Floats) -> float:
    low, high = edges[:-1], edges[1:]
    widths = high - low
    # The exact rounding error of each subtraction (Knuth's two-sum).
    taken = high - widths
    rest = (high - (widths + taken)) + (taken - low)
    least = widths.min()
    return width_below(Fraction(float(least)) + Fraction(float(rest[widths == least].min())))


def width_below(exact: Fraction) -> float:
    """Return the nearest float whose shortest decimal is not above a width.

    >>> width_below(Fraction(1, 10)), width_below(Fraction(2, 3)) < Fraction(2, 3)
    (0.1, True)
    """
    nearest = float(exact)
    return nearest if Fraction(repr(nearest)) <= exact else nextafter(nearest, 0.0)
