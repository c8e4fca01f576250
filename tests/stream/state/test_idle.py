"""Partitions without messages: when they are idle, and which clock closes their panes."""

import pytest

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


def test_a_partition_without_probes_is_not_idle():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, at(0))
    cluster.step()
    cluster.now_ms += HOUR_MS
    cluster.clock(0, probed=False)
    assert not cluster.part().work.idle
    cluster.clock(0)
    assert cluster.part().work.idle


def test_an_end_that_anybody_has_seen_has_to_be_reached():
    """A new leader may not know yet where its log ends."""
    cluster = Cluster(make_context(HOURLY), partitions=1, now_ms=NOW_MS)
    cluster.produce(0, at(0))
    cluster.step()
    cluster.part().read_to(1, end=3, asked_ms=cluster.now_ms)
    cluster.part().ingest([(1, at(1))], now_ms=cluster.now_ms)
    cluster.flush(0)
    assert cluster.head().end == 3
    cluster.take_over(0)
    cluster.produce(0, at(1))
    cluster.steps(60, SECOND_MS)
    assert not cluster.head().idle
    cluster.produce(0, at(2))
    cluster.steps(60, SECOND_MS)
    assert cluster.head().idle


@pytest.mark.parametrize("old", ["records", "probes"])
def test_redelivery_after_a_rebalance_does_not_prove_idleness(old: str):
    """The end seen before is stale: hundreds of unread messages have come since."""
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, at(0))
    cluster.step()
    asked_ms = cluster.now_ms
    cluster.produce(0, *[at(1)] * 500)
    for _ in range(120):
        cluster.now_ms += SECOND_MS
        times = {"records": cluster.now_ms, "probes": asked_ms}
        cluster.part().read_to(1, end=1 if old == "probes" else 501, asked_ms=times[old])
        cluster.clock(0, probed=False)
        assert not cluster.part().work.idle


def test_a_fetch_error_restarts_the_idle_time():
    cluster = Cluster(make_context(HOURLY), now_ms=NOW_MS)
    cluster.produce(0, at(0))
    cluster.step()
    cluster.now_ms += 29 * SECOND_MS
    cluster.part().interrupted()
    cluster.probed_ms[0] = cluster.now_ms
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
    # From now on, without counts: a head for the pane and one for the window.
    assert len(cluster.steps(60, MINUTE_MS)) == 2
