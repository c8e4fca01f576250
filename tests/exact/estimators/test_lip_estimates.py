"""Estimates of `lip` against the enumeration of all reports of a few users, in rationals."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from ldpstream.estimators.estimate import estimate_sets
from ldpstream.estimators.lip.calibration import calibrate
from ldpstream.estimators.lip.mmse import estimate_mmse, posteriors
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.lip.domain import Prior
from ldpstream.mechanisms.families.lip.lip import Lip
from tests.exact.enumeration import accumulated

MIXED = Lip(Prior(levels=4), (1.0, 2.0))
USERS = [0, 1, 5, 5, 11]
"""Values `2 * level + bit` of MIXED: five users in four levels."""


def reports_of(mechanism: Lip, users: list[int]):
    """Yield every combination of the users' reports with its exact probability."""
    rows = mechanism.channel().rows
    for chosen in product(*(rows[user].items() for user in users)):
        statistic = accumulated(mechanism, np.array([report for report, _ in chosen]))
        yield statistic, math.prod((p for _, p in chosen), start=Fraction(1))


def ones_of(mechanism: Lip) -> list[np.ndarray]:
    return [np.arange(1, mechanism.size, 2)]


def test_the_prior_free_estimate_has_no_bias_and_the_variance_of_the_enumeration():
    n = len(USERS)
    mean, square, predicted = 0.0, 0.0, 0.0
    for statistic, probability in reports_of(MIXED, USERS):
        found = estimate_sets(MIXED, statistic, n, ones_of(MIXED))
        mean += float(probability) * found.value[0]
        square += float(probability) * found.value[0] ** 2
        assert found.lowest[0] <= found.value[0] <= found.highest[0]
    truth = sum(user % 2 for user in USERS) / n
    for user in USERS:
        q, r = (Fraction(t, WORD) for t in MIXED.thresholds[user // 2])
        p = r if user % 2 else q
        predicted += float(p * (1 - p) / (r - q) ** 2) / n**2
    assert mean == pytest.approx(truth, rel=1e-12)
    assert square - mean**2 == pytest.approx(predicted, rel=1e-10)


@pytest.mark.parametrize(("prior", "epsilon"), [(0.1, 1.0), (0.5, 0.5), (0.8, 2.0)])
def test_the_bayesian_estimate_is_the_posterior_mean(prior: float, epsilon: float):
    """By Bayes' rule over all values of four users, given each of their reports."""
    mechanism, n = Lip(Prior(prior), (epsilon,)), 4
    rows = [[float(row[y]) for y in (0, 1)] for row in mechanism.channel().rows]
    for reports in product((0, 1), repeat=n):
        weights, sums = [], []
        for values in product((0, 1), repeat=n):
            chance = [prior if x else 1 - prior for x in values]
            weights.append(math.prod(rows[x][y] for x, y in zip(values, reports, strict=True)))
            weights[-1] *= math.prod(chance)
            sums.append(sum(values))
        posterior = np.array(weights) / sum(weights)
        mean = float(posterior @ np.array(sums))
        spread = float(posterior @ (np.array(sums) - mean) ** 2)
        statistic = accumulated(mechanism, np.array(reports))
        found = estimate_mmse(mechanism, statistic, n)
        assert found.value * n == pytest.approx(mean, rel=1e-9)
        assert found.se * n == pytest.approx(math.sqrt(spread), rel=1e-9)
        assert 0.0 <= found.low <= found.value <= found.high <= 1.0


def test_credible_bounds_allow_for_every_prior_of_a_level():
    mechanism = Lip(Prior(levels=8), (1.0,))
    statistic = np.random.default_rng(3).integers(0, 5000, mechanism.outputs)
    n = int(statistic.sum())
    found = estimate_mmse(mechanism, statistic, n)
    edges = np.array(mechanism.prior.edges)
    for part in np.linspace(0.0, 1.0, 5):
        a = posteriors(mechanism, edges[:-1] + part * np.diff(edges))
        mean = float((statistic.reshape(-1, 2) * a).sum()) / n
        assert found.low < mean < found.high
    finer = Lip(Prior(levels=512), (1.0,))
    spread = np.random.default_rng(3).integers(0, 80, finer.outputs)
    narrow = estimate_mmse(finer, spread, int(spread.sum()))
    assert narrow.high - narrow.low < (found.high - found.low) / 10


def test_bernsteins_credible_bounds_hold_for_one_report():
    """Normal ones do not: the posterior of one bit is far from normal."""
    mechanism = Lip(Prior(0.01), (1.0,))
    found = estimate_mmse(mechanism, np.array([1, 0]), 1, confidence=0.999, method="bernstein")
    assert (found.low, found.high) == (0.0, 1.0)
    nothing = estimate_mmse(mechanism, mechanism.empty(), 0)
    assert all(math.isnan(x) for x in (nothing.value, nothing.se, nothing.low, nothing.high))


def test_a_wrong_number_of_reports_is_refused():
    mechanism = Lip(Prior(0.2), (1.0,))
    for function in (estimate_mmse, calibrate):
        with pytest.raises(ValueError, match="expected the 3 reports"):
            function(mechanism, np.array([1, 2]), 4)
    with pytest.raises(ValueError, match="confidence"):
        estimate_mmse(mechanism, np.array([1, 2]), 3, confidence=1.0)


@pytest.mark.parametrize(("ones", "n"), [(0, 40), (7, 40), (12, 40), (25, 40), (40, 40)])
def test_a_levels_p_value_is_the_binomial_tail_doubled(ones: int, n: int):
    mechanism = Lip(Prior(0.2), (1.0,))
    q, r = (t / WORD for t in mechanism.thresholds[0])
    share = 0.2 * r + 0.8 * q
    tails = (binom.sf(ones - 1, n, share), binom.cdf(ones, n, share))
    test = calibrate(mechanism, np.array([n - ones, ones]), n)
    assert (test.level.tolist(), test.reports.tolist(), test.ones.tolist()) == ([0], [n], [ones])
    assert test.least[0] == test.largest[0] == pytest.approx(share, rel=1e-12)
    # With one level all tests are the same one: they share the significance as 1/4, 1/2, 1/4.
    assert test.p_value[0] == pytest.approx(min(1.0, 4 * 2 * min(tails)), rel=1e-9)
    shift = {name: test.together[name] for name in ("too low", "too high")}
    assert list(shift.values()) == pytest.approx(
        [min(1.0, 2 * 2 * one) for one in tails], abs=1e-11
    )
    assert test.smallest == min(*shift.values(), test.p_value[0])


def test_any_priors_within_their_levels_agree():
    """Shares at either end of a level's range are as likely as its priors allow."""
    mechanism = Lip(Prior(levels=4), (2.0,))
    statistic = np.zeros((4, 2), dtype=np.int64)
    every = calibrate(mechanism, np.tile([50_000, 50_000], 4), 400_000)
    for level in range(4):
        share = every.least[level] if level % 2 else every.largest[level]
        statistic[level] = 100_000 * (1 - share), 100_000 * share
    n = int(statistic.sum())
    assert calibrate(mechanism, statistic.ravel(), n).smallest > 0.1
    shifted = statistic + np.array([-2000, 2000])
    test = calibrate(mechanism, shifted.ravel(), n)
    assert test.flagged.tolist() != []
    assert set(test.flagged.tolist()) == {0, 2}


def test_many_levels_of_few_reports_are_tested_together():
    """No level alone has enough reports, all of them have: every prior 0.15 too low."""
    mechanism = Lip(Prior(levels=1024), (3.0,))
    rng = np.random.default_rng(17)
    level = rng.integers(300, 600, 2000)
    bits = rng.random(2000) < np.array(mechanism.prior.representatives)[level] + 0.15
    words = rng.random(2000)
    shares = np.array(mechanism.thresholds, dtype=float)[level, bits.astype(int)] / WORD
    statistic = accumulated(mechanism, 2 * level + (words < shares))
    test = calibrate(mechanism, statistic, 2000)
    assert test.flagged.size == 0
    assert test.together["too low"] < 1e-6
    assert test.suspicion == "too low"


def test_no_reports_say_nothing_about_priors():
    mechanism = Lip(Prior(levels=4), (1.0,))
    test = calibrate(mechanism, mechanism.empty(), 0)
    assert (test.smallest, test.level.size, test.flagged.size) == (1.0, 0, 0)


@pytest.mark.parametrize("levels", [1, 4])
def test_where_a_report_is_nearly_certain_its_rare_other_is_still_possible(levels: int):
    # In double precision 1 - p is 0 for the likely report.
    mechanism = Lip(Prior(levels=levels), (40.0,))
    found = posteriors(mechanism, np.full(levels, 0.25))
    for pair, row in zip(mechanism.thresholds, found, strict=True):
        for report in (0, 1):
            zero, one = (Fraction(t if report else WORD - t, WORD) for t in pair)
            assert row[report] == pytest.approx(float(one / (one + 3 * zero)), rel=1e-12)
    for report in (0, 1):
        statistic = mechanism.empty()
        statistic[report::2] = 10
        n = 10 * levels
        for method in ("normal", "bernstein", "anytime"):
            estimate = estimate_mmse(mechanism, statistic, n, method=method)
            assert 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0
        # With levels no prior of the first, or of the last one, agrees with that.
        assert (calibrate(mechanism, statistic, n).smallest < 1e-6) == (levels > 1)
