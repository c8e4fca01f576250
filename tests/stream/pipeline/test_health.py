"""What a worker knows of its broker: whether it answers, the time, and its topics."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    KafkaConnectionError,
    KafkaError,
    UnknownTopicOrPartitionError,
)

from ldpstream.agents.broker import identity
from ldpstream.agents.broker.health import BrokerWatch, GroupWatch
from ldpstream.agents.broker.identity import MISSING_SECONDS, TopicIdentity
from ldpstream.agents.broker.metadata import TopicState
from ldpstream.agents.config.collection import Topics
from ldpstream.agents.engine import periodic_tasks
from ldpstream.agents.engine.clock import WorkerClock
from ldpstream.agents.engine.periodic_tasks import Group, keep_in_group
from ldpstream.agents.state.loading import skew_limit_ms
from tests.stream.harness import HOUR_MS


def test_a_silent_broker_is_logged_once_and_so_is_its_return(caplog: pytest.LogCaptureFixture):
    watch = BrokerWatch()
    with caplog.at_level(logging.INFO, logger="ldpstream"):
        watch.update(None, "b:1", 5.0)
        for second in range(3):
            watch.update(100 + second, "b:1", 10.0 + second)
        for second in range(13, 40):
            watch.update(102, "b:1", float(second))
        assert watch.silent
        watch.update(103, "b:1", 42.0)
        assert not watch.silent
    assert caplog.messages == [
        "no answer from the broker at b:1: waiting for it",
        "the broker at b:1 answers again after 30 s",
    ]


@pytest.mark.parametrize("step_ms", [7_200_000, -7_200_000])
def test_a_clock_that_is_set_is_not_taken_for_silence(
    step_ms: int, caplog: pytest.LogCaptureFixture
):
    watch = BrokerWatch()
    for second in range(10):
        stamp = 1_800_000_000_000 + 1_000 * second + (step_ms if 3 < second < 7 else 0)
        watch.update(stamp, "b:1", float(second))
        assert not watch.silent
    assert not caplog.messages


def test_why_nothing_is_read_is_told_once_it_has_lasted(caplog: pytest.LogCaptureFixture):
    watch = BrokerWatch()
    watch.update(100, "b:1", 0.0)
    for second in range(1, 11):
        watch.update(100, "b:1", float(second), problem="no topic" if second > 5 else "")
        assert not watch.silent
    watch.update(100, "b:1", 11.0, problem="no topic")
    assert (watch.silent, watch.problem) == (True, "no topic")
    # One that comes back answers before it sends anything.
    for second in range(12, 20):
        watch.update(100, "b:1", float(second), problem="no topic" if second > 15 else "")
        assert (watch.silent, watch.problem) == (True, "the broker does not answer")
    watch.update(101, "b:1", 20.0)
    assert not watch.silent
    assert caplog.messages == [
        "nothing can be read: no topic",
        "no answer from the broker at b:1: waiting for it",
    ]


class _EndError(Exception):
    """Nothing more is to be looked at."""


class _GroupWithoutCoordinator:
    id, session_ms = "w", 6_000

    def __init__(self, broker: BrokerWatch, stamps: Iterable[int]) -> None:
        self._broker = broker
        self._stamps = enumerate(stamps)

    async def refusal(self) -> KafkaError | None:
        second, stamp = next(self._stamps, (None, 0))
        if second is None:
            raise _EndError
        self._broker.update(stamp, "b:1", float(second))
        return GroupCoordinatorNotAvailableError()


async def _watched(stamps: Iterable[int], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what is told after a look at each stamp of the broker's last answer."""
    monkeypatch.setattr(periodic_tasks, "_JOIN_SECONDS", 0.0)
    broker, watch = BrokerWatch(), GroupWatch()
    group = cast("Group", _GroupWithoutCoordinator(broker, stamps))
    with pytest.raises(_EndError):
        await keep_in_group(group, watch, broker)
    return watch.problem


async def test_a_missing_coordinator_is_told_once_the_broker_has_answered_for_long(
    monkeypatch: pytest.MonkeyPatch,
):
    assert "no broker keeps the offsets" in await _watched(range(20), monkeypatch)
    assert not await _watched(range(10), monkeypatch)


async def test_a_missing_coordinator_of_a_broker_that_has_just_left_is_not_told(
    monkeypatch: pytest.MonkeyPatch,
):
    # The broker is known to be silent only after five seconds.
    assert not await _watched([*range(14), 13, 13, 13, 13], monkeypatch)


async def test_time_of_a_suspended_process_is_not_told_as_a_missing_coordinator(
    monkeypatch: pytest.MonkeyPatch,
):
    clock = iter(range(0, 1_000, 60))
    monkeypatch.setattr(periodic_tasks.time, "monotonic", lambda: float(next(clock)))
    assert not await _watched(range(5), monkeypatch)


class World:
    """A machine with two clocks, and a broker with the right one."""

    def __init__(self) -> None:
        self.true_ms, self.off_ms, self.seconds = 1_800_000_000_000, 0, 5.0
        self.clock = WorkerClock(
            1_000, wall_ms=lambda: self.true_ms + self.off_ms, seconds=lambda: self.seconds
        )

    def pass_ms(self, duration_ms: int) -> None:
        self.true_ms += duration_ms
        self.seconds += duration_ms / 1000

    def ask(self) -> None:
        sent_ms = self.clock.sent()
        self.pass_ms(40)
        appended_ms = self.true_ms
        self.pass_ms(60)
        self.clock.acknowledged(sent_ms, appended_ms)


@pytest.mark.parametrize(("grace_ms", "limit_ms"), [(0, 1_000), (6_000, 3_000), (60_000, 5_000)])
def test_the_skew_limit_is_half_the_grace_within_bounds(grace_ms: int, limit_ms: int):
    assert skew_limit_ms(grace_ms) == limit_ms


@pytest.mark.parametrize(("appended_ms", "skew_ms"), [(200, 0), (-200, 300), (700, -300)])
def test_an_acknowledgement_bounds_the_skew(appended_ms: int, skew_ms: int):
    clock = WorkerClock(1_000, wall_ms=lambda: 400, seconds=lambda: 0.0)
    clock.acknowledged(100, appended_ms)
    assert clock.skew_ms == skew_ms


@pytest.mark.parametrize("off_ms", [2 * HOUR_MS, -2 * HOUR_MS, 1_500, -1_500])
def test_a_step_changes_no_time_before_the_broker_confirms_it(off_ms: int):
    world = World()
    world.ask()
    assert not world.clock.wrong
    world.off_ms = off_ms
    assert world.clock.now_ms() == world.true_ms
    world.pass_ms(3_000)
    assert world.clock.now_ms() == world.true_ms
    assert world.clock.stepped
    world.ask()
    assert world.clock.wrong
    assert ("ahead of" if off_ms > 0 else "behind") in world.clock.problem
    world.off_ms = 0
    world.ask()
    assert (world.clock.wrong, world.clock.problem) == (False, "")
    assert world.clock.now_ms() == world.true_ms


def test_a_clock_that_was_wrong_from_the_start_is_left_once_it_is_set_right():
    world = World()
    world.off_ms = 2 * HOUR_MS
    clock = world.clock = WorkerClock(
        1_000, wall_ms=lambda: world.true_ms + world.off_ms, seconds=lambda: world.seconds
    )
    world.ask()
    assert clock.wrong
    world.off_ms = 0
    world.ask()
    assert not clock.wrong
    assert clock.now_ms() == world.true_ms


def test_slow_adjustments_are_followed():
    world = World()
    for _ in range(10):
        world.off_ms += 90
        world.pass_ms(1_000)
        assert world.clock.now_ms() == world.true_ms + world.off_ms
    world.ask()
    assert (world.clock.stepped, world.clock.wrong) == (False, False)


def test_a_broker_that_dates_nothing_is_asked_no_more_often_than_one_that_does():
    now = [0.0]
    clock = WorkerClock(1_000, wall_ms=lambda: int(now[0] * 1000), seconds=lambda: now[0])
    asked = 0
    for _ in range(400):
        asked += clock.due(10.0)
        now[0] += 0.25
    assert asked == 10
    clock.acknowledged(clock.sent(), int(now[0] * 1000))
    assert not clock.due(10.0)
    now[0] += 10.0
    assert clock.due(10.0)


TOPICS = Topics.derive("rides", worker_id="w", collection="rides")
THERE = {
    TOPICS.source: TopicState(4, UUID(int=1)),
    TOPICS.changelog: TopicState(4, UUID(int=2)),
}


class Broker:
    """Gives the answers, and has the time, that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answer: Mapping[str, TopicState] | KafkaError = THERE
        self.now = 100.0

        async def describe(*_: Any) -> Mapping[str, TopicState]:
            await asyncio.sleep(0)
            self.now += 1
            if isinstance(self.answer, KafkaError):
                raise self.answer
            return self.answer

        monkeypatch.setattr(identity, "describe", describe)
        self.identity = TopicIdentity(seconds=lambda: self.now)
        self.identity._ids.update({name: state.id for name, state in THERE.items()})
        self.identity._client = cast("AIOKafkaAdminClient", SimpleNamespace())

    async def check(self, after_seconds: float) -> None:
        self.now += after_seconds
        await self.identity.check((TOPICS.source, TOPICS.changelog), then="start over")


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    return Broker(monkeypatch)


async def test_a_broker_that_starts_knows_its_topics_later(broker: Broker) -> None:
    for _ in range(3):
        broker.answer = {}
        for _ in range(2):
            with pytest.raises(UnknownTopicOrPartitionError):
                await broker.check(MISSING_SECONDS * 0.9)
            # The broker goes away again.
            broker.answer = KafkaConnectionError()
            with pytest.raises(KafkaConnectionError):
                await broker.check(MISSING_SECONDS)
            broker.answer = {}
        broker.answer = THERE
        await broker.check(1)


async def test_concurrent_checks_share_one_failure(broker: Broker) -> None:
    broker.answer = {}
    with pytest.raises(UnknownTopicOrPartitionError):
        await broker.check(1)
    broker.answer = KafkaConnectionError()
    checks = [broker.check(0) for _ in range(4)]
    found = await asyncio.gather(*checks, return_exceptions=True)
    assert [type(one) for one in found] == [KafkaConnectionError] * 4


async def test_a_check_behind_a_cancelled_one_asks_by_itself(broker: Broker) -> None:
    broker.answer = {}
    first = asyncio.create_task(broker.check(1))
    second = asyncio.create_task(broker.check(0))
    third = asyncio.create_task(broker.check(0))
    await asyncio.sleep(0)
    first.cancel()
    broker.answer = THERE
    await asyncio.gather(second, third)
    with pytest.raises(asyncio.CancelledError):
        await first
