"""Prepared linear queries, what reports disclose to them, and the sets of values they ask about.

Counts of symbols (`counts`) and sums (`LinearQuery`) are decoded differently; variances and bounds
only need a `Query`. Values with equal shares have equal estimates and bounds (`Distinct`), which
are computed once.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import Decoder, LinearDecoder
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic


@dataclass(frozen=True)
class Groups:
    """The groups of values, or of outputs, that reports disclose; one group if they disclose none.

    `of_place` is the group of each value or output, int64, in `0..count-1`; no group is empty.
    """

    of_place: Integers
    count: int
    disclosed: bool

    @classmethod
    def of(cls, mechanism: Mechanism) -> "Groups":
        """Return the groups that a mechanism discloses."""
        return cls.known(mechanism.decoder().groups(), mechanism.size)

    @classmethod
    def known(cls, groups: Integers | None, size: int) -> "Groups":
        """Return the groups of `size` places; None is one group."""
        if groups is None:
            return cls(all_in_one(size), 1, disclosed=False)
        return cls(groups, int(groups.max()) + 1, disclosed=True)

    def sums(self, function: Floats) -> Floats:
        """Sum a function of the place over each group, float64 `(count,)`."""
        if self.count == 1:
            return np.array([function.sum()])
        return np.bincount(self.of_place, function, self.count).astype(np.float64)

    def extremes(self, function: Floats) -> tuple[Floats, Floats]:
        """Return the least and largest of a function of the place in each group."""
        (found,) = self.extremes_each(function)
        return found

    def extremes_each(self, *functions: Floats) -> list[tuple[Floats, Floats]]:
        """Return the least and largest of each of some functions of the place in each group."""
        if self.count == 1:
            return [(np.array([each.min()]), np.array([each.max()])) for each in functions]
        found = []
        for each in functions:
            least, largest = np.full(self.count, np.inf), np.full(self.count, -np.inf)
            np.minimum.at(least, self.of_place, each)
            np.maximum.at(largest, self.of_place, each)
            found.append((least, largest))
        return found


def all_in_one(size: int) -> Integers:
    """Return a single group for `size` places, as a view that takes no memory."""
    return np.broadcast_to(np.zeros(1, dtype=np.int64), (size,))


@dataclass(frozen=True)
class Query(ABC):
    """One linear query `w` with a decoder `h`, `Q h = w`.

    `weights` is `w`, float64 `(k,)`; `noise` is `v(x) = (Q h^2)[x] - w[x]^2`, float64 `(k,)`, >= 0;
    `least` and `largest` bound `h` over all reports. `deviation` is the most that a decoded report
    differs from its user's weight, or a smaller number that tail bounds may use in its place (for
    sums, `LinearDecoder.deviation`).
    """

    weights: Floats
    noise: Floats
    least: float
    largest: float
    deviation: float

    @abstractmethod
    def sums(self, statistic: Statistic) -> tuple[float, float, float]:
        """Return `sum_i h(y_i)`, `sum_i h(y_i)^2` and an unbiased estimate of `sum_i w(x_i)^2`.

        The second may be an unbiased estimate of its mean.
        """


class Queries(ABC):
    """Prepares the queries of one mechanism: its decoder, and what its reports disclose."""

    decoder: Decoder
    groups: Groups

    def set_queries(self, indicators: Iterable[Floats]) -> Iterator[Query]:
        """Prepare sets one by one; subclasses may prepare several together."""
        return (self.set_query(indicator) for indicator in indicators)

    @abstractmethod
    def set_query(self, indicator: Floats) -> Query:
        """Prepare a set of values, given by its indicator, float64 `(k,)`."""

    @abstractmethod
    def linear_query(self, weights: Floats) -> Query:
        """Prepare any weights, float64 `(k,)`."""


class PreparedSets(NamedTuple):
    """The prepared queries of some sets of values, which do not depend on the reports."""

    queries: Queries
    sets: Iterable[Query]


@dataclass(frozen=True)
class LinearQuery(Query):
    """A query decoded by a linear function of sums.

    The sums do not determine `sum_i h(y_i)^2`. Its mean is `sum_i (v + w^2)(x_i)`, another linear
    query, which is estimated without bias (docs/theory.md section 0).
    """

    decoder: LinearDecoder

    def sums(self, statistic: Statistic) -> tuple[float, float, float]:
        """Return `sum_i h(y_i)`, the estimate of `sum_i (Q h^2)[x_i]`, and of `sum_i w(x_i)^2`."""
        squares = self.weights**2
        weights = self.weights, self.noise + squares, squares
        total, moment, offset = (self.decoder.total(w, statistic) for w in weights)
        return total, moment, offset


@dataclass(frozen=True)
class LinearQueries(Queries):
    """Prepares queries of a mechanism whose statistic holds sums."""

    decoder: LinearDecoder
    groups: Groups

    def set_query(self, indicator: Floats) -> Query:
        """Prepare a set of values with the decoder of its indicator."""
        return self.linear_query(indicator)

    def linear_query(self, weights: Floats) -> Query:
        noise = self.decoder.noise(weights)
        least, largest = self.decoder.span(weights)
        deviation = self.decoder.deviation(weights) if noise.any() else 0.0
        return LinearQuery(weights, noise, least, largest, deviation, decoder=self.decoder)


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


def indicator(size: int, members: Integers) -> Floats:
    """Return the indicator of a set of values, float64 of shape `(size,)`.

    Raises:
        ValueError: if an index is outside `0..size-1`.
    """
    if members.size and (members.min() < 0 or members.max() >= size):
        raise ValueError(f"set: expected values in 0..{size - 1}")
    out = np.zeros(size)
    out[members] = 1.0
    return out


@dataclass(frozen=True)
class Distinct:
    """One value for each different share.

    `values` is int64 `(d,)`; `places`, int64 `(k,)`, is the entry with the share of each value.
    """

    values: Integers
    places: Integers

    @classmethod
    def of(cls, decoder: Decoder, decoded: Floats) -> Self | None:
        """Return the distinct ones of the sums of all single values' decoders, float64 `(k,)`.

        None if a value's estimate does not follow from its share alone, or if there could be half
        as many different shares as values.
        """
        if decoder.step is None:
            return None
        least = decoded.min()
        steps = decoded - least
        steps /= decoder.step
        most = float(steps.max()) + 1.0
        if not 2.0 * most < decoded.size:
            return None
        step = np.rint(steps, out=steps).astype(np.int64)
        owner = np.full(round(most), -1, dtype=np.int64)
        owner[step] = np.arange(decoded.size)
        some = owner >= 0
        return cls(owner[some], (np.cumsum(some) - 1)[step])


def taken(array: NDArray[Any], places: Integers | slice) -> NDArray[Any]:
    """Return these entries; if all are equal and places are many, as a read-only broadcast view."""
    if isinstance(places, slice) or len(places) <= array.size or (array != array[0]).any():
        return array[places] if isinstance(places, slice) else array.take(places)
    return np.broadcast_to(array[0], len(places))
