"""Contiguity where packed messages are read: the source's offsets decide, and it fills every hole.

The frames topic is read without a group, from where the head says on. What a packed message repeats
is dropped. Where one begins above the next offset, or none has come for a while though the source
goes on (the packer is down, or far behind), the source itself is read, as any partition is that
does not flow. So nothing that happens to packers or to the frames topic can change a count. After a
silence the source is read for its end alone, and a packer is given the time to pack what comes.

Whether a partition is idle is decided by the source's end, as the source itself tells it: what a
packed message says of it was true when it was written, which may be long ago. So the source is
also read while packed messages bring nothing but reports of other specs.
"""

import logging
from typing import Final

from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.packing.packed import PackedError, decode_packed
from ldpstream.agents.reading.frames_reading import Due, Reading, decided_by
from ldpstream.agents.reading.guard import SHORT_SECONDS, Guard, StreamHooks
from ldpstream.agents.reading.held import Held
from ldpstream.agents.reading.source import SourceReader, Stretch
from ldpstream.agents.reading.taking import FramesHooks, Taken, take
from ldpstream.agents.state.arrival import Arrivals

SILENT_SECONDS: Final = 3.0
"""How long packed messages may stay away, though there is something to pack, before the source is
read itself."""
NEAR_RECORDS: Final = 200_000
"""A packer that repeats what is not further back than this will soon bring something new."""

log = logging.getLogger(__name__)


class FramesGuard(Guard):
    """Watches over the partitions of a collection whose input is packed."""

    def __init__(
        self,
        config: CollectionConfig,
        reader: SourceReader,
        frames: SourceReader,
        hooks: StreamHooks,
        frames_hooks: FramesHooks,
    ) -> None:
        super().__init__(config, reader, hooks)
        self._frames = frames
        self._tell = frames_hooks
        self._reading: dict[int, Reading] = {}
        # An idle time shorter than that has to be noticed in time.
        idle_ms = config.window.idle_ms
        self._silent_seconds = min(SILENT_SECONDS, (idle_ms or 1_000_000) / 2000)

    def begin(self, held: Held) -> None:
        """Begin with a loaded partition: read the frames topic from where its head says on."""
        now = self._hooks.seconds()
        self._reading[held.partition] = Reading(heard=now, own=now)
        self._read_frames(held)

    def rest(self, partition: int) -> None:
        """Stop reading a partition."""
        super().rest(partition)
        self._frames.rest(self._topic(partition))
        if self._reading.pop(partition, None) is not None:
            self._tell.lag(partition, None)

    def look(self, held: Held) -> None:
        """Read the source of a partition of which no packed message comes."""
        # Of the group's stream only the ownership is used; a rebalance lets it flow again.
        self._hooks.hold(held.partition)
        reading = self._reading[held.partition]
        if held.state.full:
            self._rest(held.partition)
            return
        if reading.full:
            reading.full = False
            reading.hear(self._hooks.seconds())
            self._read_frames(held)
        due = reading.due(self._hooks.seconds(), silent_seconds=self._silent_seconds)
        if due is Due.ALL:
            reading.probing = False
            self._watch(held)
        elif due is Due.END and not self._reader.watched(self._source(held.partition)):
            reading.probing = True
            self._watch(held)

    def end_offset(self, held: Held) -> int | None:
        """Return the source's end offset while the source itself is read, else None."""
        watched = self._reader.watched(self._source(held.partition))
        return super().end_offset(held) if watched else None

    def deliver(self, held: Held, records: object) -> None:
        """Leave what the stream still delivers of the source: it is read otherwise."""

    def notice(self, held: Held, offset: int) -> None:
        """Leave it, as `deliver` does."""

    def frames(self, held: Held, stretch: Stretch) -> None:
        """Take a stretch of the frames topic."""
        reading = self._reading[held.partition]
        if stretch.end < stretch.start:
            self._shorter(held, reading)
            return
        reading.short = False
        if reading.hole is not None or reading.full:
            return
        now_ms = self._hooks.now_ms()
        dates = stretch.dates.times_ms or [now_ms] * len(stretch.records)
        for (offset, value), packed_ms in zip(stretch.records, dates, strict=True):
            # What has been packed had arrived by then.
            arrived = Arrivals(now_ms, min(now_ms, packed_ms))
            if not self._take(held, reading, offset, value, arrived):
                return
        held.state.frames_at(stretch.stop)
        reading.at_end = stretch.stop >= stretch.end

    def frames_outside(self, held: Held, beginning: int) -> None:
        """Go on where the frames topic begins: the source has what is missing."""
        held.state.frames_at(beginning)
        self._read_frames(held)

    def stretch(self, held: Held, stretch: Stretch) -> None:
        """Take a stretch of the source, and go on with packed messages once a hole is filled."""
        reading = self._reading[held.partition]
        if reading.probing and any(offset >= held.state.next for offset, _ in stretch.records):
            self._leave(held, reading, stretch)
            return
        before, decided = held.state.next, decided_by(held.state)
        super().stretch(held, stretch)
        if held.state.next > before:
            self._tell.told("reread", held.state.next - before)
        self._note_own(held, decided)
        self._tell_lag(held.partition)
        source = self._source(held.partition)
        if stretch.stop < held.state.next and self._reader.watched(source):
            # Packed messages have overtaken it.
            self._reader.watch(source, held.state.next)

    def _leave(self, held: Held, reading: Reading, stretch: Stretch) -> None:
        """Leave what has come after a silence to the packer, for a while."""
        self.end_offsets[held.partition] = stretch.end
        reading.unpacked = self._hooks.seconds()
        self._rest(held.partition)
        self._tell_lag(held.partition)

    def outside(self, held: Held, asked: int, beginning: int) -> None:
        """Skip what the source has lost only where it has not been packed either."""
        reading, following = self._reading[held.partition], held.state.next
        now, known = self._hooks.seconds(), self._frames.known(self._topic(held.partition))
        if following < beginning and reading.hole is None and not reading.read(now, known=known):
            reading.hear(now)
        elif following < beginning and reading.hole is not None and reading.after <= beginning:
            if following < reading.after:
                self._skip(held, reading.after)
            self._filled(held, reading)
        else:
            super().outside(held, asked, beginning)

    # --- one packed message ---------------------------------------------------------------------

    def _take(
        self, held: Held, reading: Reading, offset: int, value: bytes | None, arrived: Arrivals
    ) -> bool:
        """Take a packed message; False where it has to be read again later."""
        partition, state = held.partition, held.state
        try:
            packed = decode_packed(value, partition=partition, topic_id=state.work.source)
        except PackedError as error:
            self._refuse(partition, offset, error)
            return True
        self.ends_at(partition, packed.end)
        decided = decided_by(held.state)
        taken = take(state, packed, now_ms=self._hooks.now_ms(), arrived=arrived)
        self._note_own(held, decided)
        if taken is Taken.FULL:
            reading.full = True
            state.frames_at(offset)
            self._frames.rest(self._topic(partition))
            return False
        self._tell.told(taken.value, 1)
        reading.packed = packed.next
        self._tell_lag(partition)
        if taken is Taken.HOLE:
            held.wanted = packed.after
            reading.hole, reading.after, reading.probing = offset, packed.after, False
            reading.since = self._hooks.seconds()
            state.frames_at(offset)
            self._frames.rest(self._topic(partition))
            self._watch(held)
            return False
        if taken is Taken.TAKEN or state.next - packed.next <= NEAR_RECORDS:
            now = self._hooks.seconds()
            reading.hear(now)
            if now - reading.own <= self._silent_seconds:
                self._rest(partition)
        return True

    def _note_own(self, held: Held, before: int) -> None:
        if decided_by(held.state) > before:
            self._reading[held.partition].own = self._hooks.seconds()

    def _refuse(self, partition: int, offset: int, error: PackedError) -> None:
        self._tell.told(error.reason, 1)
        log.debug(
            "topic %s[%d], offset %d: no packed message of ours: %s",
            *(self._config.topics.frames, partition, offset, error),
        )

    def _hand_over(self, held: Held, stretch: Stretch) -> None:
        """Go on with packed messages when the hole before one is filled, or cannot be."""
        reading = self._reading[held.partition]
        if reading.hole is None:
            return
        now = self._hooks.seconds()
        if held.state.next >= held.wanted:
            self._filled(held, reading)
        elif stretch.stop >= stretch.end and now - reading.since > SHORT_SECONDS:
            # The source ends before the hole does: nothing of the kind can have been packed.
            held.state.frames_at(reading.hole + 1)
            self._refuse(held.partition, reading.hole, PackedError("offsets", "beyond the source"))
            reading.hole = None
            self._read_frames(held)

    def _filled(self, held: Held, reading: Reading) -> None:
        """Go on with packed messages from the one before which something was missing."""
        reading.hear(self._hooks.seconds())
        reading.hole = None
        self._rest(held.partition)
        self._read_frames(held)

    def _shorter(self, held: Held, reading: Reading) -> None:
        """Begin anew with a frames topic that ends before our place in it; give it some time."""
        now = self._hooks.seconds()
        if not reading.short:
            reading.short, reading.since = True, now
        elif now - reading.since > SHORT_SECONDS:
            reading.short = False
            held.state.frames_at(0)
            self._read_frames(held)

    def _read_frames(self, held: Held) -> None:
        self._reading[held.partition].at_end = False
        self._frames.watch(self._topic(held.partition), held.state.frames)

    def _tell_lag(self, partition: int) -> None:
        reading = self._reading.get(partition)
        if reading is not None and reading.packed is not None:
            end = self.end_offsets.get(partition, reading.packed)
            self._tell.lag(partition, max(0, end - reading.packed))

    def _topic(self, partition: int) -> TopicPartition:
        assert self._config.topics.frames is not None
        return TopicPartition(self._config.topics.frames, partition)
