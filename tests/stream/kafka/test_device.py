"""Senders and `send`: frames, tokens, order, bounds, and counts of arrivals."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiokafka.errors import KafkaError, KafkaTimeoutError, MessageSizeTooLargeError

import ldpstream as ldp
from ldpstream.agents.broker.record_time import record_time_ms
from ldpstream.agents.cli.send import Acknowledged, Delivery
from ldpstream.agents.device import Sender
from ldpstream.mechanisms.base.errors import ValueOutsideDomainError
from ldpstream.mechanisms.ledger import Ledger
from tests.stream.device_frames import BITS, NUMBERS, collection, read, times
from tests.stream.modes import MODES
from tests.stream.serving import START_MS


class Producer:
    """Acknowledges everything at once; keeps what is sent, and while it was open or not."""

    def __init__(self) -> None:
        self.open = False
        self.records: list[tuple[Any, ...]] = []

    async def start(self) -> None:
        self.open = True

    async def stop(self) -> None:
        self.open = False

    async def send(self, *fields: Any, timestamp_ms: int) -> None:
        assert timestamp_ms >= 0
        self.records.append((*fields, timestamp_ms, self.open))

    @property
    def sent(self) -> list[tuple[int | None, bytes]]:
        """Partitions and values, in order."""
        return [(partition, value) for _, partition, _, value, *_ in self.records]


async def test_tokens_come_from_the_ledger_and_say_the_partition(tmp_path: Path):
    spec = collection(NUMBERS + "one_report = true\npartitions = 5\n")
    plain, rule, producer = collection(), spec.one_report, Producer()
    hour_ms = rule.window_ms
    sender = Sender(spec, "nowhere:1", producer=producer)
    with Ledger(tmp_path / "ledger", specs=[(spec, hour_ms)], budget=99) as ledger:
        for hour in range(20):
            time_ms = START_MS + hour * hour_ms
            assert await sender.send_once(hour, ledger=ledger, time_ms=time_ms)
            assert not await sender.send_once(0, ledger=ledger, time_ms=time_ms + 1)
            await sender.send([hour], times_ms=[time_ms], secret=ledger.secret)
        starts_ms = START_MS + np.arange(20) * hour_ms
        wanted = spec.tokens(ledger.secret, starts_ms.repeat(2))
    assert [value[-8:] for _, value in producer.sent] == list(map(bytes, wanted))
    assert [partition for partition, _ in producer.sent] == rule.partition(wanted).tolist()
    assert len({partition for partition, _ in producer.sent}) > 1
    producer.records.clear()
    await sender.send_reports(np.zeros(40, int), times_ms=starts_ms.repeat(2), tokens=wanted)
    assert sorted(p for p, _ in producer.sent if p is not None) == sorted(
        set(rule.partition(wanted))
    )
    await Sender(plain, "nowhere:1", producer=producer).send([1])
    assert producer.sent[-1][0] is None


async def test_an_error_of_one_partition_is_raised_and_leaves_no_other_in_flight():
    class Failing(Producer):
        async def send(self, topic: str, partition: int, *fields: Any, timestamp_ms: int) -> None:
            if partition == 0:
                raise KafkaTimeoutError
            await asyncio.sleep(0)
            await super().send(topic, partition, *fields, timestamp_ms=timestamp_ms)

    spec, producer = collection(NUMBERS + "one_report = true\npartitions = 3\n"), Failing()
    times_ms = np.full(40, START_MS)
    tokens = np.concatenate([spec.tokens(bytes([n]) * 16, times_ms[:1]) for n in range(40)])
    sender = Sender(spec, "nowhere:1", producer=producer)
    with pytest.raises(KafkaTimeoutError):
        await sender.send_reports(np.zeros(40, int), times_ms=times_ms, tokens=tokens)
    assert sorted(partition for partition, _ in producer.sent if partition is not None) == [1, 2]


@pytest.mark.parametrize("toml", [NUMBERS, BITS])
def test_a_frame_is_sorted_and_does_not_show_who_came_first(toml: str):
    spec = collection(toml)
    reports = spec.privatize(np.arange(200) % 20)
    one, times_ms = reports[:1], np.array([START_MS + 7])
    encoded = spec.frame_encoded(spec.mechanism.encode(one), time_ms=START_MS + 7)
    assert encoded == spec.frame_reports(one, times_ms=times_ms)
    frames = []
    for order in (np.arange(200), np.random.default_rng(1).permutation(200)):
        frames.append(spec.frame_reports(reports[order], times_ms=times(200)[order]))
    assert frames[0] == frames[1]
    cut, _ = read(spec, frames[0])
    assert cut == sorted(cut)
    assert set(cut) == {START_MS, START_MS + 1_000, START_MS + 2_000}


async def test_senders_share_a_connection_and_send_nothing_besides_the_frame():
    hours = collection(NUMBERS.replace("ages", "hours") + 'precision = "1h"\n')
    sender, producer = Sender(collection(), "127.0.0.1:1"), Producer()
    sender._producer = producer
    async with sender:
        other = sender.sharing(hours)
        async with other:
            await other.send([1, 2])
        assert producer.open
        await sender.send([3], times_ms=[START_MS])
    assert not producer.open
    for spec, record in zip((hours, collection()), producer.records, strict=True):
        topic, partition, key, value, timestamp_ms, was_open = record
        assert (topic, partition, key, was_open) == (spec.topic, None, None, True)
        assert timestamp_ms % spec.precision_ms == 0
        assert value[4:12] == spec.fingerprint


def test_record_times_are_truncated_but_never_by_more_than_a_day():
    now_ms = START_MS + 61_234
    assert record_time_ms(now_ms, precision_ms=1) == now_ms
    assert record_time_ms(now_ms, precision_ms=60_000) == START_MS + 60_000
    for precision_ms in (86_400_000, 700 * 86_400_000):
        assert record_time_ms(now_ms, precision_ms=precision_ms) == START_MS - START_MS % 86_400_000


HOUR_MS = 3_600_000
AGES = ldp.define_collection(
    "ages",
    mechanism="randomized-response",
    epsilon=60.0,  # a report shows its value
    domain={"interval": [0, 100], "bins": 10},
)


def reports(kept: Producer) -> list[int]:
    size = AGES.spec.report_bytes
    return [int.from_bytes(frame[-size:], "little") for _, frame in kept.sent]


async def test_numbers_outside_move_to_the_nearest_end():
    kept = Producer()
    sender = Sender(AGES.spec, "unused:1", producer=kept)
    for age in (150, -1, 42):
        await sender.send([age], clamp=True)
    for age in (100, 0, 42):
        await sender.send([age])
    found = reports(kept)
    assert found[:3] == found[3:]
    assert len(set(found)) == 3
    with pytest.raises(ValueOutsideDomainError):
        await sender.send([150])
    with pytest.raises(ValueOutsideDomainError):
        await sender.send([float("nan")], clamp=True)
    with pytest.raises(ValueError, match="clamp: expected a collection with only numbers"):
        await Sender(MODES.spec, "unused:1", producer=kept).send(["bus"], clamp=True)


async def test_a_ledger_takes_what_was_moved(tmp_path: Path):
    kept = Producer()
    sender = Sender(AGES.spec, "unused:1", producer=kept)
    with Ledger(tmp_path / "ledger", specs=[(AGES.spec, HOUR_MS)], budget=600) as ledger:
        with pytest.raises(ValueOutsideDomainError):
            await sender.send_once(150, ledger=ledger, time_ms=0)
        assert await sender.send_once(150, ledger=ledger, time_ms=0, clamp=True)
    await sender.send([100])
    first, second = reports(kept)
    assert first == second


class FakeBatch:
    def __init__(self, room: int) -> None:
        self.room = room
        self.values: list[bytes] = []

    def append(self, *, key: None, value: bytes, timestamp: int) -> object | None:
        if len(self.values) == self.room:
            return None
        assert timestamp % 1_000 == 0
        self.values.append(value)
        return object()


class Batching:
    """Acknowledges batches at once or later, and refuses those that hold a certain message."""

    def __init__(self, *, room: int, refused: bytes = b"", at_once: bool = True) -> None:
        self.room = room
        self.refused = refused
        self.at_once = at_once
        self.sent: list[tuple[int, list[bytes]]] = []
        self.waiting: list[asyncio.Future[None]] = []

    def create_batch(self) -> FakeBatch:
        return FakeBatch(self.room)

    async def send_batch(self, batch: FakeBatch, topic: str, *, partition: int) -> Any:
        self.sent.append((partition, batch.values))
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.refused in batch.values:
            future.set_exception(MessageSizeTooLargeError())
        elif self.at_once:
            future.set_result(None)
        else:
            self.waiting.append(future)
        return future


async def test_a_refused_batch_is_raised_and_not_counted():
    producer = Batching(room=2, refused=b"5")
    delivery = Delivery(producer, "t", 1, precision_ms=1_000)
    for i in range(10):
        await delivery.add(b"%d" % i, reports=10)
    with pytest.raises(KafkaError):
        await delivery.flush()
    assert delivery.acknowledged == Acknowledged(messages=8, reports=80)


async def test_messages_in_flight_are_bounded():
    producer = Batching(room=1, at_once=False)
    delivery = Delivery(producer, "t", 1, precision_ms=1_000)

    async def add_all() -> None:
        for i in range(200):
            await delivery.add(b"%d" % i, reports=1)
        await delivery.flush()

    task = asyncio.create_task(add_all())
    for _ in range(1_000):
        await asyncio.sleep(0)
    assert 1 < len(producer.sent) <= 64
    while not task.done():
        for future in producer.waiting:
            if not future.done():
                future.set_result(None)
        await asyncio.sleep(0)
    await task
    assert delivery.acknowledged.messages == 200
