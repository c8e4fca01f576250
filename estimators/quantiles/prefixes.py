"""Estimates of all prefixes of one ordered dimension: the cumulative distribution.

Statistics of counts have `CountPrefixes`. Over statistics of sums, prefixes have a closed form if
the decoder knows their noise, and are otherwise sets like any other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self, Unpack

import numpy as np

from ldpstream.estimators.bounds.bounded import bound
from ldpstream.estimators.bounds.options import OptionKeywords, Options
from ldpstream.estimators.bounds.types import Estimate, Limits, Noise, Sums
from ldpstream.estimators.estimate import check_counts, set_sums
from ldpstream.estimators.quantiles.counts import CountPrefixes
from ldpstream.estimators.queries import LinearQueries, SetDecoder, prepare_queries
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import LinearDecoder, PrefixDecoder, PrefixNoise
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic


@dataclass(frozen=True)
class SetPrefixes:
    """Prefixes of any order, each a set like any other; `positions` int64 `(k,)`."""

    queries: LinearQueries
    positions: Integers

    def sums(self, statistic: Statistic) -> Sums:
        """Return the sums of every prefix, q = m."""
        return set_sums(self.queries, statistic, self._indicators())

    @property
    def worst_noise(self) -> Floats:
        """The most noise that one user adds to each prefix, float64 `(m,)`."""
        queries = (self.queries.set_query(indicator) for indicator in self._indicators())
        return np.array([query.noise.max() for query in queries])

    def _indicators(self) -> Iterator[Floats]:
        for cut in range(int(self.positions.max()) + 1):
            yield (self.positions <= cut).astype(np.float64)


@dataclass(frozen=True)
class SummedPrefixes:
    """Prefixes with known noise, as running sums of the values' shares."""

    decoder: LinearDecoder
    positions: Integers
    known: PrefixNoise

    @property
    def worst_noise(self) -> Floats:
        """The noise that any user adds to each prefix, float64 `(m,)`."""
        return self.known.noise

    def sums(self, statistic: Statistic) -> Sums:
        """Return the sums of every prefix, q = m; the last is the whole domain."""
        m, n = self.known.noise.size, float(self.decoder.group_reports(statistic).sum())
        shares = np.bincount(self.positions, self.decoder.totals(statistic), m)
        total = np.cumsum(shares, dtype=np.float64)
        total[-1] = n
        cumulative = np.cumsum(np.bincount(self.positions, minlength=m)) / self.positions.size
        noise, reach = n * self.known.noise, np.ones(m)
        reach[-1] = 0.0
        return Sums(
            total=total,
            squares=noise + total,
            offset=total,
            noise=Noise(
                floor=noise,
                ceiling=noise,
                slope=np.zeros(m),
                reports=np.where(noise > 0.0, n, 0.0),
                moment=noise + n,
                peak=self.known.noise + 1.0,
                typical=self.known.noise,
                deviation=np.where(noise > 0.0, self.known.largest, 0.0),
            ),
            limits=Limits(
                least=self.known.least,
                largest=self.known.largest,
                bottom=np.where(cumulative < 1.0, 0.0, 1.0),
                top=np.ones(m),
                fewest=np.where(cumulative < 1.0, 0.0, n),
                most=np.full(m, n),
            ),
            typical_sampling=cumulative * (1.0 - cumulative),
            disclosed=False,
            indicators=True,
            reach=reach,
        )


@dataclass(frozen=True)
class Prefixes:
    """Decodes the m prefixes `{x : positions[x] <= i}` of a mechanism's values.

    `positions` holds the position of each value, int64 `(k,)`. All fields depend only on the
    mechanism and the order: prepare once, estimate often.
    """

    mechanism: Mechanism
    positions: Integers
    prepared: CountPrefixes | SummedPrefixes | SetPrefixes

    @classmethod
    def of(cls, mechanism: Mechanism, positions: Integers | None = None) -> Self:
        """Prepare an order by the position of each value, int64 `(k,)`, by default its index.

        To order a grid along one axis, give the row, or the column, of each value.

        Raises:
            ValueError: if the positions have another shape or are negative.
        """
        ranks = np.arange(mechanism.size) if positions is None else positions
        if ranks.shape != (mechanism.size,) or ranks.min() < 0:
            raise ValueError(f"positions: expected {mechanism.size} numbers >= 0")
        queries = prepare_queries(mechanism)
        if isinstance(queries, SetDecoder):
            return cls(mechanism, ranks, CountPrefixes.of(queries, ranks))
        assert isinstance(queries, LinearQueries)
        decoder = queries.decoder
        known = decoder.prefix_noise(ranks) if isinstance(decoder, PrefixDecoder) else None
        if known is None:
            return cls(mechanism, ranks, SetPrefixes(queries, ranks))
        return cls(mechanism, ranks, SummedPrefixes(decoder, ranks, known))

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
