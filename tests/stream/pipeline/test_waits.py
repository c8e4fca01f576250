"""What open windows wait for: the partition, for how long, and why."""

from dataclasses import dataclass, replace

import pytest

from ldpstream.agents.engine.waits import Wait, WindowWaits
from ldpstream.agents.state.windows import WindowSpec
from tests.stream.harness import Cluster, frame, make_context
from tests.stream.hourly import MINUTE_MS, NOW_MS, SECOND_MS
from tests.stream.owning import Times

MINUTELY = WindowSpec(
    size_ms=MINUTE_MS,
    hop_ms=MINUTE_MS,
    grace_ms=10 * SECOND_MS,
    idle_ms=30 * SECOND_MS,
    future_ms=10 * SECOND_MS,
)


@dataclass
class World:
    """Two partitions, of which the first one reports every second, and what is watched."""

    window: WindowSpec = MINUTELY

    def __post_init__(self) -> None:
        self.cluster = Cluster(make_context(self.window), partitions=2, now_ms=NOW_MS)
        self.waits = WindowWaits("trips", self.cluster.context)
        self.cluster.produce(1, frame((NOW_MS, 0)))
        self.cluster.steps(2)

    def look(self, *, owned: frozenset[int] = frozenset({0, 1}), loaded: bool = True) -> list[Wait]:
        cluster = self.cluster
        seconds = cluster.now_ms / SECOND_MS
        clock = Times(lambda: cluster.now_ms, lambda: cluster.now_ms, lambda: seconds)
        states = {p: part for p, part in cluster.parts.items() if p in owned and loaded}
        self.waits.update(cluster.replicas[:2], states, owned, clock=clock)
        return list(self.waits.waits)

    def pass_by(self, seconds: int, *, probed: bool = True, reports: bool = True) -> list[Wait]:
        """Let partition 0 go on; partition 1 is only probed."""
        for _ in range(seconds):
            self.cluster.now_ms += SECOND_MS
            if reports:
                self.cluster.produce(0, frame((self.cluster.now_ms, 0)))
            self.cluster.ingest(0)
            for p in range(2):
                self.cluster.clock(p, probed=probed)
                self.cluster.flush(p)
            self.cluster.publish()
            self.look()
        return list(self.waits.waits)


def test_nothing_waits_while_windows_close() -> None:
    world = World()
    for _ in range(20):
        assert all(wait.seconds == 0 for wait in world.pass_by(10))
    assert world.cluster.published


def test_unread_messages_are_waited_for() -> None:
    world = World()
    world.cluster.produce(1, *[b"garbage"] * 12)
    (wait,) = world.pass_by(130)
    assert (wait.partition, wait.window_end_ms) == (1, NOW_MS + MINUTE_MS)
    assert wait.reason == "12 of its messages are unread"
    assert 20 <= wait.seconds <= 40
    assert str(wait) == (
        "windows up to 2026-11-21T10:01:00Z wait for partition 1 for "
        f"{wait.seconds:.0f} s longer than usual: 12 of its messages are unread"
    )
    world.cluster.ingest(1)
    world.cluster.steps(2)
    world.pass_by(40)
    assert world.look() == []


def test_a_broker_that_confirms_nothing_is_waited_for() -> None:
    world = World()
    waits = world.pass_by(120, probed=False, reports=False)
    assert [wait.partition for wait in waits] == [0, 1]
    assert {wait.reason for wait in waits} == {
        "the broker has not confirmed for some seconds where its log ends"
    }


def test_a_long_wait_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.cluster.produce(1, b"garbage")
    world.pass_by(600)
    (said,) = caplog.messages
    assert said.startswith("collection trips: windows up to 2026-11-21T10:01:00Z wait for")


def test_reports_dated_earlier_are_waited_for() -> None:
    world = World()
    world.pass_by(60)
    world.cluster.produce(1, frame((NOW_MS + 20 * SECOND_MS, 0)))
    world.cluster.ingest(1)
    (wait,) = world.pass_by(12)
    assert wait.reason == "its last report, counted 11 s ago, is dated before their end and grace"


def test_what_came_before_a_partition_was_loaded_did_not_come_just_now() -> None:
    world = World()
    world.pass_by(60)
    world.cluster.take_over(1)
    (wait,) = world.pass_by(12)
    assert wait.reason == "it was loaded 11 s ago, and no report has come since"


def test_a_partition_that_has_closed_waits_for_the_broker_alone() -> None:
    """The broker is slow to store: the partition's reports have long passed the window."""
    world = World()
    world.pass_by(60)
    for _ in range(20):
        world.cluster.now_ms += SECOND_MS
        for p in range(2):
            world.cluster.produce(p, frame((world.cluster.now_ms, 0)))
            world.cluster.ingest(p)
            world.cluster.clock(p)
        world.cluster.flush(0)
        world.look()
    (wait,) = world.waits.waits
    assert wait.partition == 1
    assert wait.reason == "it has closed them, but the broker has not stored that yet"


def test_without_idle_the_operator_is_waited_for() -> None:
    world = World(replace(MINUTELY, idle_ms=None))
    (wait,) = world.pass_by(100)
    assert "`ldpstream close`" in wait.reason
    world.cluster.close(NOW_MS + 5 * MINUTE_MS)
    world.cluster.steps(3)
    world.cluster.now_ms += SECOND_MS
    assert world.look() == []


@pytest.mark.parametrize(
    ("owned", "said"),
    [({0}, "another worker owns it"), ({0, 1}, "this worker has not loaded it yet")],
)
def test_a_partition_that_is_not_held_here_is_named_too(owned: set[int], said: str) -> None:
    world = World()
    world.cluster.produce(1, b"garbage")
    world.pass_by(80)
    del world.cluster.parts[1]
    world.cluster.now_ms += SECOND_MS
    (wait,) = world.look(owned=frozenset(owned))
    assert wait.partition == 1
    assert wait.reason.startswith(said)


def test_a_replay_waits_for_nothing() -> None:
    """Its windows have long been over by the clock, and become final as it goes on."""
    world = World()
    world.cluster = Cluster(world.cluster.context, partitions=2, now_ms=NOW_MS + 10**9)
    for seconds in range(0, 600, 20):
        world.cluster.now_ms += SECOND_MS
        for p in range(2):
            world.cluster.produce(p, frame((NOW_MS + seconds * SECOND_MS, 0)))
        world.cluster.step()
        assert all(wait.seconds == 0 for wait in world.look())
    assert world.cluster.published


def test_the_owner_of_partition_0_is_waited_for_once_all_have_closed() -> None:
    world = World()
    world.pass_by(60)
    first = world.cluster.parts.pop(0)
    for _ in range(60):
        world.cluster.now_ms += SECOND_MS
        report = frame((world.cluster.now_ms, 0))
        world.cluster.produce(0, report)
        first.ingest([(first.next, report)], now_ms=world.cluster.now_ms)
    world.cluster.parts[0] = first
    world.cluster.flush(0)
    world.cluster.clock(1)
    world.cluster.flush(1)
    world.cluster.now_ms += SECOND_MS
    (wait,) = world.look(owned=frozenset({1}))
    assert wait.partition == 0
    assert "has not stored their finals" in wait.reason
