"""`binary`, `high-low` and `block-hadamard` against the papers' formulas, and what they refuse."""

import dataclasses
import math

import numpy as np
import pytest

from ldpstream.mechanisms import Blocks, SpecError
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.conformance.instances import FIRST, INSTANCES
from tests.exact.enumeration import IMPOSSIBLE_EPSILONS, matrix_of

BUDGETED = [
    INSTANCES[n]
    for n in FIRST.values()
    if isinstance(getattr(INSTANCES[n], "epsilon", None), float)
]
"""Those whose budget is one number."""


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.5, 2.0), (3.0, 0.1)])
def test_binary_is_theorem_2(a: float, b: float):
    e = math.exp
    printed = np.array([[e(b) - 1, 1 - e(-a)], [e(-a) * (e(b) - 1), e(b) * (1 - e(-a))]]) / (
        e(b) - e(-a)
    )
    assert matrix_of(Binary(a, b)) == pytest.approx(printed, rel=1e-14)


def test_high_low_is_section_5():
    epsilon, k = 1.25, 7
    mechanism = HighLow(epsilon, k, frozenset({2, 5, 6}))
    S, e = 4, math.exp(epsilon)
    assert (mechanism.positions, mechanism.outputs) == (S, S + 4)
    signs = np.array([[(-1) ** (r & y).bit_count() for y in range(S)] for r in range(S)])
    expected = np.zeros((k, S + 4))
    for row, value in enumerate((2, 5, 6), start=1):
        expected[value, :S] = np.where(signs[row] > 0, e, 1) * 2 / (S * (e + 1))
    for plain, value in enumerate((0, 1, 3, 4)):
        expected[value, :S] = 2 / (S * (e + 1))
        expected[value, S + plain] = (e - 1) / (e + 1)
    assert matrix_of(mechanism) == pytest.approx(expected, rel=1e-14)


def test_block_hadamard_is_section_6():
    blocks = Blocks(np.array([1, 0, 1, 2, 1, 1]))
    mechanism = BlockHadamard(1.0, blocks)
    e = math.e
    assert mechanism.outputs == 1 + 8 + 1
    expected = np.zeros((6, 10))
    expected[1, 0] = expected[3, 9] = 1
    for row, value in enumerate((0, 2, 4, 5), start=1):
        for y in range(8):
            sign = (row & y).bit_count() % 2 == 0
            expected[value, 1 + y] = 2 * (e if sign else 1) / (8 * (e + 1))
    assert matrix_of(mechanism) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("epsilon", [0, -1.0, -math.inf, math.nan, False, "inf", 10**400])
def test_an_impossible_budget_of_two_values_is_refused_by_name(epsilon: float):
    with pytest.raises(SpecError, match=r"^epsilon\[0\]: expected a number above 0"):
        Binary(epsilon, 1.0)
    with pytest.raises(SpecError, match=r"^epsilon\[1\]: expected a number above 0"):
        Binary(1.0, epsilon)


def test_budgets_of_two_values_that_protect_or_say_nothing_are_refused():
    with pytest.raises(SpecError, match="at most one infinite budget"):
        Binary(math.inf, math.inf)
    with pytest.raises(SpecError, match=r"epsilon: expected budgets of at least 1e-18"):
        Binary(1e-20, 1e-20)


def test_sensitive_values_that_make_no_sense_are_refused():
    with pytest.raises(SpecError, match="sensitive: expected at least one"):
        HighLow(1.0, 3, frozenset())
    for bad in ({3}, {-1}, {0.5}):
        with pytest.raises(SpecError, match=r"sensitive: expected values in 0\.\.2"):
            HighLow(1.0, 3, frozenset(bad))


@pytest.mark.parametrize("mechanism", BUDGETED, ids=lambda mechanism: mechanism.id)
def test_an_impossible_epsilon_is_refused_by_name(mechanism: Mechanism):
    for epsilon in (*IMPOSSIBLE_EPSILONS, 1e-25):
        with pytest.raises(SpecError, match=r"^epsilon: expected a"):
            dataclasses.replace(mechanism, epsilon=epsilon)
