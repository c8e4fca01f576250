"""Queries: totals of any span of whole panes, over all partitions, and the list of windows."""

import pytest

from ldpstream.agents.state.listing import WindowInfo, windows
from ldpstream.agents.state.view import totals
from ldpstream.agents.state.windows import WindowSpec
from tests.replicas import stored_final
from tests.stream.harness import Cluster, frame, make_context

WINDOW = WindowSpec(size_ms=20, hop_ms=10, idle_ms=None)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(make_context(WINDOW, chunk=1), partitions=2, now_ms=1_000_000)
    cluster.steps(2)
    cluster.produce(0, frame((3, 0), (14, 1)), frame((55, 0)), frame((4, 1)), None)
    cluster.produce(1, frame((11, 1)), frame((31, 1)))
    cluster.steps(3)
    return cluster


def test_any_span_of_whole_panes_is_an_exact_sum(cluster: Cluster):
    everything = totals(cluster.context, cluster.replicas, 0, 60)
    assert (everything.n, everything.late, everything.rejected) == (5, 1, 1)
    assert everything.statistic.tolist() == [2, 3]
    assert totals(cluster.context, cluster.replicas, 10, 20).statistic.tolist() == [0, 2]
    assert totals(cluster.context, cluster.replicas, 60, 600).n == 0


@pytest.mark.parametrize(("start_ms", "end_ms"), [(0, 0), (10, 0), (5, 10), (0, 15)])
def test_other_spans_are_refused(cluster: Cluster, start_ms: int, end_ms: int):
    with pytest.raises(ValueError, match="whole panes of 10 ms"):
        totals(cluster.context, cluster.replicas, start_ms, end_ms)


def test_windows_are_listed_with_what_they_hold(cluster: Cluster):
    assert windows(cluster.context, cluster.replicas) == [
        WindowInfo(-1, -10, 10, 1, 1, final=True, published=True),
        WindowInfo(0, 0, 20, 3, 1, final=True, published=True),
        WindowInfo(1, 10, 30, 2, 0, final=True, published=True),
        WindowInfo(2, 20, 40, 1, 0, final=False, published=False),
        WindowInfo(3, 30, 50, 1, 0, final=False, published=False),
        WindowInfo(4, 40, 60, 1, 0, final=False, published=False),
        WindowInfo(5, 50, 70, 1, 0, final=False, published=False),
    ]


def test_finals_can_be_read_again(cluster: Cluster):
    assert stored_final(cluster.context, cluster.replicas, 0) == b"0 3 1 1 1,2"
    assert stored_final(cluster.context, cluster.replicas, 20) is None
    assert stored_final(cluster.context, cluster.replicas, 5) is None
    assert stored_final(cluster.context, [], 0) is None


def test_unread_replicas_list_no_windows():
    context = make_context(WINDOW)
    assert windows(context, []) == []
    assert windows(context, Cluster(context).replicas) == []
