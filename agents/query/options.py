"""What is asked of a statistic: ranges, quantiles, a list of values, and how they are bounded.

Configuration, command line and HTTP API all read their queries with these functions, so that the
same words mean the same everywhere.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.query.linear import Linear, LinearError, parse_linear
from ldpstream.estimators.bounds.options import SHARPEST, Estimand, Method, OptionKeywords
from ldpstream.estimators.queries.ranges import range_values
from ldpstream.mechanisms.domains.parse import Domain, Interval, RoundedInterval

Projection = Literal["none", "simplex", "blocks"]
"""`simplex`: the nearest distribution. `blocks`: the same, keeping each disclosed total."""

_EDGE_TOLERANCE: Final = 1e-9  # of a bin's width: decimal edges are not exact in binary
_DIGITS: Final = 18  # of a whole number: no list is longer, and reading more takes long


class QueryError(ValueError):
    """A query that the collection cannot answer.

    `name` is the option or key without dashes ("range", "quantile", "top", ...); the text is
    `NAME: expected ...`.
    """

    def __init__(self, name: str, expected: str) -> None:
        super().__init__(f"{name}: expected {expected}")
        self.name = name
        self.expected = expected


@dataclass(frozen=True)
class Range:
    """A box of values: `bounds` holds one `(first, last)` a dimension, 0-based, both included."""

    name: str
    bounds: tuple[tuple[int, int], ...]

    def values(self, domain: Domain) -> NDArray[np.int64]:
        """Return the indices of its values, int64, ascending."""
        return range_values(domain.shape, self.bounds)


@dataclass(frozen=True, kw_only=True)
class EstimateOptions:
    """What an estimate document holds, and how it is bounded.

    `top` is the length of the list of values, None for the whole domain in its own order, 0 for no
    list. `ranges`, `quantiles` and `linear` keep their order. `sharpest` cannot be asked for:
    anytime bounds hold where it was fixed before looking.
    """

    estimand: Estimand = "respondents"
    method: Method = "normal"
    simultaneous: bool = False
    confidence: float = 0.95
    sharpest: int = SHARPEST
    project: Projection = "none"
    top: int | None = 20
    ranges: tuple[Range, ...] = ()
    quantiles: tuple[float, ...] = ()
    linear: tuple[Linear, ...] = ()

    def keywords(self) -> OptionKeywords:
        """Return how estimates are bounded, as their keywords."""
        return {
            "confidence": self.confidence,
            "method": self.method,
            "estimand": self.estimand,
            "simultaneous": self.simultaneous,
            "sharpest": self.sharpest,
        }


def read_options(
    defaults: EstimateOptions,
    domain: Domain,
    *,
    estimand: str | None = None,
    method: str | None = None,
    simultaneous: bool | None = None,
    confidence: str | float | None = None,
    project: str | None = None,
    top: str | int | None = None,
    ranges: Sequence[str] = (),
    quantiles: Sequence[str | float] = (),
    linear: Sequence[str] = (),
) -> EstimateOptions:
    """Return `defaults` with what was asked for put in its place; texts as users write them.

    Ranges are written `LO..HI[,LO..HI]` and are named by their text; ranges or quantiles given
    replace all of the defaults'.

    Raises:
        QueryError: naming the option, for a text that is none, or does not fit the domain.
    """
    options = defaults
    if estimand is not None:
        options = replace(options, estimand=_one_of(estimand, "estimand", Estimand))
    if method is not None:
        options = replace(options, method=_one_of(method, "method", Method))
    if simultaneous is not None:
        options = replace(options, simultaneous=simultaneous)
    if confidence is not None:
        options = replace(options, confidence=_open_unit(confidence, "confidence"))
    if project is not None:
        options = replace(options, project=_one_of(project, "project", Projection))
    if top is not None:
        options = replace(options, top=_read_top(top))
    if ranges:
        options = replace(options, ranges=tuple(parse_range(text, domain) for text in ranges))
    if quantiles:
        numbers = [_open_unit(text, "quantile") for text in quantiles]
        options = replace(options, quantiles=check_quantiles(numbers, domain))
    if linear:
        options = replace(options, linear=_read_linear(linear, domain))
    return options


def _read_linear(texts: Sequence[str], domain: Domain) -> tuple[Linear, ...]:
    try:
        return tuple(parse_linear(text, domain, i) for i, text in enumerate(texts, start=1))
    except LinearError as error:
        raise QueryError("linear", str(error)) from error


def parse_range(text: str, domain: Domain) -> Range:
    """Return the range that `LO..HI[,LO..HI]` writes, named by that text.

    Raises:
        QueryError: for another text, or one that does not fit the domain.
    """
    pairs = [part.split("..") for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise QueryError("range", f"LO..HI, one pair a dimension with commas between, got {text!r}")
    return make_range(text, [[_number(end, text) for end in pair] for pair in pairs], domain)


def make_range(name: str, pairs: Sequence[Any], domain: Domain) -> Range:
    """Return the range with these ends, both included: one pair a dimension.

    In one dimension a pair alone will do. On intervals the ends are edges of bins, so that the
    range is exactly a number of bins; where numbers are rounded to the edges, these are the values.

    Raises:
        QueryError: where the domain has no ranges, or the pairs do not fit it.
    """
    if not domain.ordered:
        raise QueryError("range", "a domain with an order; labels have none")
    dimensions = len(domain.shape)
    if dimensions == 1 and len(pairs) == 2 and not any(isinstance(p, list | tuple) for p in pairs):
        pairs = [pairs]
    if len(pairs) != dimensions or not all(_is_pair(pair) for pair in pairs):
        shape = "[low, high]" if dimensions == 1 else f"{dimensions} pairs [low, high]"
        raise QueryError("range", f"{shape}, of numbers")
    bounds = [_ends(low, high, domain, axis) for axis, (low, high) in enumerate(pairs)]
    return Range(name, tuple(bounds))


def check_quantiles(quantiles: Sequence[float], domain: Domain) -> tuple[float, ...]:
    """Return the quantiles, which need one ordered dimension.

    Raises:
        QueryError: where the domain has no quantiles, or one is asked for twice.
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


def _is_pair(pair: object) -> bool:
    return (
        isinstance(pair, list | tuple)
        and len(pair) == 2
        and all(isinstance(end, int | float) and not isinstance(end, bool) for end in pair)
        and all(math.isfinite(end) for end in pair)
    )


def _number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise QueryError("range", f"LO..HI with numbers, got {whole!r}") from None


def _open_unit(given: str | float, name: str) -> float:
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not 0.0 < number < 1.0:
        raise QueryError(name, f"a number above 0 and below 1, got {given}")
    return number


def _read_top(given: str | int) -> int | None:
    text = str(given)
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise QueryError("top", f'a whole number or "all", got {text[:40]}')
    return int(text)


def _one_of(given: str, name: str, kind: Any) -> Any:
    if given not in get_args(kind):
        raise QueryError(name, f"one of {', '.join(get_args(kind))}, got {given}")
    return given
