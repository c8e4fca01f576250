"""Domains of real numbers that are rounded at random to the points of a grid."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.base import Domain, check_size
from ldpstream.mechanisms.domains.interval import Interval, width_below
from ldpstream.mechanisms.exact.entropy import Entropy
from ldpstream.mechanisms.exact.rounding import round_at_random


@dataclass(frozen=True)
class RoundedInterval(Domain):
    """Real numbers in D intervals; the values are the edges of the bins, one more than bins.

    A number is rounded at random to one of the two nearest edges. This keeps its mean, and no more
    privacy is lost across an edge than anywhere else: a budget of `log(1 + epsilon)` for each step
    protects u and v by exactly `epsilon |u - v| / width` (docs/theory.md section 5).

    Proof: at the fraction f between two edges a report has the mixture `(1 - f) q0 + f q1`. With
    `r = q1/q0` in `1/(1 + epsilon)..1 + epsilon`, the slope of its logarithm in f,
    `(r - 1)/(1 + f (r - 1))`, is at most epsilon in size.
    """

    interval: Interval
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        try:
            check_size(self.size, "bins")
        except SpecError as error:
            raise SpecError(error.path, f"{error.expected} edges") from None

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of edges of each dimension."""
        return tuple(bins + 1 for bins in self.interval.bins)

    @property
    def widths(self) -> tuple[float, ...]:
        """The distance between neighbouring edges in each dimension, rounded by `width_below`."""
        pairs = zip(self.interval.bounds, self.interval.bins, strict=True)
        return tuple(
            width_below((Fraction(high) - Fraction(low)) / bins) for (low, high), bins in pairs
        )

    @cached_property
    def edges(self) -> tuple[NDArray[np.float64], ...]:
        """The values of each dimension, float64 `(bins + 1,)`."""
        return self.interval.edges

    @property
    def expected(self) -> str:
        return self.interval.expected

    def index(self, labels: Sequence[Any] | NDArray[Any]) -> Indices:
        """Return the nearest edge of each number, without randomness: `(n,)`, or `(n, D)`.

        For the values of policies and queries; devices call `place`.
        """
        return self._join(
            np.rint((column - low) / (high - low) * bins).astype(np.int64)
            for column, (low, high), bins in self._columns(self.interval.points(labels))
        )

    def place(self, labels: Sequence[Any] | NDArray[Any], *, entropy: Entropy) -> Indices:
        """Return one of the two nearest edges of each number, at random (`round_at_random`)."""
        return self._round(self.interval.points(labels), entropy)

    def place_columns(self, rows: Sequence[Sequence[str]], *, entropy: Entropy) -> Indices:
        return self._round(self.interval.parse_points(rows), entropy)

    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        points = self.interval.parse_points(rows)
        return self.index(points if len(self.shape) > 1 else points[:, 0])

    def label(self, index: int) -> Json:
        """Return the edge of an index, or a list of edges in D > 1 dimensions."""
        coordinates = np.unravel_index(index, self.shape)
        edges: list[Json] = [float(e[c]) for e, c in zip(self.edges, coordinates, strict=True)]
        return edges[0] if len(edges) == 1 else edges

    def canonical(self) -> Json:
        inner = self.interval.canonical()
        assert isinstance(inner, dict)
        return {**inner, "rounding": "random"}

    def _columns(
        self, points: NDArray[np.float64]
    ) -> Iterator[tuple[NDArray[np.float64], tuple[float, float], int]]:
        return zip(points.T, self.interval.bounds, self.interval.bins, strict=True)

    def _join(self, columns: Iterable[Indices]) -> Indices:
        return np.ravel_multi_index(tuple(columns), self.shape).astype(np.int64)

    def _round(self, points: NDArray[np.float64], entropy: Entropy) -> Indices:
        return self._join(
            round_at_random(entropy, column, low, high, bins)
            for column, (low, high), bins in self._columns(points)
        )
