"""A packer's own doing."""

import asyncio
from dataclasses import dataclass

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import (
    NotEnoughReplicasError,
    TopicAuthorizationFailedError,
)

from ldpstream.agents.kafka.answers import Answers
from ldpstream.agents.kafka.whole_batches import Run
from ldpstream.agents.packing import packer as packer_module
from ldpstream.agents.packing import run
from ldpstream.agents.state.packed import MAX_MESSAGES, Packed, decode_packed
from tests.packing import make_records
from tests.processes import eventually
from tests.stream.packers import ID, Consumer, Record, Told, make_packer, make_share, packed


async def test_a_record_that_is_too_large_is_left_out_and_counted() -> None:
    consumer = Consumer([[Record(0, b"a"), Record(1, bytes(2_000)), Record(2, None)]])
    told = await packed(consumer, linger_ms=1)
    assert told.offsets == [0, 2]
    assert told.left_out == 1
    assert consumer.committed_at == 3


@pytest.mark.parametrize("appended", [True, False])
async def test_packed_messages_say_when_what_they_hold_arrived(appended: bool) -> None:
    """It is packed long after that, when nobody can see it of the message's own date."""
    times_ms = [7_000, 9_000, 8_000, 7_500]
    records = [Record(o, b"a", at, int(appended)) for o, at in enumerate(times_ms)]
    consumer = Consumer(
        [records[:2], records[2:], [Record(99, bytes(2_000), 9_000, int(appended))]]
    )
    told = await packed(consumer, linger_ms=60_000)
    found = [decode_packed(value, partition=0, topic_id=ID).records for value in told.sent]
    assert all(one.appended is appended for one in found)
    arrived = [at for one in found for at in (() if one.arrived is None else one.arrived.tolist())]
    assert arrived == (times_ms if appended else [7_000] * 4)


async def test_what_a_packer_reads_at_the_end_of_the_source_arrived_since_it_saw_that() -> None:
    answers = Answers(None, 0, 5)
    share = make_share(0, answers)
    for at_ms in (100, 200, 300):
        answers.look(at_ms, at_ms)
        share.read((), stop=5, end=5, steady_ms=at_ms, now_ms=1_000_000 + at_ms)
    answers.look(400, 400)
    taken = [Run(range(5, 7), [b"", b""], [0, 0], False)]
    share.read(taken, stop=7, end=9, steady_ms=400, now_ms=1_000_400)
    # The answer that was seen at 300 was asked for after nothing else had been seen at 100.
    assert share.arrived.pop().tolist() == [1_000_100] * 2
    answers.look(500, 500)
    taken = [Run(range(7, 9), [b"", b""], [0, 2_000_000], False)]
    share.read(taken, stop=9, end=9, steady_ms=500, now_ms=1_000_500)
    assert share.arrived.pop().tolist() == [1_000_100] * 2


async def test_a_partition_continues_at_the_committed_offset_wherever_its_consumer_is() -> None:
    """A fetch during a rebalance moves the consumer on, past records that nobody keeps."""
    consumer = Consumer([], at=9, committed_at=4)
    stop, told = asyncio.Event(), Told()
    running = asyncio.create_task(make_packer(consumer, told, linger_ms=1).run(stop))
    await eventually(lambda: consumer.at == 4)
    consumer.fetches.append([Record(offset, b"a") for offset in range(4, 6)])
    await eventually(lambda: consumer.committed_at == 6)
    stop.set()
    await running
    (value,) = told.sent
    assert decode_packed(value, partition=0, topic_id=ID).after == 4


async def test_what_was_read_is_sent_though_the_source_has_lost_it() -> None:
    read = [Record(offset, b"a") for offset in range(3)]
    consumer = Consumer([read, 50, [Record(50, b"b")]])
    told = await packed(consumer, linger_ms=60_000)
    assert told.offsets == [0, 1, 2, 50]
    assert consumer.committed_at == 51


async def test_what_the_source_has_lost_is_sent_before_what_comes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a worker finds a hole where nothing has been lost, and goes on behind it."""
    monkeypatch.setattr(packer_module, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(packer_module, "LEAVE_SECONDS", 0.02)

    @dataclass
    class Slow(Told):
        """Does not take the first message for a while."""

        refused: int = 0

        async def send(self, topic: str, partition: int, key: None, value: bytes) -> None:
            if decode_packed(value, partition=0, topic_id=ID).after == 0 and self.refused < 5:
                self.refused += 1
                raise NotEnoughReplicasError
            await super().send(topic, partition, key, value)

    read = [Record(offset, b"a") for offset in range(3)]
    consumer, told = Consumer([read, 50, [Record(50, b"b")]]), Slow()
    await packed(consumer, linger_ms=1, rest_seconds=0.1, told=told)
    assert told.offsets == [0, 1, 2, 50]


def test_records_without_bytes_fill_a_message_too() -> None:
    share, n = make_share(0, Answers(None, 0, 0)), MAX_MESSAGES - 1
    few = Run(range(n), [None] * n, [0] * n, False)
    share.read([few], stop=n, end=n + 1, steady_ms=0, now_ms=0)
    assert not share.full
    last = Run(range(n, n + 1), [b""], [0], False)
    share.read([last], stop=n + 1, end=n + 1, steady_ms=0, now_ms=0)
    assert share.full
    assert sum(len(one.records) for one in share.cut(end=0)) == MAX_MESSAGES
    assert not share.full


async def test_a_partition_that_cannot_be_written_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(packer_module, "RETRY_SECONDS", 0.0)

    class Guarded(Told):
        refusals = 0

        async def send(self, topic: str, partition: int, *_: object) -> None:
            await asyncio.sleep(0)
            if partition:
                self.refusals += 1
                raise TopicAuthorizationFailedError(topic)

    producer = Guarded()
    packer = make_packer(Consumer([]), producer, linger_ms=1)
    good, *closed = (make_share(partition, Answers(None, 0, 0)) for partition in range(3))
    message = Packed(0, 1, 1, make_records([(0, b"a")]))
    refused = [asyncio.create_task(packer._fly(share, [message], 1, 1)) for share in closed]
    while producer.refusals < 10:
        await packer._fly(good, [message], 1, 1)
    for share in closed:
        share.given_up = True
    await asyncio.gather(*refused)
    (said,) = caplog.messages
    assert "topic city.reports.frames[1] cannot be written" in said


async def test_a_packer_without_partitions_neither_spins_nor_sleeps_through_its_end() -> None:
    class Idle(Consumer):
        looks = 0

        def assignment(self) -> frozenset[TopicPartition]:
            self.looks += 1
            return frozenset()

    for linger_ms in (0, 60_000):
        consumer = Idle([])
        async with asyncio.timeout(60):
            await packed(consumer, linger_ms=linger_ms, rest_seconds=0.1)
        assert consumer.looks < 20


async def test_a_message_that_cannot_be_sent_as_nobody_expected_ends_the_packer() -> None:
    """It must not seem to go on, and commit what comes after it."""

    class Broken(Told):
        async def send(self, *_: object) -> None:
            raise ZeroDivisionError("in a client")

    consumer = Consumer([[Record(0, b"a")]])
    running = make_packer(consumer, Broken(), linger_ms=1).run(asyncio.Event())
    with pytest.raises(ZeroDivisionError, match="in a client"):
        await asyncio.wait_for(running, 30)
    assert consumer.committed_at is None


async def test_a_packer_ends_when_told_though_nobody_answers_its_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """aiokafka asks again and again for a group's coordinator, as long as the broker is away."""

    class Mute(Consumer):
        asked = asyncio.Event()

        async def commit(self, _: object) -> None:
            self.asked.set()
            await asyncio.Event().wait()

    async def watch() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(run, "END_SECONDS", 0.0)
    monkeypatch.setattr(packer_module, "COMMIT_SECONDS", 0.0)
    consumer, stop = Mute([[Record(0, b"a")]]), asyncio.Event()
    packer = make_packer(consumer, Told(), linger_ms=1)
    running = asyncio.create_task(run._until_stopped(packer, stop, watch()))
    async with asyncio.timeout(30):
        await consumer.asked.wait()
        stop.set()
        await running


async def test_offsets_that_no_message_could_tell_apart_are_packed_one_by_one() -> None:
    offsets = [0, 1, (1 << 32) + 1, (1 << 32) + 2, 1 << 34]
    consumer = Consumer([[Record(offset, b"a") for offset in offsets]])
    told = await packed(consumer, linger_ms=1)
    assert told.offsets == offsets
    assert consumer.committed_at == (1 << 34) + 1
