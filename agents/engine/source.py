"""Read partitions without a group, each contiguously from an offset on, in *sessions*.

An offset that such a consumer skips between two of its positions does not exist, so what it reads
is complete without further proof. It waits in its session, in slices, until it is counted; with two
of them a partition pauses while all others continue.

aiokafka does not say when a fetch was sent, nor where the log ended when it was answered
(`Answers`). But a client sends the next fetch only after it has processed an answer. So the fetch
after an answer that is first seen now was sent later than the last check that did not see it.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from ldpstream.agents.broker.health import log_transient_error
from ldpstream.agents.engine.clock import PARTITIONS, scaled_interval
from ldpstream.agents.state.batch import UNDATED, Dates, Record

_APPENDED: Final = 1
"""Timestamp type of records whose timestamp the broker has set (LogAppendTime)."""
_POLL_MS: Final = 200
_RECORDS_A_STEP: Final = 2_000
_RECORDS_A_PARTITION: Final = 20
_BACKLOG_RECORDS: Final = 500
"""With this many records of one partition in a fetch, the partition is behind."""
_SLICES: Final = 2
_SLICE_RECORDS: Final = 1_000
_SLICE_BYTES: Final = 1 << 18
_RETRY_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 0.1
_MOST_PAUSE_SECONDS: Final = 1.0
_ROOM_SECONDS: Final = 0.02


@dataclass
class Answers:
    """What checks of a partition after every poll have shown; times are on one monotonic clock."""

    answered: int | None
    """The client's timestamp of the last answer, used only as an identity."""
    polled_ms: int
    """When this was last checked: by then there was no later answer than `answered`."""
    position: int
    """Everything below, from where reading began, has been read."""
    asked_ms: int | None = None
    """A time before the fetch of that answer was sent."""
    next_ms: int | None = None
    """A time before the next fetch is sent."""
    ended: tuple[int, int] | None = None
    """The last end that was reached, and a time at which the log still ended there."""
    recent: Sequence[int] = ()
    """The timestamps of the last records read, as many as `Dates` uses."""

    def record_answer(self, answered: int | None, now_ms: int) -> bool:
        """Store the client's timestamp of its last answer; return whether the answer is new."""
        new = answered != self.answered
        if new:
            self.answered, self.asked_ms = answered, self.next_ms
            self.next_ms = self.polled_ms
        self.polled_ms = now_ms
        return new

    def read(self, stop: int, *, end: int, records: Sequence[Any] = ()) -> Dates:
        """Advance to `stop`: an answer covered `[position, stop)`, and the log then ended at `end`.

        Returns the dates of the `records` there, as a consumer or a batch returns them: their
        classes have no type in common.
        """
        start, self.position = self.position, stop
        since_ms = None if self.ended is None or self.ended[0] > start else self.ended[1]
        if stop == end and self.asked_ms is not None:
            self.ended = stop, self.asked_ms
        if not records:
            return UNDATED
        times_ms = [record.timestamp for record in records]
        appended = all(record.timestamp_type == _APPENDED for record in records)
        dates = Dates(times_ms, appended, self.recent, since_ms)
        self.recent = dates.up_to(len(times_ms))
        return dates


def steady_ms() -> int:
    """Return the monotonic time in ms, which setting the clock does not affect."""
    return time.monotonic_ns() // 1_000_000


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The complete contents of `[start, stop)`: offsets not in `records` do not exist.

    - `partition` is the number of the source's partition.
    - `end` is where the log ended at that time; a batch that stops there is an end-of-log probe,
      with or without records.
    - `asked_ms`, on the monotonic clock, is no later than the time at which the fetch was sent;
      None if that may have been before the session.
    """

    partition: int
    start: int
    stop: int
    end: int
    asked_ms: int | None = None
    records: Sequence[Record] = ()
    dates: Dates = UNDATED

    def slices(self) -> "Iterator[Batch]":
        """Yield slices, at least one, each of which takes a few milliseconds to ingest."""
        if not self.records:
            yield self
            return
        first = size = 0
        for place, (_, value) in enumerate(self.records):
            added = len(value or b"")
            full = place - first == _SLICE_RECORDS or size + added > _SLICE_BYTES
            if place > first and full:
                yield self._part(first, place)
                first, size = place, 0
            size += added
        yield self._part(first, len(self.records))

    def rest(self, place: int) -> "Batch":
        """Return the batch without the records before this one."""
        return replace(self._part(place, len(self.records)), start=self.records[place][0])

    def _part(self, first: int, last: int) -> "Batch":
        return replace(
            self,
            start=self.records[first][0] if first else self.start,
            stop=self.records[last][0] if last < len(self.records) else self.stop,
            records=self.records[first:last],
            dates=self.dates.part(first, last),
        )


@dataclass(frozen=True)
class Outside:
    """`position` is outside the log, whose first offset is `beginning`.

    It ends its session.
    """

    position: int
    beginning: int


@dataclass(eq=False)
class Session:
    """A read session of one partition, of which there is one at a time.

    `call` asks for a `take`, as by sending the first batch to what counts it. One call is under way
    at a time; if it is lost, call again: what waits is safe here until it is taken.
    """

    reader: "SourceReader"
    partition: TopicPartition
    call: Callable[["Session"], None]
    answers: Answers
    waiting: deque[Batch | Outside] = field(default_factory=deque)
    called: bool = False
    """Whether a call is under way."""
    short_since: float | None = None
    """The time since which its log ends before its position."""

    @property
    def full(self) -> bool:
        """Whether reading must wait until something is taken."""
        return len(self.waiting) >= _SLICES

    def give(self, *items: Batch | Outside) -> None:
        """Queue items, and call for the first of them."""
        self.waiting.extend(items)
        self.next()

    def next(self, *, resend: bool = False) -> None:
        """Call if something waits and no call is under way, or if that one is `resend`."""
        if self.waiting and (resend or not self.called):
            self.called = True
            self.call(self)

    def take(self) -> Batch | Outside:
        """Return the item that has waited longest."""
        self.reader.room.set()
        return self.waiting.popleft()

    def short_for(self, batch: Batch, now: float) -> float:
        """Return how long its log has ended before its position; negative if it does not.

        In seconds, like `now`. This is tolerated for a while, because the log's leader may be new.
        """
        if batch.end >= batch.start:
            self.short_since = None
            return -1.0
        self.short_since = now if self.short_since is None else self.short_since
        return now - self.short_since

    def end(self) -> None:
        """Stop reading the partition, if this is still its session."""
        self.waiting.clear()
        self.reader.end(self)


class SourceReader:
    """Reads partitions on demand, with one consumer that the caller starts and stops.

    With many partitions fetches are less frequent: each costs something for every partition, even
    if it returns nothing.
    """

    def __init__(
        self, partitions: Iterable[TopicPartition], *, now_ms: Callable[[], int] = steady_ms
    ) -> None:
        self.room = asyncio.Event()
        self._consumer: AIOKafkaConsumer
        self._partitions = list(partitions)
        self._now_ms = now_ms
        self._sessions: dict[TopicPartition, Session] = {}

    def start(self, consumer: AIOKafkaConsumer) -> None:
        """Assign all partitions to a started consumer; none is read yet."""
        self._consumer = consumer
        self._consumer.assign(self._partitions)
        for partition in self._partitions:
            self._consumer.seek(partition, 0)
            self._consumer.pause(partition)

    def begin(
        self, partition: TopicPartition, offset: int, call: Callable[[Session], None]
    ) -> Session:
        """Read a partition from an offset on, and no longer in any other session of it."""
        if partition in self._sessions:
            self._sessions[partition].end()
        self._consumer.seek(partition, offset)
        answers = Answers(self._consumer.last_poll_timestamp(partition), self._now_ms(), offset)
        session = Session(self, partition, call, answers)
        self._sessions[partition] = session
        self._consumer.resume(partition)
        self.room.set()
        return session

    def end(self, session: Session) -> None:
        """End a session, if it has not ended."""
        if self._sessions.get(session.partition) is session:
            del self._sessions[session.partition]
            self._consumer.pause(session.partition)

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            began, behind = time.monotonic(), False
            try:
                behind = await self.poll()
            except KafkaError as error:
                log_transient_error(error)
                await asyncio.sleep(_RETRY_SECONDS)
            read = len(self._sessions)
            if read > PARTITIONS and not behind:
                pause = scaled_interval(_PAUSE_SECONDS, read, most=_MOST_PAUSE_SECONDS)
                await asyncio.sleep(max(0.0, began + pause - time.monotonic()))

    async def poll(self) -> bool:
        """Fetch once and deliver the result; return whether a partition is behind."""
        waiting = {partition for partition, s in self._sessions.items() if s.full}
        try:
            fetched = await self._getmany(waiting)
        except OffsetOutOfRangeError as error:
            for partition, offset in error.args[0].items():
                # A fetch in flight while the partition was given away proves nothing.
                session = self._sessions.get(partition)
                if session is not None and session.answers.position == offset:
                    await self._outside(session)
            return False
        # No suspension between a fetch and reading its positions: they belong together.
        now_ms = self._now_ms()
        for partition, session in list(self._sessions.items()):
            if partition in waiting or self._sessions.get(partition) is not session:
                continue
            answered_ms = self._consumer.last_poll_timestamp(partition)
            new = session.answers.record_answer(answered_ms, now_ms)
            if new or partition in fetched:
                batch = await self._batch(session, fetched.get(partition, ()))
                # A probe that has to wait is outdated when it is taken.
                if batch is not None and (batch.stop > batch.start or not session.waiting):
                    session.give(*batch.slices())
        if waiting and not fetched:
            await self._wait_for_room()
        else:
            await asyncio.sleep(0)
        return max(map(len, fetched.values()), default=0) >= _BACKLOG_RECORDS

    async def _getmany(
        self, waiting: set[TopicPartition]
    ) -> dict[TopicPartition, list[ConsumerRecord[bytes, bytes]]]:
        most = max(_RECORDS_A_STEP, _RECORDS_A_PARTITION * len(self._sessions))
        if not waiting:
            return await self._consumer.getmany(timeout_ms=_POLL_MS, max_records=most)
        # Naming the wanted partitions costs time for each one with data, so only do it if needed.
        readable = self._sessions.keys() - waiting
        if not readable:
            return {}
        return await self._consumer.getmany(*readable, timeout_ms=0, max_records=most)

    async def _wait_for_room(self) -> None:
        self.room.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_ROOM_SECONDS):
                await self.room.wait()

    async def _batch(
        self, session: Session, records: Sequence[ConsumerRecord[bytes, bytes]]
    ) -> Batch | None:
        """Return what an answer brought for a partition; None if its end is not known."""
        partition = session.partition
        end = self._consumer.highwater(partition)
        if end is None:
            return None
        start, stop = session.answers.position, await self._consumer.position(partition)
        dates = session.answers.read(stop, end=end, records=records)
        return Batch(
            partition=partition.partition,
            start=start,
            stop=stop,
            end=end,
            asked_ms=session.answers.asked_ms,
            records=[(record.offset, record.value) for record in records],
            dates=dates,
        )

    async def _outside(self, session: Session) -> None:
        partition, position = session.partition, session.answers.position
        beginnings = await self._consumer.beginning_offsets([partition])
        # If another session has started meanwhile, it gets its own error.
        if self._sessions.get(partition) is session and session.answers.position == position:
            self._consumer.pause(partition)
            session.give(Outside(position, beginnings[partition]))
