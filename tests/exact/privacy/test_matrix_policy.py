"""Policies given as a matrix: what they hold, exactly, and what is refused by place."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.labels import Labels
from ldpstream.mechanisms.domains.lattice import Grid
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
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
