"""How the reports of blocks are numbered, and the tables of `block-hadamard`."""

import numpy as np

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.walsh import sign_order
from ldpstream.mechanisms.interface.decoder import CountDecoder, Statistic


class ReportLayout:
    """Block j owns `orders[j]` consecutive reports from `starts[j]` on, int64 `(blocks,)`."""

    def __init__(self, blocks: Blocks, orders: Indices) -> None:
        self.blocks = blocks
        self.orders = orders
        self.starts: Indices = np.cumsum(orders) - orders
        self.outputs = int(orders.sum())

    @property
    def apart(self) -> bool:
        """Whether the tables give no report to two blocks."""
        return bool(np.all(self.starts[1:] == self.starts[:-1] + self.orders[:-1]))


class DisclosedBlocks(CountDecoder):
    """Decoders whose groups are the blocks; `reports` says which reports belong to which block."""

    reports: ReportLayout

    def groups(self) -> Indices | None:
        """Return the block of each value; None if there is one block."""
        blocks = self.reports.blocks
        return None if blocks.count == 1 else blocks.of_value

    def output_groups(self) -> Indices | None:
        layout = self.reports
        if layout.blocks.count == 1:
            return None
        return np.repeat(np.arange(layout.blocks.count, dtype=np.int64), layout.orders)

    def group_reports(self, statistic: Statistic) -> Indices:
        return np.add.reduceat(statistic, self.reports.starts)


class BlockLayout(ReportLayout):
    """The tables with which reports are drawn and decoded; `orders` are the `K_j`.

    For each value, int64 `(k,)`: `offset` is its block's first report, `row` its row of Sylvester's
    matrix (0 if it is alone in its block), and `mask` is `K_j - 1`.
    """

    def __init__(self, blocks: Blocks) -> None:
        alone = blocks.sizes == 1
        orders = [1 if size == 1 else sign_order(size) for size in blocks.sizes.tolist()]
        super().__init__(blocks, np.array(orders, dtype=np.int64))
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
        of_value = self.blocks.of_value
        several = self.blocks.sizes[of_value] > 1
        own = self.offset + self.row
        sound = (
            self.apart
            and bool(np.all(self.orders & (self.orders - 1) == 0))
            and bool(np.all(self.offset == self.starts[of_value]))
            and bool(np.all(self.mask == self.orders[of_value] - 1))
            and bool(np.all(self.row <= self.mask))
            and bool(np.all((self.row > 0) == several))
            and len(np.unique(own)) == len(own)
        )
        if not sound:
            raise ValueError("the tables of block-hadamard are not what its proof assumes")
