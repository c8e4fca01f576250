"""`matrix` against its definition: exact losses, least squares, closed forms of errors."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import null_space

from ldpstream.estimators.linear_counting import (
    compare_strategies,
    gram_of,
    predicted_total_error,
)
from ldpstream.mechanisms import SpecError
from ldpstream.mechanisms.blocks import Blocks
from ldpstream.mechanisms.dyadic import exp_bounds
from ldpstream.mechanisms.entropy import WORD
from ldpstream.mechanisms.graph_policy import GraphPolicy
from ldpstream.mechanisms.laplace_rows import reach
from ldpstream.mechanisms.matrix import Matrix
from ldpstream.mechanisms.matrix_pairs import ProtectedPairs
from ldpstream.mechanisms.matrix_policy import MatrixPolicy
from ldpstream.mechanisms.matrix_strategy import STRATEGIES, Strategy
from ldpstream.mechanisms.metric_policy import MetricPolicy
from ldpstream.mechanisms.policy import BinaryPolicy, BlockPolicy, HighLowPolicy, Policy
from ldpstream.mechanisms.workload import WORKLOADS


def classical(epsilon: float, size: int) -> BlockPolicy:
    return BlockPolicy(epsilon, Blocks.one(size))


def line(epsilon: float, size: int) -> MetricPolicy:
    return MetricPolicy(epsilon, (size,))


def built(name: str, policy: Policy, scales: tuple[float, ...] | None = None) -> Matrix:
    return Matrix(policy, Strategy.built_in(name, policy.size), scales)


def queries(workload: str, size: int) -> np.ndarray:
    ends = [(i, j) for i in range(size) for j in range(i, size)]
    kept = {"values": lambda i, j: i == j, "prefixes": lambda i, _: i == 0}
    rows = [pair for pair in ends if kept.get(workload, lambda *_: True)(*pair)]
    return np.array([[i <= x <= j for x in range(size)] for i, j in rows], dtype=float)


ASYMMETRIC = MatrixPolicy.of([[0, 0.5, 2], [1, 0, math.inf], [math.inf, 0.25, 0]])
POLICIES = [
    line(0.7, 5),
    MetricPolicy(0.3, (2, 3)),
    MetricPolicy(0.5, (3, 2), p=2),
    classical(1.0, 6),
    BlockPolicy(0.4, Blocks(np.array([0, 1, 0, 1, 1]))),
    HighLowPolicy(1.5, 4, frozenset({1, 2})),
    GraphPolicy(5, ((0, 1, Fraction(1, 3)), (1, 2, Fraction(2)), (3, 4, Fraction(1, 2)))),
    GraphPolicy(3, ((0, 1, Fraction(1)), (1, 2, Fraction(1, 2))), directed=True),
    ASYMMETRIC,
    BinaryPolicy(0.5, math.inf),
]


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: f"{type(p).__name__}-{p.size}")
def test_every_pair_keeps_its_budget_and_some_pair_uses_it_up(policy: Policy, name: str):
    """From the definition, over all ordered pairs, with the realised alphas."""
    mechanism = built(name, policy)
    rows = mechanism.rows
    alphas = [Fraction(rows.thresholds[kind], WORD) for kind in rows.kinds]
    tight = 0.0
    for x in range(policy.size):
        for other in range(policy.size):
            budget = policy.entry(x, other)
            if budget is None or x == other:
                continue
            assert mechanism._realised.group[x] == mechanism._realised.group[other]
            gaps = np.abs(rows.entries[:, x] - rows.entries[:, other]).tolist()
            ratio = math.prod(
                (alpha**-gap for alpha, gap in zip(alphas, gaps, strict=True)), start=Fraction(1)
            )
            assert ratio <= exp_bounds(budget)[0]
            tight = max(tight, math.log(ratio) / float(budget))
    assert tight == pytest.approx(1.0, rel=1e-12)
    assert mechanism.certify().passed


@pytest.mark.parametrize("name", STRATEGIES)
def test_distances_by_products_equal_direct_ones(name: str, monkeypatch: pytest.MonkeyPatch):
    pairs = ProtectedPairs.of(classical(1.0, 37))
    rows = Strategy.built_in(name, 37).entries * 3
    direct = pairs.distances(rows)
    monkeypatch.setattr("ldpstream.mechanisms.matrix_pairs._FEW_DIRECT", 0)
    assert np.array_equal(pairs.distances(rows), direct)
    assert np.array_equal(pairs.weighted(rows, np.full(len(rows), 0.5)), direct * 0.5)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: f"{type(p).__name__}-{p.size}")
def test_components_are_what_pairs_join(policy: Policy):
    joined = {x: {x} for x in range(policy.size)}
    for x in range(policy.size):
        for other in range(policy.size):
            if policy.entry(x, other) is not None:
                union = joined[x] | joined[other]
                joined |= dict.fromkeys(union, union)
    least = [min(joined[x]) for x in range(policy.size)]
    assert ProtectedPairs.of(policy).components().tolist() == least


@pytest.mark.parametrize("threshold", [1, 1 << 32, 1 << 63, 15 << 60, WORD - (1 << 50)])
def test_ranges_clip_less_than_a_word_can_tell(threshold: int):
    alpha, beyond = Fraction(threshold, WORD), reach(threshold) + 1
    high = exp_bounds(Fraction(-beyond) * Fraction(-math.log(alpha)))[1]
    assert 2 * high / (1 + alpha) < Fraction(1, WORD) * Fraction(1001, 1000)
    if threshold <= 1 << 63:
        assert 2 * alpha**beyond / (1 + alpha) < Fraction(1, WORD)
        assert 2 * alpha ** max(beyond - 2, 0) / (1 + alpha) >= Fraction(1, WORD)


SIZES = [2, 3, 8, 13]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_answer_everything_with_the_number_of_reports(name: str, size: int):
    entries = STRATEGIES[name](size)
    assert np.linalg.matrix_rank(np.vstack([entries, np.ones(size)])) == size
    assert (entries != entries[:, :1]).any(axis=1).all()
    assert len(np.unique(entries, axis=0)) == len(entries)


def test_strategies_of_four_values():
    assert STRATEGIES["prefix"](4).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]]
    assert STRATEGIES["haar"](4).tolist() == [[1, 1, -1, -1], [1, -1, 0, 0], [0, 0, 1, -1]]
    expected = [[1, 1, 0, 0], [0, 0, 1, 1], *np.eye(4, dtype=int).tolist()]
    assert STRATEGIES["hierarchical"](4).tolist() == expected


OWN = Strategy("file", np.array([[3, 0, 1, -2], [1, 1, 1, 1], [0, 5, -1, 1], [2, 0, 0, 7]]))


def some_mechanisms() -> list[Matrix]:
    uneven = tuple(float(s) for s in 40.0 + np.arange(6.0))
    return [
        *(built(name, classical(1.0, 7)) for name in STRATEGIES),
        built("identity", classical(1.0, 6), uneven),
        Matrix(classical(2.0, 4), OWN),
        built("haar", BlockPolicy(1.0, Blocks(np.array([0, 1, 0, 1, 1, 2])))),
    ]


@pytest.mark.parametrize("mechanism", some_mechanisms(), ids=repr)
def test_the_decoder_is_the_unbiased_one_of_least_noise(mechanism: Matrix):
    decoder, rows = mechanism.decoder(), mechanism.rows
    for group in range(mechanism._groups):
        at = np.flatnonzero(mechanism._realised.group == group)
        known = np.vstack([rows.entries[:, at], np.ones(len(at))])
        solved = np.vstack([decoder.gains[:, at], decoder.offsets[at]])
        assert np.allclose(known.T @ solved, np.eye(len(at)), atol=1e-11)
        # Any other unbiased decoder adds a vector of this space: at the least, orthogonally.
        free = null_space(known.T)
        assert np.allclose(free[:-1].T @ (rows.variances[:, None] * solved[:-1]), 0.0, atol=1e-9)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_grams_are_those_of_the_queries(workload: str, size: int):
    listed = queries(workload, size)
    assert np.array_equal(WORKLOADS[workload](size), listed.T @ listed)
    assert np.array_equal(gram_of(listed, size), listed.T @ listed)
    if workload == "ranges":
        assert len(listed) == size * (size + 1) // 2


def waves(k: int, norm: Callable[[int], float]) -> Callable[[np.ndarray], float]:
    """The noise, in units of a row's, of queries decoded wavelet by wavelet; k a power of two."""

    def total(listed: np.ndarray) -> float:
        products = listed @ STRATEGIES["haar"](k).T
        supports = np.abs(STRATEGIES["haar"](k)).sum(axis=1)
        return float((products**2 / np.array([norm(int(s)) for s in supports])).sum())

    return total


K = 16
CLOSED: dict[str, Callable[[np.ndarray], float]] = {
    # Each query is a difference of two prefixes; the whole is exact.
    "prefix": lambda w: float((np.diff(w, axis=1) ** 2).sum()),
    # With the known total, a set of t values of k: t (k - t)/k.
    "identity": lambda w: float((w.sum(axis=1) * (K - w.sum(axis=1)) / K).sum()),
    # Rows are orthogonal, with norms of their support's size.
    "haar": waves(K, lambda support: support**2),
    # A^T A has the wavelets as eigenvectors: sizes 1 + 2 + 4 + ... below the support.
    "hierarchical": waves(K, lambda support: support * (support - 1)),
}


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_total_errors_have_closed_forms(name: str, workload: str):
    mechanism = built(name, line(0.8, K))
    listed = queries(workload, K)
    noise = float(mechanism.rows.variances[0])
    found = predicted_total_error(mechanism, 100, workload)
    assert found == pytest.approx(100 * noise * CLOSED[name](listed))
    by_query = [mechanism.decoder().noise(w) for w in listed]
    assert found == pytest.approx(100 * sum(float(noise[0]) for noise in by_query))
    assert all(np.ptp(noise) == 0.0 for noise in by_query)
    # All ranges by prefixes: every cut ends k of them ([ML] III-B).
    if (name, workload) == ("prefix", "ranges"):
        assert found == pytest.approx(100 * noise * K * (K - 1))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0])
def test_the_discrete_noise_is_smaller_than_the_continuous(epsilon: float):
    mechanism = built("prefix", line(epsilon, 8))
    continuous = predicted_total_error(mechanism, 10, "ranges", continuous=True)
    assert continuous == pytest.approx(10 * 2 / epsilon**2 * 8 * 7)
    discrete = predicted_total_error(mechanism, 10, "ranges")
    assert discrete < continuous
    # 2 q/(1 - q)^2 = 1/(2 sinh^2(epsilon/2)) = 2/epsilon^2 - 1/6 + ...
    assert discrete / continuous == pytest.approx((epsilon / 2 / math.sinh(epsilon / 2)) ** 2)


def test_the_best_strategy_depends_on_the_metric():
    assert next(iter(compare_strategies(line(1.0, 32), "ranges"))) == "prefix"
    assert next(iter(compare_strategies(classical(1.0, 32), "ranges"))) == "identity"
    with pytest.raises(SpecError, match="budgets above 0"):
        compare_strategies(MatrixPolicy.of([[0, 0], [0, 0]]), "values")


def test_exact_rows_disclose_groups_and_count_them():
    policy = BlockPolicy(1.0, Blocks(np.array([0, 0, 1, 1])))
    mechanism = built("haar", policy)
    assert mechanism.disclosed() == [
        "which of 2 groups the value is in: the policy lets them be told apart"
    ]
    assert mechanism._realised.group.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    assert mechanism.rows.count == 2
    statistic = mechanism.empty()
    mechanism.absorb(statistic, mechanism.privatize(np.array([0, 1, 1, 3, 0])))
    assert sorted(mechanism.decoder().group_reports(statistic).tolist()) == [1, 4]
    halves = mechanism.decoder().noise(np.array([1.0, 1.0, 0.0, 0.0]))
    assert not halves.any()


REFUSED = {
    "another size": (line(1.0, 3), STRATEGIES["prefix"](4), None, "policy", "one of 4 values"),
    "nothing protected": (
        MatrixPolicy.of([[0, math.inf], [math.inf, 0]]),
        np.eye(2, dtype=int),
        None,
        "policy",
        "a budget between values",
    ),
    "no budget": (
        MatrixPolicy.of([[0, 0], [1, 0]]),
        np.eye(2, dtype=int),
        None,
        "policy",
        "budgets above 0",
    ),
    "tiny budget": (line(1e-25, 2), np.eye(2, dtype=int), None, "policy", "larger budgets"),
    "small budget": (line(1e-9, 2), np.eye(2, dtype=int), None, "policy", "at most 1073741824"),
    "too few rows": (
        classical(1.0, 3),
        np.array([[1, 0, 0]]),
        None,
        "strategy",
        "as many independent rows as values, 3",
    ),
    "dependent rows": (
        classical(1.0, 3),
        np.array([[1, 0, 0], [2, 0, 0], [0, 1, 1]]),
        None,
        "strategy",
        "rows that answer every query",
    ),
    "huge entry": (line(1.0, 2), np.array([[1 << 21, 0]]), None, "strategy", "at most 1048576"),
    "too few scales": (line(1.0, 3), STRATEGIES["prefix"](3), (1.0,), "scales", "2 numbers"),
    "scale 0": (
        line(1.0, 3),
        STRATEGIES["prefix"](3),
        (1.0, 0.0),
        "scales[1]",
        "above 0 for a row that tells protected values apart",
    ),
    "scale NaN": (line(1.0, 2), np.eye(2, dtype=int), (2.0, math.nan), "scales[1]", "finite"),
    "scale infinite": (line(1.0, 2), np.eye(2, dtype=int), (2.0, math.inf), "scales[1]", "finite"),
    "scale negative": (line(1.0, 2), np.eye(2, dtype=int), (2.0, -2.0), "scales[1]", "at least 0"),
    "scales too small": (
        line(1.0, 3),
        STRATEGIES["prefix"](3),
        (1.0, 0.999999999999),
        "scales",
        "values 1 and 2 lose 1",
    ),
}


@pytest.mark.parametrize(
    ("policy", "rows", "scales", "path", "expected"), REFUSED.values(), ids=REFUSED.keys()
)
def test_what_cannot_be_is_refused_by_name(
    policy: Policy, rows: np.ndarray, scales: tuple[float, ...] | None, path: str, expected: str
):
    with pytest.raises(SpecError) as caught:
        Matrix(policy, Strategy("file", rows), scales)
    assert caught.value.path == path
    assert expected in caught.value.expected


def test_scales_that_use_the_budget_up_exactly_are_accepted():
    """0.1 is read as the larger of its double and 1/10: ten times its inverse is within 100."""
    policy = GraphPolicy(3, ((0, 1, Fraction(10)), (1, 2, Fraction(8))))
    mechanism = built("prefix", policy, (0.1, 0.125))
    assert mechanism.certify().passed
    with pytest.raises(SpecError, match="values 1 and 2 lose 8"):
        built("prefix", policy, (0.1, math.nextafter(0.125, 0)))
