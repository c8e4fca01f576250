"""Send many messages: round robin over partitions, in large batches, in bounded memory."""

import asyncio
import secrets
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from ldpstream.agents.broker.record_time import now_ms, record_time_ms

_IN_FLIGHT: Final = 64


@dataclass
class Acknowledged:
    """What the broker has acknowledged so far."""

    messages: int = 0
    reports: int = 0


@dataclass
class _Batch:
    builder: Any  # aiokafka's BatchBuilder, which has no types
    messages: int = 0
    reports: int = 0


class Delivery:
    """Spreads messages without keys over the partitions of one topic.

    One batch for each partition is filled, and sent when full; at most 64 are in flight. `add` and
    `finish` raise the first KafkaError only after everything in flight has been answered, so that
    `acknowledged` is exact. Records have the timestamp of `record_time`, and neither key nor
    headers.
    """

    def __init__(
        self, producer: AIOKafkaProducer, topic: str, partitions: int, *, precision_ms: int
    ) -> None:
        self.acknowledged = Acknowledged()
        self._producer = producer
        self._topic = topic
        self._precision_ms = precision_ms
        self._batches: list[_Batch | None] = [None] * partitions
        # Random, so that many gateways that send little do not all start with partition 0.
        self._turn = secrets.randbelow(partitions)
        self._pending: dict[asyncio.Future[Any], _Batch] = {}

    async def add(self, message: bytes, *, reports: int, partition: int | None = None) -> None:
        """Send a message with this many reports to a partition, by default the next one."""
        if partition is None:
            partition = self._turn
            self._turn = (partition + 1) % len(self._batches)
        if not self._append(partition, message, reports):
            await self._send(partition)
            self._append(partition, message, reports)

    async def flush(self) -> None:
        """Send what is waiting, and return when everything is acknowledged."""
        for partition in range(len(self._batches)):
            await self._send(partition)
        await self._settle(asyncio.ALL_COMPLETED)

    def _append(self, partition: int, message: bytes, reports: int) -> bool:
        batch = self._batches[partition]
        if batch is None:
            batch = self._batches[partition] = _Batch(self._producer.create_batch())
        timestamp_ms = record_time_ms(now_ms(), precision_ms=self._precision_ms)
        if batch.builder.append(key=None, value=message, timestamp=timestamp_ms) is None:
            return False
        batch.messages += 1
        batch.reports += reports
        return True

    async def _send(self, partition: int) -> None:
        batch = self._batches[partition]
        self._batches[partition] = None
        if batch is None:
            return
        if len(self._pending) >= _IN_FLIGHT:
            await self._settle(asyncio.FIRST_COMPLETED)
        try:
            future = await self._producer.send_batch(
                batch.builder, self._topic, partition=partition
            )
        except KafkaError:
            await self._settle(asyncio.ALL_COMPLETED)
            raise
        self._pending[future] = batch

    async def _settle(self, how: str) -> None:
        if not self._pending:
            return
        done, _ = await asyncio.wait(self._pending, return_when=how)
        failures = self._count(done)
        if failures and self._pending:
            done, _ = await asyncio.wait(self._pending)
            self._count(done)
        if failures:
            raise failures[0]

    def _count(self, done: set[asyncio.Future[Any]]) -> list[BaseException]:
        failures = []
        for future in done:
            batch = self._pending.pop(future)
            error = future.exception()
            if error is None:
                self.acknowledged.messages += batch.messages
                self.acknowledged.reports += batch.reports
            else:
                failures.append(error)
        return failures
