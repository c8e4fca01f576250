"""Policies given as a matrix, a graph or a metric: what they hold, exactly, and what is refused."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.labels import Labels
from ldpstream.mechanisms.domains.lattice import Grid
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.policies.composition import closure
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy, l1_epsilon, lp_length
from tests.exact.specs import entries_of

INF = math.inf


def test_a_matrix_holds_what_was_given_with_its_asymmetry_and_infinities():
    rows = [[0, 0.1, INF], [0.3, 0, 2], ["inf", Fraction(1, 3), 0]]
    policy = MatrixPolicy.of(rows, size=3)
    assert entries_of(policy) == [
        [0, Fraction(1, 10), None],
        [budget(0.3), 0, 2],
        [None, Fraction(1, 3), 0],
    ]
    assert (policy.size, policy.unprotected_pairs) == (3, 2)
    assert policy.unprotected is not None
    assert policy.matrix()[0, 2] == INF
    document = policy.describe()
    assert (document["smallest"], document["largest"], document["kind"]) == (0.1, 2.0, "matrix")


def test_lists_and_arrays_of_the_same_numbers_are_the_same_policy():
    rows = [[0.0, 0.1], [INF, 0.0]]
    same = [MatrixPolicy.of(r) for r in (rows, np.array(rows), tuple(map(tuple, rows)))]
    same.append(MatrixPolicy.of([np.array(row) for row in rows]))
    same.append(MatrixPolicy.of([[np.int64(0), "0.1"], ["inf", np.float64(0)]]))
    assert len(set(same)) == len({policy.digest for policy in same}) == 1
    assert MatrixPolicy.of([[0.0, 0.2], [INF, 0.0]]).digest != same[0].digest
    assert MatrixPolicy.of(np.array(rows).T).digest != same[0].digest


def test_a_budget_is_never_read_above_what_was_written():
    text = "0.30000000000000000000000000000000001"
    assert MatrixPolicy.of([[0, text], [0.3, 0]]).entry(0, 1) == budget(0.3) < Fraction("0.3")
    assert MatrixPolicy.of([[0, "1e-400"], [1, 0]]).entry(0, 1) == 0


BAD = [
    ([[0, 1], [1]], r"^policy\[1\]: expected a square matrix, 2 budgets, got 1$"),
    ([[0, 1, 2], [1, 0, 2]], r"^policy\[0\]: expected a square matrix, 2 budgets, got 3$"),
    ([[0, -0.5], [1, 0]], r"^policy\[0\]\[1\]: expected a budget of at least 0 or inf, got -0.5$"),
    ([[0, -INF], [1, 0]], r"^policy\[0\]\[1\]: expected a budget of at least 0 or inf, got -inf$"),
    ([[0, 1], [math.nan, 0]], r"^policy\[1\]\[0\]: expected a budget .*, got nan$"),
    ([[0, 1], [Fraction(-1, 3), 0]], r"^policy\[1\]\[0\]: expected a budget "),
    ([[0, 1], ["one", 0]], r"^policy\[1\]\[0\]: expected a budget .*, got 'one'$"),
    ([[0, 1], [None, 0]], r"^policy\[1\]\[0\]: expected a budget .*, got none$"),
    ([[0, 1], [True, 0]], r"^policy\[1\]\[0\]: expected a budget .*, got true$"),
    ([[0, 1], [10**400, 0]], r"^policy\[1\]\[0\]: expected a budget .*, got a huge number$"),
    ([[0, 1], ["1e999", 0]], r"^policy\[1\]\[0\]: expected a budget .*, got '1e999'$"),
    ([[0, 1], ["1" * 50, 0]], r"^policy\[1\]\[0\]: expected a budget .*, got a text of 50 "),
    ([[0, 1], [1, 0.5]], r"^policy\[1\]\[1\]: expected 0 on the diagonal, got 0.5$"),
    ([[INF, 1], [1, 0]], r"^policy\[0\]\[0\]: expected 0 on the diagonal, got inf$"),
    ([[0]], r"^policy: expected a matrix of 2\.\.1000 values, got 1$"),
    ([], r"^policy: expected a matrix of 2\.\.1000 values, got 0$"),
    ("0 1", r"^policy: expected a list of rows of budgets, got '0 1'$"),
    ([[0, 1], 7], r"^policy\[1\]: expected a row of budgets, got 7$"),
    (np.zeros(3), r"^policy\[0\]: expected a row of budgets, got 0.0$"),
    (np.float64(3.0), r"^policy: expected a list of rows of budgets, got 3.0$"),
]


@pytest.mark.parametrize(("rows", "message"), BAD)
def test_an_impossible_matrix_is_refused_by_place(rows: object, message: str):
    with pytest.raises(SpecError, match=message):
        MatrixPolicy.of(rows)


def test_entries_are_checked_however_the_policy_is_made():
    with pytest.raises(SpecError, match=r"^policy\[0\]\[1\]: expected a budget of at least 0"):
        MatrixPolicy(((Fraction(0), Fraction(-1)), (Fraction(1), Fraction(0))))
    with pytest.raises(SpecError, match=r"^policy: expected 3 rows, one for each value, got 2$"):
        MatrixPolicy.of([[0, 1], [1, 0]], size=3)


def test_a_function_gives_the_entries_of_labels_indices_or_members():
    def hide(x: object, other: object) -> object:
        return INF if x == "home" else 0.5 if other == "home" else 1

    domain = Labels(("work", "home", "shop"))
    expected = [[0, 0.5, 1], [INF, 0, INF], [1, 0.5, 0]]
    assert MatrixPolicy.of_function(hide, domain) == MatrixPolicy.of(expected)
    assert MatrixPolicy.of_function(hide, ["work", "home", "shop"]) == MatrixPolicy.of(expected)
    assert entries_of(MatrixPolicy.of_function(lambda x, z: x + z, 3))[1] == [1, 0, 3]
    grid = MatrixPolicy.of_function(lambda a, b: abs(a[0] - b[0]) + abs(a[1] - b[1]), Grid(2, 3))
    assert entries_of(grid) == entries_of(MetricPolicy(1.0, (2, 3)))
    with pytest.raises(SpecError, match=r"^policy\[0\]\[1\]: expected a budget .* got -1$"):
        MatrixPolicy.of_function(lambda x, z: -1, 3)
    with pytest.raises(SpecError, match=r"^policy: expected a matrix of 2..1000 values, got 5000"):
        MatrixPolicy.of_function(lambda x, z: 1, 5000)


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


@pytest.mark.grid
@pytest.mark.parametrize("p", [1, 2, 3, 7, math.inf])
@pytest.mark.parametrize("scale", [None, (2.0, 0.5, 3.0)])
def test_a_metric_is_rounded_down_by_very_little(p: float, scale: tuple[float, ...] | None):
    shape = (3, 4, 2)
    policy = MetricPolicy(0.7, shape, p=p, scale=scale)
    points = list(product(*map(range, shape)))
    for (x, a), (z, b) in permutations(enumerate(points), 2):
        factors = scale or (1.0, 1.0, 1.0)
        d = [abs(u - v) * s for u, v, s in zip(a, b, factors, strict=True)]
        real = 0.7 * float(np.linalg.norm(d, p))
        entry = policy.entry(x, z)
        assert float(entry) == pytest.approx(real, rel=1e-12)
        if p != math.inf:
            power = sum(Fraction(v) ** int(p) for v in d)
            ratio = entry / budget(0.7)
            # At or below the root, and within 2^-126 of it.
            assert ratio ** int(p) <= power < (ratio + Fraction(1, 1 << 126)) ** int(p)


def test_whole_distances_are_exact():
    policy = MetricPolicy(1.0, (6, 6), p=2)
    assert policy.entry(0, 3 * 6 + 4) == 5
    assert (policy.metric, MetricPolicy(1.0, (4,), p=math.inf).metric) == ("l2", "linf")
    assert MetricPolicy(1.0, (6, 6), p=math.inf).entry(0, 3 * 6 + 4) == 4
    assert lp_length([2, -2, 1], 2) == 3
    assert "L2 norm" in str(policy.describe()["guarantee"])


@pytest.mark.parametrize("p", [1, 2, 3, math.inf])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 2)])
def test_pairs_without_a_value_between_them_imply_all_budgets(p: float, shape: tuple[int, ...]):
    policy = MetricPolicy(0.3, shape, p=p, scale=(0.7,) * len(shape))
    near, size = set(policy.pairs()), policy.size
    kept = MatrixPolicy.of_function(
        lambda x, z: policy.entry(x, z) if (x, z) in near else math.inf, size
    )
    implied = closure(kept)
    for x, z in permutations(range(size), 2):
        found = implied.entry(x, z)
        assert found is not None
        assert found <= policy.entry(x, z)


@pytest.mark.parametrize("p", [0, 0.5, -1, 1.5, math.nan, -math.inf, "2", True, 65, None])
def test_an_impossible_p_is_refused_by_name(p: float):
    with pytest.raises(SpecError, match=r"^p: expected a whole number in 1\.\.64, or inf, got "):
        MetricPolicy(1.0, (3, 3), p=p)


@pytest.mark.parametrize(
    "scale", [(1.0,), (0.0, 1.0), (-1.0, 1.0), (math.nan, 1.0), (math.inf, 1.0)]
)
def test_an_impossible_scale_is_refused_by_name(scale: tuple[float, ...]):
    with pytest.raises(SpecError, match=r"^scale"):
        MetricPolicy(1.0, (3, 3), scale=scale)


@pytest.mark.parametrize("p", [1, 2, 3, 5, 64, math.inf])
@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 7])
def test_the_budget_of_an_l1_mechanism_keeps_the_lp_policy_and_hardly_less(
    p: float, dimensions: int
):
    epsilon = Fraction(7, 10)
    found = l1_epsilon(epsilon, dimensions=dimensions, p=p)
    exponent = 1.0 if p == math.inf else 1 - 1 / p
    assert float(found) == pytest.approx(0.7 / dimensions**exponent, rel=1e-12)
    generator = np.random.default_rng(5)
    vectors = [[1] * dimensions, [9] * dimensions, [1] + [0] * (dimensions - 1)]
    vectors += generator.integers(0, 50, (40, dimensions)).tolist()
    for vector in vectors:
        assert found * sum(vector) <= epsilon * lp_length(vector, p)
