"""Queries of pairs of value and public weight, for up to three weights.

With c_v the statistic of the reports of weight v, the three parts are `sum_v v^j c_v` for
j = 0, 1, 2. These three equations determine the statistics of up to three weights 0, 1, 2 exactly.
A query of pairs is then one query of values for each weight, on the reports with that weight.
"""

from typing import Final

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.decoder import Decoder, LinearDecoder, Statistic
from ldpstream.mechanisms.interface.symbols import CountDecoder

MOST_TOLD_APART: Final = 3
"""Most weights, 0 included, that the sums distinguish."""


class PairDecoder(LinearDecoder):
    """Decodes pairs by the values' decoder, weights `0..weights - 1`, two or three of them."""

    def __init__(self, values: Decoder, weights: int) -> None:
        self._values = values
        self._weights = weights

    def totals(self, statistic: Statistic) -> Floats:
        """Return the values' sums over the reports of each weight."""
        totals = [self._values.totals(column) for column in self._by_weight(statistic)]
        return np.stack(totals, axis=1).ravel()

    def second_moments(self, statistic: Statistic) -> Floats:
        """Return the values' second moments over the reports of each weight."""
        moments = [self._values.second_moments(column) for column in self._by_weight(statistic)]
        return np.stack(moments, axis=1).ravel()

    def extremes(self) -> tuple[Floats, Floats]:
        """Return the values' extremes, or 0, which reports of other weights decode to."""
        low, high = self._values.extremes()
        return self._repeat(np.minimum(low, 0.0)), self._repeat(np.maximum(high, 0.0))

    def noise(self, weights: Floats) -> Floats:
        """Return, under each weight, the noise of that weight's query of values."""
        return np.stack([self._values.noise(row) for row in self._rows(weights)], axis=1).ravel()

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the extremes of the values' noise, over users with the same weight."""
        least, largest = self._values.noise_extremes()
        return self._repeat(least), self._repeat(largest)

    def groups(self) -> Integers:
        """Return the group of each pair: the weight, and what the values' reports disclose."""
        groups = self._values.groups()
        known = (
            np.zeros(self._values.extremes()[0].size, dtype=np.int64) if groups is None else groups
        )
        return (known[:, None] * self._weights + np.arange(self._weights)).ravel()

    def group_reports(self, statistic: Statistic) -> Integers:
        reports = [self._values.group_reports(column) for column in self._by_weight(statistic)]
        return np.stack(reports, axis=1).ravel()

    def total(self, weights: Floats, statistic: Statistic) -> float:
        """Return the sum over the weights of the values' totals."""
        pairs = zip(self._rows(weights), self._by_weight(statistic), strict=True)
        return sum(_total(self._values, row, column) for row, column in pairs)

    def span(self, weights: Floats) -> tuple[float, float]:
        """Return the extremes over the reports of all weights."""
        low, high = zip(*(_span(self._values, row) for row in self._rows(weights)), strict=True)
        return min(low), max(high)

    def _rows(self, weights: Floats) -> Floats:
        """Return the queries of values, float64 `(weights, k)`."""
        return np.ascontiguousarray(weights.reshape(-1, self._weights).T)

    def _by_weight(self, statistic: Statistic) -> list[Statistic]:
        """Return the statistic of the reports of each weight, exact."""
        plain, weighted, squared = statistic.reshape(3, -1)
        twice = (squared - weighted) // 2
        single = weighted - 2 * twice
        return [plain - single - twice, single, twice][: self._weights]

    def _repeat(self, function: Floats) -> Floats:
        return np.repeat(function, self._weights)


def _total(decoder: Decoder, weights: Floats, statistic: Statistic) -> float:
    if isinstance(decoder, CountDecoder):
        return float((decoder.decode(weights) * statistic).sum())
    assert isinstance(decoder, LinearDecoder)
    return decoder.total(weights, statistic)


def _span(decoder: Decoder, weights: Floats) -> tuple[float, float]:
    if isinstance(decoder, CountDecoder):
        decoded = decoder.decode(weights)
        return float(decoded.min()), float(decoded.max())
    assert isinstance(decoder, LinearDecoder)
    return decoder.span(weights)
