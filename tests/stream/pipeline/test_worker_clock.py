"""A worker's clock: steady through steps, and compared with the broker's timestamps."""

import pytest

from ldpstream.agents.engine.clock import WorkerClock
from ldpstream.agents.state.loading import skew_limit_ms
from tests.stream.harness import HOUR_MS


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
