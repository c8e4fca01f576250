"""Whatever a stream leaves out, repeats or holds back, every message is ingested once, in order."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from aiokafka import TopicPartition

from ldpstream.agents.config import read_config
from ldpstream.agents.reading.guard import BACKLOG_RECORDS, Guard, StreamHooks
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

    def ingest(self, records: Sequence[Record], *, now_ms: int) -> None:
        assert not self.full
        for offset, _ in records:
            assert offset >= self.next
            self.offsets.append(offset)
            self.next = offset + 1

    def pass_over(self, offset: int) -> None:
        assert offset >= self.next
        self.next = offset

    def skip_to(self, offset: int) -> int:
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


@pytest.mark.parametrize("seed", range(300))
def test_every_message_is_ingested_once(seed: int) -> None:
    many = seed % 3 == 0
    broker = Broker(random.Random(seed), size=200, partitions=MANY if many else 2)
    for _ in range(150):
        broker.step()
    # The stream falls silent: what is missing is read all the same.
    broker.end = broker.size
    broker.state.full = False
    for _ in range(40):
        broker.now += 0.5
        broker.guard.look(broker.held)
        broker.read()
    assert broker.state.offsets == broker.log
    assert broker.state.next == broker.size
    assert not broker.failures


def test_of_many_partitions_none_comes_by_the_stream() -> None:
    broker = Broker(random.Random(0), size=100, existing=1.0, partitions=MANY)
    broker.end = 100
    # A rebalance lets it flow again.
    for hear in (lambda: broker.guard.deliver(broker.held, [(0, b"")]), broker.flow_news):
        assert broker.held_back
        broker.held_back = False
        hear()
    assert broker.held_back
    assert not broker.state.offsets
    while broker.state.next < 100:
        broker.read()
    assert broker.state.offsets == broker.log
    # At the end of the log it is watched on, however long it is silent.
    broker.now += 60.0
    broker.read()
    broker.guard.look(broker.held)
    assert broker.watching == 100
    assert broker.guard.end_offset(broker.held) == 100


def test_a_full_partition_rests_and_is_read_again() -> None:
    broker = Broker(random.Random(0), size=100, existing=1.0)
    broker.end = 100
    broker.state.full = True
    broker.read()
    broker.flow()
    assert broker.watching is None
    assert not broker.state.offsets
    broker.state.full = False
    broker.guard.look(broker.held)
    assert broker.watching == 0
    while broker.state.next < 100:
        broker.read()
    assert broker.state.offsets == broker.log


def test_reading_rests_while_the_stream_flows() -> None:
    broker = Broker(random.Random(0), size=100, existing=1.0)
    broker.end = 100
    broker.read()
    for _ in range(20):
        broker.streaming = broker.state.next
        broker.flow()
    assert broker.watching is None
    assert broker.state.offsets == broker.log


def test_a_backlog_is_read_while_the_stream_is_held() -> None:
    size = BACKLOG_RECORDS + 100
    broker = Broker(random.Random(0), size)
    broker.end = size
    broker.read()
    assert broker.held_back
    broker.flow()
    while broker.state.next < size:
        broker.read()
    assert not broker.held_back
    assert broker.streaming == size
    assert broker.state.offsets == broker.log


def test_retention_is_skipped_and_counted() -> None:
    broker = Broker(random.Random(0), size=50)
    broker.guard.outside(broker.held, 10)
    assert (broker.state.next, broker.state.lost) == (10, 10)
    assert not broker.failures


def test_a_log_that_begins_anew_is_refused() -> None:
    broker = Broker(random.Random(0), size=50)
    broker.state.next = 30
    broker.guard.outside(broker.held, 0)
    (failure,) = broker.failures
    assert "was created anew" in failure


def test_a_log_that_is_short_for_a_moment_is_not_refused() -> None:
    broker = Broker(random.Random(0), size=50)
    broker.state.next = 30

    def read(end: int) -> None:
        broker.guard.stretch(broker.held, Stretch(30, 30, end, int(broker.now * 1000), []))

    for _ in range(9):
        read(25)
        broker.now += 1
    read(30)
    broker.now += 5
    read(25)
    assert not broker.failures
    broker.now += 11
    read(25)
    assert "ends at offset 25, before 30" in broker.failures[0]


def test_the_end_is_known_while_the_stream_flows() -> None:
    """What flows may all be of another spec, and the partition be idle for this one."""
    broker = Broker(random.Random(0), size=100, existing=1.0)
    broker.end = 100
    broker.read()
    while broker.state.next < 100:
        broker.streaming = broker.state.next
        broker.flow()
    assert broker.watching is None
    assert broker.guard.end_offset(broker.held) == 100
    broker.now += 2
    assert broker.guard.end_offset(broker.held) is None


def test_the_end_is_unknown_while_fetches_fail() -> None:
    broker = Broker(random.Random(0), size=50)
    broker.end = 50
    while broker.state.next < 50:
        broker.read()
    broker.now += 2
    broker.guard.look(broker.held)
    broker.read()
    assert broker.guard.end_offset(broker.held) == 50
    broker.now += 5
    assert broker.guard.end_offset(broker.held) is None
