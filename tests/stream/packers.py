"""A packer between a fake consumer and a fake producer."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.kafka.polls import Answers
from ldpstream.agents.kafka.producing import LastingProducer
from ldpstream.agents.metrics.packing import PackMetrics
from ldpstream.agents.packing.assigned import AssignedPartition, PackOptions
from ldpstream.agents.packing.packer import Packer
from ldpstream.agents.state.packed import decode_packed
from tests.processes import eventually
from tests.stream.serving import read_city

ID = bytes(range(16))
SOURCE = TopicPartition("city.reports", 0)


@dataclass
class Record:
    offset: int
    value: bytes | None
    timestamp: int = 7_000
    timestamp_type: int = 0


@dataclass
class Consumer:
    """Returns the given fetches; an offset among them is a start of the log beyond its position."""

    fetches: list[Sequence[Record] | int]
    at: int = 0
    committed_at: int | None = None

    def subscribe(self, _: Sequence[str], *, listener: Packer) -> None: ...

    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset({SOURCE})

    def highwater(self, _: TopicPartition) -> int:
        return 100

    def last_poll_timestamp(self, _: TopicPartition) -> int:
        return len(self.fetches)

    async def committed(self, _: TopicPartition) -> int | None:
        return self.committed_at

    async def commit(self, offsets: dict[TopicPartition, int]) -> None:
        self.committed_at = offsets[SOURCE]

    async def position(self, _: TopicPartition) -> int:
        return self.at

    def seek(self, _: TopicPartition, offset: int) -> None:
        self.at = offset

    async def beginning_offsets(self, asked: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(asked, self.at)

    async def getmany(
        self, *_: TopicPartition, **__: object
    ) -> dict[TopicPartition, Sequence[Record]]:
        await asyncio.sleep(0.001)
        if not self.fetches:
            return {}
        fetch = self.fetches.pop(0)
        if isinstance(fetch, int):
            refused, self.at = self.at, fetch
            raise OffsetOutOfRangeError({SOURCE: refused})
        self.at = fetch[-1].offset + 1
        return {SOURCE: fetch}


@dataclass
class Told:
    """What a packer sent, and how many records it left out."""

    sent: list[bytes] = field(default_factory=list)
    left_out: int = 0

    async def send(self, topic: str, partition: int, key: None, value: bytes) -> None:
        assert (topic, partition) == ("city.reports.frames", 0)
        self.sent.append(value)

    @property
    def offsets(self) -> list[int]:
        found = [decode_packed(value, partition=0, topic_id=ID) for value in self.sent]
        return [int(offset) for packed in found for offset in packed.records.offsets]

    def count_left_out(self, _: str, count: int) -> None:
        self.left_out += count


def city() -> CollectionConfig:
    return read_city(input="frames")


def metrics(left_out: Callable[[str, int], None]) -> PackMetrics:
    """Return metrics that count records left out with a callback."""
    found = PackMetrics(["city"])
    found.left_out = left_out
    return found


def make_packer(consumer: Consumer, told: Told, *, linger_ms: int) -> Packer:
    counts = metrics(told.count_left_out)
    return Packer(
        by_source={SOURCE.topic: city()},
        consumer=cast("AIOKafkaConsumer", consumer),
        producer=cast("LastingProducer", told),
        topic_ids={SOURCE.topic: ID},
        options=PackOptions(linger_ms=linger_ms, limit_bytes=1_000),
        metrics=counts,
        on_assigned=lambda: None,
    )


def make_assigned(partition: int, answers: Answers) -> AssignedPartition:
    source, options = TopicPartition(SOURCE.topic, partition), PackOptions(limit_bytes=1)
    return AssignedPartition(city(), source, options, answers, answers.position)


async def packed(
    consumer: Consumer, *, linger_ms: int, rest_seconds: float = 0.0, told: Told | None = None
) -> Told:
    """Run a packer until the consumer has nothing more, and stop it after `rest_seconds`."""
    told, stop = told or Told(), asyncio.Event()
    packer = make_packer(consumer, told, linger_ms=linger_ms)
    running = asyncio.create_task(packer.run(stop))
    await eventually(lambda: not consumer.fetches)
    await asyncio.sleep(rest_seconds)
    stop.set()
    await running
    return told
