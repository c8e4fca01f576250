"""What an intake takes from its reader: when it waits, what it refuses, and when things arrived.

`tests.stream.simulation.intake` shows that whatever a channel loses or repeats, and retention
deletes, every message is ingested once and in order.
"""

import asyncio
import random
from typing import cast

import numpy as np
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaTimeoutError

from ldpstream.agents.engine import source
from ldpstream.agents.engine.clock import PARTITIONS, scaled_interval
from ldpstream.agents.engine.source import Batch, Outside, Session, SourceReader, steady_ms
from ldpstream.agents.state.batch import Dates
from tests.processes import eventually
from tests.stream.intake_stream import Broker
from tests.stream.simulation.client import Answer, Client


def test_a_full_partition_makes_its_reader_wait_and_nothing_is_read_twice() -> None:
    broker = Broker(random.Random(0), size=100)
    broker.source.most = 10
    broker.source.end = 100
    broker.state.full = True
    for _ in range(9):
        broker.read()
    session = broker.held.session
    assert not broker.state.offsets
    assert len(session.waiting) == 2
    assert broker.source.at == session.waiting[-1].stop
    broker.state.full = False
    while broker.state.next < 100:
        broker.read()
    assert broker.state.offsets == broker.source.offsets
    assert broker.held.session is session


def test_a_log_that_begins_again_is_refused() -> None:
    broker = Broker(random.Random(0), size=50)
    broker.state.next, broker.source.begins = 30, 31
    broker.intake.begin(broker.held)
    # The log was created again before the broker was asked where it begins.
    broker.held.session.give(Outside(30, 0))
    broker.take()
    (failure,) = broker.failures
    assert "was created again" in failure


def test_a_log_that_is_short_for_a_moment_is_not_refused() -> None:
    broker = Broker(random.Random(0), size=50)
    broker.state.next = 30
    broker.intake.begin(broker.held)

    def read(end: int) -> None:
        broker.source.end = end
        broker.read()

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


def test_a_probe_is_dated_before_it_was_asked_for() -> None:
    broker = Broker(random.Random(0), size=50, existing=1.0)
    broker.source.most = 50
    source = broker.source
    # This fetch is sent before the session begins, and answered in it.
    source.client.ask(source.partition)
    broker.intake.begin(broker.held)
    asked: list[float] = []
    for _ in range(9):
        broker.now += 1.0
        source.client.answer(source.partition)
        broker.poll()
        broker.take()
        broker.now += 1.0
        asked.append(broker.now)
        source.client.ask(source.partition)
    # The first has no date; each later one is dated when the answer before it was seen.
    assert len(broker.state.probes) == 8
    assert all(ms <= at * 1000 for ms, at in zip(broker.state.probes, asked, strict=False))
    assert broker.state.probes == sorted(broker.state.probes)
    assert broker.intake.end_offsets == {0: 0}


@pytest.mark.parametrize("appended", [True, False])
def test_a_batch_arrived_when_its_records_say(appended: bool) -> None:
    broker = Broker(random.Random(0), size=3, existing=1.0)
    broker.now, broker.source.dates = 1_000.0, Dates((7_000, 7_500, 999_000), appended)
    broker.source.end = 3
    # Its first record is counted already when it is taken.
    broker.source.read()
    broker.state.next = 1
    broker.take()
    arrived = broker.state.arrived
    if appended:
        assert np.array_equal(arrived.clock_ms, [7_500, 999_000])
        assert np.array_equal(arrived.latest_ms, [7_500, 999_000])
    else:
        assert np.array_equal(arrived.clock_ms, [7_000, 7_000])
        assert arrived.latest_ms == 1_000_000


def test_a_batch_arrived_after_the_log_was_seen_to_end_before_it() -> None:
    broker = Broker(random.Random(0), size=3, existing=1.0)
    broker.now, broker.source.dates = 1_000.0, Dates((7_000, 7_500, 9_000))
    # The wall clock differs from the reader's steady clock.
    broker.wall_ms = 5_000_000
    for _ in range(3):
        broker.read()
        broker.now += 1.0
    broker.source.end = 3
    broker.read()
    arrived = broker.state.arrived
    # The answer before it was seen one second ago, and was asked for at most two seconds earlier.
    assert np.array_equal(arrived.clock_ms, [5_000_000 - 3_000] * 3)
    assert arrived.latest_ms == 5_000_000


ONE, TWO = TopicPartition("trips", 0), TopicPartition("trips", 1)


class Read:
    """A reader of two partitions whose fetches are answered at once, and what it delivers."""

    def __init__(self, sizes: dict[TopicPartition, int], *, begins: int = 0) -> None:
        self.sizes, self.begins = sizes, begins
        self.got: dict[TopicPartition, list[Batch | Outside]] = {ONE: [], TWO: []}
        self.calls: list[Session] = []
        self.client = Client(self.fetch, lambda _: self.begins)
        self.reader = SourceReader([ONE, TWO])
        self.reader.start(cast("AIOKafkaConsumer", self.client))

    def begin(self, partition: TopicPartition, offset: int) -> Session:
        return self.reader.begin(partition, offset, self.calls.append)

    def take(self, session: Session) -> None:
        """Take the next item, as a consumer does."""
        self.calls.remove(session)
        session.called = False
        self.got[session.partition].append(session.take())
        session.next()

    def fetch(self, partition: TopicPartition, offset: int) -> Answer:
        size = self.sizes[partition]
        if offset < self.begins:
            return Answer([], -1, size)
        return Answer([(o, b"x") for o in range(offset, size)], size, size)

    async def poll(self, times: int = 1) -> None:
        for _ in range(times):
            for partition in self.client.places:
                self.client.ask(partition)
                self.client.answer(partition)
            await self.reader.poll()

    def offsets(self, partition: TopicPartition) -> list[int]:
        batches = [item for item in self.got[partition] if isinstance(item, Batch)]
        return [offset for batch in batches for offset, _ in batch.records]


async def test_two_slices_of_a_partition_wait_and_the_others_go_on() -> None:
    read = Read({ONE: 10_000, TWO: 0})
    one, two = read.begin(ONE, 0), read.begin(TWO, 0)
    await read.poll(5)
    assert len(one.waiting) == 2
    assert read.client.places[ONE].position == 2_000
    for size in range(1, 6):
        read.sizes[TWO] = size
        await read.poll()
        while two.waiting:
            read.take(two)
    assert read.offsets(TWO) == list(range(5))
    assert one.full
    for _ in range(30):
        if one.waiting:
            read.take(one)
        await read.poll()
    assert read.offsets(ONE) == list(range(10_000))
    assert max(len(item.records) for item in read.got[ONE] if isinstance(item, Batch)) == 1_000


async def test_one_call_is_pending_at_a_time_and_a_lost_one_is_repeated() -> None:
    read = Read({ONE: 1_500, TWO: 0})
    one = read.begin(ONE, 0)
    await read.poll(2)
    one.next()
    assert read.calls == [one]
    read.calls.clear()
    one.next()
    assert read.calls == []
    one.next(resend=True)
    while one.waiting:
        read.take(one)
    assert read.offsets(ONE) == list(range(1_500))
    one.next(resend=True)
    assert read.calls == []


async def test_large_messages_make_small_slices() -> None:
    batch = Batch(
        partition=0,
        start=0,
        stop=9,
        end=9,
        records=[(offset, bytes(100_000)) for offset in range(8)],
        dates=Dates(range(8)),
    )
    slices = list(batch.slices())
    assert [len(part.records) for part in slices] == [2, 2, 2, 2]
    assert [(part.start, part.stop) for part in slices] == [(0, 2), (2, 4), (4, 6), (6, 9)]
    assert [list(part.dates.times_ms) for part in slices] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    empty = Batch(partition=0, start=4, stop=4, end=4)
    assert list(empty.slices()) == [empty]


async def test_an_answer_to_an_earlier_session_does_not_reach_the_next() -> None:
    read = Read({ONE: 5, TWO: 0})
    first = read.begin(ONE, 0)
    read.client.ask(ONE)
    again = read.begin(ONE, 3)
    await read.poll(3)
    assert not first.waiting
    read.take(again)
    assert read.offsets(ONE) == [3, 4]
    again.end()
    read.sizes[ONE] = 9
    await read.poll()
    assert not again.waiting


async def test_records_say_since_when_the_log_may_have_held_them() -> None:
    read = Read({ONE: 0, TWO: 0})
    session = read.begin(ONE, 0)
    for _ in range(3):
        await read.poll()
        read.take(session)
    read.sizes[ONE] = 2
    await read.poll()
    read.take(session)
    last = read.got[ONE][-1]
    assert last.records
    assert last.dates.since_ms is not None
    assert last.dates.since_ms <= steady_ms()
    first = read.got[ONE][0]
    assert first.asked_ms is None


async def test_a_position_outside_the_log_is_reported_once_with_its_start() -> None:
    read = Read({ONE: 9, TWO: 0}, begins=6)
    session = read.begin(ONE, 1)
    await read.poll(4)
    assert list(session.waiting) == [Outside(1, 6)]
    session = read.begin(ONE, 6)
    await read.poll(2)
    read.take(session)
    assert read.offsets(ONE) == [6, 7, 8]


async def test_a_refusal_of_another_position_is_ignored() -> None:
    read = Read({ONE: 9, TWO: 0}, begins=6)
    session = read.begin(ONE, 1)
    read.client.ask(ONE)
    read.client.answer(ONE)
    read.client.places[ONE].position = session.answers.position = 7
    await read.reader.poll()
    assert not session.waiting


async def test_the_start_of_a_log_is_asked_for_until_it_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source, "_RETRY_SECONDS", 0.0)
    read = Read({ONE: 9, TWO: 0}, begins=6)
    tries = 0

    async def beginning(_: object) -> dict[TopicPartition, int]:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise KafkaTimeoutError
        return {ONE: 6}

    async def getmany(*partitions: TopicPartition, **options: int) -> object:
        read.client.ask(ONE)
        read.client.answer(ONE)
        await asyncio.sleep(0)
        return await fetched(*partitions, **options)

    fetched = read.client.getmany
    monkeypatch.setattr(read.client, "beginning_offsets", beginning)
    monkeypatch.setattr(read.client, "getmany", getmany)
    session = read.begin(ONE, 1)
    run = asyncio.create_task(read.reader.run())
    await eventually(lambda: bool(session.waiting))
    run.cancel()
    assert list(session.waiting) == [Outside(1, 6)]
    assert tries == 3


def test_more_partitions_make_longer_intervals() -> None:
    assert scaled_interval(0.25, 1) == scaled_interval(0.25, PARTITIONS) == 0.25
    assert scaled_interval(0.25, 10 * PARTITIONS) == 2.5
    assert scaled_interval(0.25, 10 * PARTITIONS, most=1.0) == 1.0
