"""Contiguity with packed messages: source offsets decide, and the source fills every gap.

The frames topic is read without a group, from the position in the head on. What a packed message
repeats is dropped. If one begins above the next offset, or none has brought anything new for a
while (the packer is down, or far behind), the source itself is read like any partition's. So
nothing that happens to packers or to the frames topic can change a count.

Only the source itself can show that a partition is idle: the end in a packed message was true when
it was written, which may be long ago. So the source is also read while packed messages bring
nothing that counts.
"""

import logging
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final

import numpy as np
from aiokafka import TopicPartition

from ldpstream.agents.metrics import Metrics
from ldpstream.agents.partition.batch import Arrivals
from ldpstream.agents.partition.partition import Partition
from ldpstream.agents.reading.intake import SHORT_SECONDS, Intake, OwnedPartition
from ldpstream.agents.reading.source import Batch, Outside, Session, SourceReader
from ldpstream.agents.state.packed import Packed, PackedError, PackedRecords, decode_packed

_SILENT_SECONDS: Final = 3.0
"""How long packed messages may bring nothing new before the source itself is read."""
NEAR_RECORDS: Final = 200_000
"""A packer that repeats messages no further back than this will soon bring something new."""
_GONE_SECONDS: Final = 60.0
_SLICE: Final = 8_192

log = logging.getLogger(__name__)


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


@dataclass(eq=False, kw_only=True)
class PackedIntake(Intake):
    """Takes in the partitions of a collection with packed input."""

    frames: SourceReader
    metrics: Metrics

    @property
    def _silent_seconds(self) -> float:
        # An idle time shorter than the silence limit must be detected in time.
        return min(_SILENT_SECONDS, (self.config.window.idle_ms or 1_000_000) / 4000)

    def begin(self, held: OwnedPartition) -> None:
        """Start with a loaded partition: read the frames topic from the position in its head."""
        now = held.frames.heard = held.frames.own = self.clock.seconds()
        held.note_own(now)
        self._read_frames(held)

    def end(self, held: OwnedPartition) -> None:
        """Stop reading a partition, which has been dropped."""
        super().end(held)
        if held.frames.session is not None:
            held.frames.session.end()
            held.frames.session = None
        self.metrics.pack_lag(self.config.name, held.partition, None)

    def look(self, held: OwnedPartition) -> None:
        """Call for waiting items; read the source if packed messages have nothing that counts."""
        super().look(held)
        frames, now = held.frames, self.clock.seconds()
        if frames.session is not None and frames.session.waiting and frames.hole is None:
            frames.heard = now
        silent = now - min(frames.heard, frames.own) > self._silent_seconds
        if held.session is None and not held.leaving and (silent or frames.hole is not None):
            self._read(held)

    def _blocked(self, held: OwnedPartition, session: Session) -> bool:
        hole = held.frames.hole is not None and session is held.frames.session
        return hole or super()._blocked(held, session)

    def _take(self, held: OwnedPartition, session: Session, item: Batch | Outside) -> None:
        if session is not held.frames.session:
            super()._take(held, session, item)
        elif isinstance(item, Outside):
            # The frames topic begins above our position: the source has what is missing.
            self._read_frames(held, at=item.beginning)
        else:
            short_seconds = session.short_for(item, self.clock.seconds())
            if short_seconds < 0:
                self._messages(held, session, item)
            elif short_seconds > SHORT_SECONDS:
                self._read_frames(held, at=0)

    def _messages(self, held: OwnedPartition, session: Session, batch: Batch) -> None:
        """Take packed messages one by one, up to the first that has to wait."""
        for place, (offset, value) in enumerate(batch.records):
            if self._take_packed(held, offset, value) in {Taken.FULL, Taken.HOLE}:
                held.state.frames_at(offset)
                session.waiting.appendleft(batch.rest(place))
                return
        held.state.frames_at(batch.stop)
        held.frames.at_end = batch.stop >= batch.end

    def _ingest(self, held: OwnedPartition, batch: Batch) -> None:
        """Ingest what was read from the source; resume packed messages once a gap is filled."""
        frames, state, now = held.frames, held.state, self.clock.seconds()
        before, hole = state.next, frames.hole
        super()._ingest(held, batch)
        if state.next > before:
            self.metrics.packed(self.config.name, "reread", state.next - before)
        held.note_own(now)
        self._tell_lag(held)
        if hole is not None and state.next >= hole:
            self._filled(held)
        elif hole and batch.stop >= batch.end and now - frames.hole_since > SHORT_SECONDS:
            # The source ends inside the gap: the packed message claims messages that do not exist.
            offset = state.work.frames
            self._refuse(held.partition, offset, PackedError("offsets", "beyond the source"))
            self._read_frames(held, at=offset + 1)

    def _outside(self, held: OwnedPartition, outside: Outside) -> None:
        """Skip lost messages of the source only if they have not been packed either."""
        hole, following, beginning = held.frames.hole, held.state.next, outside.beginning
        if following < beginning and hole is None and not self._exhausted(held):
            held.frames.heard = self.clock.seconds()
            super().end(held)
        elif following < beginning and hole is not None and hole <= beginning:
            if following < hole:
                self._skip(held, hole)
            self._filled(held)
        else:
            super()._outside(held, outside)

    def _exhausted(self, held: OwnedPartition) -> bool:
        """Return whether the frames topic has nothing more to offer.

        True when all of it has been read, or when the broker has not known it for a minute: by then
        it has been deleted.
        """
        frames, now = held.frames, self.clock.seconds()
        known = self.frames.known(self._topic(held))
        frames.unknown = None if known else frames.unknown or now
        gone = frames.unknown is not None and now - frames.unknown > _GONE_SECONDS
        waits = frames.session is not None and frames.session.waiting
        return (frames.at_end and not waits) or gone

    # --- one packed message ---------------------------------------------------------------------

    def _take_packed(self, held: OwnedPartition, offset: int, value: bytes | None) -> Taken | None:
        """Take a packed message; return None for an unusable one."""
        frames, partition, state = held.frames, held.partition, held.state
        try:
            packed = decode_packed(value, partition=partition, topic_id=state.work.source)
        except PackedError as error:
            self._refuse(partition, offset, error)
            return None
        self.end_offsets[partition] = max(packed.end, self.end_offsets.get(partition, 0))
        before, now = state.next, self.clock.seconds()
        taken = take(state, packed, now_ms=self.clock.now_ms())
        held.note_own(now)
        if state.next > before:
            self.owner.took(held)
        if taken is Taken.FULL:
            return taken
        self.metrics.packed(self.config.name, taken.value, 1)
        frames.packed = packed.next
        self._tell_lag(held)
        if taken is Taken.HOLE:
            frames.hole, frames.hole_since = packed.after, now
            if held.session is None:
                self._read(held)
        elif taken is Taken.TAKEN or state.next - packed.next <= NEAR_RECORDS:
            frames.heard = now
            if now - frames.own <= self._silent_seconds:
                super().end(held)
        return taken

    def _refuse(self, partition: int, offset: int, error: PackedError) -> None:
        self.metrics.packed(self.config.name, error.reason, 1)
        log.debug(
            "topic %s[%d], offset %d: unusable packed message: %s",
            *(self.config.topics.frames, partition, offset, error),
        )

    def _filled(self, held: OwnedPartition) -> None:
        """Resume at the packed message before which something was missing."""
        held.frames.hole, held.frames.heard = None, self.clock.seconds()
        super().end(held)
        if held.frames.session is not None:
            held.frames.session.next()

    def _read_frames(self, held: OwnedPartition, *, at: int | None = None) -> None:
        """Read the frames topic in a new session, from an offset or the state's position on."""
        frames = held.frames
        if at is not None:
            held.state.frames_at(at)
        frames.hole, frames.at_end = None, False
        offset, call = held.state.work.frames, partial(self._call, held)
        frames.session = self.frames.begin(self._topic(held), offset, call)

    def _tell_lag(self, held: OwnedPartition) -> None:
        packed = held.frames.packed
        if packed is not None:
            lag = max(0, self.end_offsets.get(held.partition, packed) - packed)
            self.metrics.pack_lag(self.config.name, held.partition, lag)

    def _topic(self, held: OwnedPartition) -> TopicPartition:
        assert self.config.topics.frames is not None
        return TopicPartition(self.config.topics.frames, held.partition)


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
