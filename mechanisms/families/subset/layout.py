"""The form of reports of `subset-selection`, and its statistic.

A report is its block's number, little-endian in the fewest whole bytes (none if there is one
block), and a mask with one bit for each value of the largest block: the bit of the value at place i
is bit `i mod 8` of byte `i / 8`. A statistic counts, for each value, the reports that hold it, and
then the reports of each block.

The mask could be replaced by the subset's rank among all subsets. That is shorter (by a sixth at
epsilon = 1, by three quarters at 3), but takes integers of thousands of bits for each report, on
devices and servers. If length matters, projective geometry has the same variance in `log2 K` bits.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.entropy import Words
from ldpstream.mechanisms.families.subset.subsets import Subsets

Payload = NDArray[np.uint8]
_BATCH_BITS = 1 << 22


class SubsetLayout:
    """The tables with which reports are written, checked and counted.

    For each block, `kinds`, int64 `(blocks,)`, is the number of its kind of subsets, and
    `thresholds`, uint64 `(blocks,)`, their T (2^64 - 1 for a value alone, where it is never used).
    """

    def __init__(self, blocks: Blocks, subsets: Sequence[Subsets]) -> None:
        sizes = np.array([s.size for s in subsets], dtype=np.int64)
        self.blocks = blocks
        self.kinds: Indices = np.searchsorted(sizes, blocks.sizes)
        thresholds = [min(s.threshold, (1 << 64) - 1) for s in subsets]
        self.thresholds: Words = np.array(thresholds, dtype=np.uint64)[self.kinds]
        self.block_bytes = -(-(blocks.count - 1).bit_length() // 8)
        self.mask_bytes = int(-(-sizes.max() // 8))
        self.report_bytes = self.block_bytes + self.mask_bytes
        self._chosen = np.array([s.chosen for s in subsets], dtype=np.int64)[self.kinds]
        places = np.arange(8 * self.mask_bytes)
        self._allowed = _pack(places < sizes[:, None])
        # Values block by block, in order of their places.
        self._values: Indices = np.argsort(blocks.of_value, kind="stable")
        self._starts: Indices = np.cumsum(blocks.sizes) - blocks.sizes

    def write(self, blocks: Indices, masks: Payload) -> Payload:
        """Return reports, uint8 `(n, report_bytes)`: blocks `(n,)`, masks `(n, mask_bytes)`."""
        table = np.ascontiguousarray(blocks, dtype="<i8").view(np.uint8).reshape(-1, 8)
        return np.concatenate((table[:, : self.block_bytes], masks), axis=1)

    def pack(self, taken: NDArray[np.bool_]) -> Payload:
        """Return the masks of subsets, bool `(n, size)` -> uint8 `(n, mask_bytes)`."""
        masks = np.zeros((len(taken), self.mask_bytes), dtype=np.uint8)
        packed = _pack(taken)
        masks[:, : packed.shape[1]] = packed
        return masks

    def valid(self, reports: Payload) -> NDArray[np.bool_]:
        """Return which reports some value can produce: an existing block and d of its values."""
        blocks = self.block_of(reports)
        exists = blocks < self.blocks.count
        blocks = np.where(exists, blocks, 0)
        masks = reports[:, self.block_bytes :]
        beyond = (masks & ~self._allowed[self.kinds[blocks]]).any(axis=1)
        ones = np.bitwise_count(masks).sum(axis=1, dtype=np.int64)
        out: NDArray[np.bool_] = exists & ~beyond & (ones == self._chosen[blocks])
        return out

    def count(self, reports: Payload) -> Indices:
        """Return the statistic of reports: int64 `(k + blocks,)`."""
        held = np.zeros(self.blocks.size, dtype=np.int64)
        blocks = self.block_of(reports)
        order = np.argsort(blocks, kind="stable")
        step = max(1, _BATCH_BITS // (8 * self.mask_bytes))
        for first in range(0, len(reports), step):
            batch = order[first : first + step]
            self._add(held, blocks[batch], reports[batch, self.block_bytes :])
        return np.concatenate((held, np.bincount(blocks, minlength=self.blocks.count)))

    def _add(self, held: Indices, blocks: Indices, masks: Payload) -> None:
        """Add masks of ascending blocks to the counts of values."""
        first = np.flatnonzero(np.concatenate(([True], blocks[1:] != blocks[:-1])))
        bits = np.unpackbits(masks, axis=1, bitorder="little")
        sums = np.add.reduceat(bits, first, axis=0, dtype=np.int64)
        present = blocks[first]
        places = np.arange(bits.shape[1])
        inside = places < self.blocks.sizes[present][:, None]
        slots = (self._starts[present][:, None] + places)[inside]
        held[self._values[slots]] += sums[inside]

    def block_of(self, reports: Payload) -> Indices:
        """Return the number of each report's block, int64 `(n,)`."""
        table = np.zeros((len(reports), 8), dtype=np.uint8)
        table[:, : self.block_bytes] = reports[:, : self.block_bytes]
        return table.view("<i8")[:, 0].astype(np.int64, copy=False)


def _pack(bits: NDArray[np.bool_]) -> Payload:
    return np.packbits(bits, axis=1, bitorder="little")
