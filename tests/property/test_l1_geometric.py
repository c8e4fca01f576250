"""`l1-geometric` on any shape and budget: exact inverse, guarantee, reports in the domain."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpstream.mechanisms.exact.dyadic import budget, exp_bounds
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.exact.geometric import Powers
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.policies.metric import MetricPolicy
from tests.ratios import in_units, is_within

epsilons = st.floats(0.01, 60.0)
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
