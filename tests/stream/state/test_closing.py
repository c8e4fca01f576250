"""When panes close: the watermark, grace, idle partitions, `close`, and time that leaps."""

import pytest

from ldpstream.agents.state.close_orders import Control, outstanding
from ldpstream.agents.state.closing import UnbrokenProbes
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.windows import NEVER, WindowSpec
from ldpstream.mechanisms.base.times import LATEST_MS
from tests.stream.harness import HOUR_MS, Cluster, frame, make_context, make_spec
from tests.stream.hourly import HOURLY, MINUTE_MS, NOW_MS, REPLAY_MS, SECOND_MS, at, starts


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
    cluster.partitions = 9
    cluster.clock(0)
    assert part.work == Head()


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


IDLE_MS = 30 * SECOND_MS
MINUTELY = WindowSpec(
    size_ms=MINUTE_MS,
    hop_ms=MINUTE_MS,
    grace_ms=10 * SECOND_MS,
    idle_ms=IDLE_MS,
    future_ms=10 * SECOND_MS,
)
OTHER, ACCEPTED = make_spec(name="other"), make_spec(name="accepted")
DAY_MS = 86_400_000
MESSAGES = {
    "no frame": b"old device",
    "no value": None,
    "another spec's": frame((NOW_MS, 0), spec=OTHER),
    "an accepted spec's": frame((NOW_MS, 0), spec=ACCEPTED),
    "a report that no value produces": frame((NOW_MS, 7)),
    "from the future": frame((NOW_MS + DAY_MS, 0)),
    "outside the years": frame((1 << 62, 0)),
    "late": frame((NOW_MS - DAY_MS, 0)),
}


def read(cluster: Cluster, p: int) -> None:
    """Read a partition to its end with one fetch, which was sent half a second ago."""
    part, end = cluster.part(p), len(cluster.source[p])
    part.ingest(list(enumerate(cluster.source[p]))[part.next :], now_ms=cluster.now_ms)
    part.read_to(end, end=end, asked_ms=cluster.now_ms - SECOND_MS // 2)
    cluster.clock(p, probed=False)
    if p == 0:
        cluster.publish()
    cluster.flush(p)


def lag_ms(cluster: Cluster, p: int) -> int:
    return cluster.now_ms - cluster.part(p).work.clock


@pytest.fixture
def cluster() -> Cluster:
    context = make_context(MINUTELY, accept=(ACCEPTED,))
    cluster = Cluster(context, partitions=2, now_ms=NOW_MS)
    cluster.produce(1, frame((NOW_MS, 0)))
    read(cluster, 0)
    read(cluster, 1)
    return cluster


@pytest.mark.parametrize("kind", MESSAGES)
def test_no_message_leaves_the_clock_behind_where_all_are_idle(cluster: Cluster, kind: str) -> None:
    """Time counts from the last report, less the idle time, whatever comes meanwhile."""
    # A report of yesterday is late only once a pane has closed.
    sent = range(100 if kind == "late" else 0, 200)
    for seconds in range(300):
        cluster.now_ms += SECOND_MS
        cluster.produce(seconds % 2, *[MESSAGES[kind]] * (seconds in sent))
        for p in range(2):
            read(cluster, p)
    assert [cluster.part(p).work.idle for p in range(2)] == [True, True]
    assert all(IDLE_MS <= lag_ms(cluster, p) <= IDLE_MS + SECOND_MS for p in range(2))
    assert len(cluster.published) == 1


def test_a_broken_proof_leaves_no_clock_behind(cluster: Cluster) -> None:
    for seconds in range(300):
        cluster.now_ms += SECOND_MS
        for p in range(2):
            if seconds in range(40, 100) or seconds == 120:
                cluster.part(p).interrupted()
            read(cluster, p)
    assert all(IDLE_MS <= lag_ms(cluster, p) <= IDLE_MS + SECOND_MS for p in range(2))


def test_messages_that_one_fetch_does_not_bring_are_read_by_the_next(cluster: Cluster) -> None:
    part = cluster.part(1)
    for seconds in range(60):
        cluster.now_ms += SECOND_MS
        end = len(cluster.source[1]) + 3
        cluster.produce(1, *[b"old device"] * 3)
        for stop in (end - 1, end):
            records = list(enumerate(cluster.source[1]))[part.next : stop]
            part.ingest(records, now_ms=cluster.now_ms)
            part.read_to(stop, end=end, asked_ms=cluster.now_ms)
            cluster.clock(1, probed=False)
            assert part.work.idle == (seconds * SECOND_MS >= IDLE_MS and stop == end)


PROBED_MS, GAP_MS = 5_000, 2_000


def probed(*asked_ms: int) -> UnbrokenProbes:
    probes = UnbrokenProbes(GAP_MS)
    for moment in asked_ms:
        probes.probed(moment)
    return probes


@pytest.mark.parametrize(
    ("asked", "now", "idle"),
    [
        ((), 60_000, False),
        ((0,), 0, False),
        (range(0, 5_001, 1_000), 5_000, True),
        (range(0, 5_001, 1_000), 4_999, False),
        (range(0, 5_001, 2_000), 6_000, True),
        # Two probes are too far apart, so the second begins a new series.
        ((0, 2_000, 4_001, 6_000), 6_000, False),
        ((0, 2_000, 4_001, 6_000, 8_000, 9_100), 9_100, True),
        # The last probe is too old.
        (range(0, 5_001, 1_000), 7_001, False),
        # A probe that is reported late neither breaks a series nor makes it longer.
        ((4_000, 5_000, 0, 6_000), 6_000, False),
        ((0, 2_000, 4_000, 5_000, 3_000), 7_000, True),
    ],
)
def test_an_unbroken_series_proves_idleness(asked: range, now: int, idle: bool) -> None:
    assert probed(*asked).last_for(PROBED_MS, now_ms=now) is idle


def test_a_broken_series_starts_again() -> None:
    probes = probed(*range(0, 5_001, 1_000))
    probes.broken()
    assert not probes.last_for(0, now_ms=5_000)
    probes.probed(6_000)
    assert not probes.last_for(PROBED_MS, now_ms=6_000)
    assert probes.last_for(0, now_ms=6_000)
