"""The numbering of the reports of each block's tree."""

from collections.abc import Mapping

import numpy as np

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.layout import ReportLayout
from ldpstream.mechanisms.families.tree.hierarchy import Hierarchy


class TreeLayout(ReportLayout):
    """`trees` are the different trees, by ascending size of block; `kinds[j]` is block j's."""

    def __init__(self, blocks: Blocks, of_size: Mapping[int, Hierarchy]) -> None:
        sizes = sorted(of_size)
        self.trees = tuple(of_size[size] for size in sizes)
        self.kinds: Indices = np.searchsorted(np.array(sizes), blocks.sizes)
        orders = np.array([t.order for t in self.trees], dtype=np.int64)
        super().__init__(blocks, orders[self.kinds])

    def levels(self) -> tuple[Indices, Indices]:
        """Return the first report and the number of reports of each level of each block."""
        starts, orders = [], []
        for first, kind in zip(self.starts.tolist(), self.kinds.tolist(), strict=True):
            parts = [(lv.start, lv.channel.design.order) for lv in self.trees[kind].levels]
            for start, order in parts or [(0, 1)]:
                starts.append(first + start)
                orders.append(order)
        return np.array(starts, dtype=np.int64), np.array(orders, dtype=np.int64)

    def check(self) -> None:
        """Check what the proof by structure assumes of the tables.

        Raises:
            ValueError: if blocks overlap, or a tree is inconsistent or not of its block's size.
        """
        for tree in self.trees:
            tree.check()
        sizes = np.array([tree.size for tree in self.trees])
        if not (self.apart and np.all(sizes[self.kinds] == self.blocks.sizes)):
            raise ValueError("the tables of the trees are not what their proof assumes")
