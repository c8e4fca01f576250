"""Reading source partitions without a group: what proves that offsets are missing, or only late.

The stream that Faust delivers may leave offsets out (after a rebalance), deliver them twice, or
stall; a log may also have true holes (transaction markers, compaction). A consumer without a group
that reads from an offset on tells which is which: whatever it does not find between two of its
positions does not exist. A partition is *watched* from the owner's next offset while there is doubt
or silence, and rests while the stream flows.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

_POLL_MS: Final = 200
_RECORDS_A_STEP: Final = 5_000
_RETRY_SECONDS: Final = 0.5

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


class SourceReader:
    """Watches partitions on demand, with one consumer that the caller starts and stops.

    `on_stretch` is called about every 200 ms for every watched partition, with or without records.
    `on_outside(partition, beginning)` is called when the position is not in the log, whose first
    offset is `beginning`; the partition then rests. `on_error` is called for everything else that
    the broker refuses.
    """

    def __init__(
        self,
        partitions: Iterable[TopicPartition],
        *,
        on_stretch: Callable[[TopicPartition, Stretch], None],
        on_outside: Callable[[TopicPartition, int], None],
        on_error: Callable[[KafkaError], None],
    ) -> None:
        self._consumer: AIOKafkaConsumer
        self._partitions = list(partitions)
        self._on_stretch = on_stretch
        self._on_outside = on_outside
        self._on_error = on_error
        self._positions: dict[TopicPartition, int] = {}
        # When the last fetch before a partition was watched was answered: what it said is old.
        self._before: dict[TopicPartition, int | None] = {}

    def start(self, consumer: AIOKafkaConsumer) -> None:
        """Assign all partitions to a started consumer; all of them rest."""
        self._consumer = consumer
        self._consumer.assign(self._partitions)
        for partition in self._partitions:
            self._consumer.seek(partition, 0)
            self._consumer.pause(partition)

    def watched(self, partition: TopicPartition) -> bool:
        """Return whether a partition is being watched."""
        return partition in self._positions

    def watch(self, partition: TopicPartition, offset: int) -> None:
        """Read a partition from an offset on, wherever it was read before."""
        self._consumer.seek(partition, offset)
        self._positions[partition] = offset
        self._before[partition] = self._consumer.last_poll_timestamp(partition)
        self._consumer.resume(partition)

    def rest(self, partition: TopicPartition) -> None:
        """Stop reading a partition."""
        if self._positions.pop(partition, None) is not None:
            self._consumer.pause(partition)

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            try:
                found = await self._consumer.getmany(
                    timeout_ms=_POLL_MS, max_records=_RECORDS_A_STEP
                )
            except OffsetOutOfRangeError as error:
                for partition, offset in error.args[0].items():
                    # A fetch that was under way when the partition went elsewhere tells nothing.
                    if await self._consumer.position(partition) == offset:
                        await self._outside(partition)
            except KafkaError as error:
                self._on_error(error)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                # No suspension between a fetch and its position: they belong together.
                for partition in list(self._positions):
                    await self._report(partition, found.get(partition, []))
                await asyncio.sleep(0)

    async def _report(
        self, partition: TopicPartition, found: Sequence[ConsumerRecord[bytes, bytes]]
    ) -> None:
        start = self._positions.get(partition)
        end = self._consumer.highwater(partition)
        fetched_ms = self._consumer.last_poll_timestamp(partition)
        if start is None or end is None or fetched_ms in {None, self._before[partition]}:
            return
        stop = await self._consumer.position(partition)
        self._positions[partition] = stop
        records = [(record.offset, record.value) for record in found]
        self._on_stretch(partition, Stretch(start, stop, end, fetched_ms, records))

    async def _outside(self, partition: TopicPartition) -> None:
        if partition not in self._positions:
            return
        self.rest(partition)
        try:
            beginnings = await self._consumer.beginning_offsets([partition])
        except KafkaError as error:
            self._on_error(error)
        else:
            self._on_outside(partition, beginnings[partition])
