"""Where the reports of each block's tree lie among the reports of `tree`."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.tree.hierarchy import Hierarchy

Indices = NDArray[np.int64]


class TreeLayout:
    """Block j owns `orders[j]` consecutive reports from `starts[j]` on, int64 `(blocks,)`.

    `trees` are the different ones, by ascending size of their blocks; `kinds` numbers each block's.
    """

    def __init__(self, blocks: Blocks, of_size: Mapping[int, Hierarchy]) -> None:
        sizes = sorted(of_size)
        self.blocks = blocks
        self.trees = tuple(of_size[size] for size in sizes)
        self.kinds: Indices = np.searchsorted(np.array(sizes), blocks.sizes)
        self.orders: Indices = np.array([t.order for t in self.trees], dtype=np.int64)[self.kinds]
        self.starts: Indices = np.cumsum(self.orders) - self.orders
        self.outputs = int(self.orders.sum())

    def check(self) -> None:
        """Check what the proof by structure assumes of the tables.

        Raises:
            ValueError: if blocks overlap, or a tree is not that of its block's size or not sound.
        """
        for tree in self.trees:
            tree.check()
        sizes = np.array([tree.size for tree in self.trees])
        sound = bool(np.all(self.starts[1:] == self.starts[:-1] + self.orders[:-1])) and bool(
            np.all(sizes[self.kinds] == self.blocks.sizes)
        )
        if not sound:
            raise ValueError("the tables of the trees are not what their proof assumes")
