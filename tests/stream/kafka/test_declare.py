"""Topics that workers declare and describe, their ends, and a producer that is replaced."""

import asyncio
import gc
import struct
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    InvalidPartitionsError,
    KafkaError,
    KafkaTimeoutError,
    OutOfOrderSequenceNumber,
    PolicyViolationError,
    RequestTimedOutError,
    TopicAlreadyExistsError,
    UnknownError,
    UnknownTopicOrPartitionError,
)

from ldpstream.agents.broker import clients
from ldpstream.agents.broker import producer as producing
from ldpstream.agents.broker import topics as declare
from ldpstream.agents.broker.metadata import TopicState, _MetadataResponse_v12, describe
from ldpstream.agents.broker.offsets import end_offsets
from ldpstream.agents.broker.producer import LastingProducer, NoIdempotenceError
from ldpstream.agents.broker.topics import TopicError, declare_topics
from ldpstream.agents.config import CollectionConfig, read_config
from tests.stream.serving import CITY


class Client:
    """Refuses more partitions with an error; topics to create exist already."""

    def __init__(self, error: type[KafkaError]) -> None:
        self.error = error
        self.asked: list[str] = []
        self.requests: list[int] = []

    async def create_topics(self, wanted: Sequence[NewTopic]) -> Any:
        self.requests.append(len(wanted))
        self.asked += [new.name for new in wanted]
        errors = [(new.name, TopicAlreadyExistsError.errno, None) for new in wanted]
        return SimpleNamespace(topic_errors=errors)

    async def describe_configs(self, _: object) -> None:
        raise KafkaError

    async def create_partitions(self, wanted: Mapping[str, object]) -> Any:
        self.asked += wanted
        raise self.error(f"Could not create partitions for {next(iter(wanted))}: it has 2")


def cities(*names: str, **changes: object) -> list[CollectionConfig]:
    mapping = {"collection": {name: {**CITY, **changes} for name in names}}
    return [*read_config(mapping, base=Path(), environment={}).collections.values()]


def city() -> CollectionConfig:
    return cities("city")[0]


async def declared(client: Client, *collections: CollectionConfig) -> Mapping[str, TopicState]:
    asked = cast("AIOKafkaAdminClient", client)
    return await declare_topics(asked, collections, replication_factor=1)


async def test_a_changelog_that_another_worker_has_grown_meanwhile_is_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collection, topics = city(), city().topics
    found = {name: TopicState(2, None) for name in topics.names()}
    found |= {topics.changelog: TopicState(1, None)}

    async def describe(*_: object) -> Mapping[str, TopicState]:
        return found

    monkeypatch.setattr(declare, "describe", describe)
    client = Client(InvalidPartitionsError)
    assert await declared(client, collection) == found
    assert client.asked == [topics.changelog]
    with pytest.raises(TopicError, match=r"cannot be given more partitions: .*: it has 2"):
        await declared(Client(PolicyViolationError), collection)


async def test_a_source_that_somebody_else_creates_meanwhile_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A device's first message may create it, with the broker's default number of partitions."""
    collection = city()
    shown: dict[str, TopicState] = {}
    answers = [shown]

    async def describe(*_: object) -> Mapping[str, TopicState]:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    monkeypatch.setattr(declare, "describe", describe)
    monkeypatch.setattr(declare, "_DELAYS_SECONDS", (0.0, 0.0, 0.0))
    client = Client(KafkaError)
    there = {name: TopicState(2, None) for name in collection.topics.names()}
    few = there | {collection.topics.source: TopicState(1, None)}
    answers += [few]
    with pytest.raises(TopicError, match=r"city\.reports has 1 partition, but collection\.city"):
        await declared(client, collection)
    # The broker may not list all of them yet.
    answers[:] = [shown, few, there]
    assert await declared(client, collection) == there


@pytest.mark.parametrize(("partitions", "requests"), [(2, [18]), (1_200, [6, 6, 6])])
async def test_topics_of_all_collections_are_created_in_as_few_requests_as_a_broker_takes(
    monkeypatch: pytest.MonkeyPatch, partitions: int, requests: list[int]
) -> None:
    """A controller refuses a request of more than 10,000 partitions."""
    collections = cities("one", "two", "three", partitions=partitions)
    there = {name: TopicState(partitions, None) for c in collections for name in c.topics.names()}
    answers, described = [{}, there], []

    async def describe(_: object, names: Collection[str]) -> Mapping[str, TopicState]:
        described.append(set(names))
        return answers.pop(0)

    monkeypatch.setattr(declare, "describe", describe)
    client = Client(KafkaError)
    assert await declared(client, *collections) == there
    assert described == [there.keys(), there.keys()]
    assert sorted(client.asked) == sorted(there)
    assert client.requests == requests


ID = UUID(int=7)


def compact(number: int) -> bytes:
    """Return a compact length: the number plus one, seven bits a byte, the lowest first."""
    number += 1
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def partition(number: int, replicas: list[int]) -> bytes:
    nodes = compact(len(replicas)) + b"".join(struct.pack(">i", node) for node in replicas)
    # Offline replicas are null, and a tagged field follows.
    return struct.pack(">hiii", 0, number, 1, 5) + 2 * nodes + b"\0" + b"\x01\x00\x03abc"


def topic(name: bytes, partitions: int, replicas: list[int]) -> bytes:
    told = b"".join(partition(number, replicas) for number in range(partitions))
    head = struct.pack(">h", 0) + compact(len(name)) + name + ID.bytes + b"\0"
    return head + compact(partitions) + told + struct.pack(">i", 1 << 3) + b"\0"


@pytest.mark.parametrize(("partitions", "replicas"), [(0, []), (3, [1]), (300, [1, 2, 3])])
async def test_partitions_are_counted(partitions: int, replicas: list[int]) -> None:
    topics = topic(b"trips", partitions, replicas) + topic(b"late", 1, [2])
    answer = struct.pack(">i", 0) + compact(0) + compact(1) + b"x" + struct.pack(">i", 1)
    answer += compact(2) + topics + b"\0"

    async def send(_: object) -> _MetadataResponse_v12:
        return _MetadataResponse_v12.decode(answer)

    client = cast("AIOKafkaAdminClient", SimpleNamespace(_send_request=send))
    found = await describe(client, ["trips", "late"])
    assert {name: state.partitions for name, state in found.items()} == {
        "trips": partitions,
        "late": 1,
    }
    assert found["late"].id == ID
    assert found["trips"].permitted == {"read"}


ONE, TWO = TopicPartition("trips", 0), TopicPartition("trips", 1)


class Consumer:
    """Has for each partition the answer of the request, and that of the second fetch."""

    def __init__(self, told: dict[TopicPartition, int], marks: dict[TopicPartition, int]) -> None:
        self.told, self.marks = told, marks
        self.fetched = 0

    def assign(self, partitions: list[TopicPartition]) -> None: ...

    async def seek_to_end(self, *partitions: TopicPartition) -> None: ...

    async def position(self, partition: TopicPartition) -> int:
        return self.told[partition]

    def highwater(self, partition: TopicPartition) -> int | None:
        return self.marks.get(partition) if self.fetched >= 2 else None

    async def getmany(self, **_: object) -> dict[object, object]:
        self.fetched += 1
        return {}


async def test_the_larger_of_both_is_the_end() -> None:
    # ONE has a new leader, whose high watermark lags; the request for TWO is behind.
    consumer = Consumer({ONE: 20, TWO: 11}, {ONE: 18, TWO: 15})
    found = await end_offsets(cast("AIOKafkaConsumer", consumer), [ONE, TWO])
    assert found == {ONE: 20, TWO: 15}


async def test_a_fetch_that_is_never_answered_ends_in_an_error() -> None:
    consumer = Consumer({ONE: 20, TWO: 11}, {ONE: 20})
    with pytest.raises(KafkaTimeoutError, match=r"trips\[1\]"):
        await end_offsets(cast("AIOKafkaConsumer", consumer), [ONE, TWO], timeout_seconds=0.1)


Sent = asyncio.Future[None]


def lasting(monkeypatch: pytest.MonkeyPatch, made: object) -> LastingProducer:
    """Return a producer whose client is `made`."""
    monkeypatch.setattr(producing.clients, "producer", lambda *_: cast("AIOKafkaProducer", made))
    return LastingProducer("nowhere:1", {})


class Known:
    """A client that keeps the topics that are added to its metadata."""

    def __init__(self) -> None:
        self.client = self
        self.topics: list[str] = []

    def add_topic(self, topic: str) -> None:
        self.topics.append(topic)


class Forgetful(Known):
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


class Made(Known):
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


class Batching(Known):
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
