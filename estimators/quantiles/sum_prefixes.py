"""Prefixes over statistics of sums, in closed form if the decoder has one."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldpstream.estimators.queries.linear import LinearQueries
from ldpstream.estimators.queries.sums import Sums, set_sums
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import Chain, LinearDecoder
from ldpstream.mechanisms.interface.mechanism import Statistic


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
class ChainPrefixes:
    """Prefixes with known noise, as running sums of the values' shares."""

    decoder: LinearDecoder
    positions: Integers
    chain: Chain

    @property
    def worst_noise(self) -> Floats:
        """The noise that any user adds to each prefix, float64 `(m,)`."""
        return self.chain.noise

    def sums(self, statistic: Statistic) -> Sums:
        """Return the sums of every prefix, q = m; the last is the whole domain."""
        m, n = self.chain.noise.size, float(self.decoder.group_reports(statistic).sum())
        shares = np.bincount(self.positions, self.decoder.totals(statistic), m)
        total = np.cumsum(shares, dtype=np.float64)
        total[-1] = n
        held = np.cumsum(np.bincount(self.positions, minlength=m)) / self.positions.size
        noise, reach = n * self.chain.noise, np.ones(m)
        reach[-1] = 0.0
        return Sums(
            total=total,
            squares=noise + total,
            offset=total,
            floor=noise,
            ceiling=noise,
            least=self.chain.least,
            largest=self.chain.largest,
            slope=np.zeros(m),
            noisy=np.where(noise > 0.0, n, 0.0),
            moment=noise + n,
            peak=self.chain.noise + 1.0,
            typical_noise=self.chain.noise,
            typical_sampling=held * (1.0 - held),
            bottom=np.where(held < 1.0, 0.0, 1.0),
            top=np.ones(m),
            fewest=np.where(held < 1.0, 0.0, n),
            most=np.full(m, n),
            deviation=np.where(noise > 0.0, self.chain.largest, 0.0),
            tossed=np.zeros(m),
            own=np.zeros(m),
            other=np.zeros(m),
            disclosed=False,
            indicators=True,
            reach=reach,
        )
