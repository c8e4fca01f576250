"""Where the positions of each block lie among the reports of `block-hadamard`."""

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.walsh import sign_order

Indices = NDArray[np.int64]


class BlockLayout:
    """The tables that draw and decode reports: block j owns `K_j` consecutive reports.

    For each value, int64 `(k,)`: `offset` is its block's first report, `row` its row of Sylvester's
    matrix (0 where it is alone in its block), `mask` is `K_j - 1`. For each block, int64
    `(blocks,)`: `orders` is `K_j`, `starts` its first report.
    """

    def __init__(self, blocks: Blocks) -> None:
        alone = blocks.sizes == 1
        self.blocks = blocks
        self.orders: Indices = np.array(
            [1 if size == 1 else sign_order(size) for size in blocks.sizes.tolist()], dtype=np.int64
        )
        self.starts: Indices = np.cumsum(self.orders) - self.orders
        self.outputs = int(self.orders.sum())
        of_value = blocks.of_value
        self.offset: Indices = self.starts[of_value]
        self.mask: Indices = self.orders[of_value] - 1
        self.row: Indices = np.where(alone[of_value], 0, blocks.position + 1)

    def check(self) -> None:
        """Check what the proof by structure assumes of the tables.

        Raises:
            ValueError: if blocks overlap, an order is not a power of two, a row is 0 or beyond its
                order in a block of several values, or two values of a block share a row.
        """
        ends = self.starts + self.orders
        of_value = self.blocks.of_value
        several = self.blocks.sizes[of_value] > 1
        own = self.offset + self.row
        sound = (
            bool(np.all(self.starts[1:] == ends[:-1]))
            and bool(np.all(self.orders & (self.orders - 1) == 0))
            and bool(np.all(self.offset == self.starts[of_value]))
            and bool(np.all(self.mask == self.orders[of_value] - 1))
            and bool(np.all(self.row <= self.mask))
            and bool(np.all((self.row > 0) == several))
            and len(np.unique(own)) == len(own)
        )
        if not sound:
            raise ValueError("the tables of block-hadamard are not what its proof assumes")
