"""A packer by itself: what it packs, sends and commits, and how it ends."""

import asyncio
from dataclasses import dataclass

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import NotEnoughReplicasError, TopicAuthorizationFailedError

from ldpstream.agents.kafka.polls import Answers, Run
from ldpstream.agents.packing import packer as packer_module
from ldpstream.agents.packing import run
from ldpstream.agents.state.packed import MAX_MESSAGES, Packed, decode_packed
from tests.packing import make_records
from tests.processes import eventually
from tests.stream.packers import ID, Consumer, Record, Told, make_assigned, make_packer, packed


async def test_a_record_that_is_too_large_is_left_out_and_counted() -> None:
    consumer = Consumer([[Record(0, b"a"), Record(1, bytes(2_000)), Record(2, None)]])
    told = await packed(consumer, linger_ms=1)
    assert told.offsets == [0, 2]
    assert told.left_out == 1
    assert consumer.committed_at == 3


@pytest.mark.parametrize("appended", [True, False])
async def test_packed_messages_hold_the_times_of_arrival(appended: bool) -> None:
    """The packed message has a later timestamp of its own, which does not show them."""
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


async def test_records_arrived_after_the_packer_last_saw_the_log_end_before_them() -> None:
    answers = Answers(None, 0, 5)
    share = make_assigned(0, answers)
    for at_ms in (100, 200, 300):
        answers.look(at_ms, at_ms)
        share.read((), stop=5, end=5, steady_ms=at_ms, now_ms=1_000_000 + at_ms)
    answers.look(400, 400)
    taken = [Run(range(5, 7), [b"", b""], [0, 0], False)]
    share.read(taken, stop=7, end=9, steady_ms=400, now_ms=1_000_400)
    # The answer seen at 300 was asked for at 100 at the earliest.
    assert share.arrived.pop().tolist() == [1_000_100] * 2
    answers.look(500, 500)
    taken = [Run(range(7, 9), [b"", b""], [0, 2_000_000], False)]
    share.read(taken, stop=9, end=9, steady_ms=500, now_ms=1_000_500)
    assert share.arrived.pop().tolist() == [1_000_100] * 2


async def test_a_partition_continues_at_the_committed_offset_wherever_its_consumer_is() -> None:
    """A fetch during a rebalance moves the consumer on, past records that are dropped."""
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


async def test_records_read_are_sent_though_the_source_has_lost_them() -> None:
    read = [Record(offset, b"a") for offset in range(3)]
    consumer = Consumer([read, 50, [Record(50, b"b")]])
    told = await packed(consumer, linger_ms=60_000)
    assert told.offsets == [0, 1, 2, 50]
    assert consumer.committed_at == 51


async def test_records_before_a_gap_are_sent_before_those_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a worker would see a gap where nothing is lost, and continue after it."""
    monkeypatch.setattr(packer_module, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(packer_module, "LEAVE_SECONDS", 0.02)

    @dataclass
    class Slow(Told):
        """Refuses the first message a few times."""

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
    share, n = make_assigned(0, Answers(None, 0, 0)), MAX_MESSAGES - 1
    few = Run(range(n), [None] * n, [0] * n, False)
    share.read([few], stop=n, end=n + 1, steady_ms=0, now_ms=0)
    assert not share.full
    last = Run(range(n, n + 1), [b""], [0], False)
    share.read([last], stop=n + 1, end=n + 1, steady_ms=0, now_ms=0)
    assert share.full
    assert sum(len(one.records) for one in share.cut(end=0)) == MAX_MESSAGES
    assert not share.full


async def test_a_partition_that_cannot_be_written_is_logged_once(
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
    good, *closed = (make_assigned(partition, Answers(None, 0, 0)) for partition in range(3))
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


async def test_an_unexpected_error_of_a_send_ends_the_packer() -> None:
    """Otherwise it would go on, and commit later offsets."""

    class Broken(Told):
        async def send(self, *_: object) -> None:
            raise ZeroDivisionError("in a client")

    consumer = Consumer([[Record(0, b"a")]])
    running = make_packer(consumer, Broken(), linger_ms=1).run(asyncio.Event())
    with pytest.raises(ZeroDivisionError, match="in a client"):
        await asyncio.wait_for(running, 30)
    assert consumer.committed_at is None


async def test_a_packer_stops_though_nobody_answers_its_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While the broker is away, aiokafka keeps asking for the group's coordinator."""

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


async def test_offsets_too_far_apart_for_one_message_are_packed_one_by_one() -> None:
    offsets = [0, 1, (1 << 32) + 1, (1 << 32) + 2, 1 << 34]
    consumer = Consumer([[Record(offset, b"a") for offset in offsets]])
    told = await packed(consumer, linger_ms=1)
    assert told.offsets == offsets
    assert consumer.committed_at == (1 << 34) + 1
