"""Queries about the values of a domain: ranges, linear queries, areas and quantiles.

They are read here, from texts and bodies, and checked to fit the domain.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from ldpstream.agents.config.query.errors import QueryError, refused
from ldpstream.estimators.queries import range_values
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.base.checks import number_text
from ldpstream.mechanisms.base.errors import ValueOutsideDomainError
from ldpstream.mechanisms.base.numbers import read_number, trimmed
from ldpstream.mechanisms.base.texts import canonical_text
from ldpstream.mechanisms.domains.axis import Axis, decimal_of
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.parse import Domain

_EDGE_TOLERANCE: Final = 1e-9  # of a bin's width: people write a third as 0.3333333333
_MAX_VALUES_WITH_AREAS: Final = 100_000
_MAX_END: Final = 1e300  # differences of larger ones may overflow
_MAX_WEIGHT: Final = 1e30  # squares of larger ones may overflow
_NAMES: Final = "a domain with an order; of labels the name of a block or of a set in publish.sets"
_NAMED: Final = re.compile(r"(?:([A-Za-z0-9._-]{1,40}):)?(.*)", re.DOTALL)

_Finite = Annotated[float, Field(allow_inf_nan=False)]


class RequestModel(BaseModel):
    """Base of requests: unknown keys are refused, so that none is misspelt and ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _NamedQuery(RequestModel):
    name: str = Field(min_length=1, max_length=100)


class BoxRequest(_NamedQuery):
    """A named range, or a named set of values."""

    bounds: list[Annotated[list[_Finite], Field(min_length=2, max_length=2)]] | None = Field(
        default=None,
        min_length=1,
        description="[low, high], both included, or edges of bins; one pair per dimension",
    )
    values: list[str | int] | None = Field(
        default=None,
        min_length=1,
        validate_default=True,
        description="In place of bounds: the labels of a set",
    )

    @field_validator("values")
    @classmethod
    def _check_one(
        cls, values: list[str | int] | None, info: ValidationInfo
    ) -> list[str | int] | None:
        if (values is None) == (info.data.get("bounds") is None) and "bounds" in info.data:
            raise refused("either bounds or values", values)
        return values


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


def read_ranges(queries: Sequence[str | BoxRequest | Subset], domain: Domain) -> tuple[Subset, ...]:
    """Return the ranges and sets that are asked for, as texts or in a body.

    Names of blocks and of published queries have been replaced by what they name
    (`ldpstream.agents.config.query.capabilities`).

    Raises:
        QueryError: for one that does not fit the domain.
    """
    return tuple(_read_range(query, domain) for query in queries)


def _read_range(query: str | BoxRequest | Subset, domain: Domain) -> Subset:
    if isinstance(query, str):
        return parse_range(query, domain)
    if isinstance(query, Subset):
        return query
    if query.values is not None:
        return make_set(query.name, query.values, domain)
    return make_range(query.name, query.bounds or [], domain)


def name_block(name: str, blocks: Blocks) -> ValueSet | None:
    """Return the values of the block of this name; None if no block has it."""
    if blocks.names is None or name not in blocks.names:
        return None
    return ValueSet(name, np.flatnonzero(blocks.of_value == blocks.names.index(name)))


def make_set(name: str, values: Sequence[Any], domain: Domain) -> ValueSet:
    """Return the set of these values, given by their labels.

    Raises:
        QueryError: unless there is at least one value, each once, and all are in the domain.
    """
    if not values or not all(isinstance(label, str) or type(label) is int for label in values):
        raise QueryError("range", "a list of labels, at least one")
    indices = np.array(_indices([str(label) for label in values], domain, "range"), dtype=np.int64)
    if len(np.unique(indices)) < len(indices):
        raise QueryError("range", "each label once")
    return ValueSet(name, np.sort(indices))


def parse_range(text: str, domain: Domain) -> Range:
    """Parse `LO..HI[,LO..HI]`; the range is named by this text.

    Raises:
        QueryError: for any other text, or one that does not fit the domain.
    """
    if not domain.ordered:
        raise QueryError("range", f"{_NAMES}, got {text[:40]!r}")
    pairs = [text_of_axis.split("..") for text_of_axis in text.split(",")]
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
        raise QueryError(
            "range", "a domain with an order; labels have none: name a set of them in publish.sets"
        )
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


def read_linear(queries: Sequence[str | LinearRequest], domain: Domain) -> tuple[Linear, ...]:
    """Return the linear queries that are asked for, as texts or in a body.

    Raises:
        QueryError: for one that does not fit the domain.
    """
    return tuple(
        parse_linear(query, domain, position)
        if isinstance(query, str)
        else make_linear(query.name, query.weights, domain)
        for position, query in enumerate(queries, start=1)
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
        weights = [read_number(trimmed(number)) for number in match[2].split(",")]
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
    values = list(weights.values() if isinstance(weights, Mapping) else weights)
    if not (isinstance(weights, Mapping) or len(values) == domain.size):
        raise QueryError("linear", f"{domain.size} weights, one for each value, got {len(values)}")
    # Checked before conversion: an integer may be too large for a float.
    if not all(map(_MAX_WEIGHT.__ge__, map(abs, values))):
        raise QueryError("linear", f"finite weights of at most {_MAX_WEIGHT:g}")
    numbers = np.array(values, dtype=np.float64)
    if not isinstance(weights, Mapping):
        return Linear(name, numbers)
    full = np.zeros(domain.size)
    full[_indices(list(weights), domain, "linear")] = numbers
    return Linear(name, full)


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


def check_areas(areas: bool, domain: Domain) -> bool:
    """Return whether areas are asked for.

    Raises:
        QueryError: where the domain has too many values.
    """
    most = _MAX_VALUES_WITH_AREAS
    if areas and domain.size > most:
        raise QueryError("areas", f"a domain of at most {most} values, got {domain.size}")
    return areas


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
