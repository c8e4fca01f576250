"""Linear queries of a channel given as a table: the decoder of least variance, dense."""

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.channels.designed import DesignedChannel
from ldpstream.mechanisms.interface.dense_decoder import DenseDecoder


class TableDecoder(DenseDecoder):
    """`h_x(y) = (I^-1 v_y)[x]`, `v_y = Q[., y] / P(y)`, `I = sum_y P(y) v_y v_y^T`.

    Of all unbiased decoders it has the least variance where values follow the design prior
    (docs/theory.md section 8); it is unbiased whatever they follow. With `A = Q / sqrt(P(y))` it is
    the pseudoinverse of A, transposed, over `sqrt(P(y))`, which keeps the accuracy that I squares.
    """

    def __init__(self, design: DesignedChannel) -> None:
        inverse = np.linalg.pinv(design.whitened, rcond=0.0).T
        h: NDArray[np.float64] = inverse / np.sqrt(design.probabilities)
        # One step of refinement: Q h = 1 to the last places.
        refined = h + (np.eye(len(h)) - design.matrix @ h.T).T @ h
        super().__init__(refined, design.matrix)
