"""Exact exponentials and outward rounding, against an independent exponential of 400 digits."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from ldpstream.mechanisms.exact.dyadic import (
    binary_thresholds,
    budget,
    exp_bounds,
    exp_floor,
    float_above,
    log_bounds,
    sign_threshold,
)
from ldpstream.mechanisms.exact.entropy import WORD

EXPONENTS = [1e-300, 1e-18, 1e-6, 0.1, 0.5, 1.0, math.pi, 10.0, 44.3, 64.0, 700.0, 1500.0]
EPSILONS = [1e-18, 1e-12, 1e-6, 0.01, 0.1, 0.5, 1.0, 2.0, 3.0, 10.0, 40.0, 44.0, 50.0, 1e6, 1e300]


def reference_exp(exponent: float) -> Fraction:
    with localcontext() as context:
        context.prec = 400
        return Fraction(Decimal(exponent).exp())


@pytest.mark.parametrize("exponent", [*EXPONENTS, *(-x for x in EXPONENTS)])
def test_the_bounds_hold_the_exponential(exponent: float):
    low, high = exp_bounds(Fraction(exponent))
    exact = reference_exp(exponent)
    # The reference itself is right to 400 digits.
    assert low * (1 - Fraction(1, 10**390)) < exact < high * (1 + Fraction(1, 10**390))
    assert low < high
    assert (high - low) / low < Fraction(1, 1 << 180)


def test_the_exponential_at_zero_is_exact():
    assert exp_bounds(Fraction(0)) == (1, 1)


def test_an_exponent_beyond_reach_is_refused_but_a_budget_is_not():
    with pytest.raises(ValueError, match="within 2048"):
        exp_bounds(Fraction(2049))
    assert exp_floor(Fraction(10**300)) == exp_bounds(Fraction(2048))[0]


@pytest.mark.parametrize(
    "ratio",
    [Fraction(2), Fraction(1, 3), Fraction(10**18 + 1, 10**18), Fraction(WORD - 1), Fraction(7, 5)],
)
def test_logarithms_are_rounded_outward(ratio: Fraction):
    low, high = log_bounds(ratio)
    assert low <= high
    assert exp_bounds(Fraction(low))[1] <= ratio <= exp_bounds(Fraction(high))[0]
    assert low == math.nextafter(high, -math.inf)


@pytest.mark.slow
def test_no_loss_is_shown_above_its_budget():
    # The floating logarithm is one ulp above 0.41, 0.44, 0.7 and 0.96.
    for hundredths in range(1, 400):
        threshold = sign_threshold(budget(hundredths / 100))
        low, high = log_bounds(Fraction(threshold, WORD - threshold))
        assert low < high <= hundredths / 100


@pytest.mark.parametrize("digits", [19, 40, 65, 77, 80, 300, 310, 323, 400])
@pytest.mark.parametrize("numerator", [1, 3, -1, -3])
def test_logarithms_of_ratios_next_to_one_are_rounded_outward(numerator: int, digits: int):
    x = Fraction(numerator, 10**digits)
    low, high = log_bounds(1 + x)
    # x - x^2 < log(1 + x) < x for these x.
    assert Fraction(low) <= x - x**2
    assert x <= Fraction(high)
    assert low == math.nextafter(high, -math.inf)


@pytest.mark.parametrize(
    ("number", "above"),
    [
        (Fraction(1, 10), 0.1),
        (Fraction(0.3), 0.3),
        (Fraction(1, 3), math.nextafter(1 / 3, 1.0)),
        (Fraction(3), 3.0),
        (Fraction(-1, 3), -1 / 3),
        (Fraction(0), 0.0),
        (Fraction(1, 10**400), math.ulp(0.0)),
    ],
)
def test_the_least_float_that_is_not_below_a_number(number: Fraction, above: float):
    assert float_above(number) == above


def test_the_logarithm_of_one_is_exact_and_of_nothing_refused():
    assert log_bounds(Fraction(1)) == (0.0, 0.0)
    with pytest.raises(ValueError, match="above 0"):
        log_bounds(Fraction(0))


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.1, 2.3, 1e-6])
def test_a_budget_is_within_both_readings_of_a_decimal(epsilon: float):
    assert budget(epsilon) <= Fraction(epsilon)
    assert budget(epsilon) <= Fraction(repr(epsilon))
    assert abs(budget(epsilon) - Fraction(epsilon)) < Fraction(math.ulp(epsilon))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_sign_threshold_is_the_largest_within_the_budget(epsilon: float):
    exact = budget(epsilon)
    threshold = sign_threshold(exact)
    assert WORD // 2 < threshold < WORD
    assert Fraction(threshold, WORD - threshold) <= exp_floor(exact)
    if threshold + 1 < WORD:
        assert Fraction(threshold + 1, WORD - threshold - 1) > exp_bounds(exact)[1]
    else:
        assert epsilon > 44.3


def test_a_budget_too_small_for_64_bits_carries_nothing():
    assert sign_threshold(budget(1e-20)) == WORD // 2
    first, second = binary_thresholds(budget(1e-20), budget(1e-20))
    assert first >= second
    # So small that both bounds of the exponential are 1.
    first, second = binary_thresholds(budget(1e-100), budget(5e-324))
    assert first >= second


def binary_violated(q: int, r: int, first: float, second: float) -> bool:
    """Whether the exact channel of two thresholds breaks a finite budget, by the definition."""
    rows = ((WORD - q, q), (WORD - r, r))
    for x, epsilon in ((0, first), (1, second)):
        if math.isinf(epsilon):
            continue
        high = exp_bounds(min(budget(epsilon), Fraction(1000)))[1]
        if any(rows[x][y] > high * rows[1 - x][y] for y in (0, 1)):
            return True
    return False


@pytest.mark.parametrize("first", [1e-6, 0.1, 1.0, 3.0, 44.0, 50.0, math.inf])
@pytest.mark.parametrize("second", [1e-6, 0.1, 1.0, 3.0, 44.0, 50.0, math.inf])
def test_binary_thresholds_keep_both_budgets_and_one_unit_more_does_not(
    first: float, second: float
):
    a, b = (None if math.isinf(e) else budget(e) for e in (first, second))
    q, r = binary_thresholds(a, b)
    assert 0 <= q < r <= WORD
    assert not binary_violated(q, r, first, second)
    if r < WORD and max(first, second) < 44:
        assert binary_violated(q, r + 1, first, second)
    # Theorem 2 in floating point: the rounding moves each probability by some units of 2^-64.
    alpha, beta = math.exp(-first), math.exp(-second)
    gap = -math.expm1(-first - second)
    assert q / WORD == pytest.approx(beta * -math.expm1(-first) / gap, rel=1e-9, abs=1e-18)
    assert 1 - r / WORD == pytest.approx(alpha * -math.expm1(-second) / gap, rel=1e-9, abs=1e-15)
