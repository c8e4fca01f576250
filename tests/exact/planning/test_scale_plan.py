"""The scales of least total error: against closed forms, a general solver, and the policy."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from benchmarks.accuracy.scale_solver import ConvergenceError, solve_rates
from benchmarks.accuracy.scales import gram_of, main, optimal_scales
from scipy.optimize import minimize

from ldpstream.mechanisms import SpecError, load_spec
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import STRATEGIES, Strategy
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy, Policy
from tests.exact.specs import classical


def test_one_constraint_has_a_closed_form():
    """`sum a_j u_j <= e`: Lagrange gives `u_j` in proportion to `(b_j / a_j)^(1/3)`."""
    weights, row = np.array([1.0, 8.0, 64.0]), np.array([1.0, 1.0, 2.0])
    best = (weights / row) ** (1 / 3)
    best *= 5.0 / (row @ best)
    found = solve_rates(weights, row[None, :], np.array([5.0]), np.full(3, 0.1))
    assert found.rates == pytest.approx(best, rel=1e-4)
    assert found.objective == pytest.approx((weights / best**2).sum(), rel=1e-6)
    assert row @ found.rates < 5.0
    assert 0 < found.gap <= 1e-6 * found.objective


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_no_worse_than_a_general_solvers(seed: int):
    rng = np.random.default_rng(seed)
    constraints = rng.integers(0, 3, (12, 5)).astype(float) + np.eye(12, 5)
    budgets, weights = rng.uniform(0.5, 2.0, 12), rng.uniform(0.1, 3.0, 5)
    start = np.full(5, 0.5 / (constraints / budgets[:, None]).sum(axis=1).max())
    found = solve_rates(weights, constraints, budgets, start)
    other = minimize(
        lambda u: (weights / u**2).sum(),
        start,
        jac=lambda u: -2 * weights / u**3,
        bounds=[(1e-6, None)] * 5,
        constraints={
            "type": "ineq",
            "fun": lambda u: budgets - constraints @ u,
            "jac": lambda _: -constraints,
        },
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    # That solver violates the constraints by some 1e-6 and may stop early: it is never better.
    inside = other.x / max(1.0, (constraints @ other.x / budgets).max())
    best = (weights / inside**2).sum()
    assert found.objective <= best + found.gap
    assert (constraints @ found.rates < budgets).all()
    # Nothing near it is feasible and better by more than the gap.
    near = found.rates * np.exp(rng.normal(0.0, 1e-3, (20_000, 5)))
    near /= np.maximum(1.0, (near @ constraints.T / budgets).max(axis=1))[:, None]
    assert (weights / near**2).sum(axis=1).min() >= found.objective - found.gap


def test_a_solver_that_does_not_converge_says_so():
    weights, constraints = np.array([1.0, 1e6]), np.ones((1, 2))
    with pytest.raises(ConvergenceError, match="a relative gap of 1e-06 within 3 Newton steps"):
        solve_rates(weights, constraints, np.ones(1), np.full(2, 0.4), steps=3)
    with pytest.raises(ConvergenceError, match="scales: expected"):
        solve_rates(np.full(2, np.nan), constraints, np.ones(1), np.full(2, 0.4))


POLICIES = [
    MetricPolicy(0.5, (9,)),
    classical(1.0, 8),
    BlockPolicy(2.0, Blocks(np.arange(12) // 4)),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: f"{type(p).__name__}-{p.size}")
def test_planned_scales_keep_the_policy_and_are_no_worse(policy: Policy, name: str):
    strategy = Strategy.built_in(name, policy.size)
    plan = optimal_scales(policy, strategy, "ranges")
    planned = Matrix(policy, strategy, plan.scales)
    assert planned.certify().passed
    assert planned.decoder.total_error(gram_of("ranges", policy.size)) == plan.error
    assert plan.uniform == Matrix(policy, strategy).decoder.total_error(
        gram_of("ranges", policy.size)
    )
    assert plan.error <= plan.uniform
    assert (plan.scales is None) == (plan.error == plan.uniform)
    assert plan.gap <= 1e-6
    one = optimal_scales(policy, strategy, "ranges", rounds=1)
    assert plan.error <= one.error * (1 + 1e-9)
    # Least squares again for the new scales can only be better, unless the default was kept.
    assert one.scales is None or one.error <= one.optimum * (1 + 1e-9)


def test_unequal_steps_get_unequal_scales():
    """Prefixes on a path: each edge is one row's own constraint, so `s_j = 1/E` exactly."""
    budgets = [Fraction(1), Fraction(1, 4), Fraction(2)]
    policy = GraphPolicy(4, tuple((x, x + 1, budget) for x, budget in enumerate(budgets)))
    plan = optimal_scales(policy, Strategy.built_in("prefix", 4), "ranges")
    assert plan.scales == pytest.approx([1.0, 4.0, 0.5], rel=2e-5)
    assert plan.error < 0.4 * plan.uniform


def test_wavelets_spend_more_where_the_workload_looks():
    """Two values: the wavelet at the root takes all; four: by weights `b`, the third power rule."""
    policy, strategy = classical(1.0, 4), Strategy.built_in("haar", 4)
    first_half = np.array([[1.0, 1.0, 0.0, 0.0]])
    plan = optimal_scales(policy, strategy, first_half)
    # Only the root counts: `2 u_root + u_leaf <= 1` leaves it nearly all.
    assert plan.scales[0] == pytest.approx(2.0, rel=2e-3)
    assert plan.error < 0.6 * plan.uniform


@pytest.mark.slow
def test_too_many_pairs_are_refused_by_name():
    with pytest.raises(SpecError, match="at most 8388608 protected pairs times rows"):
        optimal_scales(classical(1.0, 300), Strategy.built_in("prefix", 300), "values")
    with pytest.raises(ValueError, match="one of values, prefixes, ranges, got 'all'"):
        optimal_scales(classical(1.0, 3), Strategy.built_in("prefix", 3), "all")
    with pytest.raises(ValueError, match=r"finite weights of shape \(q, 3\)"):
        optimal_scales(classical(1.0, 3), Strategy.built_in("prefix", 3), np.ones((2, 4)))


TOML = """
[collection.ages]
mechanism = "matrix"
strategy = "haar"
workload = "ranges"
epsilon = 1.0
domain = { size = 8 }

[collection.modes]
mechanism = "l1-geometric"
epsilon = 1.0
domain = { size = 8 }
"""


def test_the_command_prints_a_line_for_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "ldpstream.toml"
    file.write_text(TOML, "utf-8")
    main([str(file), "ages"])
    comment, line = capsys.readouterr().out.splitlines()
    assert comment.startswith("# strategy haar, workload ranges: total error per respondent ")
    assert json.loads(line.removeprefix("scales = "))
    file.write_text(TOML.replace("epsilon", f"{line}\nepsilon", 1), "utf-8")
    planned = load_spec(file, "ages").mechanism
    assert isinstance(planned, Matrix)
    assert len(planned.rows.thresholds) > 1
    ratio = float(comment.split(", ")[2].split()[0])
    gram = gram_of("ranges", 8)
    uniform = Matrix(planned.policy, planned.strategy).decoder.total_error(gram)
    assert planned.decoder.total_error(gram) == pytest.approx(ratio * uniform, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "message"),
    [("modes", "collection.modes.mechanism: expected matrix"), ("none", "this table")],
)
def test_the_command_refuses_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, message: str
):
    file = tmp_path / "ldpstream.toml"
    file.write_text(TOML, "utf-8")
    with pytest.raises(SystemExit) as caught:
        main([str(file), name])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
