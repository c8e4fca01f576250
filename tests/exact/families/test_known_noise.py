"""Bounds of respondents under sums of noise whose law is known: exact coverage, proved tails."""

from collections.abc import Callable
from fractions import Fraction
from math import comb, factorial

import numpy as np
import pytest
from benchmarks.accuracy.repeated import alphas_of
from numpy.typing import NDArray
from scipy.stats import binom, nbinom

from ldpstream.estimators.bounds.options import Method
from ldpstream.estimators.estimate import Estimate, estimate_sets
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.noise import LaplaceRows
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.metric import MetricPolicy
from tests.exact.enumeration import counted

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
