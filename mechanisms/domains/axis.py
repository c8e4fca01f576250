"""Intervals of real numbers in equal steps, in the decimals that people write.

A double is not the decimal that was written: 0.1 * 3 is above 0.3, and 0.3 itself is a little below
three tenths. Here a double stands for its shortest decimal, the one that `repr` prints, so that
`[0, 1]` in 10 steps has an edge at exactly 0.3, which 0.3 reaches. Floating point places numbers
that are not beside an edge. As shortest decimals ascend as floats do, those beside one are compared
with the least float of their precision that reaches it, which is exact; numbers of more digits than
a double has are compared in rationals.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Bools, Floats, Indices
from ldpstream.mechanisms.base.checks import float_text, real_number
from ldpstream.mechanisms.base.numbers import parse_reals

_ROUNDINGS: Final = 2.0**-50
_WHOLE: Final = 1 << 53
"""Integers below this in size are doubles."""
_SHORT: Final = 15
"""A text of so few characters is the shortest decimal of its double, or at an end of the range."""
_FEW: Final = 10
"""So many numbers are decided one by one."""
_SOME: Final = 30
"""So many float32 are printed one by one."""
_EDGES: Final = 4
"""Edges are listed if a number for each so many of them is asked for."""
_EXACT_POWERS: Final = 23
"""10^0 to 10^22 are doubles."""
_NARROWEST: Final = 2.0**-960
"""Steps below this would be compared with too few digits."""
_USUAL: Final = 12
_HALF: Final = 0.5
_ROUGH: Final = 2.0**-6
"""Of float32 that are placed so roughly, few are in doubt between two edges."""
_TOGETHER: Final = 1 << 15
"""So many numbers are placed at once; the memory of more takes longer to get than to fill."""
_HALF_FLOATS: Final = 1 << 16
"""So many different float16 there are."""
_PLAIN: Final[frozenset[type]] = frozenset({float, np.float64, int})
"""The types of labels whose array has all their digits, but for large integers."""
_SINGLE_EPSILON: Final = 2.0**-23
_LEAST_SINGLE: Final = 2.0**-149


def decimal_of(number: float) -> Fraction:
    """Return the decimal that a finite double stands for: its shortest one.

    >>> decimal_of(0.3), decimal_of(0.1 * 3) > decimal_of(0.3)
    (Fraction(3, 10), True)
    """
    return Fraction(repr(float(number)))


def shortest_doubles(numbers: NDArray[Any]) -> Floats:
    """Return the doubles with the shortest decimals of n floats of any precision, float64 `(n,)`.

    The float32 next to 0.3 prints as 0.3; widened without further ado it would become
    0.30000001192092896.

    >>> shortest_doubles(np.array([0.3, 7.1e-5], dtype=np.float32)).tolist()
    [0.3, 7.1e-05]
    """
    if numbers.dtype == np.float64:
        return numbers
    if len(numbers) <= _SOME:
        return _printed_doubles(numbers)
    if numbers.dtype == np.float16 and len(numbers) > _HALF_FLOATS:
        every = shortest_doubles(np.arange(_HALF_FLOATS, dtype=np.uint16).view(np.float16))
        return every[numbers.view(np.uint16)]
    wide: Floats = numbers.astype(np.float64)
    if numbers.dtype.itemsize >= wide.dtype.itemsize:
        return wide
    # The fewest digits that any decimal keeps, up to those that tell all floats from each other.
    sure, most = (3, 5) if numbers.dtype == np.float16 else (6, 9)
    rest = np.flatnonzero(np.isfinite(wide) & (wide != 0.0))
    exponents = np.floor(np.log10(np.abs(wide[rest]))).astype(np.int64)
    # Here all powers of ten that occur are doubles, and the decimals that a float stands for lie
    # evenly around it, as those of a power of two do not.
    usual = (np.abs(exponents) <= _USUAL) & (np.abs(numbers[rest]) >= np.finfo(numbers.dtype).tiny)
    usual &= np.abs(np.frexp(wide[rest])[0]) != _HALF
    open_places, exponents = rest[usual], exponents[usual]
    for digits in range(sure, most + 1):
        places = digits - 1 - exponents
        up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
        rounded = np.rint(wide[open_places] * up / down) * down / up
        same = rounded.astype(numbers.dtype) == numbers[open_places]
        wide[open_places[same]] = rounded[same]
        open_places, exponents = open_places[~same], exponents[~same]
    slow = np.concatenate((rest[~usual], open_places))
    distinct, which = np.unique(numbers[slow], return_inverse=True)
    wide[slow] = _printed_doubles(distinct)[which]
    return wide


def _printed_doubles(numbers: NDArray[Any]) -> Floats:
    return np.array([float(float_text(number)) for number in numbers], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Numbers:
    """n numbers as they were read: float32 or float64 `(n,)`, each of which stands for a decimal.

    That is its shortest one, or the label in `written`, by position: a text, a large integer or a
    decimal may have more digits than a double keeps. What is no number is NaN.
    """

    floats: NDArray[Any]
    written: Mapping[int, str | int | Decimal] = field(default_factory=dict)

    @classmethod
    def of_labels(cls, labels: Sequence[Any] | NDArray[Any]) -> "Numbers":
        """Return n labels of any kind; arrays, and lists of only floats and integers, are fast."""
        if isinstance(labels, np.ndarray):
            kind = labels.dtype.kind if labels.ndim == 1 else "O"
        else:
            kinds = {*map(type, labels)}
            kind = ("i" if int in kinds else "f") if kinds <= _PLAIN else "O"
        if kind == "f":
            floats = np.asarray(labels)
            return cls(floats if floats.dtype == np.float32 else shortest_doubles(floats))
        if kind in "iu":
            # An integer beyond all doubles raises.
            with suppress(OverflowError):
                doubles = np.array(labels, dtype=np.float64)
                if not len(doubles) or np.abs(doubles).max() < _WHOLE:
                    return cls(doubles)
        return cls._of_each(labels, [real_number(label) for label in labels])

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> "Numbers":
        """Return the numbers that n texts spell."""
        return cls._of_each(texts, parse_reals(texts))

    @classmethod
    def _of_each(cls, labels: Sequence[Any] | NDArray[Any], read: list[float]) -> "Numbers":
        # What is rounded to 0 stands for 0. It may have any exponent, and as many digits.
        return cls(
            np.array(read, dtype=np.float64),
            {
                place: int(label) if isinstance(label, np.integer) else label
                for place, label in enumerate(labels)
                if read[place] and math.isfinite(read[place]) and _has_digits(label)
            },
        )

    def __len__(self) -> int:
        return len(self.floats)

    @cached_property
    def doubles(self) -> Floats:
        """The doubles whose shortest decimals are those of the floats, float64 `(n,)`."""
        return shortest_doubles(self.floats)

    def take(self, places: Indices) -> "Numbers":
        """Return the numbers at these places, in that order."""
        written = {
            at: self.written[place]
            for at, place in enumerate(places.tolist() if self.written else ())
            if place in self.written
        }
        return Numbers(self.floats[places], written)

    def at(self, place: int) -> Fraction:
        """Return one number exactly."""
        label = self.written.get(place)
        return Fraction(float_text(self.floats[place]) if label is None else Decimal(label))


def _has_digits(label: object) -> bool:
    """Return whether a label may be a number of more digits than a double keeps."""
    if isinstance(label, str):
        return len(label) > _SHORT
    if isinstance(label, int | np.integer):
        return abs(int(label)) > _WHOLE
    return isinstance(label, Decimal)


@dataclass(frozen=True)
class Axis:
    """The interval `[low, high]` in `steps` equal steps; edge i is at `low + i width`."""

    low: float
    high: float
    steps: int

    @cached_property
    def start(self) -> Fraction:
        """The decimal that `low` stands for."""
        return decimal_of(self.low)

    @cached_property
    def width(self) -> Fraction:
        """The exact length of a step."""
        return (decimal_of(self.high) - self.start) / self.steps

    @property
    def is_resolved(self) -> bool:
        """Whether doubles tell neighbouring edges from each other."""
        return self.width > max(2.0 * math.ulp(max(abs(self.low), abs(self.high))), _NARROWEST)

    def edge(self, number: int) -> float:
        """Return an edge as the least double that reaches it.

        A double is at or above the edge exactly if it is at or above this one.

        >>> Axis(0.0, 1.0, 10).edge(3), Axis(0.0, 1.0, 3).edge(1)
        (0.3, 0.33333333333333337)
        """
        if self._decimals is not None:
            first, step, scale = self._decimals
            return (first + step * number) / scale
        exact = self.start + number * self.width
        nearest = exact.numerator / exact.denominator
        return nearest if decimal_of(nearest) >= exact else math.nextafter(nearest, math.inf)

    @cached_property
    def _decimals(self) -> tuple[int, int, float] | None:
        """The numbers of `edge i = (first + i step)/scale` if all edges are short decimals.

        These are the shortest of their doubles, which one division of doubles finds.
        """
        for power in range(_EXACT_POWERS):
            scale = 10**power
            first, step = self.start * scale, self.width * scale
            if first.denominator == step.denominator == 1:
                last = first + step * self.steps
                short = max(abs(first), abs(last)) < 10**_SHORT
                return (int(first), int(step), float(scale)) if short else None
        return None

    @cached_property
    def edges(self) -> Floats:
        """All edges, float64 `(steps + 1,)`: ascending."""
        places = np.arange(self.steps + 1)
        if self._decimals is not None:
            return self.edges_at(places)
        return np.array([self.edge(place) for place in places.tolist()])

    def edges_at(self, places: Indices) -> Floats:
        """Return the edges of these numbers, float64 `(n,)`."""
        if self._decimals is not None:
            first, step, scale = self._decimals
            return (first + step * places) / scale
        if self._are_few(places):
            return np.array([self.edge(place) for place in places.tolist()], dtype=np.float64)
        return self.edges[places]

    def _are_few(self, numbers: NDArray[Any]) -> bool:
        """Return whether all edges are not worth the time that it takes to list them."""
        return len(numbers) <= max(_FEW, self.steps // _EDGES)

    @cached_property
    def _single_edges(self) -> NDArray[np.float32]:
        """All edges as the least float32 that reaches each."""
        return least_singles(self.edges)

    @cached_property
    def _single_ends(self) -> NDArray[np.float32]:
        """The least float32 that is inside, and the least that is above."""
        return least_singles(np.array([self.low, math.nextafter(self.high, math.inf)]))

    def holds(self, numbers: Numbers) -> Bools:
        """Return which numbers are inside, both ends included: bool `(n,)`."""
        floats = numbers.floats
        if floats.dtype == np.float32:
            first, above = self._single_ends
            inside: Bools = (floats >= first) & (floats < above)
        else:
            inside = (floats >= self.low) & (floats <= self.high)
        if numbers.written:
            # The decimal is on the same side of an end as its double, unless that is next to it.
            low = math.nextafter(self.low, math.inf), math.nextafter(self.low, -math.inf)
            high = math.nextafter(self.high, math.inf), math.nextafter(self.high, -math.inf)
            near = np.isin(floats, (*low, self.low, *high, self.high))
            for place in np.flatnonzero(near).tolist():
                inside[place] = 0 <= self.position(numbers.at(place)) <= self.steps
        return inside

    def position(self, number: Fraction) -> Fraction:
        """Return where a number lies, in steps from the low end."""
        return (number - self.start) / self.width

    def positions(self, numbers: Numbers, *, rough: float) -> tuple[Floats, float]:
        """Return where numbers inside lie, float64 `(n,)`, and a bound on the error.

        Float32 are placed as they are if they differ from their decimals by less than `rough`.
        """
        floats, error = numbers.floats, self._error
        if floats.dtype == np.float32:
            farthest = max(_SINGLE_EPSILON * self._farthest, _LEAST_SINGLE)
            single = farthest / self._length * self.steps
            if single < rough:
                error += single
            else:
                floats = numbers.doubles
        positions: Floats = np.subtract(floats, self.low, dtype=np.float64)
        positions /= self._length
        positions *= self.steps
        return positions, error

    @cached_property
    def _length(self) -> float:
        return self.high - self.low

    @cached_property
    def _farthest(self) -> float:
        return max(abs(self.low), abs(self.high))

    @cached_property
    def _error(self) -> float:
        """A bound on the error of the position of a double."""
        # Each double, and each operation, errs by at most half a unit in its last place.
        return _ROUNDINGS * self.steps * (1.0 + self._farthest / self._length)

    def floors(self, numbers: Numbers) -> Indices:
        """Return the last edge that each number inside has reached, int64 `(n,)` in `0..steps`."""
        if len(numbers) <= _FEW and numbers.floats.dtype == np.float64:
            pairs = enumerate(numbers.floats.tolist())
            return np.array(
                [self._floor(number, numbers, at) for at, number in pairs], dtype=np.int64
            )
        position, error = self.positions(numbers, rough=_HALF)
        if error >= _HALF:
            floors: Indices = np.searchsorted(self.edges, numbers.doubles, side="right") - 1
            for place in numbers.written:
                floors[place] = math.floor(self.position(numbers.at(place)))
            return floors
        edge = np.rint(position)
        floors = np.floor(position).astype(np.int64)
        near = np.flatnonzero(np.abs(position - edge) <= error)
        if near.size:
            edges = edge[near].astype(np.int64)
            floors[near] = edges - 1 + self._reach(numbers, near, edges)
        return floors

    def _floor(self, double: float, numbers: Numbers, place: int) -> int:
        """Return the same of one number, without the arrays that take longer than it."""
        position = (double - self.low) / self._length * self.steps
        edge = round(position)
        if abs(position - edge) > self._error:
            return math.floor(position)
        if place in numbers.written or self._error >= _HALF:
            return math.floor(self.position(numbers.at(place)))
        return edge - (double < self.edge(edge))

    def _reach(self, numbers: Numbers, places: Indices, edges: Indices) -> Bools:
        """Return which of the numbers at these places have reached these edges: bool `(m,)`."""
        floats = numbers.floats[places]
        if floats.dtype == np.float32 and not self._are_few(places):
            return np.asarray(floats >= self._single_edges[edges])
        reached: Bools = shortest_doubles(floats) >= self.edges_at(edges)
        if numbers.written:
            for number, place in enumerate(places.tolist()):
                if place in numbers.written:
                    position = self.position(numbers.at(place))
                    reached[number] = position >= int(edges[number])
        return reached

    def nearest(self, numbers: Numbers) -> Indices:
        """Return the edge that is nearest to each number inside, the upper one in the middle."""
        if len(numbers) <= _FEW:
            return self._exactly_nearest(numbers)
        indices: Indices = np.empty(len(numbers), dtype=np.int64)
        for start in range(0, len(numbers), _TOGETHER):
            some = slice(start, start + _TOGETHER)
            position, error = self.positions(Numbers(numbers.floats[some]), rough=_ROUGH)
            indices[some] = edge = np.rint(position)
            position -= edge
            doubtful = start + np.flatnonzero(np.abs(position) >= _HALF - error)
            if doubtful.size:
                indices[doubtful] = self._exactly_nearest(numbers.take(doubtful))
        return indices

    def _exactly_nearest(self, numbers: Numbers) -> Indices:
        return (self._halves.floors(numbers) + 1) // 2

    @cached_property
    def _halves(self) -> "Axis":
        return Axis(self.low, self.high, 2 * self.steps)


def least_singles(doubles: Floats) -> NDArray[np.float32]:
    """Return the least float32 whose decimals are not below those of doubles: `(n,)`.

    >>> least_singles(np.array([0.3, math.nextafter(0.3, 1.0)])).tolist() == [
    ...     float(np.float32(0.3)), float(np.nextafter(np.float32(0.3), np.float32(1.0)))]
    True
    """
    top = np.float32(np.inf)
    with np.errstate(over="ignore", under="ignore"):
        least = np.nextafter(doubles.astype(np.float32), -top)
        # The decimal of a float is within its rounding interval.
        for _ in range(2):
            below = shortest_doubles(least) < doubles
            least = np.where(below, np.nextafter(least, top), least)
    return least


def read_labels(labels: Sequence[Any] | NDArray[Any], dimensions: int) -> list[Numbers]:
    """Return the numbers of each dimension of n labels, `(n,)`, or `(n, D)` in D > 1 dimensions.

    A label of another form is NaN.
    """
    if dimensions == 1:
        return [Numbers.of_labels(labels)]
    if isinstance(labels, np.ndarray) and labels.shape == (len(labels), dimensions):
        return [Numbers.of_labels(column) for column in labels.T]
    other = [None] * dimensions
    rows = [
        row if isinstance(row, list | tuple | np.ndarray) and len(row) == dimensions else other
        for row in labels
    ]
    return [Numbers.of_labels([row[axis] for row in rows]) for axis in range(dimensions)]


def parse_rows(rows: Sequence[Sequence[str]], dimensions: int) -> list[Numbers]:
    """Return the numbers of each column of n rows of text; a row of another length is NaN."""
    rows = [row if len(row) == dimensions else [""] * dimensions for row in rows]
    return [Numbers.of_texts([row[axis] for row in rows]) for axis in range(dimensions)]
