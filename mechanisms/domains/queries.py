"""Queries about the values of a domain: ranges, sets, and functions of the value."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.base.checks import number_text
from ldpstream.mechanisms.base.errors import QueryError, ValueOutsideDomainError
from ldpstream.mechanisms.base.texts import canonical_text
from ldpstream.mechanisms.domains.axis import Axis, decimal_of
from ldpstream.mechanisms.domains.base import Domain

_EDGE_TOLERANCE: Final = 1e-9  # of a bin's width: people write a third as 0.3333333333
_MAX_END: Final = 1e300  # differences of larger ones may overflow
_MAX_WEIGHT: Final = 1e30  # squares of larger ones may overflow


def range_values(shape: Sequence[int], bounds: Sequence[Sequence[int]]) -> Integers:
    """Return the indices of the values inside a range, int64, ascending.

    `bounds` holds one pair `(first, last)` for each dimension, both ends included, 0-based. Values
    are in row-major order.

    >>> range_values((3, 4), [(0, 1), (2, 3)]).tolist()
    [2, 3, 6, 7]

    Raises:
        ValueError: if the pairs do not fit the shape, or are out of order or range.
    """
    if len(bounds) != len(shape):
        raise ValueError(f"range: expected {len(shape)} pairs, got {len(bounds)}")
    out = np.zeros(1, dtype=np.int64)
    for size, pair in zip(shape, bounds, strict=True):
        if len(pair) != 2:
            raise ValueError(f"range: expected pairs, got {len(pair)} numbers")
        first, last = pair
        if not 0 <= first <= last < size:
            raise ValueError(
                f"range: expected 0 <= first <= last <= {size - 1}, got [{first}, {last}]"
            )
        out = (out[:, None] * size + np.arange(first, last + 1)).ravel()
    return out


@dataclass(frozen=True)
class Range:
    """A box of values: `bounds` has one `(first, last)` per dimension, 0-based, both included."""

    name: str
    bounds: tuple[tuple[int, int], ...]

    def values(self, shape: tuple[int, ...]) -> Integers:
        """Return the indices of the values in a domain of this shape: int64 `(m,)`."""
        return range_values(shape, self.bounds)


@dataclass(frozen=True)
class ValueSet:
    """A named set of values; `digest`, the SHA-256 in hex of their indices, is its identity."""

    name: str
    indices: Integers = field(compare=False, repr=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256(self.indices.astype("<i8").tobytes()).hexdigest()
        object.__setattr__(self, "digest", digest)

    def values(self, _: tuple[int, ...]) -> Integers:
        """Return the indices of the values: int64 `(m,)`."""
        return self.indices


Subset = Range | ValueSet
"""A part of the domain, whose share is estimated."""


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


def make_set(name: str, values: Sequence[Any], domain: Domain) -> ValueSet:
    """Return the set of these values, given by their labels.

    Raises:
        QueryError: unless there is at least one value, each once, and all are in the domain.
    """
    if not values or not all(isinstance(label, str) or type(label) is int for label in values):
        raise QueryError("range", "a list of labels, at least one")
    labels = _indices([str(label) for label in values], domain.written, "range")
    indices = np.array(labels, dtype=np.int64)
    if len(np.unique(indices)) < len(indices):
        raise QueryError("range", "each label once")
    return ValueSet(name, np.sort(domain.merge(indices)))


def make_range(name: str, pairs: Sequence[Any], domain: Domain) -> Subset:
    """Return the range with these ends, both included: one pair per dimension.

    In one dimension `pairs` may be the pair itself. On intervals the ends are edges of bins, and
    the range is the bins between them, without the upper edge unless it is the interval's end;
    where numbers are rounded to edges, the edges are the values.

    Raises:
        QueryError: where the domain has no order, or the pairs do not fit it.
    """
    written = domain.written
    if not written.ordered:
        raise QueryError(
            "range", "a domain with an order; labels have none: name a set of them in publish.sets"
        )
    dimensions = len(written.shape)
    if dimensions == 1 and len(pairs) == 2 and not any(isinstance(p, list | tuple) for p in pairs):
        pairs = [pairs]
    if (
        len(pairs) != dimensions
        or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs)
        or not all(type(end) in (int, float) and abs(end) <= _MAX_END for p in pairs for end in p)
    ):
        shape = "[low, high]" if dimensions == 1 else f"{dimensions} pairs [low, high]"
        raise QueryError("range", f"{shape}, of numbers")
    bounds = [_ends(low, high, written, axis) for axis, (low, high) in enumerate(pairs)]
    box = Range(name, tuple(bounds))
    return box if written is domain else ValueSet(name, domain.merge(box.values(written.shape)))


def _ends(low: float, high: float, domain: Domain, axis: int) -> tuple[int, int]:
    if low > high:
        raise _refusal("low <= high", low, high)
    if domain.axes:
        first, end = (_edge(edge, domain.axes[axis]) for edge in (low, high))
        if domain.rounded:
            return first, end
        if first == end:
            raise _refusal("at least one bin", low, high)
        return first, end - 1
    last = domain.shape[axis] - 1
    if not (low >= 0 and high <= last and float(low).is_integer() and float(high).is_integer()):
        raise _refusal(f"whole numbers in 0..{last}", low, high)
    return int(low), int(high)


def _refusal(expected: str, low: float, high: float) -> QueryError:
    return QueryError("range", f"{expected}, got {number_text(low)}..{number_text(high)}")


def _edge(number: float, axis: Axis) -> int:
    position = axis.position(decimal_of(number))
    nearest = min(max(round(position), 0), axis.steps)
    if abs(position - nearest) > _EDGE_TOLERANCE:
        got, edge = number_text(number), number_text(axis.edge(nearest))
        raise QueryError("range", f"edges of bins, got {got}; the nearest edge is {edge}")
    return nearest


def make_linear(
    name: str, weights: Sequence[float] | Mapping[str, float], domain: Domain
) -> Linear:
    """Return the query with these weights: one per value in the domain's order, or by label.

    Missing labels weigh 0. With several dimensions the last runs fastest.

    Raises:
        QueryError: for a number that is not finite or too large, a wrong number of weights, or an
            unknown label.
    """
    values = list(weights.values() if isinstance(weights, Mapping) else weights)
    size = domain.written.size
    if not (isinstance(weights, Mapping) or len(values) == size):
        raise QueryError("linear", f"{size} weights, one for each value, got {len(values)}")
    if not all(type(weight) in (int, float) for weight in values):
        raise QueryError("linear", "a list of numbers, or a table of them by label")
    # Checked before conversion: an integer may be too large for a float.
    if not all(map(_MAX_WEIGHT.__ge__, map(abs, values))):
        raise QueryError("linear", f"finite weights of at most {_MAX_WEIGHT:g}")
    numbers = np.array(values, dtype=np.float64)
    if isinstance(weights, Mapping):
        places, full = _indices(list(weights), domain.written, "linear"), np.zeros(size)
        if len(set(places)) < len(places):
            raise QueryError("linear", "each label once")
        full[places] = numbers
        numbers = full
    return Linear(name, domain.merge_weights(numbers))


def _indices(labels: Sequence[str], domain: Domain, word: str) -> list[int]:
    """Return the labels' indices, in time that does not grow with the domain."""
    if isinstance(domain.label(0), list):
        instead = {"linear": "a list of weights", "range": "bounds"}[word]
        raise QueryError(word, f"{instead}; only labels and numbers can be named")
    return [_index(label, domain, word) for label in labels]


def _index(label: str, domain: Domain, word: str) -> int:
    try:
        index = int(domain.parse_columns([[label]])[0])
    except ValueOutsideDomainError:
        index = -1
    # Devices may write a number in several ways; here only the canonical one is a name.
    if index < 0 or canonical_text(str(domain.label(index))) != canonical_text(label):
        raise QueryError(word, f"labels of the domain, got {label[:40]!r}")
    return index
