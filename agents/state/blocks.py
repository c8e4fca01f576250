"""Which disclosed blocks of a part are told of together, with `minimum_block` above 1.

Reports of block mechanisms disclose the block of their value. In each part the blocks with fewer
than `minimum_block` reports, and the smallest one of those with as many, are *merged*: an answer
holds all reports of merged blocks or none. No reports at all count as few: whether a small block is
empty is not told. Which blocks a part merges follows from its own counts alone, and a part never
changes, so nothing is stored; a sum of parts merges what any of them does.

An answer is masked here and nowhere else, before anything is estimated: of the reports of merged
blocks its statistic keeps the number, so whatever is computed from it tells no more.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.interface.decoder import CountDecoder
from ldpstream.mechanisms.interface.mechanism import Statistic
from ldpstream.mechanisms.wire.spec import CollectionSpec

Integers = NDArray[np.int64]
Merged = NDArray[np.bool_]


def blocks_of_reports(spec: CollectionSpec) -> Integers | None:
    """Return the block that each entry of a statistic discloses, int64 `(statistic_size,)`.

    None where reports disclose no block of values, or something else with it.
    """
    if spec.domain.estimated is not spec.domain:
        return None
    decoder = spec.mechanism.decoder()
    return decoder.output_groups() if isinstance(decoder, CountDecoder) else None


def merged_blocks(reports: Integers, minimum: int) -> Merged:
    """Return which blocks of a part are merged, of their numbers of reports `(blocks,)`.

    Together they hold `minimum` reports or more, or are all blocks; each other one does by itself.
    """
    merged = reports < minimum
    if merged.any() and not merged.all():
        large = np.flatnonzero(~merged)
        merged[large[np.argmin(reports[large])]] = True
    return merged


def add_parts(
    spec: CollectionSpec, minimum: int, parts: Iterable[Statistic]
) -> tuple[Statistic, Merged | None]:
    """Return the masked sum of the parts' statistics, and which blocks are merged in it.

    None where none are. The reports of all merged blocks are the first entry's of the first one.
    """
    block = blocks_of_reports(spec)
    if block is None:
        raise ValueError(f"expected reports that disclose a block, got {spec.mechanism.id}")
    total = spec.mechanism.empty()
    merged = np.zeros(int(block.max()) + 1, dtype=np.bool_)
    for part in parts:
        total += part
        merged |= merged_blocks(spec.mechanism.decoder().group_reports(part), minimum)
    if not merged.any():
        return total, None
    hidden = merged[block]
    reports = int(total[hidden].sum())
    total[hidden] = 0
    total[np.argmax(hidden)] = reports
    return total, merged
