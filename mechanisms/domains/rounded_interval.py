"""Domains of real numbers that are rounded at random to the points of a grid.

The closer a number is to one of the two grid points around it, the more likely it is rounded to it,
so that its mean is kept (docs/theory.md section 5). The probability is exact for the decimal that
was read (`axis`): floating point decides if a 64-bit word lies clearly on one side, rationals
decide if not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Indices
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.axis import Axis, Numbers
from ldpstream.mechanisms.domains.base import Domain, check_size
from ldpstream.mechanisms.domains.interval import Interval
from ldpstream.mechanisms.exact.entropy import WORD, Entropy

# The share and the word each take a few roundings, besides those of the position.
_ROUNDINGS = 2.0**-49
# Of float32 that are placed so roughly, few are decided in rationals.
_ROUGH = 2.0**-13


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
    def edges(self) -> tuple[Floats, ...]:
        """The values of each dimension, float64 `(bins + 1,)`."""
        return self.interval.edges

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
        """Return the edges of indices, int64 `(n,)`."""
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
        return self._join([axis.nearest(column) for axis, column in pairs])

    def _round(self, columns: Sequence[Numbers], entropy: Entropy) -> Indices:
        pairs = zip(self.axes, columns, strict=True)
        return self._join([round_at_random(entropy, column, axis) for axis, column in pairs])

    def _join(self, columns: Sequence[Indices]) -> Indices:
        first, *rest = columns
        for extent, column in zip(self.shape[1:], rest, strict=True):
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
