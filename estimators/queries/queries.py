"""Prepared linear queries, with the noise and the extremes of their decoders.

Counts of symbols and sums are decoded differently (`counts`, `linear`); variances and bounds only
need a `Query`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ldpstream.estimators.queries.groups import Groups
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.interface.mechanism import Decoder, Statistic


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
