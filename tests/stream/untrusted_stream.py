"""A stream that cannot be trusted, under a guard: what reaches the state machine is noted."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from aiokafka import TopicPartition

from ldpstream.agents.config import read_config
from ldpstream.agents.reading.guard import Guard, StreamHooks
from ldpstream.agents.reading.held import Held
from ldpstream.agents.reading.pace import PARTITIONS
from ldpstream.agents.reading.source import Record, SourceReader, Stretch
from ldpstream.agents.state.partition import Partition
from tests.stream.serving import CITY

MANY = PARTITIONS + 1


@dataclass
class Ingested:
    """Stands for the state machine: what it was given, and that it was given in order."""

    partition: int = 0
    next: int = 0
    offsets: list[int] = field(default_factory=list)
    lost: int = 0
    full: bool = False

    def ingest(self, records: Sequence[Record], *, now_ms: int, arrived: object = None) -> None:
        assert not self.full
        for offset, _ in records:
            assert offset >= self.next
            self.offsets.append(offset)
            self.next = offset + 1

    def pass_over(self, offset: int) -> None:
        assert offset >= self.next
        self.next = offset

    def skip_to(self, offset: int, *, now_ms: int) -> int:
        lost = offset - self.next
        self.lost += lost
        self.next = offset
        return lost

    def disturbed(self, *, now_ms: int) -> None:
        pass


class Broker:
    """A log with holes, a stream that cannot be trusted, and a reader that can."""

    def __init__(
        self, rng: random.Random, size: int, *, existing: float = 0.8, partitions: int = 2
    ) -> None:
        self.rng = rng
        self.log = [offset for offset in range(size) if rng.random() < existing]
        self.end = 0
        self.size = size
        self.now = 0.0
        self.streaming = 0
        self.watching: int | None = None
        self.held_back = False
        self.failures: list[str] = []
        self.state = Ingested()
        self.held = Held(cast("Partition", self.state), heard=0.0)
        city = {**CITY, "partitions": partitions}
        config = read_config({"collection": {"city": city}}, base=Path(), environment={})
        self.guard = Guard(config.collections["city"], cast("SourceReader", self), self.hooks())
        self.guard.begin(self.held)

    def hooks(self) -> StreamHooks:
        return StreamHooks(
            hold=lambda _: setattr(self, "held_back", True),
            release=self.release,
            fail=self.failures.append,
            now_ms=lambda: int(self.now * 1000),
            seconds=lambda: self.now,
        )

    def release(self, partition: int, offset: int) -> None:
        self.held_back, self.streaming = False, offset

    # What a guard asks of its reader.

    def watched(self, partition: TopicPartition) -> bool:
        return self.watching is not None

    def watch(self, partition: TopicPartition, offset: int) -> None:
        self.watching = offset

    def rest(self, partition: TopicPartition) -> None:
        self.watching = None

    # What happens.

    def existing(self, start: int, most: int) -> list[Record]:
        return [(offset, b"") for offset in self.log if start <= offset < self.end][:most]

    def step(self) -> None:
        getattr(
            self, self.rng.choice(["produce", "flow", "flow", "jump", "wait", "read", "fill"])
        )()

    def produce(self) -> None:
        self.end = min(self.size, self.end + self.rng.randint(1, 20))

    def flow(self) -> None:
        records = [] if self.held_back else self.existing(self.streaming, self.rng.randint(1, 15))
        if records:
            self.streaming = records[-1][0] + 1
            self.guard.deliver(self.held, records)

    def flow_news(self) -> None:
        self.guard.notice(self.held, 0)

    def fill(self) -> None:
        self.state.full = self.rng.random() < 0.5

    def jump(self) -> None:
        self.streaming = max(0, min(self.end, self.streaming + self.rng.randint(-30, 30)))

    def wait(self) -> None:
        self.now += self.rng.choice([0.1, 0.6, 2.0])
        self.guard.look(self.held)

    def read(self) -> None:
        if self.watching is None:
            return
        start, most = self.watching, self.rng.randint(1, 25)
        records = self.existing(start, most)
        stop = records[-1][0] + 1 if len(records) == most else max(start, self.end)
        self.watching = stop
        whole = Stretch(start, stop, self.end, int(self.now * 1000), records)
        for part in whole.slices():
            self.guard.stretch(self.held, part)
            if self.watching != stop:
                break
