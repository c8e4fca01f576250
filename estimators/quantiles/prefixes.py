"""Estimates of all prefixes of one ordered dimension: the cumulative distribution."""

from dataclasses import dataclass
from typing import Self, Unpack

import numpy as np

from ldpstream.estimators.bounds.bounded import Estimate, bound
from ldpstream.estimators.bounds.options import OptionKeywords, Options
from ldpstream.estimators.quantiles.counts import CountPrefixes
from ldpstream.estimators.quantiles.sum_prefixes import ChainPrefixes, SetPrefixes, prepare_prefixes
from ldpstream.estimators.queries.counts import SetDecoder, prepare_queries
from ldpstream.estimators.queries.linear import LinearQueries
from ldpstream.estimators.queries.sums import check_counts
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic


@dataclass(frozen=True)
class Prefixes:
    """Decodes the m prefixes `{x : position of x <= i}` of a mechanism's values.

    `positions` is that of each value, int64 `(k,)`. What it holds depends on the mechanism and the
    order alone: prepare once, estimate often.
    """

    mechanism: Mechanism
    positions: Integers
    prepared: CountPrefixes | ChainPrefixes | SetPrefixes

    @classmethod
    def of(cls, mechanism: Mechanism, positions: Integers | None = None) -> Self:
        """Prepare an order: the position of each value, int64 `(k,)`; by default its index.

        A grid is ordered along its rows by the row of each value, along its columns by the column.

        Raises:
            ValueError: where the positions have another shape or are negative.
        """
        order = np.arange(mechanism.size) if positions is None else positions
        if order.shape != (mechanism.size,) or order.min() < 0:
            raise ValueError(f"positions: expected {mechanism.size} numbers >= 0")
        queries = prepare_queries(mechanism)
        if isinstance(queries, SetDecoder):
            return cls(mechanism, order, CountPrefixes.of(queries, order))
        assert isinstance(queries, LinearQueries)
        return cls(mechanism, order, prepare_prefixes(queries, order))

    @property
    def spread(self) -> Floats:
        """The length of the interval that decoded reports lie in, `max h - min h`: `(m,)`.

        With several disclosed groups, that of all prefixes so far, which bounds it.
        """
        return self.prepared.sums(self.mechanism.empty()).spread

    def estimate(self, statistic: Statistic, n: int, **options: Unpack[OptionKeywords]) -> Estimate:
        """Estimate the share of every prefix, q = m; the last is 1.

        Raises:
            ValueError: where the statistic does not count n reports, or an option is impossible.
        """
        check_counts(self.mechanism, statistic, n)
        return bound(self.prepared.sums(statistic), n, Options(**options))
