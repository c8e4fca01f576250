"""Mechanisms on any partition, shape and budget: draws, guarantees, totals."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpstream.mechanisms import Blocks
from ldpstream.mechanisms.exact.dyadic import budget, exp_bounds
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.exact.geometric import Powers
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.block.mechanism import BlockMechanism
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.policies.metric import MetricPolicy
from tests.exact.block_reference import REFERENCES
from tests.ratios import in_units, is_within
from tests.seeded import SeededEntropy
from tests.soak import chosen

EXAMPLES = chosen(30, soak=30, check=5)
epsilons = st.floats(0.01, 60.0)
budgets = st.floats(1e-9, 1e300)
KINDS = pytest.mark.parametrize(
    "kind",
    [BlockHadamard, RandomizedResponse, ProjectiveGeometry, SubsetSelection],
    ids=lambda kind: kind.id,
)


@st.composite
def partitions(draw: st.DrawFn) -> Blocks:
    """Blocks of 1 to 40 values, at least one of two or more, in random order."""
    sizes = draw(st.lists(st.integers(1, 40), min_size=1, max_size=6).filter(lambda s: max(s) > 1))
    table = np.repeat(np.arange(len(sizes)), sizes)
    return Blocks(np.random.default_rng(draw(st.integers(0, 99))).permutation(table))


def reports_of(mechanism: BlockMechanism, values: np.ndarray, seed: int) -> np.ndarray:
    return mechanism.privatize(values, entropy=SeededEntropy(seed))


@KINDS
@settings(deadline=None, max_examples=EXAMPLES)
@given(epsilon=budgets, blocks=partitions())
def test_every_budget_and_partition_is_certified(
    kind: type[BlockMechanism], epsilon: float, blocks: Blocks
):
    certificate = kind(epsilon, blocks).certify()
    assert certificate.passed
    assert certificate.loss_high is not None
    assert certificate.loss_high <= epsilon
    assert certificate.loss_high >= min(epsilon, 40.0) * (1 - 1e-6)


@pytest.mark.parametrize(
    "kind", [RandomizedResponse, ProjectiveGeometry, SubsetSelection], ids=lambda kind: kind.id
)
@settings(deadline=None, max_examples=EXAMPLES)
@given(epsilon=epsilons, blocks=partitions(), seed=st.integers(0, 2**32))
def test_the_draws_follow_the_specification(
    kind: type[BlockMechanism], epsilon: float, blocks: Blocks, seed: int
):
    mechanism = kind(epsilon, blocks)
    values = np.random.default_rng(seed).integers(0, blocks.size, 12)
    where = zip(blocks.of_value[values].tolist(), blocks.position[values].tolist(), strict=True)
    expected = REFERENCES[kind.id](
        mechanism.parameters(), blocks.sizes.tolist(), list(where), SeededEntropy(seed)
    )
    assert reports_of(mechanism, values, seed).tolist() == expected


shapes = st.lists(st.integers(1, 40), min_size=1, max_size=4).map(tuple)
domains = shapes.filter(lambda shape: 2 <= np.prod(shape) <= 5000)
small = shapes.filter(lambda shape: 2 <= np.prod(shape) <= 20)


@settings(deadline=None)
@given(st.floats(1e-18, 1e300), domains.filter(lambda shape: len(shape) <= 3))
def test_every_budget_and_shape_is_certified(epsilon: float, shape: tuple):
    mechanism = L1Geometric(epsilon, shape)
    # The budget of one step, from which all others follow, is kept, and used but for rounding.
    assert Fraction(WORD, mechanism.threshold) <= exp_bounds(min(budget(epsilon), Fraction(64)))[0]
    if epsilon < 44:
        assert Fraction(WORD, mechanism.threshold - 1) > exp_bounds(budget(epsilon))[0]
    if mechanism.size > 64:
        assert mechanism.certify().passed


@settings(deadline=None)
@given(epsilons, small)
def test_neighbours_decide_over_all_pairs(epsilon: float, shape: tuple):
    rows = in_units(L1Geometric(epsilon, shape).channel().rows)
    floor = exp_bounds(budget(epsilon))[0]
    policy = MetricPolicy(epsilon, shape)
    for x, row in enumerate(rows):
        for z, other in enumerate(rows):
            assert is_within(row, other, floor ** sum(policy.steps(x, z)))


@settings(deadline=None)
@given(st.integers(1, WORD - 1), st.integers(0, 6), st.integers(1, 4))
def test_the_digits_of_powers_are_those_of_the_rational(threshold: int, level: int, words: int):
    exact = Fraction(threshold, WORD) ** (1 << level)
    assert Powers(threshold, level + 1).digits(level, words) == exact * WORD**words // 1
