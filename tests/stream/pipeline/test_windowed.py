"""A collection's windowed table: it shows winning heads alone, by window, read-only."""

from typing import Any

import pytest

from ldpstream.agents.engine.windowed_table import WindowedTable
from ldpstream.agents.state.windows import WindowSpec
from tests.stream.harness import Cluster, frame, make_context

WINDOW = WindowSpec(size_ms=8_000, hop_ms=4_000, grace_ms=1_000)


def test_a_table_holds_what_winning_heads_have_counted() -> None:
    cluster = Cluster(make_context(WINDOW), partitions=2, now_ms=20_000)
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
