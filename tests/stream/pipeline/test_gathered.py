"""A closed pane is stored once: what partition 0 gathers, what others keep, what is answered."""

from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from ldpstream.agents.engine.windowed_table import NotReadyError, WindowedTable
from ldpstream.agents.state.encoding import encode_head, encode_key, state_prefix
from ldpstream.agents.state.listing import windows
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.records import HEAD, Head, Key
from ldpstream.agents.state.replica import BehindError, Replica
from ldpstream.agents.state.view import totals
from ldpstream.agents.state.windows import WindowSpec
from tests.stream.engines import make_engine
from tests.stream.harness import Cluster, frame, make_context, make_spec

WINDOW = WindowSpec(size_ms=10, hop_ms=10, idle_ms=None, retention_ms=100)
CONTEXT = make_context(WINDOW, spec=make_spec(20), chunk=16)


def at(time_ms: int, *symbols: int) -> bytes:
    return frame(*((time_ms, symbol) for symbol in symbols), spec=CONTEXT.spec)


def make_cluster(partitions: int) -> Cluster:
    """Return a cluster with twelve reports in the pane [0, 10), spread over its partitions."""
    cluster = Cluster(CONTEXT, partitions=partitions, now_ms=1_000)
    cluster.step()
    for symbol in range(12):
        cluster.produce(symbol % partitions, at(5, symbol))
    return cluster


def close(cluster: Cluster, time_ms: int = 15) -> None:
    for p in range(cluster.partitions):
        cluster.produce(p, at(time_ms, 1))


def replicas(cluster: Cluster) -> list[Replica]:
    return cluster.replicas[: cluster.partitions]


def stored(cluster: Cluster, pane: int) -> list[tuple[int, str, int]]:
    return sorted(
        (replica.partition, name.kind, len(cell.value))
        for replica in replicas(cluster)
        for name, cell in replica.cells.items()
        if name.kind in ("count", "n", "late") and name.number == pane
    )


def told(shown: Sequence[Replica], end_ms: int = 10) -> tuple[list[int], int, int]:
    found = totals(CONTEXT, shown, 0, end_ms)
    return found.statistic.tolist(), found.n, found.late


@pytest.mark.parametrize("partitions", [2, 3, 8])
def test_what_is_stored_of_a_closed_pane_does_not_depend_on_the_number_of_partitions(
    partitions: int,
):
    alone, cluster = make_cluster(1), make_cluster(partitions)
    cluster.steps(2)
    before = told(replicas(cluster))
    assert {p for p, _, _ in stored(cluster, 0)} == set(range(partitions))
    for one in (alone, cluster):
        close(one)
        one.steps(4)
    assert stored(cluster, 0) == stored(alone, 0)
    assert told(replicas(cluster)) == told(replicas(alone)) == before
    assert (
        sum(head.n - head.gone for head in map(cluster.head, range(partitions))) == 12 + partitions
    )
    assert sorted(cluster.finals()) == sorted(alone.finals())
    for p in range(partitions):
        cluster.sweep(p)
        assert not cluster.replicas[p].dead()


def test_nothing_is_loaded_while_partition_0_has_lost_what_it_stores():
    cluster = make_cluster(2)
    close(cluster)
    cluster.steps(4)
    emptied = Replica(CONTEXT, 0)
    emptied.read([], position=0, end=0)
    for p in (0, 1):
        assert Partition.load(CONTEXT, p, [emptied, cluster.replicas[1]], epoch=99) is None
    shown = [emptied, cluster.replicas[1]]
    for refused in (told, partial(windows, CONTEXT)):
        with pytest.raises(BehindError):
            refused(shown)
    with pytest.raises(NotReadyError):
        len(WindowedTable(CONTEXT, shown))


class _OneByOne(tuple[Replica, ...]):
    """Replicas of which each is looked at by its number."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Replica]:
        raise AssertionError("thousands of partitions would each look at all")


def test_a_partition_is_loaded_without_a_look_at_all_others():
    cluster = make_cluster(2)
    close(cluster)
    assert Partition.load(CONTEXT, 1, _OneByOne(cluster.replicas), epoch=99) is not None


def test_an_emptied_partition_0_is_a_problem_that_names_the_way_out():
    engine = make_engine()
    prefix, lost = state_prefix(engine.context), Head(epoch=1, seq=1, gathered=3, lineage={1: 1})
    record = encode_key(prefix, Key(HEAD, 1, 1)), encode_head(lost)
    engine.replicas[1].read([(0, *record)], position=1, end=1)
    engine.assign([0, 1])
    engine.tick()
    assert not engine.loaded_partitions
    (problem,) = engine.problems
    assert "partition 0" in problem
    assert "`ldpstream reset city`" in problem


def test_panes_expire_where_they_are_stored():
    cluster = make_cluster(3)
    close(cluster)
    cluster.steps(4)
    close(cluster, 150)
    cluster.steps(6)
    assert not stored(cluster, 0)
    for p in range(3):
        head, cells = cluster.head(p), cluster.replicas[p]
        assert head.n - head.gone == sum(cells.totals(pane).n for pane in cells.all_panes())


def test_other_partitions_drop_no_pane_before_it_is_gathered():
    # Windows advance by two panes; partition 0 gathers one at a time, and partition 1 is far ahead.
    window = WindowSpec(size_ms=12, hop_ms=8, idle_ms=None, retention_ms=8)
    cluster = Cluster(make_context(window, finals_a_step=1), partitions=3, now_ms=1_000)
    cluster.step()
    for time_ms in range(1, 140, 4):
        for p in (0, 1) if time_ms < 60 else (1,):
            cluster.produce(p, frame((time_ms, 0)))
    cluster.steps(3)
    cluster.produce(2, frame((58, 0)))
    shown: set[int] = set()
    for _ in range(20):
        cluster.step()
        for start_ms in range(4 * max(0, cluster.head().expired), 56, 4):
            found = totals(cluster.context, cluster.replicas[:3], start_ms, start_ms + 4)
            shown.add(found.n)
    assert (cluster.head().gathered, cluster.head().published) == (14, 6)
    assert shown == {2}
