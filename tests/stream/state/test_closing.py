"""When panes close: the watermark, grace, `close`, and time that leaps."""

import pytest

from ldpstream.agents.state.close_orders import Control, outstanding
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.base.times import LATEST_MS
from tests.stream.harness import HOUR_MS, Cluster, frame, make_context
from tests.stream.hourly import HOURLY, MINUTE_MS, NOW_MS, REPLAY_MS, SECOND_MS, at, starts


def test_a_pane_closes_a_grace_after_its_end():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS + 3 * HOUR_MS)
    cluster.produce(0, at(10), at(64.99), at(20))
    cluster.step()
    assert (cluster.head().n, cluster.head().late) == (3, 0)
    cluster.produce(0, at(65), at(20), at(70), at(59.99))
    cluster.step()
    assert (cluster.head().n, cluster.head().late) == (5, 2)


def test_late_reports_are_counted_apart_from_their_pane_and_copied():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS + 3 * HOUR_MS)
    cluster.produce(0, at(10), at(66), at(20))
    cluster.steps(4)
    assert cluster.finals() == [f"{NOW_MS} 1 1 0 1,0"]
    cluster.produce(0, at(30))
    cluster.steps(4)
    assert len(cluster.published) == 1
    assert cluster.replicas[0].totals(NOW_MS // HOUR_MS)[:2] == (1, 2)
    assert [copy.value for copy in cluster.copies] == [at(20), at(30)]


@pytest.mark.parametrize("years", [10, -10])
def test_an_event_ten_years_off_moves_no_clock(years: int):
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, at(0), frame((NOW_MS + years * 365 * 24 * HOUR_MS, 0)))
    cluster.step()
    assert cluster.head().n == 1
    assert cluster.head().clock == NOW_MS
    assert cluster.head().late + cluster.head().rejected.get("future", 0) == 1


def test_a_replay_never_jumps_to_the_wall_clock():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, at(50, start_ms=REPLAY_MS))
    cluster.steps(10, MINUTE_MS)
    clock = cluster.part().work.clock
    assert REPLAY_MS + 50 * MINUTE_MS < clock <= REPLAY_MS + 60 * MINUTE_MS
    assert not cluster.published
    cluster.produce(0, at(55, start_ms=REPLAY_MS))
    cluster.step()
    assert (cluster.head().n, cluster.head().late) == (2, 0)


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


def test_an_order_is_kept_until_all_partitions_include_it():
    cluster = Cluster(make_context(HOURLY), partitions=2, now_ms=NOW_MS)
    cluster.steps(2)
    cluster.close(REPLAY_MS + HOUR_MS, ends=[1, 0])
    (order,) = cluster.controls

    def left() -> list[Control]:
        return outstanding(HOURLY, cluster.controls, [cluster.head(p) for p in range(2)])

    cluster.steps(4)
    # The other partition has closed its panes.
    assert cluster.head(1).closed == (REPLAY_MS + HOUR_MS) // HOUR_MS
    assert left() == [order]
    cluster.produce(0, at(20, start_ms=REPLAY_MS))
    cluster.steps(4)
    assert left() == []
    # The next owner need not know the order.
    cluster.controls.clear()
    cluster.take_over(0)
    cluster.produce(0, at(30, start_ms=REPLAY_MS))
    cluster.step()
    assert cluster.head().late == 1
    assert outstanding(HOURLY, [order], [cluster.head(0), None]) == [order]


def test_close_accepts_the_latest_time():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, at(0))
    cluster.step()
    cluster.close(LATEST_MS)
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
def test_time_leaps_over_empty_panes(first_ms: int):
    # With panes of a millisecond, walking from pane to pane would never end.
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
        assert [name.number for name in cluster.replicas[p].cells if name.kind == "n"] == [NOW_MS]
        assert cluster.head(p).gone == 1


def test_nothing_is_decided_before_all_replicas_have_been_read():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    part = cluster.take_over(0)
    assert part is not None
    cluster.partitions = 9
    cluster.clock(0)
    assert part.work == Head()
