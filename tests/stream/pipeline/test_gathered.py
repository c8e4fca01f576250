"""What states hold: panes that are gathered, conflicting workers, and a table's windows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from ldpstream.agents.engine.loading import RECENT_SECONDS, ConflictingWorkers
from ldpstream.agents.engine.windowed_table import NotReadyError, WindowedTable
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.encoding import encode_head, encode_key, state_prefix
from ldpstream.agents.state.listing import windows
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.records import HEAD, Head, Key
from ldpstream.agents.state.replica import BehindError, Replica
from ldpstream.agents.state.view import totals
from ldpstream.agents.state.windows import WindowSpec
from tests.property.configs import MINIMAL, read
from tests.stream.engines import make_engine
from tests.stream.harness import HOUR_MS, Cluster, frame, make_context, make_spec
from tests.stream.hourly import HOURLY, NOW_MS
from tests.stream.hourly import at as of_minute

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


def told(shown: Sequence[Replica], end_ms: int = 10) -> tuple[list[int], int, int]:
    found = totals(CONTEXT, shown, 0, end_ms)
    return found.statistic.tolist(), found.n, found.late


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


HOURS = make_context(HOURLY)
HALVES = make_context(replace(HOURLY, size_ms=HOUR_MS // 2, hop_ms=HOUR_MS // 2))
OTHER_SPEC = make_context(HALVES.window, spec=make_spec(name="other"))


def heads(context: Context, number: int) -> list[tuple[bytes, bytes | None]]:
    """Return what an owner writes to its changelog in `number` flushes."""
    cluster = Cluster(context, now_ms=NOW_MS)
    for _ in range(number):
        cluster.produce(0, of_minute(0))
        cluster.ingest(0)
        cluster.flush(0)
    return [(key, value) for _, key, value in cluster.log[0]]


def feed(replica: Replica, at_offset: int, records: list[tuple[bytes, bytes | None]]) -> int:
    end = at_offset + len(records)
    numbered = [(offset, *record) for offset, record in enumerate(records, start=at_offset)]
    replica.read(numbered, position=end, end=end)
    return end


def test_a_rival_that_writes_is_reported_and_an_abandoned_one_is_not():
    config = read(MINIMAL).collections["checkins"]
    replica, rivals = Replica(HOURS, 0), ConflictingWorkers(config)
    before, since = heads(HALVES, 1), heads(HALVES, 3)
    end = feed(replica, 0, before + heads(HOURS, 1))
    rivals.update([replica], 0.0)
    assert rivals.problem == ""
    end = feed(replica, end, heads(OTHER_SPEC, 2))
    rivals.update([replica], 1.0)
    assert rivals.problem == ""
    end = feed(replica, end, since[len(before) :])
    rivals.update([replica], 2.0)
    assert "window.size = 30m, here 1h and window.hop = 30m, here 1h" in rivals.problem
    rivals.update([replica], 3.0 + RECENT_SECONDS)
    assert rivals.problem == ""


HOPPING = WindowSpec(size_ms=8_000, hop_ms=4_000, grace_ms=1_000)


def test_a_table_holds_what_winning_heads_have_counted() -> None:
    cluster = Cluster(make_context(HOPPING), partitions=2, now_ms=20_000)
    table = WindowedTable(cluster.context, cluster.replicas[:2])
    cluster.steps(2)
    assert dict(table) == {}
    cluster.produce(0, frame((5_000, 0), (9_000, 1)))
    cluster.produce(1, frame((9_500, 1)))
    cluster.ingest(0)
    assert len(table) == 0
    cluster.steps(2)
    assert list(table) == [0, 4_000, 8_000]
    assert {start: (one.n, one.statistic.tolist()) for start, one in table.items()} == {
        0: (1, [1, 0]),
        4_000: (3, [1, 2]),
        8_000: (2, [0, 2]),
    }
    assert table.timestamp(9.9).n == 2
    assert table.timestamp(60.0).n == 0
    assert table.now().n == 0
    with pytest.raises(KeyError):
        table[12_000]
    assert 12_000 not in table
    writable: Any = table
    with pytest.raises(TypeError):
        writable[0] = table[4_000]
