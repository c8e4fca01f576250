"""Estimates of all prefixes of one ordered dimension: the cumulative distribution."""

from dataclasses import dataclass
from typing import Self, Unpack

import numpy as np

from ldpstream.estimators.bounds.bounded import Estimate, bound
from ldpstream.estimators.bounds.options import OptionKeywords, Options
from ldpstream.estimators.quantiles.counts import CountPrefixes
from ldpstream.estimators.quantiles.sum_prefixes import ChainPrefixes, SetPrefixes
from ldpstream.estimators.queries.counts import SetDecoder, prepare_queries
from ldpstream.estimators.queries.linear import LinearQueries
from ldpstream.estimators.queries.sums import check_counts
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import ChainDecoder
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic


@dataclass(frozen=True)
class Prefixes:
    """Decodes the m prefixes `{x : positions[x] <= i}` of a mechanism's values.

    `positions` holds the position of each value, int64 `(k,)`. All fields depend only on the
    mechanism and the order: prepare once, estimate often.
    """

    mechanism: Mechanism
    positions: Integers
    prepared: CountPrefixes | ChainPrefixes | SetPrefixes

    @classmethod
    def of(cls, mechanism: Mechanism, positions: Integers | None = None) -> Self:
        """Prepare an order by the position of each value, int64 `(k,)`, by default its index.

        To order a grid along one axis, give the row, or the column, of each value.

        Raises:
            ValueError: if the positions have another shape or are negative.
        """
        order = np.arange(mechanism.size) if positions is None else positions
        if order.shape != (mechanism.size,) or order.min() < 0:
            raise ValueError(f"positions: expected {mechanism.size} numbers >= 0")
        queries = prepare_queries(mechanism)
        if isinstance(queries, SetDecoder):
            return cls(mechanism, order, CountPrefixes.of(queries, order))
        assert isinstance(queries, LinearQueries)
        decoder = queries.decoder
        chain = decoder.chain(order) if isinstance(decoder, ChainDecoder) else None
        if chain is None:
            return cls(mechanism, order, SetPrefixes(queries, order))
        return cls(mechanism, order, ChainPrefixes(decoder, order, chain))

    @property
    def spread(self) -> Floats:
        """The length of the interval of decoded reports, `max h - min h`: float64 `(m,)`.

        With several disclosed groups it is taken over all prefixes so far, which is a bound.
        """
        return self.prepared.sums(self.mechanism.empty()).spread

    def estimate(self, statistic: Statistic, n: int, **options: Unpack[OptionKeywords]) -> Estimate:
        """Estimate the share of every prefix, q = m; the last is 1.

        Raises:
            ValueError: if the statistic does not count n reports, or an option is invalid.
        """
        check_counts(self.mechanism, statistic, n)
        return bound(self.prepared.sums(statistic), n, Options(**options))
