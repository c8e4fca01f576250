"""The mean square of a workload's queries on each level of a tree, in closed form.

A query w over `2^L` padded places is a sum of orthogonal parts: its mean, and for each level l >= 1
the change of its nodes' means from level `l - 1` to l. A range is the difference of two prefixes.
The change of a prefix is 0 except in the node that its cut c divides. There it is `+-t(o)/2` in the
two halves of width h, where o is the place of the cut in the node and `t(o) = min(o, 2 h - o)/h`.
All sums over ranges are therefore sums of t and of its squares. In several dimensions parts are
products.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import Final

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.base.checks import describe, is_whole
from ldpstream.mechanisms.base.errors import SpecError

Box = tuple[tuple[int, int], ...]
"""The first and the last place in each dimension."""
Workload = str | tuple[Box, ...]

LEVELS: Final = "levels"
"""Not queries, but the whole distribution: every level has the same probability."""
NAMES: Final = ("ranges", "prefixes", LEVELS)
_MOST_BOXES: Final = 4096


def height(extent: int) -> int:
    """Return the number of levels below the root of a line: the least L with `2^L >= extent`."""
    return (extent - 1).bit_length()


def mean_squares(workload: Workload, extents: Sequence[int]) -> Floats:
    """Return the workload's mean square on each level, float64 `(L_1 + 1, ...)`.

    `ranges` are all boxes; `prefixes` are those that begin at the first value in each dimension.
    Computed with rationals and then products of floats, so that it is the same on every machine.
    """
    if isinstance(workload, str):
        family = _all_ranges if workload == "ranges" else _all_prefixes
        return _product([family(extent) for extent in extents])
    total = np.zeros([height(extent) + 1 for extent in extents])
    for box in workload:
        total += _product([_one_range(e, *ends) for e, ends in zip(extents, box, strict=True)])
    return total / len(workload)


def _product(axes: Sequence[Sequence[Fraction]]) -> Floats:
    columns = [np.array([float(number) for number in axis]) for axis in axes]
    return reduce(np.multiply.outer, columns)


def _all_ranges(extent: int) -> list[Fraction]:
    """Return the means over all pairs of the cuts `0..k`, the last of which cuts nothing off."""
    places, cuts = 1 << height(extent), extent + 1
    pairs = cuts * (cuts - 1) // 2
    # The sum over pairs of squared differences: cuts * sum of squares - square of the sum.
    inside = extent * (extent - 1) // 2 + places
    spread = cuts * (_squares_below(extent) + places**2) - inside**2
    out = [Fraction(spread, pairs * places)]
    for half in _halves(extent):
        nodes, rest = divmod(extent, 2 * half)
        whole, partial = _triangle(half, 2 * half), _triangle(half, rest)
        squares = nodes * whole[1] + partial[1]
        together = nodes * whole[0] ** 2 + partial[0] ** 2
        out.append(Fraction(cuts * squares - together, 2 * half * pairs))
    return out


def _all_prefixes(extent: int) -> list[Fraction]:
    places = 1 << height(extent)
    out = [Fraction(_squares_below(extent) + places**2, extent * places)]
    for half in _halves(extent):
        nodes, rest = divmod(extent, 2 * half)
        squares = nodes * _triangle(half, 2 * half)[1] + _triangle(half, rest)[1]
        out.append(Fraction(squares, 2 * half * extent))
    return out


def _one_range(extent: int, first: int, last: int) -> list[Fraction]:
    places = 1 << height(extent)
    cuts = first, places if last + 1 == extent else last + 1
    out = [Fraction((cuts[1] - cuts[0]) ** 2, places)]
    for half in _halves(extent):
        (node, a), (other, b) = (divmod(cut, 2 * half) for cut in cuts)
        t, u = min(a, 2 * half - a), min(b, 2 * half - b)
        square = (t - u) ** 2 if node == other else t**2 + u**2
        out.append(Fraction(square, 2 * half))
    return out


def _halves(extent: int) -> list[int]:
    """Return the width of the nodes on each level below the root, the widest first."""
    return [1 << power for power in reversed(range(height(extent)))]


def _triangle(half: int, places: int) -> tuple[int, int]:
    """Return the sums of `h t(o)` and of its square over the first `places` places of a node."""
    if places <= half:
        return places * (places - 1) // 2, _squares_below(places)
    remaining = 2 * half - places
    linear = half**2 - remaining * (remaining + 1) // 2
    return linear, _squares_below(half) + _squares_below(half + 1) - _squares_below(remaining + 1)


def _squares_below(number: int) -> int:
    return (number - 1) * number * (2 * number - 1) // 6


def read_workload(raw: object, extents: Sequence[int], path: str, *, boxes: bool) -> Workload:
    """Return a workload: a name, or, with `boxes`, a list of ranges.

    In one dimension a range is `[first, last]`, in several a list of such pairs, one for each of
    `extents`. Places count from 0, and both ends are included.
    """
    *first, last = (f'"{name}"' for name in NAMES)
    names = f"{', '.join(first)} or {last}"
    if isinstance(raw, str) and raw in NAMES:
        return raw
    if not boxes or not isinstance(raw, list) or not 1 <= len(raw) <= _MOST_BOXES:
        more = f" or a list of at most {_MOST_BOXES} ranges" if boxes else ""
        raise SpecError(path, f"{names}{more}, got {describe(raw)}")
    return tuple(_read_box(box, extents, f"{path}[{place}]") for place, box in enumerate(raw))


def _read_box(raw: object, extents: Sequence[int], path: str) -> Box:
    pairs = [raw] if len(extents) == 1 else raw
    if not isinstance(pairs, list) or len(pairs) != len(extents):
        raise SpecError(path, f"{len(extents)} pairs [first, last], got {describe(raw)}")
    return tuple(_read_ends(*ends, path) for ends in zip(pairs, extents, strict=True))


def _read_ends(raw: object, extent: int, path: str) -> tuple[int, int]:
    expected = f"[first, last] with 0 <= first <= last <= {extent - 1}"
    if not isinstance(raw, list) or len(raw) != 2:
        raise SpecError(path, f"{expected}, got {describe(raw)}")
    first, last = raw
    if not (is_whole(first) and is_whole(last) and 0 <= first <= last < extent):
        raise SpecError(path, f"{expected}, got {describe(first)} and {describe(last)}")
    return first, last
