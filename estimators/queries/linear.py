"""Queries over statistics of sums (`LinearDecoder`)."""

from dataclasses import dataclass

from ldpstream.estimators.queries.groups import Groups
from ldpstream.estimators.queries.queries import Queries, Query
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.interface.decoder import LinearDecoder
from ldpstream.mechanisms.interface.mechanism import Statistic


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
