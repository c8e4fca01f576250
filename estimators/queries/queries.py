"""Linear queries ready to be estimated: their decoders' noise and extremes, prepared once.

Counts of symbols and sums are decoded differently (`counts`, `linear`); all that variances and
bounds need of either is a `Query`.
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
    is off from its user's weight, or what stands for it where larger ones hardly ever come: of
    sums `LinearDecoder.deviation`.
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
        """Prepare sets one after the other; what decodes faster together may take some at once."""
        return (self.set_query(indicator) for indicator in indicators)

    @abstractmethod
    def set_query(self, indicator: Floats) -> Query:
        """Prepare a set of values, given by its indicator, float64 `(k,)`."""

    @abstractmethod
    def linear_query(self, weights: Floats) -> Query:
        """Prepare any weights, float64 `(k,)`."""


class PreparedSets(NamedTuple):
    """What decodes each of some sets of values: the same whatever is reported."""

    queries: Queries
    sets: Iterable[Query]
