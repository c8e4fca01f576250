"""Reading all partitions of the changelogs without a group, into tails.

The end that a tail is measured against is the high watermark of the last fetch: right on every
broker, where asking for the end offset is not.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from ldpstream.agents.records import RecordError
from ldpstream.agents.tail import Tail

_POLL_MS: Final = 200
_RETRY_SECONDS: Final = 0.5
_SHORT_MS: Final = 30_000


class ChangelogReader:
    """Feeds tails, with one consumer that is made, started and stopped by the caller.

    `on_read(partition)` is called whenever a tail has been evaluated; `on_broken(partition, why)`
    when its log cannot be trusted any more, after which it is left alone; `on_error` for everything
    that the broker refuses and that may pass.
    """

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        tails: Mapping[TopicPartition, Tail],
        *,
        on_read: Callable[[TopicPartition], None],
        on_broken: Callable[[TopicPartition, str], None],
        on_error: Callable[[KafkaError], None],
    ) -> None:
        self._consumer = consumer
        self._tails = dict(tails)
        self._on_read = on_read
        self._on_broken = on_broken
        self._on_error = on_error
        self._seen: dict[TopicPartition, tuple[int, int]] = {}
        self._short_since_ms: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        """Read from the beginning on, until cancelled."""
        self._consumer.assign(list(self._tails))
        await self._rewind()
        while True:
            try:
                found = await self._consumer.getmany(timeout_ms=_POLL_MS)
            except OffsetOutOfRangeError as error:
                for partition in error.args[0]:
                    self._give_up(partition, "its end went back: it was created anew or cut")
            except KafkaError as error:
                self._on_error(error)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                for partition in list(self._tails):
                    await self._feed(partition, found.get(partition, []))

    async def _rewind(self) -> None:
        while True:
            try:
                await self._consumer.seek_to_beginning(*self._tails)
            except KafkaError as error:
                self._on_error(error)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    async def _feed(
        self, partition: TopicPartition, found: Sequence[ConsumerRecord[bytes, bytes]]
    ) -> None:
        end = self._consumer.highwater(partition)
        if end is None:
            return
        position = await self._consumer.position(partition)
        before = self._seen.get(partition, (0, 0))[1]
        if self._went_back(partition, end=end, known=max(before, position)):
            self._give_up(partition, f"its end went back from {before} to {end}")
            return
        end = max(end, before)
        if not found and self._seen.get(partition) == (position, end):
            return
        self._seen[partition] = position, end
        records = [(record.offset, record.key or b"", record.value) for record in found]
        try:
            evaluated = self._tails[partition].read(records, position=position, end=end)
        except RecordError as error:
            self._give_up(partition, str(error))
        else:
            if evaluated:
                self._on_read(partition)

    def _went_back(self, partition: TopicPartition, *, end: int, known: int) -> bool:
        """Tell a log that was cut from one whose new leader does not know yet how far it goes.

        What we have read was committed, so a new leader has it; its high watermark follows once its
        followers have asked. A leader that lacks it refuses the fetch as out of range.
        """
        fetched_ms = self._consumer.last_poll_timestamp(partition)
        if end >= known or fetched_ms is None:
            self._short_since_ms.pop(partition, None)
            return False
        # Of the fetches' own time: while nobody answers, nothing is learnt.
        since_ms = self._short_since_ms.setdefault(partition, fetched_ms)
        return bool(fetched_ms - since_ms > _SHORT_MS)

    def _give_up(self, partition: TopicPartition, why: str) -> None:
        del self._tails[partition]
        self._consumer.pause(partition)
        self._on_broken(partition, why)
