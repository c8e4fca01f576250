"""Framer and gateway: sizes, order, acknowledgement, errors, bounded memory."""

import asyncio
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiokafka.errors import KafkaTimeoutError
from numpy.typing import NDArray

from ldpstream.agents.device import Framer, Gateway, Sender
from ldpstream.agents.kafka.record_time import record_time_ms
from ldpstream.mechanisms import CollectionSpec, decode_frame
from ldpstream.mechanisms.ledger import Ledger
from tests.exact.test_vectors import spec_of

START_MS = 1_795_255_200_000
NUMBERS = """[collection.ages]
mechanism = "randomized-response"
epsilon = 1.0
domain = { size = 1000 }
"""
BITS = NUMBERS.replace("randomized-response", "l1-bits").replace("1000", "20")


def collection(toml: str = NUMBERS) -> CollectionSpec:
    return spec_of({"toml": toml})


def read(spec: CollectionSpec, frame: bytes) -> tuple[list[int], list[Any]]:
    """Return the times, one a report, and the reports of a frame."""
    size = spec.mechanism.report_bytes
    found = decode_frame(frame, fingerprint=spec.fingerprint, report_bytes=size)
    reports, valid = spec.mechanism.decode(found.payload)
    assert valid.all()
    return np.repeat(found.times_ms, found.counts).tolist(), reports.tolist()


def times(n: int, seconds: int = 3) -> NDArray[np.int64]:
    return START_MS + 7 + 1_000 * (np.arange(n, dtype=np.int64)[::-1] % seconds)


class Producer:
    """A broker that has everything at once: values by partition, in order."""

    def __init__(self) -> None:
        self.sent: list[tuple[int | None, bytes]] = []

    async def send(
        self, _topic: str, partition: int | None, _key: None, value: bytes, *, timestamp_ms: int
    ) -> None:
        assert timestamp_ms > 0
        self.sent.append((partition, value))


async def test_tokens_come_from_the_ledger_and_say_the_partition(tmp_path: Path):
    spec = collection(NUMBERS + "one_report = true\npartitions = 5\n")
    plain, rule, producer = collection(), spec.one_report, Producer()
    assert rule is not None
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
    producer.sent.clear()
    await sender.send_reports(np.zeros(40, int), times_ms=starts_ms.repeat(2), tokens=wanted)
    assert sorted(p for p, _ in producer.sent if p is not None) == sorted(
        set(rule.partition(wanted))
    )
    await Sender(plain, "nowhere:1", producer=producer).send([1])
    assert producer.sent[-1][0] is None


@pytest.mark.parametrize("toml", [NUMBERS, BITS])
def test_a_frame_is_sorted_and_does_not_tell_who_came_first(toml: str):
    spec = collection(toml)
    reports = spec.privatize(np.arange(200) % 20)
    frames = []
    for order in (np.arange(200), np.random.default_rng(1).permutation(200)):
        framer = Framer(spec)
        for i in order:
            assert framer.add(reports[i : i + 1], times(200)[i : i + 1]) == 1
        assert framer.count == 200
        frames.append(framer.take())
    assert frames[0] == frames[1]
    assert frames[0] is not None
    cut, _ = read(spec, frames[0])
    assert cut == sorted(cut)
    assert set(cut) == {START_MS, START_MS + 1_000, START_MS + 2_000}


def test_frames_end_by_number_and_by_bytes():
    spec = collection()
    reports, when = spec.privatize(np.arange(100)), times(100, seconds=100)
    framer = Framer(spec, max_reports=7)
    assert framer.add(reports, when) == 7
    assert framer.full
    assert framer.add(reports, when) == 0
    taken = framer.take()
    assert taken is not None
    assert sorted(read(spec, taken)[1]) == sorted(reports[:7].tolist())
    assert framer.take() is None
    # A head of 12 bytes, and 12 + 2 for each report of a time of its own.
    framer = Framer(spec, max_bytes=12 + 5 * 14 + 13)
    assert framer.add(reports, when) == 5
    taken = framer.take()
    assert taken is not None
    assert len(taken) == 12 + 5 * 14
    # Of one time many more fit.
    assert framer.add(reports, np.full(100, START_MS)) == (5 * 14 + 13 - 12) // 2
    with pytest.raises(ValueError, match="one time for each"):
        framer.add(reports, when[:5])
    with pytest.raises(ValueError, match="at least one report"):
        Framer(spec, max_bytes=25)


class FakeSender:
    """Keeps frames, and acknowledges them when it is told to."""

    def __init__(self, spec: CollectionSpec, *, held: bool = False) -> None:
        self.spec = spec
        self.frames: list[bytes] = []
        self.errors: list[Exception] = []
        self.may = asyncio.Event()
        if not held:
            self.may.set()

    async def produce(self, frame: bytes) -> None:
        self.frames.append(frame)
        await self.may.wait()
        if self.errors:
            raise self.errors.pop()


def gateway(sender: FakeSender, **options: Any) -> Gateway:
    return Gateway(sender, **{"linger_seconds": 60.0, **options})


async def test_reports_of_many_devices_share_frames_and_all_arrive():
    spec = collection()
    reports, sender = spec.privatize(np.arange(95)), FakeSender(spec)
    async with gateway(sender, max_reports=10) as one:
        adding = [
            asyncio.ensure_future(one.add(reports[i : i + 5], times_ms=times(95)[i : i + 5]))
            for i in range(0, 90, 5)
        ]
        await asyncio.gather(*adding)
        assert len(sender.frames) == 9
        last = asyncio.ensure_future(one.add(reports[90:], times_ms=times(5)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not last.done()
        assert one.waiting == 5
    await last
    arrived = [report for frame in sender.frames for report in read(spec, frame)[1]]
    assert sorted(arrived) == sorted(reports.tolist())


async def test_a_frame_goes_after_it_has_lingered():
    spec = collection()
    sender = FakeSender(spec)
    async with gateway(sender, linger_seconds=0.02) as one:
        await asyncio.wait_for(one.add(spec.privatize([1, 2]), times_ms=times(2)), 5)
        assert len(sender.frames) == 1
        await asyncio.wait_for(one.add(spec.privatize([3]), times_ms=times(1)), 5)
        assert len(sender.frames) == 2


async def test_nobody_is_told_before_the_broker_has_it():
    spec = collection()
    sender = FakeSender(spec, held=True)
    async with gateway(sender, max_reports=2) as one:
        adding = asyncio.ensure_future(one.add(spec.privatize([1, 2]), times_ms=times(2)))
        for _ in range(20):
            await asyncio.sleep(0)
        assert sender.frames
        assert not adding.done()
        sender.may.set()
        await adding


async def test_an_error_goes_to_all_whose_reports_were_in_the_frame_and_to_no_other():
    spec = collection()
    sender = FakeSender(spec)
    sender.errors = [KafkaTimeoutError()]
    async with gateway(sender, max_reports=4) as one:
        adding = [one.add(spec.privatize([i, i]), times_ms=times(2)) for i in range(4)]
        results = await asyncio.gather(*adding, return_exceptions=True)
        assert [isinstance(r, KafkaTimeoutError) for r in results] == [True, True, False, False]
        # One that spans two frames is told of either's error.
        sender.errors = [KafkaTimeoutError()]
        with pytest.raises(KafkaTimeoutError):
            await one.add(spec.privatize(np.arange(8)), times_ms=times(8))
        assert one.waiting == 0


async def test_what_is_put_together_is_in_one_frame_and_is_no_longer_kept_when_it_goes():
    spec = collection()
    sender = FakeSender(spec, held=True)
    async with gateway(sender, max_reports=10) as one:
        reports = spec.privatize(np.arange(6))
        kept = weakref.ref(reports)
        first = one.put(reports, times_ms=times(6))
        del reports
        second = one.put(spec.privatize(np.arange(6)), times_ms=times(6))
        assert kept() is None
        third = one.put(spec.privatize(np.arange(4)), times_ms=times(4))
        assert second is third is not first
        with pytest.raises(ValueError, match="than a frame holds"):
            one.put(spec.privatize(np.arange(11)), times_ms=times(11))
        with pytest.raises(ValueError, match="one time for each"):
            one.put(spec.privatize(np.arange(2)), times_ms=times(1))
        assert one.waiting == 16
        sender.may.set()
        await asyncio.wait([first, second])
    assert [len(read(spec, frame)[1]) for frame in sender.frames] == [6, 10]


async def test_memory_is_bounded_and_those_who_wait_go_on():
    spec = collection()
    sender = FakeSender(spec, held=True)
    async with gateway(sender, max_reports=10, max_waiting=30) as one:
        adding = asyncio.ensure_future(one.add(spec.privatize(np.arange(95)), times_ms=times(95)))
        for _ in range(50):
            await asyncio.sleep(0)
        assert one.waiting == 30
        assert not one.has_room(1)
        assert len(sender.frames) == 3
        sender.may.set()
        # What does not fill a frame lingers, so the end is by leaving.
        for _ in range(200):
            await asyncio.sleep(0)
        assert one.waiting == 5
        assert one.has_room(25)
    await adding
    assert sum(len(read(spec, frame)[1]) for frame in sender.frames) == 95


async def test_one_who_gives_up_leaves_the_others_alone():
    spec = collection()
    sender = FakeSender(spec)
    sender.errors = [KafkaTimeoutError()]
    async with gateway(sender) as one:
        given_up = asyncio.ensure_future(one.add(spec.privatize([1]), times_ms=times(1)))
        other = asyncio.ensure_future(one.add(spec.privatize([2]), times_ms=times(1)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        given_up.cancel()
    with pytest.raises(KafkaTimeoutError):
        await other
    assert given_up.cancelled()
    with pytest.raises(ValueError, match="max_waiting"):
        gateway(sender, max_reports=2, max_waiting=1)


class FakeProducer:
    """Notes what is sent, and whether it is open."""

    def __init__(self) -> None:
        self.open = False
        self.sent: list[tuple[Any, ...]] = []

    async def start(self) -> None:
        self.open = True

    async def stop(self) -> None:
        self.open = False

    async def send(self, *fields: Any, timestamp_ms: int) -> None:
        assert self.open
        self.sent.append((*fields, timestamp_ms))


async def test_senders_share_a_connection_and_tell_nothing_beside_the_frame():
    hours = collection(NUMBERS.replace("ages", "hours") + 'precision = "1h"\n')
    sender, producer = Sender(collection(), "127.0.0.1:1"), FakeProducer()
    sender._producer = producer
    async with sender:
        other = sender.sharing(hours)
        async with other:
            await other.send([1, 2])
        assert producer.open
        await sender.send([3], times_ms=[START_MS])
    assert not producer.open
    for spec, record in zip((hours, collection()), producer.sent, strict=True):
        topic, partition, key, value, timestamp_ms = record
        assert (topic, partition, key) == (spec.topic, None, None)
        assert timestamp_ms % spec.precision_ms == 0
        assert value[4:12] == spec.fingerprint


def test_record_times_are_cut_but_never_by_more_than_a_day():
    now_ms = START_MS + 61_234
    assert record_time_ms(now_ms, precision_ms=1) == now_ms
    assert record_time_ms(now_ms, precision_ms=60_000) == START_MS + 60_000
    for precision_ms in (86_400_000, 700 * 86_400_000):
        assert record_time_ms(now_ms, precision_ms=precision_ms) == START_MS - START_MS % 86_400_000
