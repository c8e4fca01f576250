"""What an answer may tell: all reports of a group of panes or none, and no small block by itself.

With `minimum` above 1, partition 0 also stores groups of closed panes and releases of others. An
answer has all reports of a *disclosure group* or none. Of a pane in no group yet it has what has
been *released* (`ldpstream.agents.state.view` says why).

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

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.state.cell_encoding import VERSION, unpack
from ldpstream.agents.state.records import RecordError
from ldpstream.agents.state.windows import NEVER
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.interface.mechanism import Statistic
from ldpstream.mechanisms.interface.symbols import CountDecoder
from ldpstream.mechanisms.wire.spec import CollectionSpec

_PART: Final = struct.Struct("<Bqq")
_RELEASE: Final = struct.Struct("<BqqI")
_OF_PARTITION: Final = struct.Struct("<Iq")
_LEFT_OUT: Final = struct.Struct("<IIq")

Merged = NDArray[np.bool_]


class DisclosureGroup(NamedTuple):
    """Panes `[first, end)` that are answered together, and their reports in all partitions.

    That of an attribute counts the reports about the others, too.
    """

    first: int
    end: int
    n: int


class DisclosureGroups:
    """Disclosure groups that do not overlap."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._groups: dict[int, DisclosureGroup] = {}

    def add(self, group: DisclosureGroup) -> None:
        """Add a group, which must overlap no other."""
        if group.end not in self._groups:
            self._ends.insert(bisect_left(self._ends, group.end), group.end)
        self._groups[group.end] = group

    def load(self, last: int, value: bytes) -> None:
        """Add a group from its stored value, given its last pane."""
        first, n = decode_part(value)
        self.add(DisclosureGroup(first, last + 1, n))

    def value(self, last: int) -> bytes:
        """Return the stored value of the group with this last pane."""
        group = self._groups[last + 1]
        return encode_part(group.first, group.n)

    def discard(self, end: int) -> None:
        """Remove the group that ends there, if any."""
        if self._groups.pop(end, None) is not None:
            del self._ends[bisect_left(self._ends, end)]

    def last_end(self, most: int) -> int:
        """Return where the last group ends that ends no later than `most`; NEVER without one."""
        at = bisect_right(self._ends, most)
        return self._ends[at - 1] if at else NEVER

    def touching(self, first: int, end: int) -> list[DisclosureGroup]:
        """Return the groups that share panes with `[first, end)`, in order."""
        groups = []
        for at in range(bisect_right(self._ends, first), len(self._ends)):
            group = self._groups[self._ends[at]]
            if group.first >= end:
                break
            groups.append(group)
        return groups


class ReleasedPane(NamedTuple):
    """What answers hold of a pane in no group yet: `n` reports, and the `sum` of their statistic.

    `counted` says how many reports each partition had counted in the pane at that moment, and
    `left_out`, by attribute and partition, how many of the reports in its reserve, from the first
    on, answers leave out. Attributes that nothing has been released of are not in it.
    """

    n: int
    sum: int
    counted: Mapping[int, int]
    left_out: Mapping[tuple[int, int], int]

    @property
    def attributes(self) -> set[int]:
        """The attributes of which answers hold something."""
        return {attribute for attribute, _ in self.left_out}


def encode_part(first: int, n: int) -> bytes:
    """Return the value of a group that begins with the pane `first` and holds `n` reports."""
    return _PART.pack(VERSION, first, n)


def decode_part(data: bytes) -> tuple[int, int]:
    """Return the first pane of a group and how many reports it holds."""
    first, n = unpack(_PART, data, "part")
    return first, n


def encode_release(release: ReleasedPane) -> bytes:
    """Return the value of a release."""
    counted = [_OF_PARTITION.pack(p, n) for p, n in sorted(release.counted.items()) if n]
    head = _RELEASE.pack(VERSION, release.n, release.sum, len(counted))
    left_out = [_LEFT_OUT.pack(*of, n) for of, n in sorted(release.left_out.items())]
    return b"".join((head, *counted, *left_out))


def released_sum(data: bytes) -> int:
    """Return the sum of a release's statistic, from the first bytes of its value."""
    return unpack(_RELEASE, data, "release", whole=False)[1]


def decode_release(data: bytes) -> ReleasedPane:
    """Return a release."""
    n, total, entries = unpack(_RELEASE, data, "release", whole=False)
    end = _RELEASE.size + entries * _OF_PARTITION.size
    try:
        counted = dict(_OF_PARTITION.iter_unpack(data[_RELEASE.size : end]))
        more = _LEFT_OUT.iter_unpack(data[end:])
        left_out = {(attribute, partition): few for attribute, partition, few in more}
    except struct.error as error:
        raise RecordError("changelog release has the wrong length") from error
    if len(counted) != entries or sum(counted.values()) < n:
        raise RecordError("changelog release does not add up to its own sum")
    return ReleasedPane(n, total, counted, left_out)


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
