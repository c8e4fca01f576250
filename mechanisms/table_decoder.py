"""Linear queries of a channel given as a table: the decoder of least variance, dense."""

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.decoder import CountDecoder, Floats, Statistic
from ldpstream.mechanisms.designed_channel import DesignedChannel


class TableDecoder(CountDecoder):
    """`h_x(y) = (I^-1 v_y)[x]`, `v_y = Q[., y] / P(y)`, `I = sum_y P(y) v_y v_y^T`.

    Of all unbiased decoders it has the least variance where values follow the design prior
    (docs/theory.md section 8); it is unbiased whatever they follow. With `A = Q / sqrt(P(y))` it is
    the pseudoinverse of A, transposed, over `sqrt(P(y))`, which keeps the accuracy that I squares.
    """

    def __init__(self, channel: DesignedChannel) -> None:
        self._q = channel.matrix
        inverse = np.linalg.pinv(channel.whitened, rcond=0.0).T
        h: NDArray[np.float64] = inverse / np.sqrt(channel.probabilities)
        # One step of refinement: Q h = 1 to the last places.
        self._h: Floats = h + (np.eye(len(h)) - self._q @ h.T).T @ h

    def shares(self, statistic: Statistic) -> Floats:
        """Return the sums of the values' decoders, `(k,)`."""
        return self._h @ statistic.astype(np.float64)

    def second_moments(self, statistic: Statistic) -> Floats:
        """Return the sums of the values' squared decoders, `(k,)`."""
        return (self._h**2) @ statistic.astype(np.float64)

    def extremes(self) -> tuple[Floats, Floats]:
        """Return the least and the largest decoder of each value."""
        return self._h.min(axis=1), self._h.max(axis=1)

    def decode(self, weights: Floats) -> Floats:
        """Return `h` with `Q h = weights`, `(outputs,)`."""
        decoded: Floats = np.asarray(weights, dtype=np.float64) @ self._h
        return decoded

    def expect(self, function: Floats) -> Floats:
        """Return `Q f`, `(k,)`."""
        return self._q @ np.asarray(function, dtype=np.float64)
