"""`minimum` holds under subtraction: parts, releases, and an attacker who asks everything."""

from dataclasses import replace
from itertools import pairwise

import pytest

from ldpstream.agents.state.context import Waiting
from ldpstream.agents.state.owner_cells import OwnedCells
from ldpstream.agents.state.releases import Releases
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.view import Snapshot, answer
from ldpstream.agents.state.windows import WindowSpec
from tests.stream.harness import Cluster, frame, make_context

WINDOW = WindowSpec(size_ms=20, hop_ms=10, idle_ms=None)
NOW_MS = 1_000_000


def make_cluster(minimum: int, *, partitions: int = 1, window: WindowSpec = WINDOW) -> Cluster:
    context = make_context(window, minimum=minimum, chunk=1)
    cluster = Cluster(context, partitions=partitions, now_ms=NOW_MS)
    cluster.steps(2)
    return cluster


def ask(cluster: Cluster, start_ms: int, end_ms: int, *, final: bool) -> Snapshot:
    replicas = cluster.replicas[: cluster.partitions]
    return answer(cluster.context, replicas, start_ms, end_ms, final=final)


def at(time_ms: int, count: int) -> bytes:
    return frame(*[(time_ms, 0)] * count)


def test_a_final_with_pending_reports_is_withheld_and_says_how_many():
    told = []
    cluster = make_cluster(10)
    object.__setattr__(cluster.context, "make_final", lambda totals: told.append(totals) or b"")
    cluster.produce(0, at(5, 12), at(15, 1), at(25, 20), at(90, 1))
    cluster.steps(8)
    finals = [(t.window or (t.start_ms, t.end_ms), t.start_ms, t.n, t.withheld) for t in told]
    assert finals[:4] == [
        ((-10, 10), -10, 12, False),
        ((0, 20), 0, 13, True),
        ((10, 30), 10, 21, False),
        ((20, 40), 10, 21, False),
    ]


def test_answers_about_an_open_pane_grow_by_the_minimum():
    cluster = make_cluster(10)
    seen = []
    for _ in range(60):
        cluster.produce(0, at(5, 1))
        cluster.steps(2)
        found = ask(cluster, 0, 10, final=False)
        seen.append(0 if found.withheld else found.n)
    steps = sorted(set(seen))
    assert steps[0] == 0
    assert len(steps) > 3
    assert all(later - n >= 10 for n, later in pairwise(steps))
    assert all(n <= count - 10 for count, n in enumerate(seen, 1) if n)
    # The next owner answers the same.
    cluster.take_over(0)
    cluster.steps(2)
    assert ask(cluster, 0, 10, final=False).n == seen[-1]


def test_a_release_ends_with_the_part_of_its_pane():
    cluster = make_cluster(10)
    for _ in range(40):
        cluster.produce(0, at(5, 1))
        cluster.steps(2)
    kinds = {name.kind for name in cluster.replicas[0].cells}
    assert {"release", "open"} <= kinds
    cluster.produce(0, at(90, 1))
    cluster.steps(4)
    assert {"part"} == {name.kind for name in cluster.replicas[0].cells} & {
        "part",
        "release",
        "open",
    }
    assert ask(cluster, 0, 10, final=True).n == 40
    cluster.sweep(0)
    replica = Replica(cluster.context, 0)
    replica.read(cluster.log[0], position=len(cluster.log[0]), end=len(cluster.log[0]))
    assert replica.cells.keys() == cluster.replicas[0].cells.keys()


def test_a_release_holds_the_counts_of_each_partition():
    cluster = make_cluster(10, partitions=2)
    cluster.produce(0, at(5, 4))
    cluster.produce(1, at(5, 18))
    cluster.steps(3)
    replicas = cluster.replicas[:2]
    released = dict(replicas[0].released(0, 1))[0]
    assert (released.n, released.counted) == (12, {0: 4, 1: 18})
    assert released.left_out == {(0, 0): 4, (0, 1): 6}
    cluster.produce(0, *[at(5, 30)] * 2)
    cluster.ingest(0)
    cluster.flush(0)
    behind = Replica(cluster.context, 1)
    behind.read([], position=0, end=0)
    cells = OwnedCells(cluster.context, 9, cluster.head(), replicas[0])
    for seen, may in (([replicas[0], behind], False), (replicas, True)):
        releases = Releases(cluster.context, cells)
        assert releases.release(seen, cluster.head(), now_ms=NOW_MS) == may
    assert (cells.released[0].n, cells.released[0].left_out) == (72, released.left_out)


@pytest.mark.parametrize("sizes", [[30], [1] * 30, [35], [7, 40], [9, 9, 9, 9], [29, 1], [3, 500]])
@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_all_but_twice_the_minimum_of_a_burst_is_shown(sizes: list[int], partitions: int):
    cluster = make_cluster(10, partitions=partitions)
    for place, size in enumerate(sizes):
        cluster.produce(place % partitions, at(5, size))
    cluster.steps(3)
    found = ask(cluster, 0, 10, final=False)
    assert sum(sizes) - 20 < found.n <= sum(sizes) - 10
    assert found.waiting == Waiting(sum(sizes) - found.n, "reports", found.n + 20 - sum(sizes))
    # Nobody shows less after a restart, and a new owner continues with as few as any.
    for partition in range(partitions):
        cluster.take_over(partition)
    cluster.steps(2)
    assert ask(cluster, 0, 10, final=False).n == found.n
    cluster.produce(partitions - 1, at(5, 10))
    cluster.steps(3)
    assert sum(sizes) - 10 < ask(cluster, 0, 10, final=False).n <= sum(sizes)


@pytest.mark.parametrize("step", [1, 3, 7, 11, 25])
def test_fewer_than_twice_the_minimum_always_wait(step: int):
    cluster = make_cluster(10, partitions=3)
    counted = 0
    for place in range(30):
        cluster.produce(place % 3, at(5, step))
        cluster.steps(2)
        counted += step
        found = ask(cluster, 0, 10, final=False)
        assert found.withheld == (counted < 20)
        if not found.withheld:
            assert found.n + found.waiting.reports == counted
        assert 10 <= found.waiting.reports < 20 or found.withheld


def test_a_release_waits_for_the_interval_since_the_last_or_until_no_more_come():
    context = make_context(WINDOW, minimum=10, chunk=1, release_ms=5_000)
    cluster = Cluster(context, now_ms=NOW_MS)
    shown = []
    for second in range(10):
        if second < 8:
            cluster.produce(0, at(5, 15))
        for place in range(4):
            if 0 < second < 8:
                cluster.produce(0, at(5, 1))
            cluster.now_ms += 250
            cluster.step()
            found = ask(cluster, 0, 10, final=False)
            if place == 3:
                shown.append(0 if found.withheld else found.n)
    # The first comes at once, the next 5 seconds later, and the last when nothing more comes.
    assert shown[:7] == [0, *[shown[1]] * 5, shown[6]]
    assert 20 <= shown[1] < shown[6] == shown[7] < shown[8] == shown[9]
    assert shown[9] == 8 * 15 + 7 * 4 - 10


def test_an_answer_says_what_it_waits_for():
    cluster = make_cluster(10)
    cluster.produce(0, at(5, 12))
    cluster.steps(2)
    assert ask(cluster, 0, 10, final=False).waiting == Waiting(12, "reports", 8)
    cluster.produce(0, at(15, 1))
    cluster.steps(2)
    assert ask(cluster, 0, 20, final=False).waiting == Waiting(1, "reports", 19)
    cluster.produce(0, at(25, 3), at(35, 1))
    cluster.steps(6)
    assert ask(cluster, 0, 10, final=True).waiting is None
    assert ask(cluster, 10, 20, final=True).waiting == Waiting(1, "later", 5)
    changes = {
        "minimum_block": {"minimum_block": 5},
        "publish.every": {"release_ms": None},
        "minimum": {"minimum": 1 << 27},
    }
    for because, change in changes.items():
        context = replace(cluster.context, **change)
        found = answer(context, cluster.replicas[:1], 30, 40, final=False)
        assert found.waiting == Waiting(1, "closing", because=because)


def test_a_new_partition_counts_nothing_into_a_part():
    window = WindowSpec(size_ms=12, hop_ms=8, idle_ms=None)
    cluster = make_cluster(10, window=window)
    cluster.produce(0, at(13, 12), at(16, 1))
    cluster.steps(3)
    assert cluster.head().grouped == 4 > window.closing(cluster.head().final)
    cluster.partitions = 2
    cluster.produce(1, at(14, 1))
    cluster.steps(3)
    assert (cluster.head(1).n, cluster.head(1).late) == (0, 1)


def test_without_a_minimum_no_parts_are_stored_and_all_is_answered():
    cluster = make_cluster(1)
    cluster.produce(0, at(5, 1), at(15, 1))
    cluster.steps(4)
    assert ask(cluster, 10, 20, final=False).n == 1
    assert {name.kind for name in cluster.replicas[0].cells} <= {"n", "count", "final"}


def test_a_minimum_configured_later_groups_what_is_kept():
    cluster = make_cluster(1)
    cluster.produce(0, at(5, 3), at(15, 8), at(90, 1))
    cluster.steps(4)
    object.__setattr__(cluster.context, "minimum", 10)
    cluster.take_over(0)
    cluster.steps(3)
    found = ask(cluster, 10, 20, final=True)
    assert (found.start_ms, found.n) == (0, 11)
