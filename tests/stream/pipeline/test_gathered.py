"""A closed pane is stored once: what partition 0 gathers, what others keep, what is answered."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ldpstream.agents.engine.rocks_store import RocksDatabase, RocksStore, StoredReplica
from ldpstream.agents.engine.windowed_table import NotReadyError, WindowedTable
from ldpstream.agents.state.encoding import encode_head, encode_key, state_prefix
from ldpstream.agents.state.listing import windows
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.records import HEAD, Head, Key
from ldpstream.agents.state.replica import BehindError, Replica
from ldpstream.agents.state.view import totals
from ldpstream.agents.state.windows import NEVER, WindowSpec
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
        (replica.partition, name.kind, cell.size_bytes)
        for replica in replicas(cluster)
        for name, cell in replica.cells.items()
        if name.kind in ("count", "n", "late") and name.number == pane
    )


def told(shown: Sequence[Replica], end_ms: int = 10) -> tuple[list[int], int, int]:
    found = totals(CONTEXT, shown, 0, end_ms)
    return found.statistic.tolist(), found.n, found.late


def prefixes(cluster: Cluster, p: int) -> list[Replica]:
    """Return replicas of a partition after each record of its log."""
    found = []
    for end in range(len(cluster.log[p]) + 1):
        replica = Replica(CONTEXT, p)
        replica.read(cluster.log[p][:end], position=end, end=end)
        found.append(replica)
    return found


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


def test_late_reports_stay_with_their_partition():
    cluster = make_cluster(3)
    close(cluster)
    cluster.produce(1, at(5, 2, 2))
    cluster.steps(1)
    cluster.produce(1, at(4, 3))
    cluster.produce(0, at(4, 3))
    cluster.steps(4)
    kinds = {(p, kind) for p, kind, _ in stored(cluster, 0)}
    assert kinds == {(0, "count"), (0, "n"), (1, "late")}
    assert told(replicas(cluster))[1:] == (12, 4)
    first = windows(CONTEXT, replicas(cluster))[0]
    assert (first.n, first.late) == (12, 4)
    cluster.take_over(1)
    cluster.produce(1, at(6, 3))
    cluster.steps(2)
    assert told(replicas(cluster))[1:] == (12, 5)


def test_a_reader_that_is_behind_answers_the_same_or_nothing():
    cluster = make_cluster(2)
    close(cluster)
    cluster.steps(4)
    want, refused = told(replicas(cluster)), 0
    for first in prefixes(cluster, 0):
        for second in prefixes(cluster, 1):
            heads = first.head, second.head
            if any(head is None or head.closed < 1 for head in heads):
                continue
            try:
                assert told([first, second]) == want
            except BehindError:
                refused += 1
                with pytest.raises(BehindError):
                    windows(CONTEXT, [first, second])
                with pytest.raises(NotReadyError):
                    len(WindowedTable(CONTEXT, [first, second]))
    assert refused


def test_an_owner_killed_after_gathering_leaves_nothing_to_repair():
    cluster = make_cluster(2)
    close(cluster)
    cluster.step()
    cluster.clock(0)
    cluster.flush(0)
    assert cluster.head(0).gathered == 1
    # The counts are in both partitions now, and those of partition 0 are valid.
    assert {p for p, _, _ in stored(cluster, 0)} == {0, 1}
    want = told(replicas(cluster))
    assert want[1] == 12
    for p in (0, 1):
        cluster.take_over(p)
    assert told(replicas(cluster)) == want
    cluster.steps(3)
    assert {p for p, _, _ in stored(cluster, 0)} == {0}
    assert told(replicas(cluster)) == want


def test_panes_gathered_by_a_head_that_has_not_won_are_not_gathered():
    cluster = make_cluster(2)
    close(cluster)
    for p in (0, 1):
        cluster.ingest(p)
        cluster.clock(p)
        cluster.flush(p)
    cluster.clock(0)
    assert cluster.part(0).work.gathered == 1
    assert cluster.head(0).gathered == NEVER
    cluster.clock(1)
    assert cluster.part(1).work.gathered == NEVER
    cluster.take_over(0)
    cluster.steps(4)
    assert told(replicas(cluster))[1] == 12
    assert {p for p, _, _ in stored(cluster, 0)} == {0}


def test_an_added_partition_starts_with_all_gathered_panes_closed():
    hopping = replace(WINDOW, size_ms=12, hop_ms=8)
    context = make_context(hopping, spec=CONTEXT.spec, chunk=16)
    cluster = Cluster(context, partitions=2, now_ms=1_000)
    cluster.step()
    for p in (0, 1):
        cluster.produce(p, at(13, 1, 2), at(16, 1))
    cluster.steps(4)
    assert cluster.head(0).gathered == 4 > hopping.closing(cluster.head(0).final)
    cluster.partitions = 3
    cluster.produce(2, at(14, 1))
    cluster.steps(3)
    assert (cluster.head(2).n, cluster.head(2).late) == (0, 1)


def test_nothing_is_loaded_while_partition_0_has_lost_what_it_stores():
    cluster = make_cluster(2)
    close(cluster)
    cluster.steps(4)
    emptied = Replica(CONTEXT, 0)
    emptied.read([], position=0, end=0)
    for p in (0, 1):
        assert Partition.load(CONTEXT, p, [emptied, cluster.replicas[1]], epoch=99) is None
    with pytest.raises(BehindError):
        told([emptied, cluster.replicas[1]])


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


def test_a_store_resumes_with_gathered_panes(tmp_path: Path):
    cluster = make_cluster(2)
    close(cluster)
    cluster.steps(4)
    for p in (0, 1):
        state = state_prefix(CONTEXT).hex()
        ours = StoredReplica(topic="changelog", partition=p, topic_id="aa", state=state)
        end, positions = len(cluster.log[p]), []
        for _ in range(2):
            database, replica = RocksDatabase(tmp_path / str(p)), Replica(CONTEXT, p)
            positions.append(replica.resume(RocksStore(database, ours)))
            replica.read(cluster.log[p][positions[-1] :], position=end, end=end)
            assert replica.head == cluster.head(p)
            assert replica.cells.keys() == cluster.replicas[p].cells.keys()
            database.close()
        assert positions == [0, end]


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
