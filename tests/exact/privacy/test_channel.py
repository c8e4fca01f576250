"""Exact channels: rows are distributions, and the worst breach of a policy is named."""

import math
from fractions import Fraction

import pytest

from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.policies.matrix import MatrixPolicy

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({0: HALF, 1: THIRD}, r"^row 1: expected probabilities that sum to 1, got a sum of 5/6$"),
        ({0: 3 * HALF, 1: -HALF}, r"^row 1: expected probabilities above 0, got -1/2 at output 1$"),
        ({0: Fraction(1), 1: Fraction(0)}, r"^row 1: expected probabilities above 0, got 0 at "),
        ({0: HALF, 2: HALF}, r"^row 1: expected outputs in 0\.\.1$"),
        ({}, r"^row 1: expected probabilities that sum to 1, got a sum of 0$"),
    ],
)
def test_a_row_that_is_not_a_distribution_is_named(row: dict[int, Fraction], message: str):
    with pytest.raises(ValueError, match=message):
        Channel(({0: HALF, 1: HALF}, row), 2)


def test_a_policy_over_other_values_is_refused():
    channel = Channel(({0: HALF, 1: HALF}, {0: HALF, 1: HALF}), 2)
    with pytest.raises(ValueError, match="expected a policy of 2 values, got 3"):
        channel.satisfies(MatrixPolicy.of([[0, 1, 1], [1, 0, 1], [1, 1, 0]]))


def test_the_worst_pair_and_output_of_an_asymmetric_policy_are_named():
    rows = (
        {0: Fraction(6, 10), 1: Fraction(2, 10), 2: Fraction(2, 10)},
        {0: Fraction(3, 10), 1: Fraction(4, 10), 2: Fraction(3, 10)},
        {0: Fraction(3, 10), 1: Fraction(3, 10), 2: Fraction(4, 10)},
    )
    channel = Channel(rows, 3)
    log2 = Fraction(7, 10)  # just above log 2 = 0.6931
    kept = [[0, log2, log2], [log2, 0, 0.5], [log2, 0.5, 0]]
    assert channel.satisfies(MatrixPolicy.of(kept)) is None
    broken = MatrixPolicy.of([[0, log2, math.inf], [0.6, 0, 0.5], [log2, 0.1, 0]])
    violation = channel.satisfies(broken)
    assert violation is not None
    # From 2 to 1 at output 2, log(4/3) - 0.1 = 0.188, is worse than from 1 to 0, log 2 - 0.6.
    assert (violation.value, violation.other, violation.output) == (2, 1, 2)
    assert (violation.ratio, violation.budget) == (Fraction(4, 3), Fraction(1, 10))
    assert "values 2 and 1 at output 2: loss 0.287682 above the budget 0.1" in str(violation)
