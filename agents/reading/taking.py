"""Decide what to do with a packed message by comparing its offsets with the partition's."""

from enum import Enum
from typing import Final

import numpy as np

from ldpstream.agents.partition.arrival import Arrivals
from ldpstream.agents.partition.partition import Partition
from ldpstream.agents.state.packed import Packed, PackedRecords

_SLICE: Final = 8_192


class Taken(Enum):
    """What happened to a packed message."""

    TAKEN = "taken"
    """It advanced the partition, with all of it or the part from the next offset on."""
    REPEAT = "repeat"
    """All of it had been counted before."""
    HOLE = "hole"
    """It begins above the next offset: the gap must be read from the source first."""
    FULL = "full"
    """Some of it may have been taken; the rest waits until a flush has made room."""


def take(state: Partition, packed: Packed, *, now_ms: int) -> Taken:
    """Take in what is new in a packed message, as if it had been read from the source."""
    if packed.next <= state.next:
        return Taken.REPEAT
    if packed.after > state.next:
        return Taken.HOLE
    records = packed.records.since(state.next)
    for start in range(0, len(records), _SLICE):
        if state.full:
            return Taken.FULL
        part = records[start : start + _SLICE]
        state.ingest(part, now_ms=now_ms, arrived=_arrivals(part, now_ms))
    state.pass_over(packed.next)
    return Taken.TAKEN


def _arrivals(records: PackedRecords, now_ms: int) -> Arrivals:
    """Return when packed messages arrived: as stated by their packer, but never after now."""
    if records.arrived is None:
        return Arrivals.at(now_ms)
    if records.appended:
        return Arrivals(records.arrived, records.arrived)
    return Arrivals(now_ms, np.minimum(records.arrived, now_ms))
