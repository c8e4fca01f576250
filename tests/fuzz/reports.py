"""Which bytes are a report, from docs/wire.md alone; parameters are the mechanism's."""

from collections.abc import Callable

from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.subset.selection import SubsetReports
from ldpstream.mechanisms.interface.mechanism import Mechanism


def possible_reports(mechanism: Mechanism) -> Callable[[bytes], bool]:
    """Return a test of whether some value can produce a report of these bytes."""
    if isinstance(mechanism, L1Bits):
        bits = sum(extent - 1 for extent in mechanism.extents)
        return lambda report: int.from_bytes(report, "little") < 1 << bits
    if isinstance(mechanism, Matrix):
        return _numbers_within(mechanism)
    if isinstance(mechanism, SubsetReports):
        return _subset_of_a_block(mechanism)
    listed = {bytes(row) for row in mechanism.encode(mechanism.possible_reports())}
    return listed.__contains__


def _numbers_within(mechanism: Matrix) -> Callable[[bytes], bool]:
    rows = mechanism.rows
    spans = (rows.high - rows.low).tolist()
    groups = mechanism.statistic_size // (rows.count + 1)
    if groups > 1:
        spans = [groups - 1, *spans]

    def possible(report: bytes) -> bool:
        at = 0
        for span in spans:
            length = max(1, -(-int(span).bit_length() // 8))
            if int.from_bytes(report[at : at + length], "little") > span:
                return False
            at += length
        return at == len(report)

    return possible


def _subset_of_a_block(mechanism: SubsetReports) -> Callable[[bytes], bool]:
    sizes = mechanism.layout.blocks.sizes.tolist()
    # Groups of one size may have several kinds of subsets, by their budgets.
    chosen = [mechanism.subsets[kind].chosen for kind in mechanism.layout.kinds.tolist()]
    number_bytes = -(-(len(sizes) - 1).bit_length() // 8)

    def possible(report: bytes) -> bool:
        block = int.from_bytes(report[:number_bytes], "little")
        if block >= len(sizes):
            return False
        mask = int.from_bytes(report[number_bytes:], "little")
        return mask < 1 << sizes[block] and mask.bit_count() == chosen[block]

    return possible
