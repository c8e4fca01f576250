"""The queries whose errors a plan predicts, and the design shares for which it predicts them.

Queries are ranges, quantiles, top values, and all values or ranges. The shares do not change
mechanisms.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from ldpstream.estimators.bounds.options import Estimand
from ldpstream.estimators.planning.choices import Objective
from ldpstream.estimators.quantiles.quantiles import check_probabilities
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.domains.queries import range_values

MOST_QUERIES = 2_100
"""Most predicted queries out of all values or ranges, evenly spaced or drawn at random."""
_FEWEST_QUERIES = 64
_MOST_WORK = 500_000
_ROUNDING = 1e-12
_SEED = 0
ZIPF_EXPONENT = 1.1
"""As in [ML] Figure 1."""


@dataclass(frozen=True, eq=False)
class QuerySets:
    """Sets of values, int64 arrays of indices; `total` is the number of queries they represent.

    `prefixes` are sets too, but decoded as for quantiles.
    """

    sets: tuple[Integers, ...]
    total: int
    prefixes: tuple[Integers, ...] = ()

    @property
    def count(self) -> int:
        """Number of queries, prefixes included."""
        return len(self.sets) + len(self.prefixes)

    @property
    def exact(self) -> bool:
        """Whether no query is left out."""
        return self.count == self.total


@dataclass(frozen=True, eq=False)
class PlannedWorkload:
    """The queries of a plan over the values of a domain with `shape`.

    `ranges` are sets of values, `quantiles` are probabilities (on one ordered dimension), and `top`
    is the number of most frequent values that are listed. `ordered` says whether ranges make sense.
    `shares` are the design shares of the k values that devices give, float64 `(k,)`. If devices
    give more than what is estimated, `estimated` maps each of these k to the value that is
    estimated, int64 `(k,)`, and all queries are sets of the former. Mechanisms are sorted by their
    errors in the queries of `objective`, for `estimand`.

    Raises:
        ValueError: if a quantile is not in (0, 1).
    """

    shape: tuple[int, ...]
    ordered: bool
    shares: Floats
    ranges: tuple[Integers, ...] = ()
    quantiles: tuple[float, ...] = ()
    top: int = 0
    estimated: Integers | None = None
    objective: Objective = "values"
    estimand: Estimand = "respondents"

    def __post_init__(self) -> None:
        check_probabilities(self.quantiles)

    @property
    def size(self) -> int:
        """Number of estimated values."""
        return math.prod(self.shape)

    @cached_property
    def value_shares(self) -> Floats:
        """The design shares of the estimated values, float64 `(size,)`."""
        if self.estimated is None:
            return self.shares
        return np.bincount(self.estimated, self.shares, self.size).astype(np.float64)

    @cached_property
    def top_values(self) -> Integers:
        """The values with the largest shares, the smaller index first for ties; int64 `(top,)`."""
        return np.argsort(-self.value_shares, kind="stable")[: self.top]

    def given(self, values: Integers) -> Integers:
        """Return the values of devices that map to these estimated values."""
        if self.estimated is None:
            return values
        return np.flatnonzero(np.isin(self.estimated, values))

    @cached_property
    def range_queries(self) -> QuerySets:
        """The published ranges."""
        return self._queries(self.ranges, len(self.ranges))

    @cached_property
    def top_queries(self) -> QuerySets:
        """The values with the largest shares."""
        return self._queries(self.top_values[:, None], self.top_values.size)

    @cached_property
    def quantile_queries(self) -> QuerySets:
        """The values up to each quantile's position."""
        prefixes = [self.given(np.arange(p + 1)) for p in self.quantile_positions.tolist()]
        return QuerySets((), len(prefixes), tuple(prefixes))

    def _queries(self, sets: Iterable[Integers], total: int) -> QuerySets:
        return QuerySets(tuple(self.given(members) for members in sets), total)

    @cached_property
    def quantile_positions(self) -> Integers:
        """The smallest positions whose prefixes hold the quantiles' probabilities, int64."""
        cumulative = np.cumsum(self.value_shares)
        cumulative[-1] = np.inf
        levels = np.array(self.quantiles, dtype=np.float64)
        return np.searchsorted(cumulative, levels - _ROUNDING)

    @cached_property
    def values(self) -> QuerySets:
        """All single values, or evenly spaced ones of a large domain."""
        every = np.arange(self.size)
        chosen = every
        if self.size > self._most:
            chosen = np.linspace(0, self.size - 1, self._most).round().astype(np.int64)
        return self._queries(chosen[:, None], self.size)

    @cached_property
    def boxes(self) -> QuerySets:
        """All ranges of an ordered domain, or a fixed random sample of them; empty for labels."""
        if not self.ordered:
            return QuerySets((), 0)
        total = int(np.prod([extent * (extent + 1) // 2 for extent in self.shape], dtype=object))
        bounds = self._every_box() if total <= self._most else self._some_boxes()
        return self._queries((range_values(self.shape, pairs) for pairs in bounds), total)

    @cached_property
    def sorting_queries(self) -> QuerySets:
        """The queries of the objective, by whose errors mechanisms are sorted.

        `published` are the ranges and the prefixes at the quantiles, or the top values if there are
        neither. `ranges` are all values if the domain is not ordered.
        """
        if self.objective == "published":
            sets, prefixes = self.range_queries.sets, self.quantile_queries.prefixes
            if not (sets or prefixes):
                sets = self.top_queries.sets
            if sets or prefixes:
                return QuerySets(sets, len(sets) + len(prefixes), prefixes)
        return self.boxes if self.objective == "ranges" and self.ordered else self.values

    @property
    def _most(self) -> int:
        return max(_FEWEST_QUERIES, min(MOST_QUERIES, _MOST_WORK // self.size))

    def _every_box(self) -> Iterator[Sequence[tuple[int, int]]]:
        axes = [
            [(low, high) for low in range(extent) for high in range(low, extent)]
            for extent in self.shape
        ]
        places = np.ndindex(*[len(axis) for axis in axes])
        return ([axis[i] for axis, i in zip(axes, place, strict=True)] for place in places)

    def _some_boxes(self) -> Iterator[Sequence[tuple[int, int]]]:
        """Yield uniformly drawn boxes: in each dimension every pair of ends is equally likely."""
        rng = np.random.default_rng(_SEED)
        columns = []
        for extent in self.shape:
            # Two different ones out of extent + 1 cuts bound a range.
            first = rng.integers(0, extent + 1, self._most)
            second = (first + rng.integers(1, extent + 1, self._most)) % (extent + 1)
            columns.append(np.sort(np.stack([first, second], axis=1), axis=1) - [0, 1])
        return (
            [(int(low), int(high)) for low, high in pairs]
            for pairs in np.stack(columns, axis=1).tolist()
        )


def uniform_shares(size: int) -> Floats:
    """Return equal shares of `size` values, float64 `(size,)`."""
    return np.full(size, 1.0 / size)


def zipf_shares(shape: Sequence[int]) -> Floats:
    """Return `p(x) ~ prod_d (x_d + 1)^-1.1` over a domain's values in row-major order.

    In every dimension, the first values are the most frequent ones.
    """
    axes = [np.arange(1, extent + 1, dtype=np.float64) ** -ZIPF_EXPONENT for extent in shape]
    table = reduce(np.multiply.outer, [axis / axis.sum() for axis in axes])
    return np.array(table).reshape(-1)


def counted_shares(counts: Floats) -> Floats:
    """Return counts, float64 `(k,)`, as shares.

    Raises:
        ValueError: if one is negative or not finite, or none is above 0.
    """
    bad = np.flatnonzero(~(np.isfinite(counts) & (counts >= 0.0)))
    if bad.size:
        raise ValueError(f"count {bad[0] + 1}: expected a finite number >= 0")
    largest = float(counts.max(initial=0.0))
    if largest == 0.0:
        raise ValueError("counts: expected at least one above 0")
    relative = counts / largest  # sums of huge counts would overflow
    return relative / float(relative.sum())
