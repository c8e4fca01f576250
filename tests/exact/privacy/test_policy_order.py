"""Which policy implies which: on a city's grid, at the edges of equality, and what is refused."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.blocks import Blocks, box_blocks
from ldpstream.mechanisms.domains.lattice import Size
from ldpstream.mechanisms.exact.dyadic import budget, exp_floor, float_below
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.policies.composition import closure, compose
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.implication import implies
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BinaryPolicy, BlockPolicy, HighLowPolicy, Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy
from ldpstream.mechanisms.registry.proposals import Proposal, propose
from tests.conformance.instances import INSTANCES

CITY = (125, 350)
SIZE = 125 * 350


def city_blocks(height: int, width: int) -> Blocks:
    return box_blocks(CITY, (height, width), "blocks")


def disc(radius: int) -> Blocks:
    """A disc in the city's middle, and the rest."""
    row, column = np.indices(CITY)
    inside = (row - 62) ** 2 + (column - 175) ** 2 <= radius**2
    return Blocks((~inside).astype(np.int64).ravel())


FINE, COARSE = city_blocks(5, 5), city_blocks(25, 35)
SOME = frozenset(range(0, SIZE, 7))
EVERY = frozenset(range(SIZE))
# The farthest cells of a 25 x 35 block are 24 and 34 steps apart.
CITY_CASES: list[tuple[Policy, Policy, bool]] = [
    (BlockPolicy(1.0, COARSE), BlockPolicy(1.0, FINE), True),
    (BlockPolicy(1.0, FINE), BlockPolicy(1.0, COARSE), False),
    (BlockPolicy(1.0, COARSE), BlockPolicy(0.9, FINE), False),
    (BlockPolicy(1.0, Blocks.one(SIZE)), HighLowPolicy(1.0, SIZE, SOME), True),
    (BlockPolicy(1.0, COARSE), HighLowPolicy(1.0, SIZE, SOME), False),
    (HighLowPolicy(1.0, SIZE, EVERY), BlockPolicy(1.0, COARSE), True),
    (HighLowPolicy(1.0, SIZE, SOME), BlockPolicy(1.0, COARSE), False),
    (HighLowPolicy(1.0, SIZE, EVERY - {SIZE - 1}), BlockPolicy(1.0, COARSE), False),
    (HighLowPolicy(1.0, SIZE, EVERY - {0}), BlockPolicy(1.0, COARSE), False),
    (HighLowPolicy(1.0, SIZE, EVERY), HighLowPolicy(1.0, SIZE, SOME), True),
    (HighLowPolicy(1.0, SIZE, SOME), HighLowPolicy(1.0, SIZE, EVERY), False),
    (HighLowPolicy(1.0, SIZE, EVERY), MetricPolicy(1.0, CITY, p=2), True),
    (HighLowPolicy(1.0, SIZE, EVERY - {5}), MetricPolicy(1.0, CITY, p=2), False),
    (BlockPolicy(1.0, Blocks.one(SIZE)), MetricPolicy(1.0, CITY), True),
    (BlockPolicy(1.1, Blocks.one(SIZE)), MetricPolicy(1.0, CITY), False),
    (BlockPolicy(1.0, COARSE), MetricPolicy(1.0, CITY), False),
    (MetricPolicy(1 / 64, CITY), BlockPolicy(58 / 64, COARSE), True),
    (MetricPolicy(1 / 64, CITY), BlockPolicy(57.9 / 64, COARSE), False),
    (MetricPolicy(1 / 64, CITY, p=math.inf), BlockPolicy(34 / 64, COARSE), True),
    (MetricPolicy(1 / 64, CITY, p=2), BlockPolicy(math.hypot(24, 34) / 64 + 1e-9, COARSE), True),
    (MetricPolicy(1 / 64, CITY, p=2), BlockPolicy(math.hypot(24, 34) / 64 - 1e-9, COARSE), False),
    (MetricPolicy(1 / 64, CITY, p=2), BlockPolicy(100 / 64, disc(50)), False),
    (MetricPolicy(1 / 64, CITY), HighLowPolicy((124 + 349) / 64, SIZE, SOME), True),
    (MetricPolicy(1 / 64, CITY), HighLowPolicy(300 / 64, SIZE, frozenset({62 * 350 + 175})), True),
    (MetricPolicy(1 / 64, CITY), HighLowPolicy(236 / 64, SIZE, frozenset({62 * 350 + 175})), False),
    (MetricPolicy(1.0, CITY, p=2), MetricPolicy(1.0, CITY), True),
    (MetricPolicy(1.0, CITY), MetricPolicy(1.0, CITY, p=2), False),
    (MetricPolicy(0.5, CITY), MetricPolicy(math.sqrt(0.5) + 1e-9, CITY, p=2), True),
    (MetricPolicy(0.5, CITY), MetricPolicy(math.sqrt(0.5) - 1e-9, CITY, p=2), False),
]


@pytest.mark.grid
@pytest.mark.parametrize(("stronger", "weaker", "holds"), CITY_CASES)
def test_policies_over_a_city_are_ordered_without_its_pairs(
    stronger: Policy, weaker: Policy, *, holds: bool
):
    pair = implies(stronger, weaker)
    assert (pair is None) == holds
    if pair is not None:
        allowed, entry = weaker.entry(*pair), stronger.entry(*pair)
        assert allowed is not None
        assert entry is None or entry > allowed


def test_the_farthest_cells_of_a_disc_decide():
    weaker = BlockPolicy(100.0, Blocks(disc(50).of_value[: 113 * 350]))
    shape = (113, 350)
    disc_only = MetricPolicy(1.0, shape, p=2)
    assert implies(disc_only, weaker) is not None
    inside = np.flatnonzero(weaker.blocks.of_value == 0)
    names = np.arange(1, 113 * 350 + 1)
    names[inside] = 0
    alone = Blocks(np.unique(names, return_inverse=True)[1])
    assert implies(disc_only, BlockPolicy(100.0, alone)) is None
    assert implies(disc_only, BlockPolicy(99.999, alone)) is not None


def test_the_closure_of_the_stronger_decides():
    """Straight from 0 to 2 nothing is promised, but over 1 it is."""
    chain = MatrixPolicy.of([[0, 1, "inf"], ["inf", 0, 1], ["inf", "inf", 0]])
    weaker = MatrixPolicy.of([[0, 1, 2], ["inf", 0, 1], ["inf", "inf", 0]])
    assert implies(chain, weaker) is None
    assert implies(chain, MatrixPolicy.of([[0, 1, 1.9], ["inf", 0, 1], [9, "inf", 0]])) == (0, 2)


def test_edges_of_a_graph_and_two_values():
    line = GraphPolicy(3, ((0, 1, Fraction(1)), (1, 2, Fraction(1))))
    assert implies(MetricPolicy(1.0, (3,)), line) is None
    assert implies(line, MetricPolicy(1.0, (3,))) is None
    assert implies(line, BlockPolicy(1.5, Blocks.one(3))) in {(0, 2), (2, 0)}
    assert implies(BinaryPolicy(1.0, math.inf), BinaryPolicy(2.0, math.inf)) is None
    assert implies(BinaryPolicy(1.0, math.inf), BinaryPolicy(2.0, 3.0)) == (1, 0)


@pytest.mark.slow
def test_a_large_graph_is_implied_edge_by_edge():
    cells = np.arange(SIZE).reshape(CITY)
    steps = [(cells[:-1], cells[1:]), (cells[:, :-1], cells[:, 1:])]
    ends = [zip(a.ravel().tolist(), b.ravel().tolist(), strict=True) for a, b in steps]
    edges = tuple((x, z, Fraction(1)) for pairs in ends for x, z in pairs)
    streets = GraphPolicy(SIZE, edges)
    assert implies(MetricPolicy(1.0, CITY), streets) is None
    assert implies(BlockPolicy(1.0, COARSE), streets) is not None


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(SpecError, match=r"^policy: expected one over 3 values, got 4$"):
        implies(MetricPolicy(1.0, (4,)), MetricPolicy(1.0, (3,)))
    line = GraphPolicy(2000, ((0, 1, Fraction(1)),))
    with pytest.raises(SpecError, match=r"^policy: expected at most 1000 values to compare these"):
        implies(line, BlockPolicy(1.0, Blocks.one(2000)))


def test_sums_and_closures_are_for_matrices_of_a_size():
    with pytest.raises(SpecError, match=r"^policy: expected policies of one number of values"):
        compose(MetricPolicy(1.0, (4,)), MetricPolicy(1.0, (3,)))
    with pytest.raises(SpecError, match=r"^policy: expected policies of one number of values"):
        compose()
    for refused in (closure, compose):
        with pytest.raises(SpecError, match=r"^policy: expected at most 1000 values, got 1001$"):
            refused(MetricPolicy(1.0, (1001,)))


def test_a_closure_with_huge_denominators_is_exact():
    tiny = Fraction(1, 3**80)
    policy = MatrixPolicy(
        ((Fraction(0), 1 + tiny, Fraction(3)),
         (tiny, Fraction(0), Fraction(2)),
         (None, None, Fraction(0)))
    )  # fmt: skip
    assert closure(policy).entries[0] == (0, 1 + tiny, 3)
    assert closure(compose(policy, policy)).entries[0] == (0, 2 + 2 * tiny, 6)
    lower = MatrixPolicy(((*policy.entries[0][:2], 3 + 2 * tiny), *policy.entries[1:]))
    assert closure(lower).entries[0][2] == 3 + tiny


THIRDS = PriorPolicy(1.0, (Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)))


def test_localized_information_privacy_is_more_than_its_entries():
    """Twice epsilon between all values is what it implies, not what implies it."""
    everything = Blocks.one(3)
    assert implies(THIRDS, THIRDS) is None
    assert implies(THIRDS, BlockPolicy(2.0, everything)) is None
    assert implies(BlockPolicy(1.0, everything), THIRDS) is None
    assert implies(BlockPolicy(1.1, everything), THIRDS) is not None
    levels = INSTANCES["lip:levels"].policy
    assert implies(levels, levels) is None
    entries = [[levels.entry(x, z) for z in range(levels.size)] for x in range(levels.size)]
    assert implies(MatrixPolicy(tuple(map(tuple, entries))), levels) is not None


def test_a_mechanism_of_pairs_is_not_proposed_for_more_than_it_keeps():
    # What a user might write first is proposed too, to be refused by name.
    proposed = [
        found.mechanism
        for found in propose(THIRDS, Size(3))
        if isinstance(found, Proposal) and found.variant != "epsilon a step"
    ]
    assert len(proposed) > 5
    assert all(implies(mechanism.policy, THIRDS) is None for mechanism in proposed)
    with pytest.raises(SpecError, match="policy: expected budgets of pairs of values"):
        Matrix(THIRDS, Strategy.built_in("identity", 3)).certify()


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
