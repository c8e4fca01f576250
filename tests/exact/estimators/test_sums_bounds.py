"""Bounds over statistics of sums: worst cases, prefixes in closed form, and known noise."""

import math
from collections.abc import Callable
from fractions import Fraction
from math import comb, factorial

import numpy as np
import pytest
from benchmarks.accuracy.repeated import alphas_of
from numpy.typing import NDArray
from scipy.stats import binom, nbinom

from ldpstream.estimators.bounds.options import Method
from ldpstream.estimators.estimate import Estimate, estimate_sets, estimate_values
from ldpstream.estimators.quantiles.prefixes import Prefixes, SetPrefixes, SummedPrefixes
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.domains.queries import range_values
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.noise import LaplaceRows
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.metric import MetricPolicy
from tests.exact.enumeration import counted, some_statistic

LEVEL = math.log(2 / 0.05)
EPSILON = 1.0


def unit() -> float:
    """Return the variance that one noisy end adds, v."""
    return (1 / math.tanh(EPSILON / 2) ** 2 - 1) / 4


@pytest.mark.parametrize("n", [1, 2, 200])
def test_bernstein_takes_the_worst_noise(n: int):
    """`sqrt(2 V L/n) + M L/(3n)`, defined from the first report on."""
    mechanism, c = L1Bits(EPSILON, (9, 7)), 1 / math.tanh(EPSILON / 2)
    _, statistic = some_statistic(mechanism, n)
    sets = [range_values((9, 7), [(2, 5), (1, 6)]), range_values((9, 7), [(0, 3), (0, 6)])]
    worst = np.array([(1 + 2 * unit()) * (1 + unit()) - 1, unit()])
    # f is in {-c, 0, c} with two noisy ends, in (1 -+ c)/2 with one; a user's weight is 0 or 1.
    spread, off = np.array([c * (1 + c), c]), np.array([1 + c * (1 + c) / 2, (1 + c) / 2])
    for estimand, sampling in (("respondents", 0.0), ("population", 0.25)):
        found = estimate_sets(mechanism, statistic, n, sets, method="bernstein", estimand=estimand)
        half = np.sqrt(2 * (worst + sampling) * LEVEL / n) + off * LEVEL / (3 * n)
        np.testing.assert_allclose(found.highest - found.value, half, rtol=1e-9)
        np.testing.assert_allclose(found.value - found.lowest, half, rtol=1e-9)
        np.testing.assert_allclose(found.influence, spread / n, rtol=1e-12)


def test_single_values_and_weights_have_the_same_kind_of_bounds():
    mechanism, n = L1Bits(EPSILON, (6,)), 50
    _, statistic = some_statistic(mechanism, n)
    values = estimate_values(mechanism, statistic, n, method="bernstein", estimand="population")
    sets = [np.array([value]) for value in range(6)]
    as_sets = estimate_sets(
        mechanism, statistic, n, sets, method="bernstein", estimand="population"
    )
    np.testing.assert_allclose(values.low, as_sets.low, rtol=1e-9, atol=1e-12)
    weights = np.array([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [3.0] * 6])
    found = estimate_linear(
        mechanism, statistic, n, weights, method="bernstein", estimand="population"
    )
    # Five noisy entries, each with a difference of 1: noise 5 (1/t^2 - 1)/4, off by (1 + 1/t)/2;
    # the weights themselves are drawn from 5 units.
    half = math.sqrt(2 * (5 * unit() + 25 / 4) * LEVEL / n)
    half += 5.0 * LEVEL / (3 * n)
    assert found.high[0] - found.value[0] == pytest.approx(half, rel=1e-9)
    assert (found.low[1], found.value[1], found.high[1]) == pytest.approx((3.0, 3.0, 3.0))


@pytest.mark.parametrize("method", ["normal", "bernstein"])
@pytest.mark.parametrize("estimand", ["respondents", "population"])
@pytest.mark.parametrize("axis", [0, 1])
def test_prefixes_in_closed_form_are_the_sets(axis: int, estimand: str, method: str):
    mechanism, n = L1Bits(EPSILON, (5, 4)), 300
    _, statistic = some_statistic(mechanism, n)
    positions = np.indices((5, 4))[axis].ravel()
    prefixes = Prefixes.of(mechanism, positions)
    assert isinstance(prefixes.prepared, SummedPrefixes)
    found = prefixes.estimate(statistic, n, estimand=estimand, method=method)
    sets = [np.flatnonzero(positions <= cut) for cut in range((5, 4)[axis])]
    expected = estimate_sets(mechanism, statistic, n, sets, estimand=estimand, method=method)
    for name in ("value", "se", "low", "high", "influence"):
        ours, theirs = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12, err_msg=name)
    assert (found.low[-1], found.value[-1], found.high[-1]) == (1.0, 1.0, 1.0)


def test_prefixes_of_other_orders_are_sets():
    mechanism, n = L1Bits(EPSILON, (5,)), 300
    _, statistic = some_statistic(mechanism, n)
    positions = np.array([3, 0, 0, 2, 1])
    prefixes = Prefixes.of(mechanism, positions)
    assert isinstance(prefixes.prepared, SetPrefixes)
    found = prefixes.estimate(statistic, n)
    sets = [np.flatnonzero(positions <= cut) for cut in range(4)]
    expected = estimate_sets(mechanism, statistic, n, sets)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-12)
    np.testing.assert_allclose(found.se, expected.se, rtol=1e-12)


def test_the_noise_on_a_line_is_known_whatever_the_reports():
    mechanism, n = L1Bits(EPSILON, (9,)), 40
    for seed in range(5):
        values = np.full(n, seed)
        statistic = counted(mechanism, values, seed)
        found = estimate_sets(mechanism, statistic, n, [np.arange(2, 5), np.arange(4)])
        np.testing.assert_allclose(found.se**2 * n, [2 * unit(), unit()], rtol=1e-9)


Floats = NDArray[np.float64]
SIZE = 6
VALUE = np.array([2])
CONFIDENCES = (0.9, 0.95, 0.99, 0.999, 1.0 - 1e-6)


def power_sum(power: int, a: Fraction) -> Fraction:
    """Return `sum_k k^power a^k`, exactly, by Eulerian numbers."""
    row = [
        sum((-1) ** j * comb(power + 1, j) * (m + 1 - j) ** power for j in range(m + 1))
        for m in range(power)
    ]
    return a * sum(e * a**m for m, e in enumerate(row)) / (1 - a) ** (power + 1)


@pytest.mark.parametrize("shift", [1, 2, 8, 30, 63])
@pytest.mark.parametrize("near_one", [False, True])
def test_discrete_laplace_noise_keeps_bernsteins_condition(shift: int, near_one: bool):
    """`kappa_m <= (m!/2) v (M/3)^(m - 2)`, in whole numbers: a = 2^-shift or 1 - 2^-shift."""
    threshold = WORD - (WORD >> shift) if near_one else WORD >> shift
    rows = LaplaceRows(np.ones((1, 2), dtype=np.int32), (threshold,), (1,), np.zeros(1, np.int64))
    a, third = Fraction(threshold, WORD), Fraction(float(rows.deviations[0])) / 3
    variance = 2 * power_sum(1, a)
    assert float(variance) == pytest.approx(rows.variances[0], rel=1e-12)
    for m in range(2, 42, 2):
        assert 2 * power_sum(m - 1, a) <= Fraction(factorial(m), 2) * variance * third ** (m - 2)


def bits(epsilon: float) -> L1Bits:
    return L1Bits(epsilon, (SIZE,))


def prefixes(epsilon: float) -> Matrix:
    return Matrix(MetricPolicy(epsilon, (SIZE,)), Strategy.built_in("prefix", SIZE))


def law(mechanism: Mechanism, n: int) -> tuple[Floats, float]:
    """Return the law of the sum of noise in a value's total, `(l,)`, and the unit of its places.

    The value is the difference of two sums, those of the values up to it and below it.
    """
    below, up = n // 5, n // 5 + n // 3
    if isinstance(mechanism, L1Bits):
        keep = mechanism.threshold / WORD
        first, second = (
            np.convolve(
                binom.pmf(np.arange(many + 1), many, keep),
                binom.pmf(np.arange(n - many + 1), n - many, 1.0 - keep),
            )
            for many in (below, up)
        )
        return np.convolve(second, first[::-1]), WORD / (2 * mechanism.threshold - WORD)
    assert isinstance(mechanism, Matrix)
    (alpha,) = set(alphas_of(mechanism.rows).tolist())
    top = int(nbinom.isf(1e-13, 2 * n, 1.0 - alpha)) + 2
    one = nbinom.pmf(np.arange(top), 2 * n, 1.0 - alpha)
    return np.convolve(one, one[::-1]), 1.0


def asked(mechanism: Mechanism, n: int, confidence: float, method: Method) -> Estimate:
    """Return the bounds of a value, of users of three."""
    users = np.repeat([0, 2, SIZE - 1], [n // 5, n // 3, n - n // 5 - n // 3])
    statistic = counted(mechanism, users, n)
    return estimate_sets(mechanism, statistic, n, [VALUE], confidence=confidence, method=method)


def coverage(mechanism: Mechanism, n: int, found: Estimate) -> float:
    """Return the exact probability that an error is no more than the bounds' half-width."""
    noise, unit = law(mechanism, n)
    errors = np.abs(np.arange(noise.size) - np.arange(noise.size) @ noise) * unit / n
    half = float((found.highest - found.lowest)[0]) / 2.0
    return float(noise[errors <= half + 1e-9].sum())


@pytest.mark.parametrize("of", [bits, prefixes])
@pytest.mark.parametrize("n", [5, 50, 700])
def test_bounds_cover_exactly(of: Callable[[float], Mechanism], n: int):
    """They fail no more often than the confidence allows, with rare, coarse or large noise."""
    for epsilon in (0.3, 1.0, 3.0, 8.0):
        mechanism = of(epsilon)
        for confidence in CONFIDENCES:
            for method in ("padded", "exact"):
                found = asked(mechanism, n, confidence, method)
                assert found.form.tolist() == ["noise" if method == "padded" else "bernstein"]
                covered = coverage(mechanism, n, found)
                assert covered >= confidence - 1e-9, (epsilon, confidence, method)


@pytest.mark.parametrize("of", [bits, prefixes])
def test_bounds_are_as_narrow_as_the_noise_allows(of: Callable[[float], Mechanism]):
    """At 50 reports no more than a quarter wider than z errors."""
    for epsilon in (0.3, 1.0):
        found = asked(of(epsilon), 50, 0.95, "padded")
        assert ((found.highest - found.lowest) <= 1.25 * 2.0 * 1.96 * found.se).all()
