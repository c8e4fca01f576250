"""`binary`, `high-low` and `block-hadamard`: the papers' formulas, draws, and what they refuse.

Draws realise the channel exactly: they are enumerated with scripted words.
"""

import dataclasses
import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms import Blocks, SpecError
from ldpstream.mechanisms.exact.entropy import WORD, uniform_below
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.conformance.instances import FIRST, INSTANCES
from tests.exact.enumeration import IMPOSSIBLE_EPSILONS, Scripted, matrix_of

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


# The others draw as often as they need: tests of their own enumerate them.
SMALL = {
    name: m
    for name, m in INSTANCES.items()
    if isinstance(m, Binary | HighLow | BlockHadamard) and m.outputs <= 128
}


def thresholds(mechanism: Mechanism) -> set[int]:
    """The words at which a mechanism's decision changes, as its channel needs them."""
    match mechanism:
        case Binary():
            return set(mechanism.thresholds)
        case HighLow():
            return {mechanism.threshold, 2 * mechanism.threshold - WORD}
        case BlockHadamard():
            return {mechanism.threshold}
    raise AssertionError("a mechanism without an enumeration of its draws")


def outcomes(mechanism: Mechanism, value: int, decision: int) -> Counter[int]:
    """How often each report comes up over all positions, after one decision word."""
    positions = 1 if isinstance(mechanism, Binary) else 1 << mechanism.outputs.bit_length()
    values = np.full(positions, value)
    # The high bits of a position word must not matter.
    words = [y + (y * 2654435761 << 40) for y in range(positions)]
    entropy = Scripted([decision] * positions, words)
    return Counter(mechanism.privatize(values, entropy=entropy).tolist())


@pytest.mark.parametrize("mechanism", SMALL.values(), ids=SMALL.keys())
def test_the_draws_have_exactly_the_probabilities_of_the_channel(mechanism: Mechanism):
    edges = sorted({0, WORD} | thresholds(mechanism))
    for value, row in enumerate(mechanism.channel().rows):
        realised: dict[int, Fraction] = {}
        for start, end in itertools.pairwise(edges):
            counts = outcomes(mechanism, value, start)
            assert counts == outcomes(mechanism, value, end - 1), "a decision inside a range"
            for report, count in counts.items():
                share = Fraction(end - start, WORD) * Fraction(count, counts.total())
                realised[report] = realised.get(report, Fraction(0)) + share
        assert realised == dict(row)


def test_uniform_draws_reject_and_draw_again():
    # Masked to 3 bits: 7, 5, 6, 0, 7. Below 6 are 5 and 0; the others are drawn until they are.
    entropy = Scripted([7, 5, 6, 8, 15], [7, 4, 6], [14, 0], [9])
    assert uniform_below(entropy, 6, 5).tolist() == [1, 5, 4, 0, 0]


def test_uniform_draws_over_a_power_of_two_reject_nothing():
    entropy = Scripted([8, 9, 7, WORD - 1])
    assert uniform_below(entropy, 8, 4).tolist() == [0, 1, 7, 7]
