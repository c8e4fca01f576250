"""`minimum` holds under subtraction: parts, releases, and an attacker who asks everything."""

from itertools import pairwise

import pytest

from ldpstream.agents.partition.closing import make_parts
from ldpstream.agents.partition.owned import OwnedCells
from ldpstream.agents.partition.releases import Releases
from ldpstream.agents.state.parts import Part, Parts
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.view import BehindError, Snapshot, answer
from ldpstream.agents.state.windows import NEVER, WindowSpec
from tests.soak import seeds
from tests.stream.harness import Cluster, frame, make_context
from tests.stream.simulation.broken_parts import PART_MUTANTS
from tests.stream.simulation.curious import CuriousWorld, isolated
from tests.stream.simulation.run import explain, run

WINDOW = WindowSpec(size_ms=20, hop_ms=10, idle_ms=None)
NOW_MS = 1_000_000
SEEDS = {
    "minimum: the live view": 4,
    "minimum: rounded inward": 8,
    "minimum: pending panes answered": 4,
    "minimum: parts of what is kept": 7,
    "minimum: expiry by partition": 7,
    "minimum: answered from behind": 7,
    "minimum: nothing pending": 0,
    "minimum: closed anywhere": 2,
    "minimum: released at once": 9,
}
"""For each mutant the first seed that notices it."""


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


@pytest.mark.soak
@pytest.mark.parametrize("first", [0, 10_000])
def test_nothing_below_the_minimum_is_isolated(first: int):
    for seed in seeds(10, soak=2_000, first=first):
        assert run(seed, make=CuriousWorld).violated is None, explain(seed, make=CuriousWorld)


@pytest.mark.parametrize("name", PART_MUTANTS)
def test_a_rule_of_minimum_taken_away_is_noticed(name: str):
    assert run(SEEDS[name], make=PART_MUTANTS[name]).violated is not None


@pytest.mark.slow
def test_the_attacker_learns_much():
    worlds = [run(seed, make=CuriousWorld).world for seed in range(20)]
    assert sum(len(world.checks.told) for world in worlds) > 100
    assert max(len(isolated(world.checks.told)) for world in worlds) > 5


def test_sums_and_differences_isolate_what_is_in_the_same_answers():
    assert sorted(isolated({0b1111, 0b0011, 0b0110})) == [0b0001, 0b0010, 0b0100, 0b1000]
    assert isolated({0}) == []


def test_panes_become_parts_in_order():
    reports = [(0, 3), (1, 0), (2, 7), (5, 12), (7, 9), (9, 0)]
    assert [*make_parts(10, reports)] == [Part(0, 3, 10), Part(5, 6, 12)]


def test_parts_are_found_by_the_panes_that_they_touch():
    parts = Parts()
    for part in (Part(5, 6, 12), Part(0, 3, 10), Part(8, 20, 11)):
        parts.add(part)
    assert parts.touching(2, 6) == [Part(0, 3, 10), Part(5, 6, 12)]
    assert parts.touching(3, 5) == []
    assert parts.touching(10, 11) == [Part(8, 20, 11)]
    parts.discard(6)
    parts.discard(6)
    assert parts.touching(-5, 99) == [Part(0, 3, 10), Part(8, 20, 11)]


def test_a_pane_of_one_report_is_in_no_difference():
    cluster = make_cluster(10)
    cluster.produce(0, at(5, 12), at(15, 1), at(25, 20), at(90, 1))
    cluster.steps(6)
    one = ask(cluster, 10, 20, final=True)
    assert (one.start_ms, one.end_ms, one.n, one.window) == (10, 30, 21, (10, 20))
    assert ask(cluster, 0, 10, final=True).n == 12
    both = ask(cluster, 0, 20, final=True)
    assert (both.start_ms, both.end_ms, both.n) == (0, 30, 33)


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
    for _ in range(2):
        cluster.produce(0, at(5, 15))
        cluster.produce(1, at(5, 8))
        cluster.steps(3)
    replicas = cluster.replicas[:2]
    assert dict(replicas[0].released(0, 1))[0].counted == {0: 15, 1: 8}
    cluster.produce(0, *[at(5, 30)] * 2)
    cluster.ingest(0)
    cluster.flush(0)
    behind = Replica(cluster.context, 1)
    behind.read([], position=0, end=0)
    cells = OwnedCells(cluster.context, 9, cluster.head(), replicas[0])
    for seen, may in (([replicas[0], behind], False), (replicas, True)):
        releases = Releases(cluster.context, cells)
        assert not releases.look(seen, cluster.head(), now_ms=NOW_MS)
        assert (0 in releases._candidates) == may


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


def test_a_worker_that_is_behind_refuses_to_answer():
    cluster = make_cluster(10, partitions=2)
    cluster.produce(0, at(5, 6), at(90, 1))
    cluster.produce(1, at(5, 7), at(90, 1))
    cluster.step()
    behind = Replica(cluster.context, 0)
    behind.read(cluster.log[0], position=len(cluster.log[0]), end=len(cluster.log[0]))
    assert behind.head.gathered == NEVER
    cluster.steps(4)
    assert ask(cluster, 0, 10, final=True).n == 13
    with pytest.raises(BehindError):
        answer(cluster.context, [behind, cluster.replicas[1]], 0, 10, final=True)


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
