"""Decoders of mechanisms that number the reports of each block consecutively."""

from typing import Protocol

import numpy as np

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.interface.decoder import CountDecoder, Statistic


class ReportsOfBlocks(Protocol):
    """The numbering of reports: block j owns the `orders[j]` reports from `starts[j]` on.

    Both are int64 `(blocks,)`.
    """

    blocks: Blocks
    orders: Indices
    starts: Indices


class DisclosedBlocks(CountDecoder):
    """Decoders whose groups are the blocks; `reports` says which reports belong to which block."""

    reports: ReportsOfBlocks

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
