"""Finals: which windows are published, expiry, losers of a race, offsets without records."""

from dataclasses import replace

import pytest

from ldpstream.agents.state.classification import Delays
from ldpstream.agents.state.flushes import Outcome, Settled
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.windows import WindowSpec
from tests.stream.harness import Cluster, frame, make_context

WINDOW = WindowSpec(size_ms=10, hop_ms=10, idle_ms=None, retention_ms=20)
NOW_MS = 1_000_000
NONE = Delays()


def test_windows_without_reports_are_not_published():
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    cluster.produce(0, frame((5, 0)), frame((1005, 0)), frame((25, 0)))
    cluster.steps(3)
    assert cluster.finals() == ["0 1 0 0 1,0"]
    assert cluster.head().final == cluster.head().published == 100


def test_many_finals_are_made_a_few_at_a_step():
    cluster = Cluster(make_context(WINDOW, finals_a_step=3), now_ms=NOW_MS)
    cluster.produce(0, *(frame((t, 0)) for t in range(0, 100, 10)), frame((500, 0)))
    cluster.steps(3)
    assert len(cluster.published) == 3
    cluster.steps(6)
    assert [final.window_start_ms for final in cluster.published] == list(range(0, 100, 10))


def test_panes_expire_a_retention_after_closing_and_never_unpublished():
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    cluster.produce(0, frame((5, 0)), frame((100, 0)))
    for _ in range(4):
        cluster.ingest(0)
        cluster.clock(0)
        cluster.flush(0)
    assert cluster.replicas[0].totals(0).n == 1
    cluster.steps(4)
    assert cluster.head().gone == 1
    assert cluster.head().expired == 8
    assert {name.number for name in cluster.replicas[0].cells} == {10}
    cluster.sweep(0)
    assert len(cluster.replicas[0]._keys) == 3


def test_a_late_report_of_an_expired_pane_counts_in_the_head_only():
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    cluster.produce(0, frame((5, 0)), frame((100, 0)))
    cluster.steps(5)
    cluster.produce(0, frame((6, 0)), frame((85, 0)))
    cluster.step()
    assert cluster.head().late == 2
    late = {pane: cluster.replicas[0].totals(pane).late for pane in cluster.replicas[0].all_panes()}
    assert late == {8: 1, 10: 0}


def test_nothing_is_loaded_before_the_replicas_have_been_read():
    context = make_context(WINDOW)
    cluster = Cluster(context)
    replicas = [*cluster.replicas]
    replicas[0] = type(replicas[0])(context, 0)
    for p in range(2):
        assert Partition.load(context, p, replicas, epoch=1) is None


def test_the_loser_is_told_and_the_winner_learns_what_it_added():
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    cluster.produce(0, frame((5, 0), (5, 9)), None)
    zombie, owner = cluster.take_over(0), cluster.take_over(0)
    assert zombie is not None
    assert owner is not None
    for part in (zombie, owner):
        part.ingest(list(enumerate(cluster.source[0])), now_ms=NOW_MS)
        assert part.settle() is Settled.WAITING
    late = zombie.flush()
    assert late is not None
    assert zombie.flush() is None
    cluster.flush(0)
    assert replace(owner.outcome, delays=NONE) == Outcome(
        1, 0, {"range": 1, "undecodable": 1}, 0, NONE
    )
    for key, value in (*late.cells, late.head):
        cluster.log[0].append((len(cluster.log[0]), key, value))
    cluster.catch_up(0)
    assert zombie.settle() is Settled.LOST
    assert owner.settle() is Settled.WAITING
    assert cluster.head().epoch == owner.epoch
    assert len(cluster.replicas[0].dead()) == len(late.cells) + 1


def test_offsets_that_retention_deleted_are_counted():
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    cluster.produce(0, *([frame((5, 0))] * 3))
    part = cluster.part()
    part.ingest([(0, frame((5, 0)))], now_ms=NOW_MS)
    part.skip_to(3, now_ms=NOW_MS)
    part.skip_to(3, now_ms=NOW_MS)
    cluster.flush(0)
    assert (cluster.head().next, cluster.head().n, cluster.head().lost) == (3, 1, 2)
    assert replace(part.outcome, delays=NONE) == Outcome(1, 0, {}, 2, NONE)
    with pytest.raises(ValueError, match="offsets of at least next"):
        part.skip_to(2, now_ms=NOW_MS)


def test_offsets_without_records_are_passed_over():
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    part = cluster.part()
    part.ingest([(0, frame((5, 0)))], now_ms=NOW_MS)
    part.read_to(2, end=2, asked_ms=None)
    cluster.flush(0)
    assert (cluster.head().next, cluster.head().lost) == (2, 0)
    # After an aborted transaction there are no records, and its offsets no longer count as lag.
    part.read_to(4, end=4, asked_ms=None)
    cluster.flush(0)
    assert (part.next, cluster.head().next, cluster.head().n) == (4, 4, 1)
    part.read_to(3, end=4, asked_ms=None)
    assert part.next == 4
    assert part.flush() is None


def test_only_touched_chunks_are_written():
    cluster = Cluster(make_context(WINDOW, chunk=1), now_ms=NOW_MS)
    cluster.produce(0, frame((5, 0), (5, 1)))
    cluster.step()
    cluster.produce(0, frame((6, 1)))
    (flush,) = cluster.step()
    assert len(flush.cells) == 2
    assert cluster.replicas[0].totals(0).n == 3
