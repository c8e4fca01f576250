"""Ranges, areas and quantiles: parse them, and check that they fit the domain."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.query.errors import QueryError
from ldpstream.mechanisms.domains.parse import Domain, Interval, RoundedInterval

AREAS_LIMIT: Final = 100_000
"""The most values of a domain for areas."""
_EDGE_TOLERANCE: Final = 1e-9  # of a bin's width: decimal edges are not exact in binary

_LARGEST: Final = 1e300  # of an end: differences of larger ones may overflow


@dataclass(frozen=True)
class Range:
    """A box of values: `bounds` has one `(first, last)` per dimension, 0-based, both included."""

    name: str
    bounds: tuple[tuple[int, int], ...]


def parse_range(text: str, domain: Domain) -> Range:
    """Parse `LO..HI[,LO..HI]`; the range is named by this text.

    Raises:
        QueryError: for any other text, or one that does not fit the domain.
    """
    pairs = [part.split("..") for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise QueryError("range", f"LO..HI, one per dimension, separated by commas, got {text!r}")
    try:
        ends = [tuple(map(float, pair)) for pair in pairs]
    except ValueError:
        raise QueryError("range", f"LO..HI with numbers, got {text!r}") from None
    return make_range(text, ends, domain)


def make_range(name: str, pairs: Sequence[Any], domain: Domain) -> Range:
    """Return the range with these ends, both included: one pair per dimension.

    In one dimension `pairs` may be the pair itself. On intervals the ends are edges of bins, and
    the range is the bins between them, without the upper edge unless it is the interval's end;
    where numbers are rounded to edges, the edges are the values.

    Raises:
        QueryError: where the domain has no order, or the pairs do not fit it.
    """
    if not domain.ordered:
        raise QueryError("range", "a domain with an order; labels have none")
    dimensions = len(domain.shape)
    if dimensions == 1 and len(pairs) == 2 and not any(isinstance(p, list | tuple) for p in pairs):
        pairs = [pairs]
    if (
        len(pairs) != dimensions
        or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs)
        or not all(type(end) in (int, float) and abs(end) <= _LARGEST for p in pairs for end in p)
    ):
        shape = "[low, high]" if dimensions == 1 else f"{dimensions} pairs [low, high]"
        raise QueryError("range", f"{shape}, of numbers")
    bounds = [_ends(low, high, domain, axis) for axis, (low, high) in enumerate(pairs)]
    return Range(name, tuple(bounds))


def check_areas(asked: bool, domain: Domain) -> bool:
    """Return whether areas are asked for.

    Raises:
        QueryError: where the domain has too many values.
    """
    if asked and domain.size > AREAS_LIMIT:
        raise QueryError("areas", f"a domain of at most {AREAS_LIMIT} values, got {domain.size}")
    return asked


def check_quantiles(quantiles: Sequence[float], domain: Domain) -> tuple[float, ...]:
    """Return the quantiles, which need one ordered dimension.

    Raises:
        QueryError: for any other domain, or a quantile that is asked for twice.
    """
    if quantiles and not (domain.ordered and len(domain.shape) == 1):
        raise QueryError("quantile", "a domain of one ordered dimension")
    if len(set(quantiles)) < len(quantiles):
        raise QueryError("quantile", "each number once")
    return tuple(quantiles)


def _ends(low: float, high: float, domain: Domain, axis: int) -> tuple[int, int]:
    if low > high:
        raise QueryError("range", f"low <= high, got {low:g}..{high:g}")
    if isinstance(domain, Interval):
        edges = domain.edges[axis]
        first, end = (_edge(edge, edges) for edge in (low, high))
        if first == end:
            raise QueryError("range", f"at least one bin, got {low:g}..{high:g}")
        return first, end - 1
    if isinstance(domain, RoundedInterval):
        return _edge(low, domain.edges[axis]), _edge(high, domain.edges[axis])
    last = domain.shape[axis] - 1
    if not (low >= 0 and high <= last and float(low).is_integer() and float(high).is_integer()):
        raise QueryError("range", f"whole numbers in 0..{last}, got {low:g}..{high:g}")
    return int(low), int(high)


def _edge(number: float, edges: NDArray[np.float64]) -> int:
    nearest = int(np.abs(edges - number).argmin())
    if abs(edges[nearest] - number) > _EDGE_TOLERANCE * (edges[1] - edges[0]):
        raise QueryError(
            "range", f"edges of bins, got {number:g}; the nearest edge is {edges[nearest]:g}"
        )
    return nearest
