"""Whatever packers send and whatever becomes of it, every message is ingested once, in order."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest
from aiokafka import TopicPartition

from ldpstream.agents.config import read_config
from ldpstream.agents.packing.packed import Packed, encode_packed, make_records
from ldpstream.agents.reading.frames_guard import NEAR_RECORDS, FramesGuard
from ldpstream.agents.reading.guard import StreamHooks
from ldpstream.agents.reading.held import Held
from ldpstream.agents.reading.source import Record, SourceReader, Stretch
from ldpstream.agents.reading.taking import FramesHooks
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.records import Head
from tests.stream.serving import CITY
from tests.stream.test_guard import Ingested

ID = bytes(range(16))


@dataclass
class Counted(Ingested):
    """Stands for the state machine, which is full now and then, or passes over what comes."""

    frames: int = 0
    full: bool = False
    passing: bool = False
    work: Head = field(default_factory=lambda: Head(source=ID))

    def ingest(self, records: Sequence[Record], *, now_ms: int) -> None:
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


@pytest.mark.parametrize("seed", range(300))
def test_every_message_is_ingested_once(seed: int) -> None:
    broker = Broker(random.Random(seed))
    for _ in range(200):
        broker.step()
    # The packers fall silent: what is missing is read from the source.
    broker.end = broker.size
    for _ in range(150):
        broker.wait()
        broker.read_frames()
        broker.read_source()
    assert broker.state.offsets == broker.log
    assert broker.state.next == broker.size
    assert not broker.failures


def test_the_source_rests_while_packed_messages_come() -> None:
    broker = Broker(random.Random(0), size=500, existing=1.0)
    for _ in range(25):
        broker.end += 20
        broker.pack(broker.position, broker.end)
        broker.now += 1
        broker.guard.look(broker.held)
        broker.read_frames()
        assert broker.source.at is None
    assert broker.state.next == 500
    assert (broker.told, broker.lag) == ({"taken": 25}, 0)


def test_a_packer_that_is_down_leaves_no_partition_idle_with_a_backlog() -> None:
    broker = Broker(random.Random(0), size=100, existing=1.0)
    broker.end = 100
    assert broker.guard.end_offset(broker.held) is None
    for _ in range(2):
        broker.now += 2.5
        broker.guard.look(broker.held)
        broker.read_source()
    assert broker.guard.end_offset(broker.held) == 100
    while broker.state.next < 100:
        broker.read_source()
    assert broker.told["reread"] == 100


def test_a_hole_is_read_from_the_source_before_what_follows() -> None:
    broker = Broker(random.Random(0), size=40, existing=1.0)
    broker.end = 40
    broker.pack(30, 40)
    broker.read_frames()
    assert (broker.packed.at, broker.source.at) == (None, 0)
    while broker.state.next < 30:
        broker.read_source()
    assert broker.source.at is None
    broker.read_frames()
    assert broker.state.offsets == broker.log
    assert broker.told["hole"] == 1


def test_offsets_beyond_the_source_hold_nothing_up_for_long() -> None:
    broker = Broker(random.Random(0), size=40, existing=1.0)
    broker.end = 40
    beyond = Packed(10_000, 10_001, 10_001, make_records([(10_000, b"x")]))
    broker.frames.append(encode_packed(beyond, partition=0, topic_id=ID))
    broker.read_frames()
    for _ in range(30):
        broker.now += 1
        broker.read_source()
    assert broker.state.next == 40
    assert broker.packed.at == 1
    assert broker.told["offsets"] == 1


def test_what_the_source_has_lost_is_taken_from_packed_messages() -> None:
    broker = Broker(random.Random(0), size=40, existing=1.0)
    broker.end = 40
    broker.pack(0, 20)
    broker.guard.outside(broker.held, 15)
    assert (broker.state.next, broker.state.lost) == (0, 0)
    broker.read_frames()
    assert (broker.state.next, broker.state.lost) == (20, 0)
    broker.guard.outside(broker.held, 30)
    assert (broker.state.next, broker.state.lost) == (30, 10)


def test_what_is_packed_before_the_source_begins_is_not_lost() -> None:
    broker = Broker(random.Random(0), size=80, existing=1.0)
    broker.end = 80
    broker.pack(10, 60)
    broker.read_frames()
    assert broker.source.at == 0
    # Retention deletes what is missing, and more that has been packed.
    broker.guard.outside(broker.held, 50)
    assert (broker.state.next, broker.state.lost) == (10, 10)
    broker.read_frames()
    assert (broker.state.next, broker.state.lost) == (60, 10)


def test_where_the_source_ends_is_not_learnt_from_packed_messages() -> None:
    broker = Broker(random.Random(0), size=100, existing=1.0)
    broker.end = 20
    broker.pack(0, 20)
    broker.end = 100
    broker.read_frames()
    # All is taken that was packed when the source ended there.
    assert broker.state.next == 20
    assert broker.guard.end_offset(broker.held) is None


def test_the_source_is_read_while_only_reports_of_other_specs_are_packed() -> None:
    broker = Broker(random.Random(0), size=500, existing=1.0)
    broker.state.passing = True
    for _ in range(20):
        broker.end += 20
        broker.pack(broker.position, broker.end)
        broker.now += 1
        broker.guard.look(broker.held)
        broker.read_frames()
        broker.read_source()
    assert broker.guard.end_offset(broker.held) == 400
    broker.state.passing = False
    broker.end += 20
    broker.pack(broker.position, broker.end)
    broker.read_frames()
    assert broker.state.next == 420
    assert broker.source.at is None


def silent(broker: Broker) -> None:
    """Let nothing come for so long that the source is looked at."""
    for _ in range(3):
        broker.now += 2
        broker.guard.look(broker.held)
        broker.read_source()
    assert broker.source.at == broker.end
    assert broker.guard.end_offset(broker.held) == broker.end


def test_after_a_silence_the_packer_comes_first() -> None:
    broker = Broker(random.Random(0), size=500, existing=1.0)
    broker.end = 20
    broker.pack(0, 20)
    broker.read_frames()
    silent(broker)
    broker.end = 500
    broker.read_source()
    # It is known that there is more, and it is left to the packer.
    assert (broker.state.next, broker.lag, broker.source.at) == (20, 480, None)
    assert broker.guard.end_offset(broker.held) is None
    for stop in range(100, 501, 100):
        broker.now += 1.9
        broker.guard.look(broker.held)
        broker.read_source()
        broker.pack(broker.position, stop)
        broker.read_frames()
    assert broker.state.next == 500
    assert broker.told == {"taken": 6}


def test_a_packer_that_is_down_costs_no_freshness() -> None:
    broker = Broker(random.Random(0), size=500, existing=1.0)
    silent(broker)
    broker.end = 20
    broker.read_source()
    assert broker.state.next == 0
    broker.now += 2.1
    broker.guard.look(broker.held)
    broker.read_source()
    assert broker.state.next > 0
    # From then on all is taken at once, until packed messages come.
    while broker.end < 400:
        silent(broker)
        broker.end += 20
        while broker.state.next < broker.end:
            broker.read_source()
    broker.end = 420
    broker.pack(400, 420)
    broker.read_frames()
    assert (broker.state.next, broker.source.at) == (420, None)


def test_a_packer_that_repeats_old_messages_only_is_not_waited_for() -> None:
    broker = Broker(random.Random(0), size=500, existing=1.0)
    broker.state.next = NEAR_RECORDS + 100
    silent_at = broker.state.next
    broker.log = list(range(silent_at + 50))
    broker.size = broker.end = silent_at + 50
    for _ in range(20):
        broker.now += 0.5
        broker.guard.look(broker.held)
        broker.pack(broker.position, broker.position + 5)
        broker.read_frames()
        broker.read_source()
    assert broker.state.next > silent_at


def test_a_frames_topic_that_has_been_deleted_holds_nothing_up_for_ever() -> None:
    broker = Broker(random.Random(0), size=80, existing=1.0)
    broker.end, broker.packed.exists = 80, False
    # It was never read to its end, and retention deletes what the source held.
    for exists in (False, True):
        broker.packed.exists = exists
        broker.guard.outside(broker.held, 15)
        assert (broker.state.next, broker.state.lost) == (0, 0)
        broker.now += 50
    broker.packed.exists = False
    for _ in range(61):
        broker.guard.outside(broker.held, 15)
        assert (broker.state.next, broker.state.lost) == (0, 0)
        broker.now += 1
    broker.guard.outside(broker.held, 15)
    assert (broker.state.next, broker.state.lost) == (15, 15)
    while broker.state.next < 80:
        broker.read_source()


def test_a_hole_after_a_silence_is_read_at_once() -> None:
    broker = Broker(random.Random(0), size=40, existing=1.0)
    silent(broker)
    broker.end = 40
    broker.pack(30, 40)
    broker.read_frames()
    while broker.state.next < 30:
        assert broker.source.at is not None
        broker.read_source()
    broker.read_frames()
    assert broker.state.offsets == broker.log
