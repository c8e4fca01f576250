"""Designs against optima that are known: closed forms, other mechanisms, enumeration."""

import itertools
import time
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.estimators.design import master
from ldpstream.estimators.design.cone import DesignError
from ldpstream.estimators.design.optimise import (
    Design,
    Workload,
    cones_of,
    histogram,
    optimise,
    prefixes,
    ranges,
    sets,
)
from ldpstream.estimators.design.pair_cone import PairCone, closed
from ldpstream.estimators.design.realise import realise
from ldpstream.estimators.design.tree_cone import TreeCone
from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.mechanisms.channels.designed import certify_prior
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.queries import range_values
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.lip.domain import Prior
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.families.optimal import Optimal
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BinaryPolicy, BlockPolicy, Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy
from tests.exact.enumeration import matrix_of, predicted_value_variances
from tests.exact.specs import classical

pytestmark = pytest.mark.slow


def trace_of(channel: np.ndarray, prior: np.ndarray, workload: Workload) -> float:
    """`tr(G I^-1) - p^T G p` of a dense channel, straight from its definition."""
    marginal = prior @ channel
    information = (channel / marginal) @ channel.T
    return float(
        np.trace(workload.gram @ np.linalg.inv(information)) - prior @ workload.gram @ prior
    )


def values_total(mechanism: Mechanism, estimand: str) -> float:
    values = range(mechanism.size)
    return float(predicted_value_variances(mechanism, values, estimand=estimand).sum())


def test_classical_privacy_gives_subset_randomized():
    design = optimise(classical(1.0, 8), histogram(8))
    assert design.status == "proved"
    assert design.gap < 1e-5
    assert len(design.weights) <= 8 * 9 / 2
    assert design.population == pytest.approx(22.6113845, abs=1e-6)
    assert design.respondents == pytest.approx(21.7363845, abs=1e-6)
    selection = SubsetSelection(1.0, Blocks.one(8))
    realised = Optimal(realise(design))
    for estimand in ("population", "respondents"):
        best = values_total(realised, estimand)
        assert best == pytest.approx(values_total(selection, estimand), rel=1e-6)


@pytest.mark.parametrize(("epsilon", "best"), [(0.3, 15.39171), (1.0, 0.55802)])
def test_all_ranges_on_a_line_of_16(epsilon: float, best: float):
    design = optimise(MetricPolicy(epsilon, (16,)), ranges((16,)))
    assert design.status == "proved"
    assert design.population / 136 == pytest.approx(best, abs=6e-6)
    realised = Optimal(realise(design))
    assert realised.certify().passed
    members = [
        range_values((16,), [(first, last)]) for first in range(16) for last in range(first, 16)
    ]
    variances = predicted_set_variances(realised, members, estimand="population")
    assert variances.sum() == pytest.approx(design.population, rel=1e-6)
    geometric = predicted_set_variances(L1Geometric(epsilon, (16,)), members, estimand="population")
    assert variances.sum() < geometric.sum()


@pytest.mark.parametrize("budgets", [(1.0, 1.0), (0.5, 2.0)])
def test_two_values_give_the_channel_of_the_theorem(budgets: tuple[float, float]):
    design = optimise(BinaryPolicy(*budgets), histogram(2))
    best = trace_of(matrix_of(Binary(*budgets)), np.full(2, 0.5), histogram(2))
    assert design.population == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 10), Fraction(1, 100)])
def test_two_values_with_a_prior_give_the_channel_of_lip(share: Fraction):
    prior = np.array([float(1 - share), float(share)])
    design = optimise(PriorPolicy(1.0, (1 - share, share)), histogram(2), prior)
    best = trace_of(matrix_of(Lip(Prior(value=float(share)), (1.0,))), prior, histogram(2))
    assert design.status == "proved"
    assert design.population == pytest.approx(best, rel=1e-6)


def test_blocks_are_disclosed_and_optimal_inside():
    design = optimise(BlockPolicy(1.0, Blocks(np.array([0, 0, 0, 1, 1]))), histogram(5))
    parts = [
        optimise(classical(1.0, size), histogram(size)).population + 1.0 / size for size in (3, 2)
    ]
    # A block's second moments grow with its share of the reports.
    together = parts[0] * 3 / 5 + parts[1] * 2 / 5 - 1.0 / 5
    assert design.population == pytest.approx(together, rel=1e-5)


def asymmetric(seed: int, size: int) -> MatrixPolicy:
    budgets = np.random.default_rng(seed).uniform(0.3, 1.5, (size, size)).round(2)
    np.fill_diagonal(budgets, 0.0)
    return MatrixPolicy.of(budgets)


@pytest.mark.parametrize(
    ("policy", "workload", "prior"),
    [
        (MetricPolicy(0.5, (5,)), prefixes((5,)), None),
        (MetricPolicy(0.5, (2, 3)), ranges((2, 3)), None),
        (asymmetric(1, 5), histogram(5), np.array([0.4, 0.3, 0.1, 0.1, 0.1])),
        (
            GraphPolicy(4, ((0, 1, Fraction(1)), (1, 2, Fraction(1, 2)), (2, 3, Fraction(1)))),
            sets(4, [np.array([0, 1]), np.array([3])], name="places"),
            None,
        ),
        (PriorPolicy(0.6, tuple(Fraction(n, 10) for n in (1, 2, 3, 4))), histogram(4), None),
    ],
    ids=["line", "plane", "asymmetric", "tree", "lip"],
)
def test_the_bound_is_below_every_channel_of_the_policy(
    policy: Policy, workload: Workload, prior: np.ndarray | None
):
    rng = np.random.default_rng(3)
    design = optimise(policy, workload, prior)
    channel = realise(design)
    assert channel.certify("optimal", []).passed
    assert trace_of(channel.matrix, design.prior, workload) == pytest.approx(
        design.population, rel=1e-6
    )
    least = design.population - (design.gap or 0.0)
    assert 0.0 <= design.population - least < 1e-4 * design.population
    cone = cones_of(policy)[0][1]
    for _ in range(30):
        # A channel out of best columns for random directions, filled up by one of the cone.
        columns = cone.best(rng.normal(size=(12, policy.size)), design.prior)
        weights = rng.dirichlet(np.ones(12))
        while not cone.contains(1.0 - weights @ columns):
            weights *= 0.8
        other = np.vstack([columns * weights[:, None], 1.0 - weights @ columns]).T
        assert trace_of(other, design.prior, workload) >= least


def test_the_search_finds_what_enumeration_proves():
    """The cone of a line, once with its structure and once as linear constraints."""
    policy = MetricPolicy(0.4, (6,))
    budgets = closed(6, ((x, z, float(b)) for x, z, b in policy.constraints()))
    tree = TreeCone.of(budgets)
    assert tree is not None
    rng = np.random.default_rng(5)
    prior = rng.dirichlet(np.ones(6))
    directions = rng.normal(size=(20, 6))
    best = tree.best(directions, prior)
    assert np.allclose(best, PairCone(budgets).best(directions, prior), rtol=1e-7)
    rays = tree.rays(32)
    assert rays is not None
    every = np.concatenate(list(rays))
    assert every.shape == (32, 6)
    worth = (every / (every @ prior)[:, None]) @ directions.T
    assert np.allclose(worth.max(axis=0), (best * directions).sum(axis=1))


def test_gram_matrices_are_sums_over_the_queries():
    shape = (3, 4)
    boxes = [
        [(a, b), (c, d)]
        for a in range(3)
        for b in range(a, 3)
        for c in range(4)
        for d in range(c, 4)
    ]
    listed = sets(12, [range_values(shape, box) for box in boxes])
    assert np.array_equal(ranges(shape).gram, listed.gram)
    assert ranges(shape).queries == listed.queries == len(boxes)
    begins = [box for box in boxes if box[0][0] == box[1][0] == 0]
    listed = sets(12, [range_values(shape, box) for box in begins])
    assert np.array_equal(prefixes(shape).gram, listed.gram)
    assert prefixes(shape).queries == len(begins)
    assert np.array_equal(histogram(3).gram, sets(3, [np.array([x]) for x in range(3)]).gram)


@pytest.mark.parametrize("epsilon", [1e-3, 5.0, 40.0])
def test_subset_selection_is_best_for_small_and_large_budgets(epsilon: float):
    design = optimise(classical(epsilon, 5), histogram(5))
    selection = SubsetSelection(epsilon, Blocks.one(5))
    assert realise(design).certify("optimal", []).passed
    assert design.respondents == pytest.approx(
        values_total(selection, "respondents"), rel=1e-5, abs=1e-10
    )


def test_lip_is_implied_by_classical_privacy_and_not_by_its_own_entries():
    """Entries of LIP allow twice epsilon; what is proposed in its place keeps epsilon."""
    policy = PriorPolicy(0.5, (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)))
    assert float(policy.entry(0, 1)) == 1.0
    assert policy.by_entries() == classical(0.5, 3)
    assert certify_prior("x", policy, _randomized(0.5), []).passed
    assert not certify_prior("x", policy, _randomized(1.0), []).passed


def _randomized(epsilon: float) -> list[list[int]]:
    rows = RandomizedResponse(epsilon, Blocks.one(3)).channel().rows
    return [[int(row[y] * 2**64 * 3) for y in range(3)] for row in rows]


@pytest.mark.parametrize(
    "prior", [[0.5, 0.5], [0.5, 0.5, 0.5], [1.0, 0.0, 0.0], [-0.5, 1.0, 0.5], [np.nan] * 3]
)
def test_a_prior_that_is_not_a_distribution_is_refused(prior: list[float]):
    with pytest.raises(DesignError, match="prior: expected 3 numbers above 0 with sum 1"):
        optimise(classical(1.0, 3), histogram(3), np.array(prior))


def test_a_workload_of_another_size_is_refused():
    with pytest.raises(DesignError, match="workload: expected 3 values, got 4"):
        optimise(classical(1.0, 3), histogram(4))
    for members in ([], [np.array([0, 3])], [np.array([1, 1])]):
        with pytest.raises(ValueError, match="set"):
            sets(3, members)


def test_a_budget_of_zero_leaves_no_invertible_channel():
    policy = MatrixPolicy.of([[0, 1, 1], [1, 0, 0], [1, 1, 0]])
    with pytest.raises(DesignError, match="the budget of values 1 and 2 is 0"):
        optimise(policy, histogram(3))


def test_a_solver_that_does_not_converge_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(master, "_MOST_STEPS", 2)
    with pytest.raises(DesignError, match="no convergence: the weights of 18 columns"):
        optimise(MetricPolicy(0.3, (8,)), ranges((8,)))


def test_a_search_that_is_out_of_time_says_what_is_left():
    design: Design = optimise(MetricPolicy(0.3, (16,)), ranges((16,)), seconds=0.0)
    assert design.status == "unfinished"
    # The best one, of 136 ranges, as in test_best_channels.
    best = 136 * 15.39171
    assert design.gap > 0.01 * design.population
    assert design.population - design.gap <= best <= design.population


def test_a_busy_machine_does_not_end_a_search(monkeypatch: pytest.MonkeyPatch):
    """CPU time counts: here an hour of wall time passes with every look at the clock."""
    hours = itertools.count(0, 3600)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(hours)))
    design = optimise(MetricPolicy(0.3, (8,)), ranges((8,)), seconds=60.0)
    assert design.status == "proved"


def test_a_budget_too_small_for_double_precision_says_so():
    with pytest.raises(DesignError, match="no convergence"):
        optimise(classical(1e-6, 4), histogram(4))
