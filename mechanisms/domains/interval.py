"""Domains of real numbers: cut into bins, or rounded at random to the points of a grid.

The closer a number is to one of the two grid points around it, the more likely it is rounded to it,
so that its mean is kept (docs/theory.md section 5). The probability is exact for the decimal that
was read (`axis`): floating point decides if a 64-bit word lies clearly on one side, rationals
decide if not.
"""

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
from ldpstream.mechanisms.domains.base import Domain, check_extents, check_size
from ldpstream.mechanisms.exact.entropy import WORD, Entropy

# The share and the word each take a few roundings, besides those of the position.
_ROUNDINGS = 2.0**-49
# Of float32 that are placed so roughly, few are decided in rationals.
_ROUGH = 2.0**-13


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
        pairs = zip(self.axes, columns, strict=True)
        bins = [np.minimum(axis.floors(column), axis.steps - 1) for axis, column in pairs]
        return _joined(bins, self.bins)

    def label(self, index: int) -> Json:
        """Return the bin `[low, high]` of an index, or a list of bins in D > 1 dimensions."""
        return self.labels(np.array([index]))[0]

    def labels(self, indices: Indices) -> list[Json]:
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

    kind: ClassVar[str] = "interval"
    rounded: ClassVar[bool] = True
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
    def ends(self) -> tuple[tuple[float, float], ...]:
        return self.interval.bounds

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The interval of each dimension; the values are its edges."""
        return self.interval.axes

    @property
    def widths(self) -> tuple[float, ...]:
        """The distance between neighbouring edges in each dimension, rounded by `width_below`."""
        return self.interval.widths

    @property
    def expected(self) -> str:
        return self.interval.expected

    def index(self, labels: Sequence[Any] | NDArray[Any]) -> Indices:
        """Return the nearest edge of each number, without randomness: `(n,)`, or `(n, D)`.

        For the values of policies and queries; devices call `place`.
        """
        return self._nearest(self.interval.read(labels))

    def place(self, labels: Sequence[Any] | NDArray[Any], *, entropy: Entropy) -> Indices:
        """Return one of the two nearest edges of each number, at random (`round_at_random`)."""
        return self._round(self.interval.read(labels), entropy)

    def place_columns(self, rows: Sequence[Sequence[str]], *, entropy: Entropy) -> Indices:
        return self._round(self.interval.parse(rows), entropy)

    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        return self._nearest(self.interval.parse(rows))

    def label(self, index: int) -> Json:
        """Return the edge of an index, or a list of edges in D > 1 dimensions."""
        return self.labels(np.array([index]))[0]

    def labels(self, indices: Indices) -> list[Json]:
        axes = zip(self.axes, np.unravel_index(indices, self.shape), strict=True)
        edges = np.stack([axis.edges_at(places) for axis, places in axes], axis=1)
        listed: list[Json] = (edges[:, 0] if len(self.axes) == 1 else edges).tolist()
        return listed

    def canonical(self) -> Json:
        inner = self.interval.canonical()
        assert isinstance(inner, dict)
        return {**inner, "rounding": "random"}

    def _nearest(self, columns: Sequence[Numbers]) -> Indices:
        pairs = zip(self.axes, columns, strict=True)
        return _joined([axis.nearest(column) for axis, column in pairs], self.shape)

    def _round(self, columns: Sequence[Numbers], entropy: Entropy) -> Indices:
        pairs = zip(self.axes, columns, strict=True)
        rounded = [round_at_random(entropy, column, axis) for axis, column in pairs]
        return _joined(rounded, self.shape)


def _joined(columns: Sequence[Indices], shape: tuple[int, ...]) -> Indices:
    """Return the row-major indices of coordinates, a column for each dimension."""
    first, *rest = columns
    for extent, column in zip(shape[1:], rest, strict=True):
        first = first * extent + column
    return first


def round_at_random(entropy: Entropy, numbers: Numbers, axis: Axis) -> Indices:
    """Return the edges that n numbers inside are rounded to, int64 of shape `(n,)` in `0..steps`.

    Takes one word for each number, rarely more.
    """
    words = entropy.words(len(numbers))
    position, error = axis.positions(numbers, rough=_ROUGH)
    below = np.clip(np.floor(position), 0, axis.steps - 1)
    share = position - below
    chance = words * 2.0**-64
    out: Indices = below.astype(np.int64) + (chance < share)
    doubt = error + _ROUNDINGS
    near = (np.abs(chance - share) <= doubt) | (share <= doubt) | (share >= 1.0 - doubt)
    near[list(numbers.written)] = True
    for place in np.flatnonzero(near).tolist():
        exact = axis.position(numbers.at(place))
        out[place] = _round_exactly(entropy, exact, int(words[place]))
    return out


def _round_exactly(entropy: Entropy, position: Fraction, word: int) -> int:
    below = position.numerator // position.denominator
    rest = position - below
    # The words are the base-2^64 digits of a uniform number, which is compared with `rest`. Only a
    # word that equals a digit is followed by another one, whether the digits of `rest` have ended
    # or not, so that the number of words has one distribution for all numbers.
    while True:
        rest *= WORD
        digit = rest.numerator // rest.denominator
        if word != digit:
            return below + (word < digit)
        rest -= digit
        word = int(entropy.words(1)[0])
