"""Report numbering and linear queries of `tree`; blocks of the same size are decoded together."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Indices
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.decoder import DisclosedBlocks, ReportLayout
from ldpstream.mechanisms.families.tree.hierarchy import Hierarchy
from ldpstream.mechanisms.families.tree.hierarchy_decoder import HierarchyDecoder, Singles
from ldpstream.mechanisms.interface.decoder import Statistic


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
        if not (self.disjoint and np.all(sizes[self.kinds] == self.blocks.sizes)):
            raise ValueError("the tables of the trees are not what their proof assumes")


class TreeDecoder(DisclosedBlocks):
    """The values of a block are decoded by its tree, from the reports of the block alone."""

    def __init__(self, layout: TreeLayout) -> None:
        self._layout = self.reports = layout
        self._decoders = [HierarchyDecoder(tree) for tree in layout.trees]
        # In several dimensions, a pyramid holds each value once for each level of the others.
        self.scratch = 8.0
        blocks = layout.blocks
        self._by_block: Indices = np.argsort(blocks.of_value, kind="stable")
        self._first: Indices = np.cumsum(blocks.sizes) - blocks.sizes

    def _batches(self) -> Iterator[tuple[HierarchyDecoder, Indices, Indices]]:
        """Yield each tree with the values `(g, m)` and the reports `(g, order)` of its blocks."""
        layout = self._layout
        for kind, (decoder, tree) in enumerate(zip(self._decoders, layout.trees, strict=True)):
            of_kind = np.flatnonzero(layout.kinds == kind)
            values = self._by_block[self._first[of_kind][:, None] + np.arange(max(1, tree.size))]
            yield decoder, values, layout.starts[of_kind][:, None] + np.arange(tree.order)

    def totals(self, statistic: Statistic) -> Floats:
        return self._of_values(lambda decoder, reports: decoder.totals(statistic[reports]))

    def second_moments(self, statistic: Statistic) -> Floats:
        """Return the sums of the squares, approximately for trees of some 1,500 values or more."""
        return self._of_values(lambda decoder, reports: decoder.second_moments(statistic[reports]))

    def expect(self, function: Floats) -> Floats:
        (found,) = self.expect_each(np.asarray(function, dtype=np.float64)[None])
        return np.asarray(found)

    def expect_each(self, functions: Floats) -> Floats:
        out = np.empty((len(functions), self._layout.blocks.size))
        for decoder, values, reports in self._batches():
            rows = functions[:, reports]
            found = decoder.expect(rows.reshape(-1, reports.shape[1]))
            out[:, values] = found.reshape(-1, *values.shape)
        return out

    def _of_values(self, decoded: Callable[[HierarchyDecoder, Indices], Floats]) -> Floats:
        out = np.empty(self._layout.blocks.size)
        for decoder, values, reports in self._batches():
            out[values] = decoded(decoder, reports)
        return out

    def decode(self, weights: Floats) -> Floats:
        (decoded,) = self.decode_each(np.asarray(weights, dtype=np.float64)[None])
        return np.asarray(decoded)

    def decode_each(self, weights: Floats) -> Floats:
        decoded = np.empty((len(weights), self._layout.outputs))
        for decoder, values, reports in self._batches():
            rows = weights[:, values]
            found = decoder.decode(rows.reshape(-1, values.shape[1]))
            decoded[:, reports] = found.reshape(-1, *reports.shape)
        return decoded

    def extremes(self) -> tuple[Floats, Floats]:
        """Return the extremes of the values' decoders, which are 0 at other blocks' reports."""
        low, high = self._ends(lambda of: (of.least, of.largest))
        if self._layout.blocks.count == 1:
            return low, high
        return np.minimum(low, 0.0), np.maximum(high, 0.0)

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the extremes of the noise of a user of the block, or bounds for large trees."""
        return self._ends(lambda of: (of.quietest, of.noisiest))

    def _ends(self, pair: Callable[[Singles], tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
        low, high = np.empty((2, self._layout.blocks.size))
        for decoder, values, _ in self._batches():
            rows = decoder.singles.rows
            low[values], high[values] = (end[rows] for end in pair(decoder.singles))
        return low, high
