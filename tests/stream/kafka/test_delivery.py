"""Delivery of many messages: round robin, bounded, and an exact count of what arrived."""

import asyncio
from typing import Any

import pytest
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from ldpstream.agents.cli.send import Acknowledged, Delivery


class FakeBatch:
    def __init__(self, room: int) -> None:
        self.room = room
        self.values: list[bytes] = []

    def append(self, *, key: None, value: bytes, timestamp: int) -> object | None:
        if len(self.values) == self.room:
            return None
        assert timestamp % 1_000 == 0
        self.values.append(value)
        return object()


class FakeProducer:
    """Acknowledges batches at once or later, and refuses those that hold a certain message."""

    def __init__(self, *, room: int, refused: bytes = b"", at_once: bool = True) -> None:
        self.room = room
        self.refused = refused
        self.at_once = at_once
        self.sent: list[tuple[int, list[bytes]]] = []
        self.waiting: list[asyncio.Future[None]] = []

    def create_batch(self) -> FakeBatch:
        return FakeBatch(self.room)

    async def send_batch(self, batch: FakeBatch, topic: str, *, partition: int) -> Any:
        self.sent.append((partition, batch.values))
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.refused in batch.values:
            future.set_exception(MessageSizeTooLargeError())
        elif self.at_once:
            future.set_result(None)
        else:
            self.waiting.append(future)
        return future


async def test_messages_go_round_robin_and_all_are_counted():
    producer = FakeProducer(room=3)
    delivery = Delivery(producer, "t", 4, precision_ms=1_000)
    for i in range(50):
        await delivery.add(b"%d" % i, reports=i)
    await delivery.flush()
    assert delivery.acknowledged == Acknowledged(messages=50, reports=sum(range(50)))
    partition_of = {int(value): p for p, values in producer.sent for value in values}
    assert sorted(partition_of) == list(range(50))
    first = partition_of[0]
    assert all(partition_of[i] == (first + i) % 4 for i in range(50))
    for partition in range(4):
        order = [int(v) for p, values in producer.sent for v in values if p == partition]
        assert order == sorted(order)


async def test_a_refused_batch_is_raised_and_not_counted():
    producer = FakeProducer(room=2, refused=b"5")
    delivery = Delivery(producer, "t", 1, precision_ms=1_000)
    for i in range(10):
        await delivery.add(b"%d" % i, reports=10)
    with pytest.raises(KafkaError):
        await delivery.flush()
    assert delivery.acknowledged == Acknowledged(messages=8, reports=80)


async def test_messages_in_flight_are_bounded():
    producer = FakeProducer(room=1, at_once=False)
    delivery = Delivery(producer, "t", 1, precision_ms=1_000)

    async def add_all() -> None:
        for i in range(200):
            await delivery.add(b"%d" % i, reports=1)
        await delivery.flush()

    task = asyncio.create_task(add_all())
    for _ in range(1_000):
        await asyncio.sleep(0)
    assert 1 < len(producer.sent) <= 64
    while not task.done():
        for future in producer.waiting:
            if not future.done():
                future.set_result(None)
        await asyncio.sleep(0)
    await task
    assert delivery.acknowledged.messages == 200
