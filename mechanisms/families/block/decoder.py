"""Which reports belong to which block, and decoders that know each block's count from them.

`ReportLayout` and `DisclosedBlocks` serve all mechanisms that report a symbol of the value's block;
the tables and the decoder of `block-hadamard` take one fast transform for all blocks of a size.
"""

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Indices, Integers
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.exact.walsh import Number, sign_order, walsh_hadamard
from ldpstream.mechanisms.interface.decoder import Decoded, SingleValues, Statistic, parts
from ldpstream.mechanisms.interface.symbols import CountDecoder


class ReportLayout:
    """Block j owns `orders[j]` consecutive reports from `starts[j]` on, int64 `(blocks,)`."""

    def __init__(self, blocks: Blocks, orders: Indices) -> None:
        self.blocks = blocks
        self.orders = orders
        self.starts: Indices = np.cumsum(orders) - orders
        self.outputs = int(orders.sum())
        # The blocks of several reports, and the first reports of each and after it.
        self.several: Indices = np.flatnonzero(orders > 1)
        firsts = self.starts[self.several]
        ends = np.stack([firsts, firsts + orders[self.several]], axis=1).ravel()
        self.ends: Indices = ends[ends < self.outputs]

    @property
    def disjoint(self) -> bool:
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
        layout = self.reports
        # A block of one report, of which there may be many, is its own sum.
        counts: Indices = statistic[layout.starts]
        if layout.several.size:
            counts[layout.several] = np.add.reduceat(statistic, layout.ends)[::2]
        return counts


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
        """Check what the proof by structure assumes of the tables."""
        of_value = self.blocks.of_value
        several = self.blocks.sizes[of_value] > 1
        columns = self.offset + self.row
        sound = (
            self.disjoint
            and bool(np.all(self.orders & (self.orders - 1) == 0))
            and bool(np.all(self.offset == self.starts[of_value]))
            and bool(np.all(self.mask == self.orders[of_value] - 1))
            and bool(np.all(self.row <= self.mask))
            and bool(np.all((self.row > 0) == several))
            and len(np.unique(columns)) == len(columns)
        )
        if not sound:
            raise ValueError("the tables of block-hadamard are not what its proof assumes")


class BlockDecoder(DisclosedBlocks):
    """`h_x(y) = c H[row of x, y]` in the block of x and 0 elsewhere; 1 if x is alone in its block.

    `c = 2^64 / (2 T - 2^64)` for the realised threshold T. Reports are sorted into "slots", where
    blocks of the same size are adjacent, so that one call transforms them all. Apart from the
    layout, nothing is stored for each value.
    """

    def __init__(self, layout: BlockLayout, threshold: int) -> None:
        self._layout = self.reports = layout
        self._c = WORD / (2 * threshold - WORD)
        # c^2 - 1 as one quotient of integers: a difference would lose its digits at large epsilon.
        self._own_noise = 4 * threshold * (WORD - threshold) / (2 * threshold - WORD) ** 2
        self._contrast = (2 * threshold - WORD) / WORD
        self._parts = parts(layout.blocks.size)
        by_order = np.argsort(layout.orders, kind="stable")
        orders = layout.orders[by_order]
        first_slot = np.empty_like(layout.starts)
        first_slot[by_order] = np.cumsum(orders) - orders
        self._runs = _runs_of_equal(orders)
        # Report y of block j sits in slot first_slot[j] + y - starts[j].
        self._slot_of_report: Indices | slice = slice(None)
        if np.any(first_slot != layout.starts):
            moved = np.repeat(first_slot - layout.starts, layout.orders)
            self._slot_of_report = np.arange(layout.outputs) + moved
        self.scratch = 1.0 if len(self._runs) == 1 else 3.0
        if layout.blocks.count == 1 < layout.blocks.size:
            self.step = 2.0 * self._c

    def _transform(self, reports: NDArray[Number]) -> NDArray[Number]:
        """Return vectors over reports with each block replaced by its transform."""
        rows = reports.shape[:-1]
        if len(self._runs) == 1:
            return walsh_hadamard(reports.reshape(*rows, *self._runs[0])).reshape(reports.shape)
        slots = np.empty_like(reports)
        slots[..., self._slot_of_report] = reports
        start = 0
        for count, length in self._runs:
            some = slots[..., start : start + count * length]
            some[...] = walsh_hadamard(some.reshape(*rows, count, length)).reshape(some.shape)
            start += count * length
        return slots[..., self._slot_of_report]

    def totals(self, statistic: Statistic) -> Floats:
        """Return `c T[row]` of each value, T the exact integer transform of its block's counts."""
        return self.decode_values(statistic).totals

    def decode_values(self, statistic: Statistic) -> Decoded:
        transformed = self._transform(statistic)
        totals = np.empty(self._layout.blocks.size)
        for at in self._parts:
            places = self._layout.offset[at] + self._layout.row[at]
            totals[at] = np.where(self._layout.mask[at] == 0, 1.0, self._c) * transformed[places]
        return Decoded(statistic, totals, self.group_reports(statistic))

    def moments(self, decoded: Decoded, at: slice | Integers) -> Floats:
        """Return `c^2 N_j` of each value, N_j its block's exact count."""
        scale = np.where(self._layout.mask[at] == 0, 1.0, self._c)
        moments: Floats = scale**2 * decoded.reports[self._layout.blocks.of_value[at]]
        return moments

    def extremes(self) -> tuple[Floats, Floats]:
        """Return -c and c; 0 and 1 for a value alone in its block, since there are other blocks."""
        alone = self._layout.mask == 0
        return np.where(alone, 0.0, -self._c), np.where(alone, 1.0, self._c)

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return `c^2 - 1` (the value's own user) and `c^2` (its neighbours); 0 if it is alone."""
        alone = self._layout.mask == 0
        return np.where(alone, 0.0, self._own_noise), np.where(alone, 0.0, self._c**2)

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        alone = self._layout.mask[at] == 0
        return SingleValues(
            second_moments=self.moments(decoded, at),
            least=np.where(alone, 0.0, -self._c),
            largest=np.where(alone, 1.0, self._c),
            quietest=np.where(alone, 0.0, self._own_noise),
            noisiest=np.where(alone, 0.0, self._c**2),
        )

    def decode(self, weights: Floats) -> Floats:
        """Return `h` with `Q h = weights`: each block's weights, placed in rows and transformed.

        Takes several queries at once: `(..., k)` -> `(..., outputs)`.
        """
        rows = np.zeros((*weights.shape[:-1], self._layout.outputs))
        for at in self._parts:
            places = self._layout.offset[at] + self._layout.row[at]
            rows[..., places] = weights[..., at] * np.where(
                self._layout.mask[at] == 0, 1.0, self._c
            )
        return self._transform(rows)

    def expect(self, function: Floats) -> Floats:
        """Return `(T[0] + t T[row]) / K_j` of each value, T the transform of its block, t = 1/c.

        Takes several functions at once: `(..., outputs)` -> `(..., k)`.
        """
        transformed = self._transform(np.asarray(function, dtype=np.float64))
        means = np.empty((*transformed.shape[:-1], self._layout.blocks.size))
        for at in self._parts:
            base = self._layout.offset[at]
            contrast = np.where(self._layout.mask[at] == 0, 0.0, self._contrast)
            rows = base + self._layout.row[at]
            sums = transformed[..., base] + contrast * transformed[..., rows]
            means[..., at] = sums / (self._layout.mask[at] + 1)
        return means

    decode_each, expect_each = decode, expect


def _runs_of_equal(orders: Indices) -> list[tuple[int, int]]:
    """Return `(number of blocks, order)` for a sorted array of orders."""
    distinct, counts = np.unique(orders, return_counts=True)
    return list(zip(counts.tolist(), distinct.tolist(), strict=True))
