"""Which of many labels a domain takes, and the nearest point of the domain to one that it refuses.

A domain refuses an input at its first bad label. These functions find every bad label, for programs
that skip them, or move numbers to the nearest end of their range, and say how many there were.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Indices, unmasked
from ldpstream.mechanisms.base.checks import real_number
from ldpstream.mechanisms.base.errors import ValueOutsideDomainError
from ldpstream.mechanisms.base.numbers import parse_real
from ldpstream.mechanisms.domains.base import Domain

Number = int | float


@dataclass(frozen=True, eq=False)
class Fitted:
    """The good ones among n labels: `indices` in the domain and positions `good`, int64 both.

    `bad` maps the positions of the others to what was expected there; `moved` is the number of good
    labels that were moved into the domain.
    """

    indices: Indices
    good: Indices
    bad: dict[int, str] = field(default_factory=dict)
    moved: int = 0


def fit(
    labels: Sequence[Any] | NDArray[Any],
    *,
    place: Callable[[Any], Indices],
    check: Callable[[Any], object],
    move: Callable[[Any], Any] | None = None,
) -> Fitted:
    """Return the indices of the labels that a domain takes, and which labels are bad.

    `place` returns the indices of labels; `check` raises if `place` would, without drawing
    anything. `move` returns a bad label moved into the domain, or None if that is impossible.
    """
    try:
        return Fitted(place(labels), np.arange(len(labels)))
    except ValueOutsideDomainError:
        bad = find_bad(len(labels), lambda start, end: check(labels[start:end]))
    fitted: list[Any] = list(labels)
    moved = 0
    for position in list(bad):
        point = None if move is None else move(fitted[position])
        if point is not None:
            fitted[position] = point
            del bad[position]
            moved += 1
    good = np.array([p for p in range(len(fitted)) if p not in bad], dtype=np.int64)
    return Fitted(place([fitted[position] for position in good]), good, bad, moved)


def find_bad(n: int, check: Callable[[int, int], object]) -> dict[int, str]:
    """Return the positions of the bad ones among n labels, in order, and what was expected there.

    `check(start, end)` raises ValueOutsideDomainError at the first bad label of a range. A long
    range of good labels takes one call; each bad label costs a few.
    """
    bad: dict[int, str] = {}
    start, step = 0, max(n, 1)
    while start < n:
        end = min(n, start + step)
        try:
            check(start, end)
        except ValueOutsideDomainError as error:
            bad[start + error.position] = error.expected
            start, step = start + error.position + 1, 1
        else:
            start, step = end, 2 * step
    return bad


def move_inside(domain: Domain, labels: Sequence[Any] | NDArray[Any]) -> list[Any]:
    """Return labels with numbers outside the domain moved to its nearest end.

    What is no number stays as it is, for the domain to refuse.
    """
    if not has_ends(domain):
        raise ValueError("clamp: expected a collection with only numbers")
    moved = []
    for label in unmasked(labels):
        point = nearest_label(domain, label)
        moved.append(label if point is None else point)
    return moved


def nearest_label(domain: Domain, label: Any) -> Number | list[Number] | None:
    """Return the label of a domain that is nearest to a number, or to a row of them.

    None where `nearest` has none.
    """
    row = label if isinstance(label, list | tuple | np.ndarray) else [label]
    point = nearest(domain, list(row))
    return point[0] if point is not None and len(point) == 1 else point


def has_ends(domain: Domain) -> bool:
    """Return whether each coordinate of a domain has a least and a largest number."""
    return domain.written.ends is not None


def nearest(domain: Domain, row: Sequence[object]) -> list[Number] | None:
    """Return the point of a domain that is nearest to a row of numbers, one for each dimension.

    Numbers may be given as texts. None if one of them is not a number, or not whole although the
    domain's are, or if the domain has no ends.

    >>> from ldpstream.mechanisms.domains.lattice import Grid
    >>> nearest(Grid(3, 5), ["-2", "4"]), nearest(Grid(3, 5), ["one", "4"])
    ([0, 4], None)
    """
    ends, whole = domain.written.ends, domain.written.whole
    if ends is None:
        return None
    numbers = [parse_real(cell) if isinstance(cell, str) else real_number(cell) for cell in row]
    if len(numbers) != len(ends) or any(number != number for number in numbers):
        return None
    if whole and not all(number.is_integer() for number in numbers):
        return None
    moved = [min(max(number, low), high) for number, (low, high) in zip(numbers, ends, strict=True)]
    return [int(number) for number in moved] if whole else moved
