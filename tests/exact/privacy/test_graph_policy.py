"""Policies given as a graph: budgets are its shortest paths, exactly."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import pytest

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from tests.exact.specs import entries_of


def edges(*given: tuple[int, int, object]) -> tuple[tuple[int, int, Fraction], ...]:
    return tuple((i, j, Fraction(str(length))) for i, j, length in given)


def test_a_graph_is_its_shortest_paths():
    policy = GraphPolicy(5, edges((0, 1, "0.5"), (1, 2, "0.25"), (0, 2, 2), (3, 4, 1)))
    assert policy.entry(0, 2) == policy.entry(2, 0) == Fraction(3, 4)
    assert policy.entry(3, 3) == 0
    assert policy.entry(0, 3) is None
    assert policy.unprotected_pairs == 5 * 4 - 6 - 2
    assert policy.unprotected == "values that no path of edges joins"
    assert sorted(policy.pairs()) == sorted(
        [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0), (3, 4), (4, 3)]
    )
    assert policy.describe()["edges"] == 4


def test_a_directed_graph_leaves_the_way_back_unprotected():
    policy = GraphPolicy(4, edges((0, 1, 1), (1, 2, 1), (2, 0, 1), (2, 3, 5)), directed=True)
    assert entries_of(policy) == [[0, 1, 2, 7], [2, 0, 1, 6], [1, 2, 0, 5], [None, None, None, 0]]
    assert policy.unprotected_pairs == 3
    assert GraphPolicy(4, policy.edges).unprotected is None


def test_the_smaller_of_parallel_edges_holds_and_their_order_does_not_matter():
    first = GraphPolicy(3, edges((0, 1, 3), (1, 0, 1), (1, 2, 1), (2, 1, 4)))
    second = GraphPolicy(3, edges((2, 1, 1), (0, 1, 1)))
    assert entries_of(first) == entries_of(second)
    assert first.digest == second.digest != GraphPolicy(3, first.edges, directed=True).digest


def test_a_grid_of_neighbours_is_the_l1_metric():
    rows, columns = 3, 4
    cells = [(r, c) for r in range(rows) for c in range(columns)]
    joined = [
        (i, j, 1)
        for (i, a), (j, b) in product(enumerate(cells), repeat=2)
        if i < j and abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1
    ]
    assert entries_of(GraphPolicy(12, edges(*joined))) == entries_of(
        MetricPolicy(1.0, (rows, columns))
    )


def test_a_graph_of_thousands_of_values_is_never_a_matrix():
    size = 4000
    ring = GraphPolicy(size, edges(*((i, (i + 1) % size, "0.1") for i in range(size))))
    assert ring.entry(0, size // 2) == Fraction(size // 2, 10)
    assert ring.unprotected_pairs == 0
    line = GraphPolicy(size, edges(*((i, i + 1, 1) for i in range(size - 1))), directed=True)
    assert line.unprotected_pairs == size * (size - 1) // 2
    assert line.entry(1, 0) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], r"^edges: expected at least one edge"),
        (
            [(0, 1, 1), (1, 3, 1)],
            r"^edges\[1\]: expected two different values in 0\.\.2, got 1 and",
        ),
        ([(-1, 1, 1)], r"^edges\[0\]: expected two different values in 0\.\.2, got -1 and 1"),
        ([(1, 1, 1)], r"^edges\[0\]: expected two different values"),
        ([(0, 1, -1)], r"^edges\[0\]: expected a budget of at least 0, got -1.0"),
    ],
)
def test_an_impossible_graph_is_refused_by_edge(given: Sequence[tuple], message: str):
    with pytest.raises(SpecError, match=message):
        GraphPolicy(3, edges(*given))
