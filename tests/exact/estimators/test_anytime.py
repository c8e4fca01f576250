"""Anytime-valid bounds of estimates: over all paths of a small channel, exactly, and everywhere."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from benchmarks.accuracy.anytime import ask, settings, sums_of, windows
from benchmarks.accuracy.dirichlet import dirichlet_bounds
from benchmarks.accuracy.repeated import AffineSums
from numpy.typing import NDArray

from ldpstream.estimators.bounds.anytime import (
    _LOG_MASSES,
    _RATES,
    bennett_exponent,
    bernstein_exponent,
    mean_ceiling,
    tail_half_width,
    tail_mixture,
)
from ldpstream.estimators.bounds.bounded import bound
from ldpstream.estimators.bounds.options import CredibleMethod, Options
from ldpstream.estimators.bounds.types import Sums
from ldpstream.estimators.estimate import estimate_sets, estimate_values, set_sums
from ldpstream.estimators.lip.mmse import estimate_mmse, posteriors
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles, invert
from ldpstream.estimators.queries import indicator, prepare_queries
from ldpstream.mechanisms.base.arrays import map_arrays
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.lip.domain import Prior
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.conformance.instances import FEW, INSTANCES
from tests.exact.dense import Dense, block_channel
from tests.exact.enumeration import failing
from tests.exact.estimators.test_quantiles import CASES, statistic_of
from tests.seeded import SeededEntropy

ESTIMANDS = ("respondents", "population")
WARNER = Dense(np.array([[3.0, 1.0], [1.0, 3.0]]) / 4.0)
SINGLE = [name for name, mechanism in FEW.items() if not isinstance(mechanism, Sampled)]
"""All but records, whose attributes have estimates of their own."""


def alone(sums: Sums) -> Sums:
    """Return one query of many statistics, `(r, 1)`, as r queries."""
    return map_arrays(lambda one: np.broadcast_to(one, sums.total.shape)[:, 0], sums)


@pytest.mark.parametrize(("estimand", "means"), [
    ("respondents", [0.25, 0.75, 0.75, 0.75] * 10),
    ("respondents", [0.25] * 40),
    ("population", [0.55] * 40),
])  # fmt: skip
def test_bounds_hold_over_all_paths_of_a_channel_and_pointwise_ones_do_not(
    estimand: str, means: list[float]
):
    """Warner's two values, bits of 1 as reported; the truth is the share so far, or 0.6."""
    truths = np.cumsum([2 * m - 0.5 for m in means]) / np.arange(1, len(means) + 1)
    queries, second = prepare_queries(WARNER), [indicator(2, np.array([1]))]
    counts: Any = SimpleNamespace(empty=lambda: np.zeros(2, np.int64), statistic_size=2)
    sums = AffineSums.of(counts, lambda statistic: set_sums(queries, statistic, second))

    def rate(method: str) -> float:
        options = Options(method=method, estimand=estimand, confidence=0.7, sharpest=20)

        def holds(n: int, ones: np.ndarray) -> np.ndarray:
            found = bound(alone(sums.at(np.stack([n - ones, ones], axis=1))), n, options)
            # After one report the population's normal bounds are undefined.
            wrong = (found.low > truths[n - 1] + 1e-12) | (found.high < truths[n - 1] - 1e-12)
            return ~wrong

        return failing(means, holds)

    assert rate("anytime") <= 0.3
    assert rate("normal") > 0.3


@cache
def first_statistics(name: str) -> dict[int, NDArray[np.int64]]:
    """Return an instance's statistics of 1, 2 and 50 reports."""
    mechanism: Mechanism = INSTANCES[name]
    values = np.random.default_rng(5).integers(0, mechanism.size, 50)
    statistic, found = mechanism.empty(), {}
    for n in range(1, 51):
        report = mechanism.privatize(values[n - 1 : n], entropy=SeededEntropy(n))
        mechanism.accumulate(statistic, report)
        if n in (1, 2, 50):
            found[n] = statistic.copy()
    return found


@pytest.mark.grid
@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("name", SINGLE)
def test_every_mechanism_has_bounds_from_the_first_report_on(name: str, estimand: str):
    mechanism: Mechanism = INSTANCES[name]
    for n, statistic in first_statistics(name).items():
        options = {"method": "anytime", "estimand": estimand}
        half = [np.arange((mechanism.size + 1) // 2)]
        for found in (
            estimate_values(mechanism, statistic, n, **options),
            estimate_sets(mechanism, statistic, n, half, **options),
        ):
            assert (found.lowest <= found.value).all()
            assert (found.value <= found.highest).all()
            assert np.isfinite(found.high - found.low).all()
            assert ((found.low >= 0.0) & (found.high <= 1.0)).all()


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_simultaneous_bounds_are_bonferronis(estimand: str):
    mechanism = block_channel(7, (2, 1, 3))
    statistic = np.arange(mechanism.outputs) + 20
    n = int(statistic.sum())
    options = {"method": "anytime", "estimand": estimand}
    joint = estimate_values(mechanism, statistic, n, simultaneous=True, family=50, **options)
    alone = estimate_values(mechanism, statistic, n, confidence=1 - 0.05 / 50, **options)
    np.testing.assert_allclose(joint.high, alone.high)
    np.testing.assert_allclose(joint.low, alone.low)


def test_bounds_are_sharper_where_they_were_asked_to_be():
    def width(n: int, sharpest: int) -> float:
        statistic = np.array([n // 2, n // 2])
        options = {"method": "anytime", "estimand": "population", "sharpest": sharpest}
        found = estimate_values(WARNER, statistic, n, **options)
        return float(found.high[0] - found.low[0])

    assert width(1000, 1000) < width(1000, 10**7)
    assert width(10**7, 10**7) < width(10**7, 1000)


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_a_rare_block_is_not_taken_for_one_without_noise(estimand: str):
    """By its own plug-in variance it would be: without a report there is no variance."""
    mechanism = RandomizedResponse(1.0, Blocks(np.repeat([0, 1], [90, 10])))
    statistic = mechanism.empty()
    statistic[:90] = 20
    found = estimate_values(mechanism, statistic, 1800, method="anytime", estimand=estimand)
    exact = found.high[90:] == 0.0
    assert exact.all() == (estimand == "respondents")
    statistic[90] += 1
    found = estimate_values(mechanism, statistic, 1801, method="anytime", estimand=estimand)
    plain = estimate_values(mechanism, statistic, 1801, estimand=estimand)
    assert (found.highest - found.lowest > plain.highest - plain.lowest).all()


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_quantiles_of_moving_shares_are_bounded_by_all_prefixes_together(
    estimand: str,
):
    mechanism, _ = CASES["noise on a line"]
    statistic = statistic_of(mechanism)
    options = {"method": "anytime", "estimand": estimand}
    found = estimate_quantiles(mechanism, statistic, 400, [0.3, 0.7], **options)
    together = estimand == "respondents"
    prefixes = Prefixes.of(mechanism).estimate(statistic, 400, simultaneous=together, **options)
    expected = invert(prefixes, [0.3, 0.7])
    np.testing.assert_array_equal(found.low, expected.low)
    np.testing.assert_array_equal(found.high, expected.high)


def test_the_benchmarks_windows_are_those_of_the_estimators():
    """One window of each setting: its sums give the bounds that its statistic gives."""
    for setting in settings():
        asked = ask(setting)
        n, counts = next(windows(asked, 2, seed=1))
        queries = prepare_queries(setting.mechanism)
        members = indicator(setting.mechanism.size, np.array(setting.members))
        of_output = [
            int(np.flatnonzero((asked.group == g) & np.isclose(asked.atoms, h))[0])
            for g, h in zip(queries.outputs.of_place, asked.query.h, strict=True)
        ]
        statistic = np.zeros(len(of_output), dtype=np.int64)
        for atom, count in enumerate(counts[0].sum(axis=0)):
            statistic[of_output.index(atom)] = count
        for method in ("normal", "anytime"):
            for estimand in ESTIMANDS:
                options = Options(method=method, estimand=estimand)
                found = bound(sums_of(asked, counts), n, options)
                sums: Sums = set_sums(queries, statistic, [members])
                expected = bound(sums, n, options)
                np.testing.assert_allclose(found.low[0], expected.low[0], atol=1e-7)
                np.testing.assert_allclose(found.high[0], expected.high[0], atol=1e-7)


def test_credible_bounds_hold_over_all_paths():
    """Given reports that are all 0, the bits are independent with the mean of their posterior."""
    mechanism = Lip(Prior(0.3), (1.0,))
    posterior = float(posteriors(mechanism, np.array([0.3]))[0, 0])

    def rate(method: CredibleMethod) -> float:
        def holds(n: int, ones: np.ndarray) -> np.ndarray:
            found = estimate_mmse(
                mechanism, np.array([n, 0]), n, confidence=0.7, method=method, sharpest=20
            )
            return (found.low <= ones / n) & (ones / n <= found.high)

        return failing([posterior] * 60, holds)

    assert rate("anytime") <= 0.3
    assert rate("normal") > 0.3


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
