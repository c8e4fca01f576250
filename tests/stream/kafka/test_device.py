"""Senders and their frames: sizes, order, tokens, and what a record holds besides its frame."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.agents.broker.record_time import record_time_ms
from ldpstream.agents.device import Framer, Sender
from ldpstream.mechanisms.ledger import Ledger
from tests.stream.device_frames import BITS, NUMBERS, collection, read, times
from tests.stream.serving import START_MS


class Producer:
    """Acknowledges everything at once; keeps partitions and values, in order."""

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
def test_a_frame_is_sorted_and_does_not_show_who_came_first(toml: str):
    spec = collection(toml)
    reports = spec.privatize(np.arange(200) % 20)
    one, times_ms = reports[:1], np.array([START_MS + 7])
    encoded = spec.frame_encoded(spec.mechanism.encode(one), time_ms=START_MS + 7)
    assert encoded == spec.frame_reports(one, times_ms=times_ms)
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
    # 12 bytes of header, and 12 + 2 for each report with its own time.
    framer = Framer(spec, max_bytes=12 + 5 * 14 + 13)
    assert framer.add(reports, when) == 5
    taken = framer.take()
    assert taken is not None
    assert len(taken) == 12 + 5 * 14
    # Reports of one time take less, so more fit.
    assert framer.add(reports, np.full(100, START_MS)) == (5 * 14 + 13 - 12) // 2
    with pytest.raises(ValueError, match="one time for each"):
        framer.add(reports, when[:5])
    with pytest.raises(ValueError, match="at least one report"):
        Framer(spec, max_bytes=25)


class FakeProducer:
    """Keeps what is sent, and whether it is open."""

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


async def test_senders_share_a_connection_and_send_nothing_besides_the_frame():
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


def test_record_times_are_truncated_but_never_by_more_than_a_day():
    now_ms = START_MS + 61_234
    assert record_time_ms(now_ms, precision_ms=1) == now_ms
    assert record_time_ms(now_ms, precision_ms=60_000) == START_MS + 60_000
    for precision_ms in (86_400_000, 700 * 86_400_000):
        assert record_time_ms(now_ms, precision_ms=precision_ms) == START_MS - START_MS % 86_400_000
