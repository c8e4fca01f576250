"""An intake of untrusted packers, and a record of what reaches the state machine."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import cast

from ldpstream.agents.metrics import Metrics
from ldpstream.agents.partition.batch import Arrivals
from ldpstream.agents.partition.partition import Partition
from ldpstream.agents.reading.intake import OwnedPartition
from ldpstream.agents.reading.packed_intake import PackedIntake
from ldpstream.agents.reading.source import Record
from ldpstream.agents.state.packed import Packed, encode_packed
from ldpstream.agents.state.records import Head
from tests.packing import make_records
from tests.stream.serving import read_city
from tests.stream.untrusted_stream import Broker as Source
from tests.stream.untrusted_stream import Ingested, Log

ID = bytes(range(16))


@dataclass
class Counted(Ingested):
    """Stands for the state machine; with `passing` it passes over all reports."""

    passing: bool = False
    work: Head = field(default_factory=lambda: Head(source=ID))

    def ingest(self, records: Sequence[Record], *, now_ms: int, arrived: Arrivals) -> None:
        super().ingest(records, now_ms=now_ms, arrived=arrived)
        if not self.passing:
            self.work = replace(self.work, n=self.work.n + len(records))

    def frames_at(self, offset: int) -> None:
        self.work = replace(self.work, frames=offset)


class Frames(Log):
    """The frames topic."""

    def __init__(self, topic: str, broker: "Broker") -> None:
        super().__init__(topic, [], broker)
        self.messages: list[bytes | None] = []
        self.most = 4

    def append(self, value: bytes | None) -> None:
        self.messages.append(value)
        self.cut(len(self.messages))

    def cut(self, length: int) -> None:
        del self.messages[length:]
        self.offsets, self.end = list(range(length)), length

    def value(self, offset: int) -> bytes | None:
        return self.messages[offset]


class Broker(Source):
    """A source with holes, its frames topic, and untrusted packers."""

    def __init__(self, rng: random.Random, size: int = 200, *, existing: float = 0.8) -> None:
        super().__init__(rng, size, existing=existing)
        collection = read_city(input="frames")
        assert collection.topics.frames is not None
        self.packed = Frames(collection.topics.frames, self)
        self.position = 0
        self.told: dict[str, int] = {}
        self.lag: int | None = None
        self.state = Counted()
        self.intake.end(self.held)
        self.held = OwnedPartition(cast("Partition", self.state))
        self.intake = PackedIntake(
            collection,
            self.source.reader,
            self.lane,
            self.owner,
            self.clock,
            frames=self.packed.reader,
            metrics=cast("Metrics", SimpleNamespace(packed=self.tell, pack_lag=self.set_lag)),
        )
        self.intake.begin(self.held)

    def set_lag(self, _: str, partition: int, lag: int | None) -> None:
        self.lag = lag

    def tell(self, _: str, what: str, count: int) -> None:
        self.told[what] = self.told.get(what, 0) + count

    def pack(self, at: int, stop: int, *, partition: int = 0, topic_id: bytes = ID) -> None:
        end = self.source.end
        records = make_records([(o, b"x") for o in self.source.offsets if at <= o < min(stop, end)])
        if len(records):
            last = int(records.offsets[-1])
            packed = Packed(at, last + 1, max(end, last + 1), records)
            self.packed.append(encode_packed(packed, partition=partition, topic_id=topic_id))
            self.position = last + 1

    def step(self) -> None:
        acts = ("produce", "packer", "packer", "frames", "frames", "ask", "answer", "poll", "take")
        getattr(self, self.rng.choice((*acts, "take", "take", "look", "wait", "spill", "fault")))()

    def packer(self) -> None:
        at = self.position
        if self.rng.random() < 0.2:
            at = self.rng.randrange(self.source.end + 1)
        self.pack(at, at + self.rng.randint(1, 20))

    def frames(self) -> None:
        self.packed.read()

    def fault(self) -> None:
        kind = self.rng.randrange(6)
        if kind == 0 and self.packed.messages:
            self.packed.cut(len(self.packed.messages) - 1)
        elif kind == 1:
            self.packed.cut(0)
        elif kind == 2:
            self.packed.append(self.rng.choice([None, b"", b"\x81" + bytes(80)]))
        elif kind == 3:
            self.pack(0, self.source.end, topic_id=bytes(16))
        elif kind == 4:
            self.pack(0, self.source.end, partition=1)
        else:
            self.state.full = True

    def wait(self) -> None:
        super().wait()
        self.state.full, self.state.passing = False, self.rng.random() < 0.3

    def take_all(self) -> None:
        while self.lane.items:
            self.take()

    def read_frames(self) -> None:
        self.packed.read()
        self.take_all()

    def read_source(self) -> None:
        self.source.read()
        self.take_all()


def silent(broker: Broker) -> None:
    """Let packers be silent for so long that the source is read."""
    for _ in range(3):
        broker.now += 2
        broker.look()
        for _ in range(3):
            broker.read_source()
    assert broker.source.at == broker.source.end
    assert broker.state.probes
