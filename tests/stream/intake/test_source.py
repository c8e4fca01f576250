"""Reading partitions without a group: sessions, back-pressure, and offsets out of range."""

import asyncio
from typing import cast

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaTimeoutError

from ldpstream.agents.engine import source
from ldpstream.agents.engine.clock import PARTITIONS, scaled_interval
from ldpstream.agents.engine.source import Batch, Outside, Session, SourceReader, steady_ms
from ldpstream.agents.state.batch import Dates
from tests.processes import eventually
from tests.stream.simulation.client import Answer, Client

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
    assert isinstance(last, Batch)
    assert last.records
    assert last.dates.since_ms is not None
    assert last.dates.since_ms <= steady_ms()
    first = read.got[ONE][0]
    assert isinstance(first, Batch)
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
