"""Bounds for all channels of a policy: closed forms, enumeration by other code, random policies."""

from itertools import combinations, product

import numpy as np
import pytest
from benchmarks.accuracy.plan_bounds import KINDS, planned
from scipy.optimize import linprog, minimize

from ldpstream.estimators.design.exchangeable import symmetric_optimum
from ldpstream.estimators.design.optimise import (
    Design,
    Workload,
    histogram,
    least_trace,
    optimise,
    ranges,
)
from ldpstream.estimators.design.relaxation import largest_mean
from ldpstream.estimators.planning import optimum as planning
from ldpstream.estimators.planning.compare import compare
from ldpstream.estimators.planning.optimum import find_bound
from ldpstream.estimators.planning.workload import PlannedWorkload, uniform_shares, zipf_shares
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.parse import Size
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy, HighLowPolicy, Policy
from tests.exact.specs import classical
from tests.soak import seeds

NO_UNITS = np.zeros(0, dtype=np.int64)


def of_blocks(sizes: tuple[int, ...], epsilon: float) -> Policy:
    return BlockPolicy(epsilon, Blocks(np.repeat(np.arange(len(sizes)), sizes)))


def respondents(policy: Policy) -> float:
    """The least total variance of all values for respondents, with uniform shares."""
    size = policy.size
    trace = least_trace(policy, histogram(size), np.full(size, 1.0 / size))
    assert trace is not None
    return trace - 1.0


@pytest.mark.parametrize(
    ("size", "epsilon", "total", "chosen"),
    [
        (2, 1.0, 1.841347, 1),
        (3, 1.0, 4.360088, 1),
        (5, 2.0, 1.742097, 1),
        (8, 1.0, 21.736385, 2),
        (24, 0.5, 344.462168, 9),
        (64, 0.1, 24788.527747, 30),
        (64, 1.0, 227.416592, 17),
        (64, 3.0, 12.694555, 3),
    ],
)
def test_one_class_has_the_best_size_of_subsets(
    size: int, epsilon: float, total: float, chosen: int
):
    assert respondents(classical(epsilon, size)) == pytest.approx(total, abs=6e-7)
    high = np.full(size, np.exp(epsilon))
    found = symmetric_optimum(np.eye(size), uniform_shares(size), high, NO_UNITS)
    assert found is not None
    assert found.types.tolist() == [[chosen]]


@pytest.mark.parametrize(
    ("sizes", "epsilon", "total"),
    [
        ((8, 3), 1.0, 16.997395),
        ((8, 5), 1.0, 17.772295),
        ((10, 9), 1.0, 27.500928),
        ((64, 32, 1), 2.0, 35.858098),
    ],
)
def test_blocks_add_up(sizes: tuple[int, ...], epsilon: float, total: float):
    assert respondents(of_blocks(sizes, epsilon)) == pytest.approx(total, abs=6e-7)


@pytest.mark.parametrize(
    ("size", "sensitive", "epsilon", "total"),
    [
        (12, 6, 0.5, 62.254491),
        (12, 6, 1.0, 13.450058),
        (12, 6, 4.0, 0.215674),
        (9, 8, 4.0, 0.284843),
        (40, 10, 3.0, 1.257240),
        (100, 30, 2.0, 13.800817),
        (20, 1, 1.0, 1.105756),
    ],
)
def test_sensitive_values_are_one_class_and_the_others_another(
    size: int, sensitive: int, epsilon: float, total: float
):
    policy = HighLowPolicy(epsilon, size, frozenset(range(sensitive)))
    assert respondents(policy) == pytest.approx(total, abs=2e-6)
    if size <= 12:
        design = optimise(policy, histogram(size))
        assert design.status == "proved"
        assert design.respondents == pytest.approx(total, abs=2e-6)


def two_budgets(first: int, second: int, high: float, low: float) -> Policy:
    rows = np.repeat(np.repeat([high, low], [first, second])[:, None], first + second, axis=1)
    np.fill_diagonal(rows, 0.0)
    return MatrixPolicy.of(rows)


def test_types_are_as_good_as_all_rays():
    """Three and four exchangeable values, with their types and with one share changed a little."""
    policy = two_budgets(3, 4, 0.5, 1.5)
    types = optimise(policy, histogram(7))
    shares = np.full(7, 1.0 / 7)
    shares[0] *= 1.0 + 1e-7
    rays = optimise(policy, histogram(7), shares / shares.sum())
    assert types.status == rays.status == "proved"
    assert types.population == pytest.approx(rays.population, rel=1e-5)
    assert respondents(policy) == pytest.approx(types.respondents, rel=1e-5)


def test_components_are_designed_apart_for_any_queries():
    """A random G over three and two values; G between the two blocks does not matter."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(5, 5))
    gram = root @ root.T + 0.1 * np.eye(5)
    prior = rng.dirichlet(np.ones(5))
    whole = optimise(of_blocks((3, 2), 1.0), Workload("random", gram, 5), prior)
    together = 0.0
    for values in (np.arange(3), np.arange(3, 5)):
        own, share = gram[np.ix_(values, values)], prior[values].sum()
        p = prior[values] / share
        part = optimise(classical(1.0, values.size), Workload("part", own, 5), p)
        together += share * (part.population + p @ own @ p)
    assert whole.status == "proved"
    assert whole.population + prior @ gram @ prior == pytest.approx(together, rel=1e-6)


def form_of(design: Design) -> tuple[Floats, float]:
    """`M = I^-1 G I^-1` and f of a design."""
    information = (design.columns.T * design.weights) @ design.columns
    inverse = np.linalg.inv(information)
    gram = design.workload.gram
    return inverse @ gram @ inverse, float(np.trace(gram @ inverse))


@pytest.mark.parametrize(
    ("size", "epsilon", "workload", "zipf", "trace", "bound"),
    [
        (8, 0.5, histogram(8), True, 95.554707, 95.455218),
        (8, 1.0, ranges((8,)), False, 152.522994, 149.999291),
        (6, 1.0, histogram(6), True, 15.531802, 15.162982),
    ],
)
def test_a_relaxation_is_near_the_proved_optimum(
    size: int, epsilon: float, workload: Workload, zipf: bool, trace: float, bound: float
):
    shares = zipf_shares((size,)) if zipf else uniform_shares(size)
    design = optimise(classical(epsilon, size), workload, shares)
    assert design.status == "proved"
    form, f = form_of(design)
    assert f == pytest.approx(trace, rel=1e-7)
    high = np.full(size, np.exp(epsilon))
    relaxed = f**2 / largest_mean(form, shares, high, NO_UNITS)
    # The semidefinite program ends nearer to its optimum than a barrier that stops early.
    assert bound * (1 - 1e-7) <= relaxed <= bound * (1 + 1e-5)
    assert relaxed < f


@pytest.mark.parametrize("seed", range(4))
def test_no_channel_exceeds_what_a_relaxation_allows(seed: int):
    """Linear programming over all rays: the largest mean of `v^T M v` of a channel."""
    rng = np.random.default_rng(seed)
    size, sensitive = 6, [6, 4, 1, 5][seed]
    shares = 0.5 * rng.dirichlet(np.ones(size)) + 0.5 / size
    high = np.exp(rng.uniform(0.3, 1.5, size))
    high[sensitive:] = 1.0
    root = rng.normal(size=(size, size))
    form = root @ root.T
    levels = [[1.0, top] if top > 1.0 else [1.0] for top in high]
    columns = [np.array(ray) for ray in product(*levels)]
    columns += [np.eye(size)[b] for b in range(sensitive, size)]
    scaled = np.array([v / (v @ shares) for v in columns])
    worth = np.array([v @ form @ v for v in scaled])
    most = linprog(-worth, A_eq=scaled.T, b_eq=np.ones(size))
    allowed = largest_mean(form, shares, high, np.arange(sensitive, size))
    assert -most.fun <= allowed * (1 + 1e-9)
    assert allowed < 20 * -most.fun


def rays_of(policy: Policy) -> Floats:
    """All extreme rays of `v[x] <= e^E[x, z] v[z]`, `v >= 0`: k - 1 equalities determine each."""
    size = policy.size
    rows = [np.eye(size)[x] for x in range(size)]
    for x, z in product(range(size), repeat=2):
        entry = policy.entry(x, z)
        if x != z and entry is not None:
            rows.append(np.exp(float(entry)) * np.eye(size)[z] - np.eye(size)[x])
    table, found = np.array(rows), []
    for chosen in combinations(range(len(rows)), size - 1):
        _, sizes, turned = np.linalg.svd(table[list(chosen)])
        if sizes[-1] < 1e-9:
            continue
        ray = turned[-1] * np.sign(turned[-1].sum())
        if (table @ ray >= -1e-9).all():
            found.append(np.maximum(ray, 0.0) / ray.sum())
    return np.unique(np.round(found, 10), axis=0)


def least_of(rays: Floats, gram: Floats, prior: Floats) -> float:
    """The least `tr(G I^-1)` of weights of these rays, by a general solver from several starts."""
    columns = rays / (rays @ prior)[:, None]

    def trace(weights: Floats) -> tuple[float, Floats]:
        inverse = np.linalg.inv((columns.T * weights) @ columns + 1e-12 * np.eye(len(prior)))
        form = inverse @ gram @ inverse
        return float(np.trace(gram @ inverse)), -np.einsum("ij,jk,ik->i", columns, form, columns)

    best = np.inf
    for seed in range(3):
        start = np.random.default_rng(seed).dirichlet(np.ones(len(columns)))
        found = minimize(
            trace,
            start,
            jac=True,
            bounds=[(0.0, None)] * len(columns),
            constraints={
                "type": "eq",
                "fun": lambda w: columns.T @ w - 1.0,
                "jac": lambda _: columns.T,
            },
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-12},
        )
        if np.abs(columns.T @ found.x - 1.0).max() < 1e-7:
            best = min(best, found.fun)
    return best


INF = np.inf
SMALL: dict[str, Policy] = {
    "classical": classical(1.0, 4),
    "blocks": of_blocks((2, 1, 2), 0.7),
    "mixed blocks": BlockPolicy(1.2, Blocks(np.array([0, 1, 0, 1]))),
    "high-low": HighLowPolicy(1.0, 4, frozenset({1, 3})),
    "one sensitive": HighLowPolicy(0.5, 4, frozenset({2})),
    "two budgets": two_budgets(2, 2, 0.5, 1.5),
    "two budgets and none": MatrixPolicy.of(
        [[0, 1, 1, 1], [0.4, 0, 0.4, 0.4], [INF, INF, 0, INF], [0.4, 0.4, 0.4, 0]]
    ),
    "line": MetricPolicy(0.5, (4,)),
    "grid": MetricPolicy(0.6, (2, 2)),
    "entries": MatrixPolicy.of([[0, 1, 0.5], [0.8, 0, 1.2], [0.6, 0.9, 0]]),
    "one direction": MatrixPolicy.of(
        [[0, 1, INF, 2], [INF, 0, 0.7, INF], [0.9, INF, 0, INF], [1, INF, INF, 0]]
    ),
}


UNPROVED = ("grid", "entries", "one direction")
"""Those whose optimum is searched for: values that are alike do not help there."""


@pytest.mark.parametrize(
    ("name", "uniform"),
    [(name, False) for name in SMALL] + [(name, True) for name in SMALL if name not in UNPROVED],
)
def test_enumeration_of_all_rays_agrees(name: str, uniform: bool):
    policy = SMALL[name]
    size = policy.size
    rng = np.random.default_rng(len(name))
    prior = (
        np.full(size, 1.0 / size) if uniform else 0.5 * rng.dirichlet(np.ones(size)) + 0.5 / size
    )
    gram = histogram(size).gram if uniform else ranges((size,)).gram
    design = optimise(policy, Workload("w", gram, 1), prior)
    best = least_of(rays_of(policy), gram, prior) - prior @ gram @ prior
    assert design.population == pytest.approx(best, rel=2e-5)
    if design.gap is not None:
        assert design.population - design.gap <= best * (1 + 1e-7)
        assert design.status == "proved"
    assert (design.gap is None) == (name in UNPROVED)


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(2 * len(KINDS), soak=100 * len(KINDS)))
def test_no_mechanism_is_below_the_bound_of_a_random_policy(seed: int):
    kind, candidates, optimum = planned(seed, 7)
    if optimum is None or not candidates:
        return
    least = min(one.variance for one in candidates)
    assert optimum.variance <= least
    if optimum.least is None:
        assert kind in {"nested", "entries", "grid"}, "one budget per row and trees have bounds"
        assert optimum.status in {"searched", "unfinished"}
    else:
        assert optimum.least <= optimum.variance * (1 + 1e-6) + 1e-9
        assert optimum.status != "searched"


def planned_blocks(size: int) -> tuple[Policy, PlannedWorkload, BlockHadamard]:
    mechanism = BlockHadamard(1.0, Blocks(np.arange(size) // 3))
    workload = PlannedWorkload((size,), ordered=True, shares=uniform_shares(size))
    return mechanism.policy, workload, mechanism


def test_a_candidate_below_a_bound_is_an_error_that_names_both(monkeypatch: pytest.MonkeyPatch):
    policy, workload, mechanism = planned_blocks(6)
    candidates = compare(mechanism, Size(6), workload).candidates
    monkeypatch.setattr(planning, "least_trace", lambda *_: 100.0)
    with pytest.raises(
        AssertionError, match=r"bound 16\.\d+ for all channels is above the variance"
    ):
        find_bound(policy, workload, candidates)


def test_blocks_have_a_bound_without_a_search():
    policy, workload, mechanism = planned_blocks(48)
    candidates = compare(mechanism, Size(48), workload).candidates
    found = find_bound(policy, workload, candidates)
    assert found is not None
    assert found.design is None
    assert found.status == "proved"
    assert found.variance == candidates[0].variance == pytest.approx(found.least, rel=1e-6)
    skewed = PlannedWorkload((48,), ordered=True, shares=zipf_shares((48,)))
    assert find_bound(policy, skewed, candidates) is None


def test_beyond_all_rays_there_is_a_relaxation():
    """25 values with different shares, 2^25 rays; the first round's M bounds all channels."""
    policy, shares = classical(0.5, 25), zipf_shares((25,))
    design = optimise(policy, histogram(25), shares, seconds=0.0)
    assert design.status == "unfinished"
    assert design.gap is not None
    # A search of some seconds ends at 358.556, with a bound of 357.992.
    assert 0.5 * 358.556 < design.respondents - design.gap < 358.556
    assert design.respondents > 357.992
