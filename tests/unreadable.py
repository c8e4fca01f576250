"""Record batches that a broker accepts and no client can decode."""

import asyncio
from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy


class NotText(str):
    """A header's name that is encoded as bytes that are not UTF-8."""

    __slots__ = ()

    def encode(self, *_: Any, **__: Any) -> bytes:
        return b"\xff\xfe"


def unreadable(before: Sequence[bytes] = (), *, after: int = 0) -> bytes:
    """Return a batch: readable values, a record that cannot be read, and `after` records."""
    builder = _DefaultRecordBatchBuilderPy(2, 0, 0, -1, -1, -1, 1 << 20)
    records = [(value, []) for value in before] + [(b"", [(NotText("x"), b"")])]
    records += [(b"", [])] * after
    for offset, (value, headers) in enumerate(records):
        builder.append(offset, 1_000, b"key", value, headers)
    return bytes(builder.build())


async def send_unreadable(producer: AIOKafkaProducer, topic: str) -> None:
    """Send one such record with a started producer, which must not be idempotent."""
    await producer.partitions_for(topic)
    batch = producer.create_batch()
    batch.append(key=None, value=b"", timestamp=1_000)
    batch.close()
    batch._buffer = bytearray(unreadable())
    sent = await producer.send_batch(batch, topic, partition=0)
    async with asyncio.timeout(30):
        await sent
