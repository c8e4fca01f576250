"""Messages that decide nothing for a state do not hold its clock, however many come."""

import pytest

from ldpstream.agents.state.windows import WindowSpec
from tests.stream.harness import Cluster, frame, make_context, make_spec
from tests.stream.hourly import MINUTE_MS, NOW_MS, SECOND_MS

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


def read_every_second(cluster: Cluster, seconds: int, *messages: bytes | None, p: int = 1) -> None:
    """Let partition 0 report every second, and others read what is sent to them, nothing else.

    So if there are messages every second, no fetch is without records.
    """
    for _ in range(seconds):
        cluster.now_ms += SECOND_MS
        cluster.produce(p, *messages)
        cluster.produce(0, frame((cluster.now_ms, 0)))
        for q in range(cluster.partitions):
            read(cluster, q)


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
def test_windows_close_over_messages_that_decide_nothing(cluster: Cluster, kind: str) -> None:
    if kind == "late":
        # Its panes are closed, as after the first windows.
        read_every_second(cluster, 120)
    before = cluster.part(1).work
    read_every_second(cluster, 240, MESSAGES[kind])
    after = cluster.part(1).work
    assert after.n == before.n
    decided = after.late - before.late + sum(after.rejected.values())
    assert decided == (0 if kind == "an accepted spec's" else 240)
    assert cluster.head(1).idle
    assert len(cluster.published) >= 3
    assert lag_ms(cluster, 1) <= 2 * SECOND_MS


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


def test_what_is_never_read_to_its_end_is_not_idle(cluster: Cluster) -> None:
    """At every moment something is unread, so there may be a report in it."""
    part = cluster.part(1)
    for _ in range(120):
        cluster.now_ms += SECOND_MS
        cluster.produce(1, *[b"old device"] * 2)
        part.ingest([(part.next, cluster.source[1][part.next])], now_ms=cluster.now_ms)
        part.read_to(part.next, end=len(cluster.source[1]), asked_ms=cluster.now_ms)
        cluster.clock(1, probed=False)
        assert not part.work.idle
