"""Intervals of real numbers in equal steps, in the decimals that people write.

A double is not the decimal that was written: 0.1 * 3 is above 0.3, and 0.3 itself is a little below
three tenths. Here a double stands for its shortest decimal, the one that `repr` prints, so that
`[0, 1]` in 10 steps has an edge at exactly 0.3, which 0.3 reaches. Shortest decimals ascend as
doubles do, so that comparing doubles with the least one that reaches an edge is exact. Few numbers,
and those of more digits than a double has, are decided in rationals.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Bools, Floats, Indices
from ldpstream.mechanisms.base.checks import parse_real, real_number

_ROUNDINGS: Final = 2.0**-50
_WHOLE: Final = 1 << 53
"""Integers below this in size are doubles."""
_SHORT: Final = 15
"""A text of so few characters is the shortest decimal of its double, or at an end of the range."""
_FEW: Final = 4
"""So many numbers, or one for so many edges, are decided one by one."""
_EXACT_POWERS: Final = 23
"""10^0 to 10^22 are doubles."""
_NARROWEST: Final = 2.0**-960
"""Steps below this would be compared with too few digits."""
_USUAL: Final = 12
_HALF: Final = 0.5
_PLAIN: Final[tuple[set[type], ...]] = (
    set(),
    {float},
    {np.float64},
    {float, np.float64},
    {int},
)
"""The types of labels whose array has all their digits."""


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
    left, exponents = rest[usual], exponents[usual]
    for digits in range(sure, most + 1):
        places = digits - 1 - exponents
        up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
        rounded = np.rint(wide[left] * up / down) * down / up
        same = rounded.astype(numbers.dtype) == numbers[left]
        wide[left[same]] = rounded[same]
        left, exponents = left[~same], exponents[~same]
    others = np.concatenate((rest[~usual], left))
    distinct, which = np.unique(numbers[others], return_inverse=True)
    wide[others] = np.array([float(str(one)) for one in distinct], dtype=np.float64)[which]
    return wide


@dataclass(frozen=True, eq=False)
class Numbers:
    """n numbers as they were read: doubles, float64 `(n,)`, and which of them stand for others.

    `exact` has the numbers that differ from the shortest decimal of their double, by position:
    decimals of more digits than a double keeps, and large integers. What is no number is NaN.
    """

    doubles: Floats
    exact: Mapping[int, Fraction] = field(default_factory=dict)

    @classmethod
    def of_labels(cls, labels: Sequence[Any] | NDArray[Any]) -> "Numbers":
        """Return n labels of any kind; arrays, and lists of only floats or integers, are fast."""
        array: NDArray[Any] | None = labels if isinstance(labels, np.ndarray) else None
        if array is None and {*map(type, labels)} in _PLAIN:
            array = np.array(labels)
        kind = array.dtype.kind if array is not None and array.ndim == 1 else "O"
        if array is not None and kind == "f":
            return cls(shortest_doubles(array))
        if array is not None and kind in "iu":
            doubles: Floats = array.astype(np.float64)
            if not len(array) or np.abs(doubles).max() < _WHOLE:
                return cls(doubles)
        return cls._of_each([_read(label) for label in labels])

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> "Numbers":
        """Return the numbers that n texts spell."""
        return cls._of_each([_parse(text) for text in texts])

    @classmethod
    def _of_each(cls, read: Sequence[tuple[float, Fraction | None]]) -> "Numbers":
        doubles = np.array([double for double, _ in read], dtype=np.float64)
        return cls(doubles, {i: one for i, (_, one) in enumerate(read) if one is not None})

    def at(self, place: int) -> Fraction:
        """Return one number exactly."""
        exact = self.exact.get(place)
        return decimal_of(self.doubles[place]) if exact is None else exact


def _read(label: object) -> tuple[float, Fraction | None]:
    double = real_number(label)
    if not math.isfinite(double):
        return double, None
    if isinstance(label, int | np.integer) and abs(int(label)) > _WHOLE:
        return double, _unless_same(Fraction(int(label)), double)
    if isinstance(label, Decimal) and double:
        return double, _unless_same(Fraction(label), double)
    return double, None


def _parse(text: str) -> tuple[float, Fraction | None]:
    double = parse_real(text)
    # A text that is rounded to 0 may have any exponent, and a rational of billions of digits.
    if len(text) <= _SHORT or not math.isfinite(double) or not double or repr(double) == text:
        return double, None
    return double, _unless_same(Fraction(Decimal(text.strip())), double)


def _unless_same(exact: Fraction, double: float) -> Fraction | None:
    return None if exact == decimal_of(double) else exact


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
        exact = self.start + number * self.width
        nearest = exact.numerator / exact.denominator
        return nearest if decimal_of(nearest) >= exact else math.nextafter(nearest, math.inf)

    @cached_property
    def edges(self) -> Floats:
        """All edges, float64 `(steps + 1,)`: ascending."""
        for power in range(_EXACT_POWERS):
            scale = 10**power
            first, step = self.start * scale, self.width * scale
            if first.denominator == step.denominator == 1:
                last = first + step * self.steps
                if max(abs(first), abs(last)) >= 10**_SHORT:
                    break
                # Decimals of so few digits are the shortest of their doubles, which one division of
                # doubles finds.
                places = np.arange(self.steps + 1)
                return (int(first) + int(step) * places) / float(scale)
        return np.array([self.edge(place) for place in range(self.steps + 1)])

    def edges_at(self, places: Indices) -> Floats:
        """Return the edges of these numbers, float64 `(n,)`."""
        if self._are_few(places):
            return np.array([self.edge(place) for place in places.tolist()], dtype=np.float64)
        return self.edges[places]

    def _are_few(self, numbers: NDArray[Any]) -> bool:
        """Return whether all edges are not worth the time that it takes to list them."""
        return len(numbers) <= max(_FEW, self.steps // _FEW)

    def holds(self, numbers: Numbers) -> Bools:
        """Return which numbers are inside, both ends included: bool `(n,)`."""
        inside: Bools = (numbers.doubles >= self.low) & (numbers.doubles <= self.high)
        end = decimal_of(self.high)
        for place, exact in numbers.exact.items():
            inside[place] = self.start <= exact <= end
        return inside

    def position(self, number: Fraction) -> Fraction:
        """Return where a number lies, in steps from the low end."""
        return (number - self.start) / self.width

    def positions(self, numbers: Numbers) -> tuple[Floats, float]:
        """Return where numbers inside lie, float64 `(n,)`, and a bound on the error.

        The bound does not hold for the numbers in `exact`.
        """
        length = self.high - self.low
        found: Floats = (numbers.doubles - self.low) / length * self.steps
        # Each double, and each operation, errs by at most half a unit in its last place.
        farthest = max(abs(self.low), abs(self.high))
        return found, _ROUNDINGS * self.steps * (1.0 + farthest / length)

    def floors(self, numbers: Numbers) -> Indices:
        """Return the last edge that each number inside has reached, int64 `(n,)` in `0..steps`."""
        if self._are_few(numbers.doubles):
            each = [self._floor(numbers.at(place)) for place in range(len(numbers.doubles))]
            return np.array(each, dtype=np.int64)
        found = np.searchsorted(self.edges, numbers.doubles, side="right").astype(np.int64) - 1
        for place, exact in numbers.exact.items():
            found[place] = self._floor(exact)
        return found

    def _floor(self, number: Fraction) -> int:
        return math.floor(self.position(number))

    def nearest(self, numbers: Numbers) -> Indices:
        """Return the edge that is nearest to each number inside, the upper one in the middle."""
        return (self._halves.floors(numbers) + 1) // 2

    @cached_property
    def _halves(self) -> "Axis":
        return Axis(self.low, self.high, 2 * self.steps)


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
