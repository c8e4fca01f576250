"""The gateway of the device SDK: frames are shared, acknowledged and bounded in number."""

import asyncio
from typing import Any

import numpy as np
import pytest
from aiokafka.errors import KafkaTimeoutError

from ldpstream.agents.device import Gateway
from ldpstream.mechanisms import CollectionSpec
from tests.stream.device_frames import collection, read, times


class FakeSender:
    """Keeps frames, and acknowledges them once it may."""

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


async def test_a_frame_is_sent_after_it_has_lingered():
    spec = collection()
    sender = FakeSender(spec)
    async with gateway(sender, linger_seconds=0.02) as one:
        async with asyncio.timeout(60):
            await one.add(spec.privatize([1, 2]), times_ms=times(2))
        assert len(sender.frames) == 1
        async with asyncio.timeout(60):
            await one.add(spec.privatize([3]), times_ms=times(1))
        assert len(sender.frames) == 2


async def test_add_returns_only_after_the_broker_has_acknowledged():
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
        # A call that spans two frames raises the error of either.
        sender.errors = [KafkaTimeoutError()]
        with pytest.raises(KafkaTimeoutError):
            await one.add(spec.privatize(np.arange(8)), times_ms=times(8))
        assert one.waiting == 0


async def test_an_unexpected_error_leaves_nobody_waiting():
    spec = collection()
    reports, sender = spec.privatize(np.arange(10)), FakeSender(spec)
    sender.errors.append(ZeroDivisionError("in a client"))
    async with gateway(sender, max_reports=10, max_waiting=10) as one, asyncio.timeout(30):
        with pytest.raises(ZeroDivisionError):
            await one.add(reports, times_ms=times(10))
        # The failed reports no longer count as waiting.
        await one.add(reports, times_ms=times(10))
    assert len(sender.frames) == 2


async def test_memory_is_bounded_and_those_who_wait_go_on():
    spec = collection()
    sender = FakeSender(spec, held=True)
    async with gateway(sender, max_reports=10, max_waiting=30) as one:
        adding = asyncio.ensure_future(one.add(spec.privatize(np.arange(95)), times_ms=times(95)))
        for _ in range(50):
            await asyncio.sleep(0)
        assert one.waiting == 30
        assert len(sender.frames) == 3
        sender.may.set()
        # The rest does not fill a frame, and is sent when the gateway is closed.
        for _ in range(200):
            await asyncio.sleep(0)
        assert one.waiting == 5
    await adding
    assert sum(len(read(spec, frame)[1]) for frame in sender.frames) == 95


async def test_a_cancelled_caller_leaves_the_others_alone():
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
