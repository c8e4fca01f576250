"""The producer that is replaced once it can write no more, with fake clients."""

import asyncio
import gc
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    OutOfOrderSequenceNumber,
    RequestTimedOutError,
    UnknownError,
    UnknownTopicOrPartitionError,
)

from ldpstream.agents.broker import clients
from ldpstream.agents.broker import producer as producing
from ldpstream.agents.broker.producer import LastingProducer, NoIdempotenceError

Sent = asyncio.Future[None]


def lasting(monkeypatch: pytest.MonkeyPatch, made: object) -> LastingProducer:
    """Return a producer whose client is `made`."""
    monkeypatch.setattr(producing.clients, "producer", lambda *_: cast("AIOKafkaProducer", made))
    return LastingProducer("nowhere:1", {})


class Client:
    """A client that keeps the topics that are added to its metadata."""

    def __init__(self) -> None:
        self.client = self
        self.topics: list[str] = []

    def add_topic(self, topic: str) -> None:
        self.topics.append(topic)


class Forgetful(Client):
    """A client that does not know a partition before it updates its metadata."""

    known = False

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def force_metadata_update(self) -> bool:
        self.known = True
        return True

    async def send(self, *_: object, **__: object) -> "asyncio.Future[None]":
        assert self.known, "Unrecognized partition"
        sent = asyncio.get_running_loop().create_future()
        sent.set_result(None)
        return sent


async def test_a_partition_that_the_client_does_not_know_yet_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    producer = lasting(monkeypatch, Forgetful())
    with pytest.raises(UnknownTopicOrPartitionError, match="added"):
        await producer.send("added", 3, None, b"x")
    await producer.send("added", 3, None, b"x")


class Made(Client):
    """A client whose starts and sends raise these errors in turn; None means success."""

    def __init__(self, starts: list[KafkaError | None], sends: list[KafkaError | None]) -> None:
        super().__init__()
        self.starts, self.sends = starts, sends

    async def start(self) -> None:
        if error := self.starts.pop(0):
            raise error

    async def stop(self) -> None: ...

    async def send(self, *_: object, **__: object) -> Sent:
        if error := self.sends.pop(0):
            raise error
        (sent,) = answers(1)
        sent.set_result(None)
        return sent


async def test_a_broker_that_refuses_a_new_producer_may_take_one_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has accepted one before, so a failure does not mean that it supports none."""
    fenced = OutOfOrderSequenceNumber()
    made = Made([None, UnknownError(), None], [None, fenced, None])
    producer = lasting(monkeypatch, made)
    await producer.start()
    await producer.send("late", 0, None, b"x")
    for error in (OutOfOrderSequenceNumber, KafkaError):
        with pytest.raises(error):
            await producer.send("late", 0, None, b"x")
    await producer.send("late", 0, None, b"x")
    assert not made.starts
    assert not made.sends


async def test_a_broker_without_idempotent_producers_is_reported_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    producer = lasting(monkeypatch, Made([UnknownError()], []))
    with pytest.raises(NoIdempotenceError, match="enable_idempotence = false"):
        await producer.start()


class Batching(Client):
    """Makes batches of 400 bytes, and accepts as many as there are answers."""

    def __init__(self, answers: list[Sent]) -> None:
        super().__init__()
        self.batches: list[Any] = []
        self._answers = answers
        self._maker = clients.producer("nowhere:1", {"max_batch_size": 400})

    async def start(self) -> None: ...

    async def stop(self) -> None:
        await self._maker.stop()

    def create_batch(self) -> Any:
        return self._maker.create_batch()

    async def send_batch(self, batch: Any, topic: str, *, partition: int) -> Sent:
        assert (topic, partition) == ("changelog", 3)
        if not self._answers:
            raise KafkaTimeoutError
        self.batches.append(batch)
        return self._answers.pop(0)


def answers(number: int) -> list[Sent]:
    return [asyncio.get_running_loop().create_future() for _ in range(number)]


async def test_send_whole_sends_one_batch_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    (answer,) = answers(1)
    made = Batching([answer])
    producer = lasting(monkeypatch, made)
    cells = [(b"cell %d" % number, bytes(100)) for number in range(5)]
    assert not await producer.send_whole("changelog", 3, cells)
    assert made.batches == []
    sending = asyncio.create_task(producer.send_whole("changelog", 3, cells[:2]))
    await asyncio.sleep(0)
    assert not sending.done()
    answer.set_result(None)
    assert await sending
    (batch,) = made.batches
    assert batch.record_count() == 2
    assert batch.closed()
    await producer.stop()


async def test_a_batch_that_fails_late_leaves_no_unretrieved_exception(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    (pending,) = pendings = answers(1)
    made = Batching(pendings)
    producer = lasting(monkeypatch, made)
    cells = [(b"cell %d" % number, bytes(100)) for number in range(5)]
    with pytest.raises(KafkaTimeoutError):
        await producer.send_records("changelog", 3, cells)
    assert len(made.batches) == 1
    pending.set_exception(RequestTimedOutError())
    await asyncio.sleep(0)
    del pending
    gc.collect()
    assert said == []
