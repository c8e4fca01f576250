"""Whether the broker answers, judged by the wall-clock times of its answers."""

import logging
from collections.abc import Iterable
from typing import cast

import pytest
from aiokafka.errors import GroupCoordinatorNotAvailableError, KafkaError

from ldpstream.agents.broker.health import BrokerWatch, GroupWatch
from ldpstream.agents.engine import periodic_tasks
from ldpstream.agents.engine.periodic_tasks import Group, keep_in_group


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
