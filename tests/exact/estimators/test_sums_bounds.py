"""Bounds over statistics of sums: known noise, worst cases, prefixes in closed form."""

import math

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.quantiles.prefixes import Prefixes, SetPrefixes, SummedPrefixes
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.domains.queries import range_values
from ldpstream.mechanisms.families.l1.bits import L1Bits
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
