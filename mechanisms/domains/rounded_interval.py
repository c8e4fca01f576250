"""Domains of real numbers that are rounded at random to the points of a grid.

The closer a number is to one of the two grid points around it, the more likely it is rounded to it,
so that its mean is kept (docs/theory.md section 5). The probability is exact for the double that is
rounded: floating point decides if a 64-bit word lies clearly on one side, rationals decide if not.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Indices
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.base import Domain, check_size
from ldpstream.mechanisms.domains.interval import Interval, width_below
from ldpstream.mechanisms.exact.entropy import WORD, Entropy

# The position and the word each take a few roundings with a relative error of at most 2^-53.
_ROUNDINGS = 2.0**-49


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
    def edges(self) -> tuple[Floats, ...]:
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

    def _columns(self, points: Floats) -> Iterator[tuple[Floats, tuple[float, float], int]]:
        return zip(points.T, self.interval.bounds, self.interval.bins, strict=True)

    def _join(self, columns: Iterable[Indices]) -> Indices:
        return np.ravel_multi_index(tuple(columns), self.shape).astype(np.int64)

    def _round(self, points: Floats, entropy: Entropy) -> Indices:
        return self._join(
            round_at_random(entropy, column, low, high, bins)
            for column, (low, high), bins in self._columns(points)
        )


def round_at_random(
    entropy: Entropy, points: Floats, low: float, high: float, steps: int
) -> Indices:
    """Return the grid points that numbers are rounded to, int64 of shape `(n,)` in `0..steps`.

    `points` are finite numbers in `[low, high]`, float64 `(n,)`; grid point g lies at
    `low + g (high - low)/steps`, in exact rationals. Takes one word for each number, rarely more.
    """
    words = entropy.words(len(points))
    position = (points - low) / (high - low) * steps
    below = np.clip(np.floor(position), 0, steps - 1)
    share = position - below
    chance = words * 2.0**-64
    out: Indices = below.astype(np.int64) + (chance < share)
    doubt = _ROUNDINGS * (steps + 1.0)
    near = (np.abs(chance - share) <= doubt) | (share <= doubt) | (share >= 1.0 - doubt)
    for place in np.flatnonzero(near).tolist():
        exact = grid_position(float(points[place]), low, high, steps)
        out[place] = _round_exactly(entropy, exact, int(words[place]))
    return out


def grid_position(point: float, low: float, high: float, steps: int) -> Fraction:
    """Return the exact position of a number on the grid, in `0..steps`."""
    return (Fraction(point) - Fraction(low)) * steps / (Fraction(high) - Fraction(low))


def _round_exactly(entropy: Entropy, position: Fraction, word: int) -> int:
    below = position.numerator // position.denominator
    rest = position - below
    # The words are the base-2^64 digits of a uniform number, which is compared with `rest`.
    while rest:
        rest *= WORD
        digit = rest.numerator // rest.denominator
        if word != digit:
            return below + (word < digit)
        rest -= digit
        word = int(entropy.words(1)[0])
    return below
