"""A source with holes, read by an intake, and a record of what is ingested."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from aiokafka import AIOKafkaConsumer, TopicPartition

from ldpstream.agents.engine.intake import Intake, OwnedPartition
from ldpstream.agents.engine.source import Record, SourceReader
from ldpstream.agents.state.batch import UNDATED, Arrivals
from ldpstream.agents.state.partition import Partition
from tests.stream.owning import Holder, Times
from tests.stream.serving import read_city
from tests.stream.simulation.client import Answer, Client, run_now
from tests.stream.simulation.intake import BatchList, Reader

PRECISION_MS = 1_000


@dataclass
class Ingested:
    """Stands for the state machine: records what it is given, which has to be in order."""

    partition: int = 0
    next: int = 0
    offsets: list[int] = field(default_factory=list)
    full: bool = False
    probes: list[int] = field(default_factory=list)
    arrived: Arrivals | None = None
    """The arrivals of what was ingested last."""

    def ingest(self, records: Sequence[Record], *, now_ms: int, arrived: Arrivals) -> None:
        assert not self.full
        self.arrived = arrived
        for offset, _ in records:
            assert offset >= self.next
            self.offsets.append(offset)
            self.next = offset + 1

    def read_to(self, offset: int, *, end: int, asked_ms: int | None) -> None:
        self.next = max(self.next, offset)
        if end == offset and asked_ms is not None:
            self.probes.append(asked_ms)

    def interrupted(self) -> None:
        self.probes.clear()


class Log:
    """A topic of one partition, with holes, and a reader of it."""

    def __init__(self, topic: str, offsets: Sequence[int], broker: Any) -> None:
        self.partition = TopicPartition(topic, 0)
        self.offsets, self.begins, self.end = list(offsets), 0, 0
        self.client = Client(self.fetch, lambda _: self.begins)
        self.reader: SourceReader = Reader(
            [self.partition],
            now_ms=lambda: int(broker.now * 1000),
        )
        self.most = 25
        self.dates = UNDATED
        """Timestamps of its records, by offset."""
        self.rng: random.Random = broker.rng
        self.reader.start(cast("AIOKafkaConsumer", self.client))

    def value(self, _: int) -> bytes | None:
        return b"x"

    def fetch(self, _: TopicPartition, offset: int) -> Answer:
        if offset < self.begins:
            return Answer([], -1, self.end)
        most = self.rng.randint(1, self.most)
        there = [o for o in self.offsets if offset <= o < self.end][:most]
        stop = there[-1] + 1 if len(there) == most else max(offset, self.end)
        records = [(o, self.value(o)) for o in there]
        times_ms = [self.dates.times_ms[o] for o in there] if self.dates.times_ms else []
        return Answer(records, stop, self.end, replace(self.dates, times_ms=times_ms))

    @property
    def at(self) -> int | None:
        """The position of the reader, None while the log is not read."""
        return self.client.places[self.partition].position if self.reads else None

    @property
    def reads(self) -> bool:
        return self.partition in self.reader._sessions

    def read(self) -> None:
        """Fetch once: ask, answer, and hand over."""
        self.client.ask(self.partition)
        self.client.answer(self.partition)
        run_now(self.reader.poll())


class Broker:
    """One partition under an intake."""

    wall_ms: int | None = None
    """The wall clock; None means that it shows `now`."""

    def __init__(self, rng: random.Random, size: int, *, existing: float = 0.8) -> None:
        self.rng, self.size, self.now = rng, size, 0.0
        self.owner = Holder()
        self.failures = self.owner.problems
        self.clock = Times(
            now_ms=lambda: int(self.now * 1000) if self.wall_ms is None else self.wall_ms,
            steady_ms=lambda: int(self.now * 1000),
            seconds=lambda: self.now,
        )
        self.channel = BatchList()
        city = read_city()
        assert city.spec.precision_ms == PRECISION_MS
        offsets = [offset for offset in range(size) if rng.random() < existing]
        self.source = Log(city.topics.source, offsets, self)
        self.state = Ingested()
        self.held = OwnedPartition(cast("Partition", self.state))
        self.intake = Intake(city, self.source.reader, self.channel, self.owner, self.clock)
        self.intake.begin(self.held)

    def poll(self) -> None:
        run_now(self.source.reader.poll())

    def take(self) -> None:
        if self.channel.items:
            self.intake.count(self.channel.items.pop(0))

    def look(self) -> None:
        self.intake.resume_reading(self.held)

    def read(self) -> None:
        """Fetch once, and take everything at once."""
        self.source.read()
        while self.channel.items:
            self.take()
        self.look()
