"""Reading source partitions without a group: what proves that offsets are missing, or only late.

The stream that Faust delivers may leave offsets out (after a rebalance), deliver them twice, or
stall; a log may also have true holes (transaction markers, compaction). A consumer without a group
that reads from an offset on tells which is which: whatever it does not find between two of its
positions does not exist. A partition is *watched* from the owner's next offset while there is doubt
or silence, and rests while the stream flows.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from ldpstream.agents.reading.pace import PARTITIONS, paced
from ldpstream.agents.state.arrival import UNDATED, Dates

_POLL_MS: Final = 200
_RECORDS_A_STEP: Final = 2_000
_RECORDS_A_PARTITION: Final = 20
_BACKLOG_RECORDS: Final = 500
"""So many at once of one partition: it is behind."""
_SLICE_RECORDS: Final = 1_000
_SLICE_BYTES: Final = 1 << 18
_RETRY_SECONDS: Final = 0.5
_APPENDED: Final = 1
"""The type of a timestamp that the broker has set (LogAppendTime)."""
_PAUSE_SECONDS: Final = 0.1
_MOST_PAUSE_SECONDS: Final = 1.0

Record = tuple[int, bytes | None]


@dataclass(frozen=True)
class Stretch:
    """A stretch `[start, stop)` of a partition, in full: offsets not in `records` do not exist."""

    start: int
    stop: int
    end: int
    """The high watermark of the last fetch."""
    fetched_ms: int
    """When that fetch was answered, on this machine's clock, epoch milliseconds."""
    records: Sequence[Record]
    dates: Dates = UNDATED

    def slices(self) -> "Iterator[Stretch]":
        """Yield the stretch in slices that are taken in within some milliseconds, at least one."""
        start, records, dates = self.start, self.records, self.dates
        for end in _cuts(records):
            stop, dated = records[end][0], dates.part(0, end)
            yield Stretch(start, stop, self.end, self.fetched_ms, records[:end], dated)
            start, records, dates = stop, records[end:], dates.part(end, len(records))
        yield Stretch(start, self.stop, self.end, self.fetched_ms, records, dates)


def sliced(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Yield records in slices that are taken in within some milliseconds, none of them empty."""
    for end in _cuts(records):
        yield records[:end]
        records = records[end:]
    if records:
        yield records


def _cuts(records: Sequence[Record]) -> Iterator[int]:
    """Yield the lengths of all slices but the last one."""
    length = size = 0
    for _, value in records:
        added = len(value or b"")
        if length and (length == _SLICE_RECORDS or size + added > _SLICE_BYTES):
            yield length
            length = size = 0
        length, size = length + 1, size + added


class SourceReader:
    """Watches partitions on demand, with one consumer that the caller starts and stops.

    `on_stretch` is called after every fetch for every watched partition, with or without records,
    and slice by slice, so that other tasks have their turn. Partitions have theirs too: none is
    read twice before each of the others that have something was read once. Many partitions are
    asked about in larger intervals: an answer costs something for each, whatever it brings.
    `on_outside(partition, asked, beginning)` is called when the position `asked` is not in the log,
    whose first offset is `beginning`; the partition then rests. `on_error` is called for everything
    else that the broker refuses.
    """

    def __init__(
        self,
        partitions: Iterable[TopicPartition],
        *,
        on_stretch: Callable[[TopicPartition, Stretch], None],
        on_outside: Callable[[TopicPartition, int, int], None],
        on_error: Callable[[KafkaError], None],
    ) -> None:
        self._consumer: AIOKafkaConsumer
        self._partitions = list(partitions)
        self._on_stretch = on_stretch
        self._on_outside = on_outside
        self._on_error = on_error
        self._positions: dict[TopicPartition, int] = {}
        # When the last fetch before a partition was watched, or the last one that brought nothing,
        # was answered: what it said is old.
        self._before: dict[TopicPartition, int | None] = {}
        # How often a partition was watched anew or put to rest: what was read before is stale.
        self._turns: Counter[TopicPartition] = Counter()

    def start(self, consumer: AIOKafkaConsumer) -> None:
        """Assign all partitions to a started consumer; all of them rest."""
        self._consumer = consumer
        self._consumer.assign(self._partitions)
        for partition in self._partitions:
            self._consumer.seek(partition, 0)
            self._consumer.pause(partition)

    def known(self, partition: TopicPartition) -> bool:
        """Return whether the broker had a partition when it was last asked for its topics."""
        return partition.partition in (self._consumer.partitions_for_topic(partition.topic) or ())

    def watched(self, partition: TopicPartition) -> bool:
        """Return whether a partition is being watched."""
        return partition in self._positions

    def watch(self, partition: TopicPartition, offset: int) -> None:
        """Read a partition from an offset on, wherever it was read before."""
        self._consumer.seek(partition, offset)
        self._positions[partition] = offset
        self._turns[partition] += 1
        self._before[partition] = self._consumer.last_poll_timestamp(partition)
        self._consumer.resume(partition)

    def rest(self, partition: TopicPartition) -> None:
        """Stop reading a partition."""
        if self._positions.pop(partition, None) is not None:
            self._turns[partition] += 1
            self._consumer.pause(partition)

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            began, behind = time.monotonic(), False
            try:
                behind = await self._round()
            except OffsetOutOfRangeError as error:
                for partition, offset in error.args[0].items():
                    # A fetch that was under way when the partition went elsewhere tells nothing.
                    if await self._consumer.position(partition) == offset:
                        await self._outside(partition, offset)
            except KafkaError as error:
                self._on_error(error)
                await asyncio.sleep(_RETRY_SECONDS)
            watched = len(self._positions)
            if watched > PARTITIONS and not behind:
                pause = paced(_PAUSE_SECONDS, watched, most=_MOST_PAUSE_SECONDS)
                await asyncio.sleep(max(0.0, began + pause - time.monotonic()))

    async def _round(self) -> bool:
        """Read every watched partition that has something once, and report on all of them.

        Returns whether one of them is behind.
        """
        most, behind = max(_RECORDS_A_STEP, _RECORDS_A_PARTITION * len(self._positions)), False
        due: set[TopicPartition] | None = None
        while True:
            # Naming those wanted costs their number for each that has something: only where needed.
            found = await self._consumer.getmany(
                *due or (),
                timeout_ms=_POLL_MS if due is None else 0,
                max_records=most,
            )
            # No suspension between a fetch and its positions: they belong together.
            stretches = [
                (partition, self._turns[partition], stretch)
                for partition in (list(self._positions) if due is None else found)
                if (stretch := await self._stretch(partition, found.get(partition, ())))
            ]
            for partition, turn, stretch in stretches:
                await self._report(partition, turn, stretch)
            lengths = [len(records) for records in found.values()]
            behind = behind or max(lengths, default=0) >= _BACKLOG_RECORDS
            if sum(lengths) < most:
                await asyncio.sleep(0)
                return behind
            left = self._positions.keys() if due is None else due & self._positions.keys()
            due = left - found.keys()
            if not due:
                return behind

    async def _report(self, partition: TopicPartition, turn: int, stretch: Stretch) -> None:
        if not stretch.records:
            if self._turns[partition] == turn:
                self._on_stretch(partition, stretch)
            return
        for part in stretch.slices():
            if self._turns[partition] != turn:
                return
            self._on_stretch(partition, part)
            await asyncio.sleep(0)

    async def _stretch(
        self, partition: TopicPartition, found: Sequence[ConsumerRecord[bytes, bytes]]
    ) -> Stretch | None:
        start = self._positions.get(partition)
        end = self._consumer.highwater(partition)
        fetched_ms = self._consumer.last_poll_timestamp(partition)
        if start is None or end is None or fetched_ms is None:
            return None
        # Records are never old, even if the fetch that brought them came within a millisecond.
        if not found and fetched_ms == self._before[partition]:
            return None
        stop = await self._consumer.position(partition)
        if not found and stop == start:
            # That nothing came is told once: until it is asked again there is nothing new to say.
            self._before[partition] = fetched_ms
        self._positions[partition] = stop
        records = [(record.offset, record.value) for record in found]
        times_ms = [record.timestamp for record in found]
        dates = Dates(times_ms, all(record.timestamp_type == _APPENDED for record in found))
        return Stretch(start, stop, end, fetched_ms, records, dates)

    async def _outside(self, partition: TopicPartition, asked: int) -> None:
        if partition not in self._positions:
            return
        try:
            beginnings = await self._consumer.beginning_offsets([partition])
        except KafkaError as error:
            # It is read on, and refused again.
            self._on_error(error)
            await asyncio.sleep(_RETRY_SECONDS)
            return
        # Where it is read by now is refused for itself, if it has to be.
        if self._positions.get(partition) == asked:
            self.rest(partition)
            self._on_outside(partition, asked, beginnings[partition])
