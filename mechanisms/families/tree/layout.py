"""Where the reports of each block's tree lie among the reports of `tree`."""

from collections.abc import Mapping

import numpy as np

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.layout import ReportLayout
from ldpstream.mechanisms.families.tree.hierarchy import Hierarchy


class TreeLayout(ReportLayout):
    """`trees` are the different ones, by ascending size of their blocks; `kinds` says whose."""

    def __init__(self, blocks: Blocks, of_size: Mapping[int, Hierarchy]) -> None:
        sizes = sorted(of_size)
        self.trees = tuple(of_size[size] for size in sizes)
        self.kinds: Indices = np.searchsorted(np.array(sizes), blocks.sizes)
        orders = np.array([t.order for t in self.trees], dtype=np.int64)
        super().__init__(blocks, orders[self.kinds])

    def check(self) -> None:
        """Check what the proof by structure assumes of the tables.

        Raises:
            ValueError: if blocks overlap, or a tree is not that of its block's size or not sound.
        """
        for tree in self.trees:
            tree.check()
        sizes = np.array([tree.size for tree in self.trees])
        if not (self.apart and np.all(sizes[self.kinds] == self.blocks.sizes)):
            raise ValueError("the tables of the trees are not what their proof assumes")
