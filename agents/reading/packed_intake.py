"""Contiguity with packed messages: the source's offsets decide, and the source fills every gap.

The frames topic is read without a group, from the position in the head on. What a packed message
repeats is dropped. If one begins above the next offset, or none has come for a while although the
source continues (the packer is down, or far behind), the source itself is read like any
partition's. So nothing that happens to packers or to the frames topic can change a count. After a
silence only the end of the source is checked at first, to give a packer time to pack what arrives.

Only the source itself can show that a partition is idle: the end in a packed message was true when
it was written, which may be long ago. So the source is also read while packed messages bring only
reports of other specs.
"""

import logging
from functools import partial
from typing import Final

from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.reading.intake import SHORT_SECONDS, Channel, Intake
from ldpstream.agents.reading.owned_partition import Hole, OwnedPartition, Owner
from ldpstream.agents.reading.source import Batch, Outside, Session, SourceReader
from ldpstream.agents.reading.taking import Taken, take
from ldpstream.agents.served.clock import Clock
from ldpstream.agents.state.packed import PackedError, decode_packed

SILENT_SECONDS: Final = 3.0
"""How long packed messages may be absent, although there is something to pack, before the source
itself is read."""
NEAR_RECORDS: Final = 200_000
"""A packer that repeats messages no further back than this will soon bring something new."""
_GONE_SECONDS: Final = 60.0

log = logging.getLogger(__name__)


class PackedIntake(Intake):
    """Takes in the partitions of a collection with packed input."""

    def __init__(
        self,
        config: CollectionConfig,
        reader: SourceReader,
        frames: SourceReader,
        channel: Channel,
        owner: Owner,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        super().__init__(config, reader, channel, owner, clock)
        self._frames = frames
        self._metrics = metrics
        # An idle time shorter than the silence limit must be detected in time.
        idle_ms = config.window.idle_ms
        self._silent_seconds = min(SILENT_SECONDS, (idle_ms or 1_000_000) / 2000)

    def begin(self, held: OwnedPartition) -> None:
        """Start with a loaded partition: read the frames topic from the position in its head."""
        frames, now = held.frames, self._clock.seconds()
        frames.heard = frames.own = now
        frames.decided = held.decided
        self._read_frames(held)

    def end(self, held: OwnedPartition) -> None:
        """Stop reading a partition, which has been dropped."""
        super().end(held)
        self._end_frames(held)
        self._metrics.pack_lag(self._config.name, held.partition, None)

    def look(self, held: OwnedPartition) -> None:
        """Do what is due; read the source of a partition that gets no packed messages.

        After a third of the silence limit without packed messages the source's end is checked; if
        it has new messages, the packer has the other two thirds to pack them. So silence alone does
        not count against a packer, and a packer that is down is still noticed in time.
        """
        self._take_waiting(held)
        if held.leaving:
            return
        frames, now, silent_seconds = held.frames, self._clock.seconds(), self._silent_seconds
        if self._lost(held, held.session, frames.session):
            super().end(held)
            if frames.hole is None:
                self._read_frames(held)
        if held.waiting:
            frames.hear(now)
        foreign = now - frames.own > silent_seconds
        quiet = now - frames.heard > silent_seconds / 3
        unpacked = frames.unpacked
        overdue = unpacked is not None and now - unpacked > silent_seconds * 2 / 3
        needed = frames.hole is not None or (foreign and not quiet) or overdue
        if needed:
            frames.probing = False
        if held.session is None and (needed or (quiet and unpacked is None)):
            frames.probing = not needed
            self._read(held)

    def _take(self, held: OwnedPartition, item: Batch | Outside) -> None:
        session = held.frames.session
        if session is None or item.session is not session:
            super()._take(held, item)
            return
        if isinstance(item, Outside):
            # The frames topic begins above our position: the source has what is missing.
            held.state.frames_at(item.beginning)
            self._read_frames(held)
            return
        short_seconds = session.short_for(item, self._clock.seconds())
        if short_seconds < 0:
            self._messages(held, session, item)
        elif short_seconds <= SHORT_SECONDS:
            session.taken()
        else:
            held.state.frames_at(0)
            self._read_frames(held)

    def _messages(self, held: OwnedPartition, session: Session, batch: Batch) -> None:
        """Take packed messages one by one; those that do not fit wait."""
        for place, (offset, value) in enumerate(batch.records):
            taken = self._take_packed(held, offset, value)
            if taken is Taken.FULL:
                held.waiting.appendleft(batch.rest(place))
            if taken in {Taken.FULL, Taken.HOLE}:
                return
        held.state.frames_at(batch.stop)
        held.frames.at_end = batch.stop >= batch.end
        session.taken()

    def _ingest(self, held: OwnedPartition, batch: Batch) -> None:
        """Take what was read of the source; resume packed messages once a gap is filled."""
        frames, state, now = held.frames, held.state, self._clock.seconds()
        before, hole = state.next, frames.hole
        if frames.probing and any(offset >= before for offset, _ in batch.records):
            # After a silence the messages are left to the packer for a while.
            state.read_to(before, end=batch.end, asked_ms=None)
            frames.unpacked = now
            super().end(held)
            self._tell_lag(held)
            return
        super()._ingest(held, batch)
        if state.next > before:
            self._metrics.packed(self._config.name, "reread", state.next - before)
        frames.note_own(now, held.decided)
        self._tell_lag(held)
        if hole is not None and state.next >= hole.after:
            self._filled(held)
        elif hole and batch.stop >= batch.end and now - hole.since > SHORT_SECONDS:
            # The source ends inside the gap: the packed message claims messages that do not exist.
            state.frames_at(hole.offset + 1)
            self._refuse(held.partition, hole.offset, PackedError("offsets", "beyond the source"))
            self._read_frames(held)

    def _outside(self, held: OwnedPartition, outside: Outside) -> None:
        """Skip lost messages of the source only if they have not been packed either."""
        hole, following, beginning = held.frames.hole, held.state.next, outside.beginning
        if following < beginning and hole is None and not self._exhausted(held):
            held.frames.hear(self._clock.seconds())
            super().end(held)
        elif following < beginning and hole is not None and hole.after <= beginning:
            if following < hole.after:
                self._skip(held, hole.after)
            self._filled(held)
        else:
            super()._outside(held, outside)

    def _exhausted(self, held: OwnedPartition) -> bool:
        """Return whether the frames topic has nothing more to offer.

        True when all of it has been read, or when the broker has not known it for a minute: by then
        it has been deleted.
        """
        frames, now = held.frames, self._clock.seconds()
        if self._frames.known(self._topic(held)):
            frames.unknown = None
        elif frames.unknown is None:
            frames.unknown = now
        gone = frames.unknown is not None and now - frames.unknown > _GONE_SECONDS
        return frames.at_end or gone

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
        before, now = state.next, self._clock.seconds()
        taken = take(state, packed, now_ms=self._clock.now_ms())
        frames.note_own(now, held.decided)
        if state.next > before:
            self._owner.took(held)
        if taken in {Taken.FULL, Taken.HOLE}:
            state.frames_at(offset)
        if taken is Taken.FULL:
            return taken
        self._metrics.packed(self._config.name, taken.value, 1)
        frames.packed = packed.next
        self._tell_lag(held)
        if taken is Taken.HOLE:
            self._end_frames(held)
            frames.hole, frames.probing = Hole(offset, packed.after, now), False
            if held.session is None:
                self._read(held)
        elif taken is Taken.TAKEN or state.next - packed.next <= NEAR_RECORDS:
            frames.hear(now)
            if now - frames.own <= self._silent_seconds:
                super().end(held)
        return taken

    def _refuse(self, partition: int, offset: int, error: PackedError) -> None:
        self._metrics.packed(self._config.name, error.reason, 1)
        log.debug(
            "topic %s[%d], offset %d: unusable packed message: %s",
            *(self._config.topics.frames, partition, offset, error),
        )

    def _filled(self, held: OwnedPartition) -> None:
        """Resume at the packed message before which something was missing."""
        held.frames.hear(self._clock.seconds())
        super().end(held)
        self._read_frames(held)

    def _read_frames(self, held: OwnedPartition) -> None:
        frames = held.frames
        frames.hole, frames.at_end = None, False
        deliver = partial(self._offer, held)
        frames.session = self._frames.begin(self._topic(held), held.state.work.frames, deliver)

    def _end_frames(self, held: OwnedPartition) -> None:
        if held.frames.session is not None:
            held.frames.session.end()
            held.frames.session = None

    def _tell_lag(self, held: OwnedPartition) -> None:
        packed = held.frames.packed
        if packed is not None:
            lag = max(0, self.end_offsets.get(held.partition, packed) - packed)
            self._metrics.pack_lag(self._config.name, held.partition, lag)

    def _topic(self, held: OwnedPartition) -> TopicPartition:
        assert self._config.topics.frames is not None
        return TopicPartition(self._config.topics.frames, held.partition)
