"""Packers that cannot be trusted, under a guard: what reaches the state machine is noted."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from aiokafka import TopicPartition

from ldpstream.agents.config import read_config
from ldpstream.agents.packing.packed import Packed, encode_packed
from ldpstream.agents.reading.frames_guard import FramesGuard
from ldpstream.agents.reading.guard import StreamHooks
from ldpstream.agents.reading.held import Held
from ldpstream.agents.reading.source import Record, SourceReader, Stretch
from ldpstream.agents.reading.taking import FramesHooks
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.records import Head
from tests.packing import make_records
from tests.stream.serving import CITY
from tests.stream.untrusted_stream import Ingested

ID = bytes(range(16))


@dataclass
class Counted(Ingested):
    """Stands for the state machine, which is full now and then, or passes over what comes."""

    frames: int = 0
    full: bool = False
    passing: bool = False
    work: Head = field(default_factory=lambda: Head(source=ID))

    def ingest(self, records: Sequence[Record], *, now_ms: int, arrived: object = None) -> None:
        super().ingest(records, now_ms=now_ms)
        if not self.passing:
            self.work = replace(self.work, n=self.work.n + len(records))

    def frames_at(self, offset: int) -> None:
        self.frames = offset


@dataclass
class Log:
    """A reader of one log: where it reads, or that it rests."""

    at: int | None = None
    exists: bool = True

    def known(self, _: TopicPartition) -> bool:
        return self.exists

    def watched(self, _: TopicPartition) -> bool:
        return self.at is not None

    def watch(self, _: TopicPartition, offset: int) -> None:
        self.at = offset

    def rest(self, _: TopicPartition) -> None:
        self.at = None


class Broker:
    """A source with holes, its frames topic, and packers that cannot be trusted."""

    def __init__(self, rng: random.Random, size: int = 200, *, existing: float = 0.8) -> None:
        self.rng, self.size, self.end, self.now = rng, size, 0, 0.0
        self.log = [offset for offset in range(size) if rng.random() < existing]
        self.frames: list[bytes | None] = []
        self.position = 0
        self.source, self.packed = Log(), Log()
        self.failures: list[str] = []
        self.told: dict[str, int] = {}
        self.lag: int | None = None
        self.state = Counted()
        self.held = Held(cast("Partition", self.state), heard=0.0)
        city = {**CITY, "input": "frames"}
        config = read_config({"collection": {"city": city}}, base=Path(), environment={})
        self.guard = FramesGuard(
            config.collections["city"],
            cast("SourceReader", self.source),
            cast("SourceReader", self.packed),
            StreamHooks(
                hold=lambda _: None,
                release=lambda *_: None,
                fail=self.failures.append,
                now_ms=lambda: int(self.now * 1000),
                seconds=lambda: self.now,
            ),
            FramesHooks(told=self.tell, lag=lambda _, lag: setattr(self, "lag", lag)),
        )
        self.guard.begin(self.held)

    def tell(self, what: str, count: int) -> None:
        self.told[what] = self.told.get(what, 0) + count

    def pack(self, at: int, stop: int, *, partition: int = 0, topic_id: bytes = ID) -> None:
        records = make_records([(o, b"x") for o in self.log if at <= o < min(stop, self.end)])
        if len(records):
            last = int(records.offsets[-1])
            packed = Packed(at, last + 1, max(self.end, last + 1), records)
            self.frames.append(encode_packed(packed, partition=partition, topic_id=topic_id))
            self.position = last + 1

    # What happens.

    def step(self) -> None:
        acts = ["produce", "packer", "packer", "read_frames", "read_frames", "read_source"]
        getattr(self, self.rng.choice([*acts, "wait", "fault"]))()

    def produce(self) -> None:
        self.end = min(self.size, self.end + self.rng.randint(1, 20))

    def packer(self) -> None:
        at = self.position
        if self.rng.random() < 0.2:
            at = self.rng.randrange(self.end + 1)
        self.pack(at, at + self.rng.randint(1, 20))

    def fault(self) -> None:
        kind = self.rng.randrange(6)
        if kind == 0 and self.frames:
            self.frames.pop()
        elif kind == 1:
            self.frames.clear()
        elif kind == 2:
            self.frames.append(self.rng.choice([None, b"", b"\x81" + bytes(80)]))
        elif kind == 3:
            self.pack(0, self.end, topic_id=bytes(16))
        elif kind == 4:
            self.pack(0, self.end, partition=1)
        else:
            self.state.full = True

    def wait(self) -> None:
        self.now += self.rng.choice([0.1, 0.6, 4.0])
        self.guard.look(self.held)
        self.state.full, self.state.passing = False, self.rng.random() < 0.3

    def read_frames(self) -> None:
        if (start := self.packed.at) is not None:
            stop = min(len(self.frames), start + self.rng.randint(1, 4))
            self.packed.at = max(start, stop)
            records = list(enumerate(self.frames))[start:stop]
            now_ms = int(self.now * 1000)
            stretch = Stretch(start, self.packed.at, len(self.frames), now_ms, records)
            self.guard.frames(self.held, stretch)

    def read_source(self) -> None:
        if (start := self.source.at) is not None:
            most = self.rng.randint(1, 25)
            records = [(o, b"x") for o in self.log if start <= o < self.end][:most]
            stop = records[-1][0] + 1 if len(records) == most else max(start, self.end)
            self.source.at = stop
            now_ms = int(self.now * 1000)
            stretch = Stretch(start, stop, self.end, now_ms, list(records))
            self.guard.stretch(self.held, stretch)


def silent(broker: Broker) -> None:
    """Let nothing come for so long that the source is looked at."""
    for _ in range(3):
        broker.now += 2
        broker.guard.look(broker.held)
        broker.read_source()
    assert broker.source.at == broker.end
    assert broker.guard.end_offset(broker.held) == broker.end
