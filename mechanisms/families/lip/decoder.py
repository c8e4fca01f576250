"""Linear queries of `lip`, which has one binary channel for each level."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.interface.decoder import CountDecoder, Statistic


class LipDecoder(CountDecoder):
    """`h_1(y) = (1{y = 1} - q)/(r - q)`, `h_0 = 1 - h_1` in each level; 0 at other levels' reports.

    Estimates are unbiased over the channel whatever the priors are. Values and outputs are numbered
    `2 * level + bit`. `thresholds` are the realised `(q, r)` in units of 2^-64.
    """

    def __init__(self, thresholds: Sequence[tuple[int, int]]) -> None:
        # Each entry is one correctly rounded quotient of integers; axes: level, bit, report.
        self._h = np.array(
            [
                [[r / (r - q), (r - WORD) / (r - q)], [-q / (r - q), (WORD - q) / (r - q)]]
                for q, r in thresholds
            ]
        )
        self._q = np.array([[[(WORD - t) / WORD, t / WORD] for t in (q, r)] for q, r in thresholds])
        # h is affine in the report, so that its variance is a Bernoulli one over the squared gap.
        noise = np.array([[t * (WORD - t) / (r - q) ** 2 for t in (q, r)] for q, r in thresholds])
        self._quietest, self._noisiest = noise.min(axis=1), noise.max(axis=1)

    def totals(self, statistic: Statistic) -> Floats:
        return self._sum(self._h, statistic)

    def second_moments(self, statistic: Statistic) -> Floats:
        return self._sum(self._h**2, statistic)

    def _sum(self, table: Floats, reports: NDArray[np.float64] | Statistic) -> Floats:
        columns = np.asarray(reports, dtype=np.float64).reshape(-1, 1, 2)
        sums: Floats = (table * columns).sum(axis=2).ravel()
        return sums

    def extremes(self) -> tuple[Floats, Floats]:
        """Return the extremes of each value's decoder, which is 0 at reports of other levels."""
        least, largest = self._h.min(axis=2).ravel(), self._h.max(axis=2).ravel()
        if len(self._h) > 1:
            return np.minimum(least, 0.0), np.maximum(largest, 0.0)
        return least, largest

    def decode(self, weights: Floats) -> Floats:
        """Return `h` with `Q h = weights`: float64 `(k,)` -> `(k,)`, as there are k outputs."""
        rows = np.asarray(weights, dtype=np.float64).reshape(-1, 2, 1)
        decoded: Floats = (self._h * rows).sum(axis=1).ravel()
        return decoded

    def expect(self, function: Floats) -> Floats:
        return self._sum(self._q, function)

    def groups(self) -> NDArray[np.int64] | None:
        """Return the level of each value, which reports disclose; None if there is one."""
        if len(self._h) == 1:
            return None
        return np.arange(2 * len(self._h)) // 2

    def output_groups(self) -> NDArray[np.int64] | None:
        """Return the level of each output; None if there is one."""
        return self.groups()

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return `p(1 - p)/(r - q)^2` for the quieter and the noisier p of q and r."""
        return np.repeat(self._quietest, 2), np.repeat(self._noisiest, 2)
