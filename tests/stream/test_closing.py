"""When panes close: the watermark, grace, idle partitions, `close`, and time that leaps."""

import pytest

from ldpstream.agents.state.records import Head
from ldpstream.agents.state.windows import NEVER, WindowSpec
from ldpstream.mechanisms.times import LATEST_MS
from tests.stream.harness import HOUR_MS, Cluster, frame, make_context, make_spec

MINUTE_MS = 60_000
SECOND_MS = 1_000
NOW_MS = 1_795_255_200_000
REPLAY_MS = 1_270_000_800_000
HOURLY = WindowSpec(size_ms=HOUR_MS, hop_ms=HOUR_MS, grace_ms=5 * MINUTE_MS, idle_ms=30 * SECOND_MS)


def at(minutes: float, *, start_ms: int = NOW_MS) -> bytes:
    """A report some minutes after the start of an hour."""
    assert start_ms % HOUR_MS == 0
    return frame((start_ms + int(minutes * MINUTE_MS), 0))


def starts(cluster: Cluster) -> list[int]:
    return [(final.window_start_ms - NOW_MS) // HOUR_MS for final in cluster.published]


def test_a_pane_closes_a_grace_after_its_end():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS + 3 * HOUR_MS)
    cluster.produce(0, at(10), at(64.99), at(20))
    cluster.step()
    assert (cluster.head().n, cluster.head().late) == (3, 0)
    cluster.produce(0, at(65), at(20), at(70), at(59.99))
    cluster.step()
    assert (cluster.head().n, cluster.head().late) == (5, 2)


def test_late_reports_are_counted_beside_their_pane_and_copied():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS + 3 * HOUR_MS)
    cluster.produce(0, at(10), at(66), at(20))
    cluster.steps(4)
    assert cluster.finals() == [f"{NOW_MS} 1 1 0 1,0"]
    cluster.produce(0, at(30))
    cluster.steps(4)
    assert len(cluster.published) == 1
    assert cluster.tails[0].totals(NOW_MS // HOUR_MS)[:2] == (1, 2)
    assert [copy.value for copy in cluster.copies] == [at(20), at(30)]


def test_events_ahead_of_the_wall_are_rejected():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, frame((NOW_MS + 60_000, 0)), frame((NOW_MS + 60_001, 0)))
    cluster.step()
    assert (cluster.head().n, cluster.head().rejected) == (1, {"future": 1})


@pytest.mark.parametrize("years", [10, -10])
def test_an_event_ten_years_off_moves_nothing_it_should_not(years: int):
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, at(0), frame((NOW_MS + years * 365 * 24 * HOUR_MS, 0)))
    cluster.step()
    assert cluster.head().n == 1
    assert cluster.head().clock == NOW_MS
    assert cluster.head().late + cluster.head().rejected.get("future", 0) == 1


def test_one_idle_partition_closes_by_the_time_elapsed():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, at(0))
    cluster.step()
    cluster.steps(3, 10 * SECOND_MS)
    assert cluster.head().idle
    assert cluster.head().closed == NOW_MS // HOUR_MS - 1
    cluster.steps(4, HOUR_MS)
    assert starts(cluster) == [0]


def test_a_replay_never_jumps_to_the_wall():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, at(50, start_ms=REPLAY_MS))
    cluster.steps(10, MINUTE_MS)
    clock = cluster.part().work.clock
    assert REPLAY_MS + 50 * MINUTE_MS < clock <= REPLAY_MS + 60 * MINUTE_MS
    assert not cluster.published
    cluster.produce(0, at(55, start_ms=REPLAY_MS))
    cluster.step()
    assert (cluster.head().n, cluster.head().late) == (2, 0)


def test_an_idle_partition_follows_the_slowest_that_is_not():
    cluster = Cluster(make_context(HOURLY), partitions=3, now_ms=NOW_MS + 2 * HOUR_MS)
    cluster.steps(2)
    cluster.produce(0, at(5))
    cluster.produce(1, at(80))
    cluster.produce(2, at(10))
    cluster.steps(2)
    for minutes in (70, 75, 78):
        # Partition 0 has fallen silent; 1 and 2 go on.
        cluster.produce(1, at(80 + minutes - 70))
        cluster.produce(2, at(minutes))
        cluster.step(20 * SECOND_MS)
    assert [cluster.head(p).idle for p in range(3)] == [True, False, False]
    assert cluster.part(0).work.clock == NOW_MS + 75 * MINUTE_MS
    assert starts(cluster) == []
    cluster.steps(2)
    assert starts(cluster) == [0]


def test_windows_wait_for_a_partition_that_is_slow_and_not_idle():
    cluster = Cluster(make_context(HOURLY), partitions=2, now_ms=NOW_MS + 2 * HOUR_MS)
    cluster.steps(2)
    cluster.produce(0, at(70))
    cluster.produce(1, at(50))
    cluster.steps(5)
    assert not cluster.published
    cluster.produce(1, at(66))
    cluster.steps(3)
    assert starts(cluster) == [0]


def test_a_partition_that_never_had_data_does_not_stop_the_others():
    cluster = Cluster(make_context(HOURLY), partitions=2, now_ms=NOW_MS)
    cluster.produce(0, at(0))
    cluster.steps(8, 11 * SECOND_MS)
    cluster.steps(5, HOUR_MS)
    assert starts(cluster) == [0]
    assert cluster.head(1).n == 0


def test_without_data_no_time_goes_on():
    cluster = Cluster(make_context(HOURLY), partitions=2, now_ms=NOW_MS)
    cluster.steps(5, HOUR_MS)
    assert cluster.steps(5, HOUR_MS) == []
    assert cluster.head().clock == NEVER
    cluster.produce(1, at(-600))
    cluster.step()
    assert (cluster.head(1).n, cluster.head(1).late) == (1, 0)


@pytest.mark.parametrize("end_offset", [None, 5])
def test_a_partition_is_not_idle_while_it_may_have_missed_something(end_offset: int | None):
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, at(0))
    cluster.step()
    cluster.now_ms += HOUR_MS
    cluster.clock(0, end_offset=end_offset)
    assert not cluster.part().work.idle
    cluster.clock(0)
    assert cluster.part().work.idle


def test_a_fetch_error_restarts_the_idle_time():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, at(0))
    cluster.step()
    cluster.now_ms += 29 * SECOND_MS
    cluster.part().disturbed(now_ms=cluster.now_ms)
    cluster.step(29 * SECOND_MS)
    assert not cluster.head().idle
    cluster.step(SECOND_MS)
    assert cluster.head().idle


def test_a_takeover_restarts_the_idle_time():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, at(0))
    cluster.step()
    cluster.now_ms += 29 * SECOND_MS
    cluster.take_over(0)
    cluster.step(SECOND_MS)
    assert not cluster.head().idle


def test_idle_can_be_turned_off():
    window = WindowSpec(size_ms=HOUR_MS, hop_ms=HOUR_MS, idle_ms=None)
    cluster = Cluster(make_context(window), now_ms=NOW_MS)
    cluster.produce(0, at(0))
    cluster.steps(5, 24 * HOUR_MS)
    assert not cluster.head().idle
    assert not cluster.published


def test_an_idle_partition_writes_a_head_only_when_a_pane_closes():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, at(10))
    cluster.now_ms += 10 * MINUTE_MS
    cluster.steps(5, 15 * SECOND_MS)
    assert cluster.head().idle
    assert cluster.steps(50, MINUTE_MS) == []
    # The pane closes, its final is stored, and marked published.
    assert len(cluster.steps(20, MINUTE_MS)) == 3
    # From now on, with nothing counted: a head for the pane and one for the window.
    assert len(cluster.steps(60, MINUTE_MS)) == 2


def test_close_closes_all_panes_up_to_its_time_once_the_source_is_read():
    cluster = Cluster(make_context(HOURLY), partitions=2, now_ms=NOW_MS)
    cluster.steps(2)
    cluster.produce(0, at(10, start_ms=REPLAY_MS))
    cluster.produce(1, at(70, start_ms=REPLAY_MS))
    cluster.close(REPLAY_MS + HOUR_MS, ends=[2, 1])
    cluster.steps(4)
    assert not cluster.published
    cluster.produce(0, at(20, start_ms=REPLAY_MS))
    cluster.steps(4)
    assert cluster.finals() == [f"{REPLAY_MS} 2 0 0 2,0"]
    cluster.produce(0, at(30, start_ms=REPLAY_MS))
    cluster.step()
    assert cluster.head().late == 1
    cluster.close(REPLAY_MS + 2 * HOUR_MS)
    cluster.steps(4)
    assert len(cluster.published) == 2


def test_close_until_the_end_of_time_is_survived():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, at(0))
    cluster.step()
    cluster.close(1 << 100)
    cluster.steps(4)
    assert starts(cluster) == [0]
    assert cluster.head().clock == LATEST_MS + HOURLY.grace_ms


def test_a_longer_grace_later_reopens_nothing():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS + 2 * HOUR_MS)
    cluster.produce(0, at(10), at(66))
    cluster.steps(4)
    assert starts(cluster) == [0]
    generous = WindowSpec(size_ms=HOUR_MS, hop_ms=HOUR_MS, grace_ms=HOUR_MS)
    cluster.context = make_context(generous)
    cluster.take_over(0)
    cluster.produce(0, at(20))
    cluster.step()
    assert (cluster.head().n, cluster.head().late) == (2, 1)


@pytest.mark.parametrize("first_ms", [-2_000_000_000_000, 1_270_000_000_000])
def test_time_leaps_over_what_is_empty(first_ms: int):
    # Panes of a millisecond: what walked from pane to pane would not end today.
    window = WindowSpec(size_ms=2, hop_ms=1, idle_ms=30 * SECOND_MS, retention_ms=5)
    cluster = Cluster(make_context(window), partitions=2, now_ms=NOW_MS)
    cluster.steps(2)
    cluster.produce(0, frame((first_ms, 0)))
    cluster.produce(1, frame((first_ms + 1, 1)))
    cluster.step()
    cluster.produce(0, frame((NOW_MS, 0)))
    cluster.produce(1, frame((NOW_MS, 0)))
    cluster.steps(6)
    assert cluster.finals() == [
        f"{first_ms - 1} 1 0 0 1,0",
        f"{first_ms} 2 0 0 1,1",
        f"{first_ms + 1} 1 0 0 0,1",
    ]
    for p in range(2):
        assert [name.number for name in cluster.tails[p].cells if name.kind == "n"] == [NOW_MS]
        assert cluster.head(p).gone == 1


def test_precision_is_enforced():
    spec = make_spec(precision="1s")
    cluster = Cluster(make_context(HOURLY, spec=spec), now_ms=NOW_MS)
    cluster.produce(0, frame((NOW_MS, 0), (NOW_MS - 1, 1), spec=spec))
    cluster.step()
    assert (cluster.head().n, cluster.head().rejected) == (1, {"precision": 1})


def test_nothing_is_decided_before_all_tails_have_been_read():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    part = cluster.take_over(0)
    assert part is not None
    cluster.partitions = 9
    cluster.clock(0)
    assert part.work == Head()
