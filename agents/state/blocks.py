"""Merge small disclosed blocks, so that no answer tells how many reports a small block has.

Reports of block mechanisms disclose the block of their value. With `minimum_block` above 1, each
part *merges* the blocks that have fewer reports than that and, with them, the smallest of the other
blocks. An answer holds all reports of the merged blocks or none. A block without reports counts as
small, so that an answer does not tell whether a small block is empty.

Which blocks a part merges follows from its own counts alone, and a part never changes, so nothing
is stored. A sum of parts merges every block that any of its parts merges.

This is the only place where an answer is masked, and it happens before anything is estimated: of
the merged blocks' reports the statistic keeps only the number, so nothing computed from it can
disclose more.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.interface.mechanism import Statistic
from ldpstream.mechanisms.interface.symbols import CountDecoder
from ldpstream.mechanisms.wire.spec import CollectionSpec

Merged = NDArray[np.bool_]


def blocks_of_reports(spec: CollectionSpec) -> Integers | None:
    """Return the block that each entry of a statistic discloses, int64 `(statistic_size,)`.

    None if reports disclose no block of values, or something else in addition.
    """
    if spec.domain.estimated is not spec.domain:
        return None
    decoder = spec.mechanism.decoder
    return decoder.output_groups() if isinstance(decoder, CountDecoder) else None


def merged_blocks(reports: Integers, minimum: int) -> Merged:
    """Return which blocks of a group are merged, bool `(blocks,)`, given its `reports` by block.

    The merged blocks together hold at least `minimum` reports, or they are all blocks. Every other
    block holds at least `minimum` reports itself.
    """
    merged = reports < minimum
    if merged.any() and not merged.all():
        large = np.flatnonzero(~merged)
        merged[large[np.argmin(reports[large])]] = True
    return merged


def add_parts(
    spec: CollectionSpec, minimum: int, statistics: Iterable[Statistic]
) -> tuple[Statistic, Merged | None]:
    """Return the masked sum of the groups' statistics, and which blocks are merged in it.

    The second item is None if no block is merged. The first entry of the first merged block holds
    the number of reports of all merged blocks.
    """
    block = blocks_of_reports(spec)
    if block is None:
        raise ValueError(f"expected reports that disclose a block, got {spec.mechanism.id}")
    total = spec.mechanism.empty()
    merged = np.zeros(int(block.max()) + 1, dtype=np.bool_)
    for statistic in statistics:
        total += statistic
        merged |= merged_blocks(spec.mechanism.decoder.group_reports(statistic), minimum)
    if not merged.any():
        return total, None
    hidden = merged[block]
    reports = int(total[hidden].sum())
    total[hidden] = 0
    total[np.argmax(hidden)] = reports
    return total, merged
