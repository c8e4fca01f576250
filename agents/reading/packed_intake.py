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
from collections.abc import Mapping
from typing import Final

from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.reading.contained import contained
from ldpstream.agents.reading.frames_reading import Due, Reading, decided_by
from ldpstream.agents.reading.intake import SHORT_SECONDS, Channel, Intake
from ldpstream.agents.reading.owned_partition import OwnedPartition, Owner
from ldpstream.agents.reading.source import Batch, Outside, SourceReader
from ldpstream.agents.reading.taking import Taken, take
from ldpstream.agents.served.clock import Clock
from ldpstream.agents.state.packed import PackedError, decode_packed

SILENT_SECONDS: Final = 3.0
"""How long packed messages may be absent, although there is something to pack, before the source
itself is read."""
NEAR_RECORDS: Final = 200_000
"""A packer that repeats messages no further back than this will soon bring something new."""

log = logging.getLogger(__name__)


class PackedIntake(Intake):
    """Takes in the partitions of a collection with packed input."""

    def __init__(
        self,
        config: CollectionConfig,
        held: Mapping[int, OwnedPartition],
        reader: SourceReader,
        frames: SourceReader,
        channel: Channel,
        owner: Owner,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        super().__init__(config, held, reader, channel, owner, clock)
        self._frames = frames
        self._metrics = metrics
        self._reading: dict[int, Reading] = {}
        # An idle time shorter than the silence limit must be detected in time.
        idle_ms = config.window.idle_ms
        self._silent_seconds = min(SILENT_SECONDS, (idle_ms or 1_000_000) / 2000)

    def begin(self, held: OwnedPartition) -> None:
        """Start with a loaded partition: read the frames topic from the position in its head."""
        now = self._clock.seconds()
        self._reading[held.partition] = Reading(heard=now, own=now)
        self._read_frames(held)

    def end(self, partition: int) -> None:
        """Stop reading a partition."""
        super().end(partition)
        self._frames.end(self._topic(partition))
        if self._reading.pop(partition, None) is not None:
            self._metrics.pack_lag(self._config.name, partition, None)

    def look(self, held: OwnedPartition) -> None:
        """Do what is due; read the source of a partition that gets no packed messages."""
        self._take_waiting(held)
        reading, now = self._reading[held.partition], self._clock.seconds()
        given = self._frames.given(self._topic(held.partition))
        if self._lost(held, given + self._reader.given(self._source(held.partition))):
            self._end_source(held)
            if reading.hole is None:
                self._read_frames(held)
        if held.waiting:
            reading.hear(now)
        due = reading.due(now, silent_seconds=self._silent_seconds)
        if due is Due.ALL:
            reading.probing = False
        elif due is Due.END and not self._reads(held):
            reading.probing = True
        if due is not Due.NOTHING and not self._reads(held):
            self._read(held)

    def take_frames(self, partition: int, item: Batch | Outside) -> None:
        """Take what was read of the frames topic; items of ended sessions are dropped."""
        with contained(self._owner.fail):
            held = self._held.get(partition)
            if held is not None:
                self._in_turn(held, self._take_frames, item)

    def _take_frames(self, held: OwnedPartition, item: Batch | Outside) -> None:
        reading = self._reading[held.partition]
        if item.session != reading.session:
            return
        if isinstance(item, Outside):
            # The frames topic begins above our position: the source has what is missing.
            held.state.frames_at(item.beginning)
            self._read_frames(held)
        elif item.end < item.start:
            self._taken_frames(held)
            self._shorter(held, reading)
        else:
            self._messages(held, reading, item)

    def _messages(self, held: OwnedPartition, reading: Reading, batch: Batch) -> None:
        """Take packed messages one by one; those that do not fit wait."""
        now_ms = self._clock.now_ms()
        dates = batch.dates.times_ms or [now_ms] * len(batch.records)
        for place, ((offset, value), packed_ms) in enumerate(
            zip(batch.records, dates, strict=True)
        ):
            taken = self._take_packed(held, reading, offset, value, packed_ms)
            if taken is Taken.FULL:
                held.waiting.appendleft((self._take_frames, batch.rest(place)))
                return
            if taken is Taken.HOLE:
                return
        reading.short = False
        held.state.frames_at(batch.stop)
        reading.at_end = batch.stop >= batch.end
        self._taken_frames(held)

    def _taken_frames(self, held: OwnedPartition) -> None:
        self._frames.taken(self._topic(held.partition), self._reading[held.partition].session)

    def _ingest(self, held: OwnedPartition, batch: Batch) -> None:
        """Take what was read of the source; resume packed messages once a gap is filled."""
        reading, state = self._reading[held.partition], held.state
        before, decided = state.next, decided_by(state)
        if reading.probing and any(offset >= before for offset, _ in batch.records):
            # After a silence the messages are left to the packer for a while.
            state.read_to(before, end=batch.end, asked_ms=None)
            reading.unpacked = self._clock.seconds()
            self._end_source(held)
            self._tell_lag(held.partition)
            return
        super()._ingest(held, batch)
        if state.next > before:
            self._metrics.packed(self._config.name, "reread", state.next - before)
        self._note_own(held, decided)
        self._tell_lag(held.partition)
        if reading.hole is not None:
            self._fill(held, reading, batch)

    def _outside(self, held: OwnedPartition, outside: Outside) -> None:
        """Skip lost messages of the source only if they have not been packed either."""
        reading, following = self._reading[held.partition], held.state.next
        beginning = outside.beginning
        now, known = self._clock.seconds(), self._frames.known(self._topic(held.partition))
        if following < beginning and reading.hole is None and not reading.read(now, known=known):
            reading.hear(now)
            self._end_source(held)
        elif following < beginning and reading.hole is not None and reading.after <= beginning:
            if following < reading.after:
                self._skip(held, reading.after)
            self._filled(held, reading)
        else:
            super()._outside(held, outside)

    # --- one packed message ---------------------------------------------------------------------

    def _take_packed(
        self,
        held: OwnedPartition,
        reading: Reading,
        offset: int,
        value: bytes | None,
        packed_ms: int,
    ) -> Taken | None:
        """Take a packed message; return None for an unusable one."""
        partition, state = held.partition, held.state
        try:
            packed = decode_packed(value, partition=partition, topic_id=state.work.source)
        except PackedError as error:
            self._refuse(partition, offset, error)
            return None
        self.end_offsets[partition] = max(packed.end, self.end_offsets.get(partition, 0))
        decided, before = decided_by(state), state.next
        taken = take(state, packed, now_ms=self._clock.now_ms(), packed_ms=packed_ms)
        self._note_own(held, decided)
        if state.next > before:
            self._owner.took(held)
        if taken is Taken.FULL:
            state.frames_at(offset)
            return taken
        self._metrics.packed(self._config.name, taken.value, 1)
        reading.packed = packed.next
        self._tell_lag(partition)
        if taken is Taken.HOLE:
            reading.hole, reading.after, reading.probing = offset, packed.after, False
            reading.since = self._clock.seconds()
            state.frames_at(offset)
            self._frames.end(self._topic(partition))
            reading.session = 0
            if not self._reads(held):
                self._read(held)
        elif taken is Taken.TAKEN or state.next - packed.next <= NEAR_RECORDS:
            now = self._clock.seconds()
            reading.hear(now)
            if now - reading.own <= self._silent_seconds:
                self._end_source(held)
        return taken

    def _note_own(self, held: OwnedPartition, before: int) -> None:
        if decided_by(held.state) > before:
            self._reading[held.partition].own = self._clock.seconds()

    def _refuse(self, partition: int, offset: int, error: PackedError) -> None:
        self._metrics.packed(self._config.name, error.reason, 1)
        log.debug(
            "topic %s[%d], offset %d: unusable packed message: %s",
            *(self._config.topics.frames, partition, offset, error),
        )

    def _fill(self, held: OwnedPartition, reading: Reading, batch: Batch) -> None:
        """Resume packed messages when the gap before one is filled, or cannot be filled."""
        assert reading.hole is not None
        if held.state.next >= reading.after:
            self._filled(held, reading)
        elif batch.stop >= batch.end and self._clock.seconds() - reading.since > SHORT_SECONDS:
            # The source ends inside the gap: the packed message claims messages that do not exist.
            held.state.frames_at(reading.hole + 1)
            self._refuse(held.partition, reading.hole, PackedError("offsets", "beyond the source"))
            reading.hole = None
            self._read_frames(held)

    def _filled(self, held: OwnedPartition, reading: Reading) -> None:
        """Resume at the packed message before which something was missing."""
        reading.hear(self._clock.seconds())
        reading.hole = None
        self._end_source(held)
        self._read_frames(held)

    def _shorter(self, held: OwnedPartition, reading: Reading) -> None:
        """Start over with a frames topic that ends before our position, after some time."""
        now = self._clock.seconds()
        if not reading.short:
            reading.short, reading.since = True, now
        elif now - reading.since > SHORT_SECONDS:
            reading.short = False
            held.state.frames_at(0)
            self._read_frames(held)

    def _read_frames(self, held: OwnedPartition) -> None:
        reading = self._reading[held.partition]
        reading.at_end = False
        reading.session = self._frames.begin(self._topic(held.partition), held.state.work.frames)

    def _reads(self, held: OwnedPartition) -> bool:
        return self._reader.reads(self._source(held.partition))

    def _end_source(self, held: OwnedPartition) -> None:
        held.state.interrupted()
        held.session = 0
        self._reader.end(self._source(held.partition))

    def _tell_lag(self, partition: int) -> None:
        reading = self._reading.get(partition)
        if reading is not None and reading.packed is not None:
            end = self.end_offsets.get(partition, reading.packed)
            self._metrics.pack_lag(self._config.name, partition, max(0, end - reading.packed))

    def _topic(self, partition: int) -> TopicPartition:
        assert self._config.topics.frames is not None
        return TopicPartition(self._config.topics.frames, partition)
