"""Linear queries of `high-low`."""

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Indices, Integers
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.exact.walsh import walsh_hadamard
from ldpstream.mechanisms.interface.decoder import Decoded, SingleValues, Statistic, parts
from ldpstream.mechanisms.interface.symbols import CountDecoder


class HighLowDecoder(CountDecoder):
    """A sensitive value has `h = c H[row, y]` at the positions, another `c` at its plain report.

    `c = 2^64 / (2 T - 2^64)` for the realised threshold T; the paper's constants cancel. `row` and
    `plain` are the tables of `HighLow`, and `positions` is its S.
    """

    scratch = 2.0

    def __init__(self, row: Indices, plain: Indices, positions: int, threshold: int) -> None:
        gap = 2 * threshold - WORD
        self._c = WORD / gap
        self._contrast = gap / WORD
        self._spread = 2 * (WORD - threshold) / WORD
        # c^2 - 1, c^2 - c and c - 1 as quotients of integers: differences would lose their digits
        # at large epsilon.
        self._own_noise = 4 * threshold * (WORD - threshold) / gap**2
        self._mixed_noise = 2 * WORD * (WORD - threshold) / gap**2
        self._plain_noise = 2 * (WORD - threshold) / gap
        self._positions = positions
        self._outputs = positions + int(np.count_nonzero(row == 0))
        self._hidden = row > 0
        # Each value's entry among the S transformed positions, followed by the plain reports.
        self._place = np.where(self._hidden, row, plain)

    def _transform(self, reports: Floats) -> Floats:
        """Transform the positions and leave the plain reports as they are."""
        S = self._positions
        return np.concatenate((walsh_hadamard(reports[:S]), reports[S:]))

    def totals(self, statistic: Statistic) -> Floats:
        """Return c times the exact transform of the positions, or c times the plain counts."""
        hidden = walsh_hadamard(statistic[: self._positions])
        sums = np.empty(self._hidden.size)
        for at in parts(sums.size):
            place = self._place[at]
            counts = statistic[place]
            own = self._hidden[at]
            counts[own] = hidden[place[own]]
            sums[at] = self._c * counts.astype(np.float64)
        return sums

    def second_moments(self, statistic: Statistic) -> Floats:
        """Return `c^2 N(S)` of each sensitive value, `c^2` times the plain count of the others."""
        return self._moments(statistic, slice(None))

    def _moments(self, statistic: Statistic, at: slice | Integers) -> Floats:
        hidden = statistic[: self._positions].sum()
        counts = np.where(self._hidden[at], hidden, statistic[self._place[at]])
        moments: Floats = self._c**2 * counts.astype(np.float64)
        return moments

    def extremes(self) -> tuple[Floats, Floats]:
        """Return -c (sensitive) or 0, and c."""
        return self._extremes(slice(None))

    def _extremes(self, at: slice | Integers) -> tuple[Floats, Floats]:
        hidden = self._hidden[at]
        return np.where(hidden, -self._c, 0.0), np.full(hidden.size, self._c)

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        moments = self._moments(decoded.statistic, at)
        return SingleValues(moments, *self._extremes(at), *self._noise_extremes(at))

    def decode(self, weights: Floats) -> Floats:
        """Return `h` with `Q h = weights`: the placed weights, with the positions transformed."""
        placed = np.zeros(self._outputs)
        placed[self._place] = self._c * np.asarray(weights, dtype=np.float64)
        return self._transform(placed)

    def expect(self, function: Floats) -> Floats:
        """Return `(T[0] + t T[row]) / S`, or `(1 - t) T[0] / S + t f[plain]`, T the transform."""
        transformed = self._transform(np.asarray(function, dtype=np.float64))
        mean = transformed[0] / self._positions
        own = self._contrast * transformed[self._place]
        expected: Floats = np.where(
            self._hidden, mean + own / self._positions, self._spread * mean + own
        )
        return expected

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the least and the largest noise that one user adds to each value's estimate.

        To that of a sensitive value its own user adds `c^2 - 1`, a user of another sensitive value
        `c^2`, and the rest `c^2 - c`. To that of another value its own user adds `c - 1`, and all
        others 0.
        """
        return self._noise_extremes(slice(None))

    def _noise_extremes(self, at: slice | Integers) -> tuple[Floats, Floats]:
        sensitive, hidden = int(np.count_nonzero(self._hidden)), self._hidden[at]
        least = self._mixed_noise if sensitive < len(self._hidden) else self._own_noise
        largest = self._c**2 if sensitive > 1 else self._own_noise
        return np.where(hidden, least, 0.0), np.where(hidden, largest, self._plain_noise)
