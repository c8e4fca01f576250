"""Confidence sequences against their formulas, and over all paths of bits, exactly."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
import pytest
from benchmarks.accuracy.dirichlet import dirichlet_bounds

from ldpstream.estimators.bounds.anytime import (
    _LOG_MASSES,
    _RATES,
    bennett_exponent,
    bernstein_exponent,
    mean_ceiling,
    tail_half_width,
    tail_mixture,
)
from tests.exact.enumeration import failing


def one(number: float) -> np.ndarray:
    return np.array([number])


@pytest.mark.parametrize("exponent", [bennett_exponent, bernstein_exponent])
@pytest.mark.parametrize("seed", range(20))
def test_the_mixture_of_tails_is_solved_from_above_whatever_terms_are_left_out(
    exponent: Callable[[np.ndarray, np.ndarray], np.ndarray], seed: int
):
    """Against bisection of the sum of all terms; and each row alone has the same bits."""
    rng = np.random.default_rng(seed)
    n, level = int(np.exp(rng.uniform(0.0, 14.0))), float(rng.choice([0.3, 0.05, 1e-9]))
    off = np.exp(rng.uniform(-3.0, 5.0, 30))
    share, sharpest = np.exp(rng.uniform(-12.0, 3.0, 30)), np.exp(rng.uniform(0.0, 14.0, 30))
    rows = np.stack([n * share * off**2, off, sharpest * off**2])
    found = tail_mixture(exponent, rows, n, level)
    unit = math.log1p(-2.0 * math.log(level)) - 2.0 * math.log(level)
    rate = np.minimum(np.sqrt(unit / rows[2]) * _RATES[:, None], 60.0 / off)
    start = _LOG_MASSES - n * exponent(rate * off, share)
    low, high = np.zeros(30), found * 2.0
    for _ in range(80):
        middle = (low + high) / 2.0
        below = np.logaddexp.reduce(start + rate * middle) < math.log(2.0 / level)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    assert (found >= low * (1.0 - 1e-13)).all()
    np.testing.assert_allclose(found, low, rtol=1e-9)
    for some in (slice(0, 1), slice(5, 7), slice(10, 30)):
        assert np.array_equal(tail_mixture(exponent, rows[:, some], n, level), found[some])


def test_bennetts_exponent_is_that_of_two_values():
    """Also for a variance far above the square of B, where a power series in lambda B fails."""
    for q in (1e-6, 0.03, 1.0, 20.0, 1e4):
        for s in (1e-9, 1e-5, 9e-4, 0.01, 1.0, 50.0):
            with localcontext(prec=60):
                exact_q, exact_s = Decimal(q), Decimal(s)
                both = exact_q * exact_s.exp() + (-exact_s * exact_q).exp()
                exact = (both / (1 + exact_q)).ln()
            found = bennett_exponent(one(s), one(q))[0]
            assert found == pytest.approx(float(exact), rel=2e-9)
    s, q = 9e-4, 1e4
    assert q * s**2 / 2 + q * (1 - q) * s**3 / 6 < 0.0


def test_bennetts_bound_does_not_hold_for_noise_without_a_largest_value():
    """Two-sided geometric noise, with the B that Bernstein's bound has: `3/log(1/a) + 1`."""
    a = math.exp(-1.0)
    off, variance = 3.0 / math.log(1.0 / a) + 1.0, 2.0 * a / (1.0 - a) ** 2
    fails = 0
    for rate in np.linspace(0.01, 0.95, 60):
        log_mean = (
            2.0 * math.log1p(-a)
            - math.log1p(-a * math.exp(rate))
            - math.log1p(-a * math.exp(-rate))
        )
        s, q = one(rate * off), one(variance / off**2)
        assert log_mean <= bernstein_exponent(s, q)[0]
        fails += log_mean > bennett_exponent(s, q)[0]
    assert fails
    assert bernstein_exponent(one(3.0), one(1.0))[0] == np.inf


@pytest.mark.parametrize("mean", [0.003, 0.05, 0.5, 0.97])
@pytest.mark.parametrize("sharpest", [0.5, 50.0])
def test_the_mixture_of_bennetts_bounds_holds_over_all_paths(mean: float, sharpest: float):
    """Of bits, both ends, where the noise is rare too."""
    variance, n = mean * (1.0 - mean), 100
    same = one(sharpest)

    def bennett(n: int, ones: np.ndarray) -> np.ndarray:
        below, above = (
            tail_half_width(bennett_exponent, one(n * variance), one(off), same, n, 0.2)
            for off in (1.0 - mean, mean)
        )
        return (ones / n - below <= mean) & (mean <= ones / n + above)

    assert 0.0 < failing([mean] * n, bennett) <= 0.2


def test_the_mixture_holds_for_rare_noise():
    """The noise of a binary collection at epsilon 8, of which 500 reports show hardly any."""
    mean, level = 0.000335, 0.05

    def bennett(n: int, ones: np.ndarray) -> np.ndarray:
        half = tail_half_width(bennett_exponent, one(n * mean), one(1.0), one(3.35), n, level)
        return np.abs(ones / n - mean) <= half

    assert failing([mean] * 500, bennett) <= level


@pytest.mark.parametrize("level", [0.9, 0.05, 1e-7])
def test_the_ceiling_of_means_is_the_least_of_all_nine(level: float):
    generator = np.random.default_rng(3)
    for size in (0, 1, 2, 40):
        for scale in (0.0, 1.0, 9.0):
            total = np.exp(generator.normal(0.0, scale, (3, size))) * generator.integers(0, 2, size)
            largest = np.exp(generator.normal(0.0, scale / 2.0, (3, size)))
            tilts = 2.0 ** -np.arange(9.0)[:, None, None]
            room = -np.expm1(-tilts)
            every = total * (tilts / room) + largest * (math.log(9.0 / level) / room)
            assert np.array_equal(mean_ceiling(total, largest, level), every.min(axis=0))


@pytest.mark.parametrize("mean", [0.02, 0.3, 0.9])
def test_the_ceiling_of_means_fails_less_often_than_its_level_over_all_paths(mean: float):
    rate = failing(
        [mean] * 150, lambda n, ones: mean_ceiling(1.0 * ones, one(1.0), 0.2) >= n * mean
    )
    assert rate <= 0.2
    assert failing([mean] * 150, lambda n, ones: ones >= n * mean) > 0.2


def test_the_dirichlet_mixture_of_two_atoms_is_the_beta_binomial():
    """Inside: the mixture's likelihood over the true one stays below 1/level."""
    counts = np.array([[7, 13], [20, 0]])
    low, high = dirichlet_bounds(counts, np.array([0.0, 1.0]), 0.05)
    for row, ends in zip(counts, np.stack([low, high], axis=1), strict=True):
        logs = [math.lgamma(c + 0.5) for c in row]
        mixture = sum(logs) - math.lgamma(row.sum() + 1) - 2 * math.lgamma(0.5) + math.lgamma(1)
        for end in ends:
            if 0.0 < end < 1.0:
                likely = row[0] * math.log(1 - end) + row[1] * math.log(end)
                assert mixture - likely == pytest.approx(math.log(20), rel=1e-6)
    assert 0.0 < low[0] < high[0] < 1.0
    assert low[1] == pytest.approx(0.0, abs=1e-9)
    assert 0.0 < high[1] < 0.3
