"""Partitions without messages: when they are idle, and which clock closes their panes."""

from ldpstream.agents.state.windows import NEVER, WindowSpec
from tests.stream.harness import HOUR_MS, Cluster, make_context
from tests.stream.hourly import HOURLY, MINUTE_MS, NOW_MS, SECOND_MS, at, starts


def test_one_idle_partition_closes_by_the_time_elapsed():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, at(0))
    cluster.step()
    cluster.steps(3, 10 * SECOND_MS)
    assert cluster.head().idle
    assert cluster.head().closed == NOW_MS // HOUR_MS - 1
    cluster.steps(4, HOUR_MS)
    assert starts(cluster) == [0]


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


def test_without_data_time_does_not_advance():
    cluster = Cluster(make_context(HOURLY), partitions=2, now_ms=NOW_MS)
    cluster.steps(5, HOUR_MS)
    assert cluster.steps(5, HOUR_MS) == []
    assert cluster.head().clock == NEVER
    cluster.produce(1, at(-600))
    cluster.step()
    assert (cluster.head(1).n, cluster.head(1).late) == (1, 0)


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
    # From now on, without counts: a head for the pane and one for the window.
    assert len(cluster.steps(60, MINUTE_MS)) == 2
