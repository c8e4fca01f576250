"""Budgets of named forms under other policies: allowed, and the largest that are."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.blocks import Blocks, box_blocks
from ldpstream.mechanisms.exact.dyadic import budget, exp_floor, float_below
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.implication import implies
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BinaryPolicy, BlockPolicy, HighLowPolicy, Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy
from tests.conformance.instances import INSTANCES

SHAPE = (3, 4)
POLICIES: dict[str, Policy] = {
    "classical": BlockPolicy(1.0, Blocks.one(12)),
    "blocks": BlockPolicy(0.7, box_blocks(SHAPE, (2, 3), "blocks")),
    "scattered": BlockPolicy(0.3, Blocks(np.array([0, 1, 2, 0, 1, 3, 0, 1, 2, 2, 2, 3]))),
    "lonely": BlockPolicy(1.0, Blocks(np.array([0, 1, 2, 0, 4, 5, 6, 7, 8, 9, 3, 0]))),
    "high-low": HighLowPolicy(1.0, 12, frozenset({1, 6})),
    "all-sensitive": HighLowPolicy(0.1, 12, frozenset(range(12))),
    "l1": MetricPolicy(0.5, SHAPE),
    "l2": MetricPolicy(0.5, SHAPE, p=2),
    "graph": GraphPolicy(12, ((0, 5, Fraction(1)), (5, 7, Fraction(1, 3)), (8, 11, Fraction(2)))),
    "matrix": MatrixPolicy.of_function(lambda x, other: 1.0 + (5 * x + other) % 7 / 10, 12),
}


@pytest.mark.parametrize("name", POLICIES)
def test_blocks_satisfy_the_policy_and_no_larger_budget_does(name: str):
    policy = POLICIES[name]
    allowed = policy.block_budget()
    epsilon = float_below(allowed.epsilon)
    assert implies(BlockPolicy(epsilon, allowed.blocks), policy) is None
    assert implies(BlockPolicy(epsilon * 1.001, allowed.blocks), policy) is not None


@pytest.mark.parametrize("name", POLICIES)
def test_blocks_are_the_finest_and_the_protected_values_those_of_finite_rows(name: str):
    policy = POLICIES[name]
    allowed, finite = policy.block_budget(), np.isfinite(policy.matrix())
    np.fill_diagonal(finite, False)
    protected = np.flatnonzero(finite.any(axis=1))
    np.testing.assert_array_equal(allowed.protected, protected)
    for block in range(allowed.blocks.count):
        inside = np.flatnonzero(allowed.blocks.of_value == block)
        reached, edges = {int(inside[0])}, finite | finite.T
        while more := {int(y) for x in reached for y in np.flatnonzero(edges[x])} - reached:
            reached |= more
        assert reached == set(inside.tolist())


@pytest.mark.parametrize("name", POLICIES)
def test_steps_satisfy_the_policy(name: str):
    policy = POLICIES[name]
    step = float_below(policy.l1_budget(SHAPE))
    assert implies(MetricPolicy(step, SHAPE), policy) is None


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"l2"}))
def test_no_larger_step_satisfies_the_policy(name: str):
    """An L2 policy's own step is rounded down for all shapes at once."""
    policy = POLICIES[name]
    larger = 1.001 * float_below(policy.l1_budget(SHAPE))
    assert implies(MetricPolicy(larger, SHAPE), policy) is not None


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=100))
def test_floats_below_claim_no_more_and_hardly_less(epsilon: Fraction):
    number = float_below(epsilon)
    assert budget(number) <= epsilon
    assert budget(number) >= epsilon * (1 - Fraction(1, 2**51))


def test_nothing_protected_and_nothing_allowed_are_refused():
    free = MatrixPolicy.of([[0, "inf"], ["inf", 0]])
    equal = MatrixPolicy.of([[0, 0], [1, 0]])
    for policy in (free, equal):
        with pytest.raises(SpecError):
            policy.block_budget()
        with pytest.raises(SpecError):
            policy.l1_budget((2,))
    with pytest.raises(SpecError):
        BlockPolicy(1.0, Blocks(np.arange(12))).l1_budget(SHAPE)


@pytest.mark.parametrize("name", POLICIES)
def test_scaling_multiplies_every_entry(name: str):
    policy = POLICIES[name]
    np.testing.assert_allclose(policy.scaled(0.5).matrix(), 0.5 * policy.matrix(), rtol=1e-12)
    assert BinaryPolicy(1.0, float("inf")).scaled(3.0) == BinaryPolicy(3.0, float("inf"))
    for factor in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(SpecError):
            policy.scaled(factor)


def test_scaling_changes_budgets_alone():
    policy = MetricPolicy(0.5, SHAPE, (1.0, 2.0))
    assert policy.scaled(2.0) == replace(policy, epsilon=1.0)


def test_the_stand_in_for_lip_implies_it_at_every_prior_of_a_level():
    """Of every channel for the stand-in the posterior is within e^+-eps of each prior's odds."""
    lip = INSTANCES["lip:levels"]
    policy = lip.policy.by_entries()
    assert isinstance(policy, BlockPolicy)
    assert isinstance(lip, Lip)
    odds = exp_floor(budget(policy.epsilon))
    channel = RandomizedResponse(policy.epsilon, policy.blocks).channel()
    for level in lip.policy.levels:
        assert budget(policy.epsilon) <= level.epsilon
        priors = (level.low, (level.low + level.high) / 2, level.high)
        rows = zip(*(row.values() for row in channel.rows[:2]), strict=True)
        for prior, (zero, one) in product(priors, list(rows)):
            mixed = (1 - prior) * zero + prior * one
            for chance in (zero, one):
                assert chance <= odds * mixed
                assert mixed <= odds * chance
    assert POLICIES["l1"].by_entries() is POLICIES["l1"]
    thirds = PriorPolicy(0.5, (Fraction(1, 3), Fraction(2, 3)))
    assert thirds.by_entries() == BlockPolicy(0.5, Blocks.one(2))
