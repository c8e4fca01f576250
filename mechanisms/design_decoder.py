"""Linear queries of symmetric designs inside blocks: two-valued decoders, one transform."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.decoder import Floats, Statistic
from ldpstream.mechanisms.design import DesignLayout
from ldpstream.mechanisms.disclosed_blocks import DisclosedBlocks
from ldpstream.mechanisms.support import SupportTables
from ldpstream.mechanisms.walsh import Number

Indices = NDArray[np.int64]
_MAX_BATCH = 1 << 22


class Contract(Protocol):
    """`(blocks, order)` over reports -> the same shape: sums over the reports that support a value.

    The value at place i has the i-th sum. Exact in integers, and symmetric: it also gives, for each
    report, the sum over the values that it supports.
    """

    def __call__(self, reports: NDArray[Number], /) -> NDArray[Number]:
        """Return the sums."""
        ...


class DesignDecoder(DisclosedBlocks):
    """`h_x` is `high` at the reports of x's block that support x, `low` at its others, 0 elsewhere.

    The value at place i of a block has the number i among the block's reports; `contracts` holds
    one transform for each design of the layout.
    """

    def __init__(self, layout: DesignLayout, contracts: Sequence[Contract]) -> None:
        self._layout = layout
        self._contracts = contracts
        self._slot = layout.offset + layout.blocks.position
        of_value = layout.kinds[layout.blocks.of_value]
        self._tables = SupportTables.of([d.support for d in layout.designs], of_value)
        unlikely = [float(d.unlikely) for d in layout.designs]
        excess = [float(d.likely - d.unlikely) for d in layout.designs]
        self._unlikely = np.array(unlikely)[of_value]
        self._excess = np.array(excess)[of_value]

    def _batches(self) -> Iterator[tuple[Contract, Indices]]:
        """Yield each transform with the reports of blocks that it takes, int64 `(g, order)`."""
        layout = self._layout
        for kind, (design, contract) in enumerate(
            zip(layout.designs, self._contracts, strict=True)
        ):
            starts = layout.starts[layout.kinds == kind]
            step = max(1, _MAX_BATCH // design.order)
            for first in range(0, len(starts), step):
                yield contract, starts[first : first + step, None] + np.arange(design.order)

    def _contract(self, reports: NDArray[Number]) -> NDArray[Number]:
        out = np.empty_like(reports)
        for contract, places in self._batches():
            out[places] = contract(reports[places])
        return out

    def _in_block(self, reports: NDArray[Number]) -> NDArray[Number]:
        """Return the sum of a vector over reports in each value's block: `(k,)`."""
        sums = np.add.reduceat(reports, self._layout.starts)
        return sums[self._layout.blocks.of_value]

    def shares(self, statistic: Statistic) -> Floats:
        """Return `(S_x - other N_j)/(own - other)`, S_x the exact number of supporting reports."""
        supporting = self._contract(statistic)[self._slot]
        sums: Floats = self._tables.step * supporting + self._tables.low * self._in_block(statistic)
        return sums

    def second_moments(self, statistic: Statistic) -> Floats:
        """Return `high^2 S_x + low^2 (N_j - S_x)`."""
        supporting = self._contract(statistic)[self._slot]
        rest = self._in_block(statistic) - supporting
        moments: Floats = self._tables.high**2 * supporting + self._tables.low**2 * rest
        return moments

    def extremes(self) -> tuple[Floats, Floats]:
        """Return `low` and `high`; 0 and 1 for a value alone in its block."""
        return self._tables.low.copy(), self._tables.high.copy()

    def decode(self, weights: Floats) -> Floats:
        """Return `h` with `Q h = weights`: the weights supported, scaled, and moved by `low`."""
        layout = self._layout
        placed = np.zeros(layout.outputs)
        placed[self._slot] = self._tables.step * weights
        moved = np.bincount(layout.blocks.of_value, self._tables.low * weights, layout.blocks.count)
        decoded: Floats = self._contract(placed) + np.repeat(moved, layout.orders)
        return decoded

    def expect(self, function: Floats) -> Floats:
        """Return `Q f`: the sum over the block, and again over the reports that support."""
        reports = np.asarray(function, dtype=np.float64)
        supporting = self._contract(reports)[self._slot]
        means: Floats = self._unlikely * self._in_block(reports) + self._excess * supporting
        return means

    @property
    def reports(self) -> DesignLayout:
        """Where each block's reports lie."""
        return self._layout

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the smaller and the larger of the own user's noise and a neighbour's."""
        return self._tables.noise_extremes()
