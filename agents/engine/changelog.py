"""Read all partitions of the changelogs into replicas, without a consumer group.

The end that a replica is measured against is the high watermark of the last fetch: it is correct on
every broker, unlike the answer to a request for the end offset.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from ldpstream.agents.broker.health import log_transient_error
from ldpstream.agents.engine.clock import PARTITIONS, scaled_interval
from ldpstream.agents.engine.isolation import isolate_errors

_POLL_MS: Final = 200
_LOOK_SECONDS: Final = 0.2
_PAUSE_SECONDS: Final = 0.02
_MOST_PAUSE_SECONDS: Final = 0.5
_MOST_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 0.5
_SHORT_MS: Final = 30_000


class Log(Protocol):
    """Reads the records of one partition: a replica, or several of different states."""

    def read(
        self, records: Sequence[tuple[int, bytes, bytes | None]], *, position: int, end: int
    ) -> bool:
        """Read records, as `Replica.read` does; return whether they were evaluated."""


class ChangelogReader:
    """Feeds replicas from one consumer, which the caller creates, starts and stops.

    - `on_read(partition)` is called whenever a replica has been evaluated.
    - `on_broken(partition, why)` is called when a log can no longer be trusted; it is not read any
      more.
    """

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        replicas: Mapping[TopicPartition, Log],
        *,
        on_read: Callable[[TopicPartition], None],
        on_broken: Callable[[TopicPartition, str], None],
    ) -> None:
        self._consumer = consumer
        self._replicas = dict(replicas)
        self._on_read = on_read
        self._on_broken = on_broken
        self._begun = not self._replicas
        self._last_read: dict[TopicPartition, tuple[int, int]] = {}
        self._short_since_ms: dict[TopicPartition, int] = {}
        self._looked = float("-inf")

    async def run(self) -> None:
        """Read from the beginning, until cancelled."""
        self._consumer.assign(list(self._replicas))
        while True:
            began = time.monotonic()
            try:
                if not self._begun:
                    await self._consumer.seek_to_beginning(*self._replicas)
                    self._begun = True
                fetched = await self._consumer.getmany(timeout_ms=_POLL_MS)
            except OffsetOutOfRangeError as error:
                # A fetch may have been in flight when a partition was given up.
                for partition in self._replicas.keys() & error.args[0]:
                    self._give_up(partition, "its end went back: it was created again or cut")
            except KafkaError as error:
                log_transient_error(error)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                for partition in self._due(fetched):
                    await self._feed(partition, fetched.get(partition, []))
            if len(self._replicas) > PARTITIONS:
                # Every answer costs something for each partition, even if it is empty.
                pause = scaled_interval(
                    _PAUSE_SECONDS, len(self._replicas), most=_MOST_PAUSE_SECONDS
                )
                await asyncio.sleep(max(0.0, began + pause - time.monotonic()))

    def _due(self, fetched: Collection[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions to evaluate: those that were read and, at intervals, all of them.

        An end can move without a record. Evaluating thousands of partitions after every fetch would
        take longer than reading what it returned.
        """
        now = time.monotonic()
        evaluated = len(self._replicas) > PARTITIONS and len(self._last_read) >= len(self._replicas)
        every_seconds = scaled_interval(
            _LOOK_SECONDS, len(self._replicas) if evaluated else 1, most=_MOST_SECONDS
        )
        if (fetched or evaluated) and now - self._looked < every_seconds:
            return [partition for partition in fetched if partition in self._replicas]
        self._looked = now
        return list(self._replicas)

    async def _feed(
        self, partition: TopicPartition, fetched: Sequence[ConsumerRecord[bytes, bytes]]
    ) -> None:
        end = self._consumer.highwater(partition)
        if end is None:
            return
        position = await self._consumer.position(partition)
        before = self._last_read.get(partition, (0, 0))[1]
        if self._went_back(partition, end=end, reached=max(before, position)):
            self._give_up(partition, f"its end went back from {before} to {end}")
            return
        end = max(end, before)
        if not fetched and self._last_read.get(partition) == (position, end):
            return
        self._last_read[partition] = position, end
        records = [(record.offset, record.key or b"", record.value) for record in fetched]
        evaluated, wrong = False, list[str]()
        with isolate_errors(wrong.append):
            evaluated = self._replicas[partition].read(records, position=position, end=end)
        if wrong:
            self._give_up(partition, wrong[0])
        elif evaluated:
            self._on_read(partition)

    def _went_back(self, partition: TopicPartition, *, end: int, reached: int) -> bool:
        """Distinguish a log that was cut from one whose new leader does not know its end yet.

        What was read had been committed, so a new leader has it; its high watermark catches up once
        its followers have fetched. A leader that lacks it refuses the fetch as out of range.
        """
        fetched_ms = self._consumer.last_poll_timestamp(partition)
        if end >= reached or fetched_ms is None:
            self._short_since_ms.pop(partition, None)
            return False
        # Timed by the fetches themselves, because without answers nothing is learnt.
        since_ms = self._short_since_ms.setdefault(partition, fetched_ms)
        return bool(fetched_ms - since_ms > _SHORT_MS)

    def _give_up(self, partition: TopicPartition, why: str) -> None:
        del self._replicas[partition]
        self._consumer.pause(partition)
        self._on_broken(partition, why)
