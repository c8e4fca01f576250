"""Queries about the values of a domain: ranges, linear queries, areas and quantiles.

They are read here, from texts and bodies, and checked to fit the domain.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from ldpstream.agents.query.errors import QueryError
from ldpstream.mechanisms.base.errors import ValueOutsideDomainError
from ldpstream.mechanisms.base.numbers import read_number, trimmed
from ldpstream.mechanisms.base.texts import canonical_text
from ldpstream.mechanisms.domains.parse import Domain, Interval, RoundedInterval

_EDGE_TOLERANCE: Final = 1e-9  # of a bin's width: decimal edges are not exact in binary
_MAX_VALUES_WITH_AREAS: Final = 100_000
_MAX_END: Final = 1e300  # differences of larger ones may overflow
_MAX_WEIGHT: Final = 1e30  # squares of larger ones may overflow
_NAMED: Final = re.compile(r"(?:([A-Za-z0-9._-]{1,40}):)?(.*)", re.DOTALL)

_Finite = Annotated[float, Field(allow_inf_nan=False)]


class RequestModel(BaseModel):
    """Base of requests: unknown keys are refused, so that none is misspelt and ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _NamedQuery(RequestModel):
    name: str = Field(min_length=1, max_length=100)


class BoxRequest(_NamedQuery):
    """A named range."""

    bounds: list[Annotated[list[_Finite], Field(min_length=2, max_length=2)]] = Field(
        min_length=1,
        description="[low, high], both included, or edges of bins; one pair per dimension",
    )


class LinearRequest(_NamedQuery):
    """A function of the value, whose mean is estimated."""

    weights: list[_Finite] | dict[str, _Finite] = Field(
        description="One weight per value in the domain's order (the last dimension fastest), or "
        "by label, where missing ones weigh 0"
    )


@dataclass(frozen=True)
class Range:
    """A box of values: `bounds` has one `(first, last)` per dimension, 0-based, both included."""

    name: str
    bounds: tuple[tuple[int, int], ...]


def read_ranges(asked: Sequence[str | BoxRequest], domain: Domain) -> tuple[Range, ...]:
    """Return the ranges that are asked for, as texts or in a body.

    Raises:
        QueryError: for one that does not fit the domain.
    """
    return tuple(
        parse_range(one, domain)
        if isinstance(one, str)
        else make_range(one.name, one.bounds, domain)
        for one in asked
    )


def parse_range(text: str, domain: Domain) -> Range:
    """Parse `LO..HI[,LO..HI]`; the range is named by this text.

    Raises:
        QueryError: for any other text, or one that does not fit the domain.
    """
    pairs = [part.split("..") for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise QueryError("range", f"LO..HI, one per dimension, separated by commas, got {text!r}")
    try:
        ends = [tuple(read_number(trimmed(end)) for end in pair) for pair in pairs]
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
        or not all(type(end) in (int, float) and abs(end) <= _MAX_END for p in pairs for end in p)
    ):
        shape = "[low, high]" if dimensions == 1 else f"{dimensions} pairs [low, high]"
        raise QueryError("range", f"{shape}, of numbers")
    bounds = [_ends(low, high, domain, axis) for axis, (low, high) in enumerate(pairs)]
    return Range(name, tuple(bounds))


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


@dataclass(frozen=True, eq=False)
class Linear:
    """A named function of the value: `weights` float64 `(k,)`, in the domain's own order."""

    name: str
    weights: NDArray[np.float64]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        """Return a text that differs whenever a weight does: ETags are made from it."""
        return f"Linear({self.name!r}, {hashlib.sha256(self.weights.tobytes()).hexdigest()})"


def read_linear(asked: Sequence[str | LinearRequest], domain: Domain) -> tuple[Linear, ...]:
    """Return the linear queries that are asked for, as texts or in a body.

    Raises:
        QueryError: for one that does not fit the domain.
    """
    return tuple(
        parse_linear(one, domain, position)
        if isinstance(one, str)
        else make_linear(one.name, one.weights, domain)
        for position, one in enumerate(asked, start=1)
    )


def parse_linear(text: str, domain: Domain, position: int) -> Linear:
    """Parse `[NAME:]W,W,...`, with one weight per value of the domain.

    Without a name it is called `linear-1`, and so on, by its position from 1.

    Raises:
        QueryError: for any other text, or a wrong number of weights.
    """
    match = _NAMED.fullmatch(text)
    assert match is not None, "the pattern takes every text"
    try:
        weights = [read_number(trimmed(part)) for part in match[2].split(",")]
    except ValueError:
        raise QueryError("linear", "[NAME:]W,W,... with a number for each value") from None
    return make_linear(match[1] or f"linear-{position}", weights, domain)


def make_linear(
    name: str, weights: Sequence[float] | Mapping[str, float], domain: Domain
) -> Linear:
    """Return the query with these weights: one per value in the domain's order, or by label.

    Missing labels weigh 0. With several dimensions the last runs fastest.

    Raises:
        QueryError: for a number that is not finite or too large, a wrong number of weights, or an
            unknown label.
    """
    given = list(weights.values() if isinstance(weights, Mapping) else weights)
    if not (isinstance(weights, Mapping) or len(given) == domain.size):
        raise QueryError("linear", f"{domain.size} weights, one for each value, got {len(given)}")
    # Checked before conversion: an integer may be too large for a float.
    if not all(map(_MAX_WEIGHT.__ge__, map(abs, given))):
        raise QueryError("linear", f"finite weights of at most {_MAX_WEIGHT:g}")
    numbers = np.array(given, dtype=np.float64)
    if not isinstance(weights, Mapping):
        return Linear(name, numbers)
    full = np.zeros(domain.size)
    full[_indices(list(weights), domain)] = numbers
    return Linear(name, full)


def _indices(labels: Sequence[str], domain: Domain) -> list[int]:
    """Return the labels' indices, in time that does not grow with the domain."""
    if isinstance(domain.label(0), list):
        raise QueryError("linear", "a list of weights; only labels and numbers can be named")
    return [_index(label, domain) for label in labels]


def _index(label: str, domain: Domain) -> int:
    try:
        index = int(domain.parse_columns([[label]])[0])
    except ValueOutsideDomainError:
        index = -1
    # Devices may write a number in several ways; here only the canonical one is a name.
    if index < 0 or canonical_text(str(domain.label(index))) != canonical_text(label):
        raise QueryError("linear", f"labels of the domain, got {label[:40]!r}")
    return index


def check_areas(asked: bool, domain: Domain) -> bool:
    """Return whether areas are asked for.

    Raises:
        QueryError: where the domain has too many values.
    """
    most = _MAX_VALUES_WITH_AREAS
    if asked and domain.size > most:
        raise QueryError("areas", f"a domain of at most {most} values, got {domain.size}")
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
