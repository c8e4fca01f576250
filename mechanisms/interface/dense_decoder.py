"""Linear queries of small channels, from dense tables of the decoder and the channel."""

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.interface.decoder import CountDecoder, Statistic


class DenseDecoder(CountDecoder):
    """`decoders[x]` is `h_x` and `channel[x]` is `Q[x, .]`: float64 `(k, outputs)` each."""

    def __init__(self, decoders: Floats, channel: Floats) -> None:
        self._h = decoders
        self._q = channel

    def totals(self, statistic: Statistic) -> Floats:
        return self._h @ statistic.astype(np.float64)

    def second_moments(self, statistic: Statistic) -> Floats:
        return (self._h**2) @ statistic.astype(np.float64)

    def extremes(self) -> tuple[Floats, Floats]:
        return self._h.min(axis=1), self._h.max(axis=1)

    def decode(self, weights: Floats) -> Floats:
        decoded: Floats = np.asarray(weights, dtype=np.float64) @ self._h
        return decoded

    def expect(self, function: Floats) -> Floats:
        return self._q @ np.asarray(function, dtype=np.float64)
