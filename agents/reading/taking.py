"""What becomes of a packed message, given what its partition has counted: source offsets decide."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from ldpstream.agents.partition.arrival import Arrivals
from ldpstream.agents.partition.partition import Partition
from ldpstream.agents.state.packed import Packed, PackedRecords

_SLICE: Final = 8_192


class Taken(Enum):
    """What became of a packed message."""

    TAKEN = "taken"
    """It brought the partition on, all of it or the part from the next offset on."""
    REPEAT = "repeat"
    """All of it had been counted before."""
    HOLE = "hole"
    """It begins above the next offset: what is between has to be read from the source first."""
    FULL = "full"
    """Some of it may have been taken; the rest has to wait until a flush has made room for it."""


@dataclass(frozen=True)
class FramesHooks:
    """What an intake tells about packed messages."""

    told: Callable[[str, int], None]
    """Called with what became of them ("taken", "repeat", "hole", or why they are refused), or
    "reread", and how many: packed messages, or offsets that were read from the source itself."""
    lag: Callable[[int, int | None], None]
    """Called with a partition and the number of the source's offsets that are not packed yet, as
    far as is known; None where it is no longer ours."""


def take(state: Partition, packed: Packed, *, now_ms: int, packed_ms: int | None = None) -> Taken:
    """Take in what a packed message brings that is new, as if it had been read from the source.

    `packed_ms` is when it was packed, None where that is not known.
    """
    if packed.next <= state.next:
        return Taken.REPEAT
    if packed.after > state.next:
        return Taken.HOLE
    records = packed.records.since(state.next)
    for start in range(0, len(records), _SLICE):
        if state.full:
            return Taken.FULL
        part = records[start : start + _SLICE]
        state.ingest(part, now_ms=now_ms, arrived=_arrivals(part, now_ms, packed_ms))
    state.pass_over(packed.next)
    return Taken.TAKEN


def _arrivals(records: PackedRecords, now_ms: int, packed_ms: int | None) -> Arrivals:
    """Return when packed messages arrived: as their packer says, though never after now.

    Packers of earlier releases do not say: then all had arrived when they were packed.
    """
    if records.arrived is None:
        return Arrivals(now_ms, now_ms if packed_ms is None else min(now_ms, packed_ms))
    if records.appended:
        return Arrivals(records.arrived, records.arrived)
    return Arrivals(now_ms, np.minimum(records.arrived, now_ms))
