"""Estimates of `lip` against enumeration in rationals, and the test of its priors."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from ldpstream.estimators.estimate import estimate_sets
from ldpstream.estimators.lip.calibration import calibrate, tail_at_least
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


def masses(weights: np.ndarray, reports: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the distribution of `sum w Bin(n, p)`, by convolutions."""
    whole = np.ones(1)
    for weight, n, share in zip(weights, reports, shares, strict=True):
        one = np.zeros(weight * n + 1)
        np.add.at(one, weight * np.arange(n + 1), binom.pmf(np.arange(n + 1), n, share))
        whole = np.convolve(whole, one)
    return whole


@pytest.mark.parametrize("power", [1, 12])
def test_tails_are_those_of_the_convolution_and_never_smaller(power: int):
    """Coins of all kinds; with a high `power` most of them nearly always show the same side."""
    rng = np.random.default_rng(power)
    for trial in range(16):
        levels = int(rng.integers(1, 5))
        weights, reports = rng.integers(0, 9, levels), rng.integers(0, 12, levels)
        shares = rng.random(levels) ** power
        both = np.stack([1.0 - shares, shares], axis=1)
        if trial % 2:
            shares, both = both[:, 0], both[:, ::-1]
        whole = masses(weights, reports, shares)
        for total in range(-1, len(whole) + 2, 5):
            tail = min(1.0, whole[max(total, 0) :].sum())
            assert -1e-14 <= tail_at_least(total, weights, reports, both) - tail < 2e-12


@pytest.mark.parametrize("share", [1e-6, 0.02, 0.5, 0.99])
@pytest.mark.parametrize("n", [1000, 10**7])
def test_tails_of_many_reports_are_the_binomial_ones(n: int, share: float):
    both = np.array([1.0 - share, share])
    for deviations in (0.0, 3.5):
        total = math.ceil(n * share + deviations * math.sqrt(n * share * (1.0 - share)))
        # A second level, of hardly any weight, keeps 8 from being the unit.
        found = tail_at_least(
            8 * total, np.array([8, 1]), np.array([n, 1]), np.stack([both, [1.0 - 1e-16, 1e-16]])
        )
        assert found == pytest.approx(binom.sf(total - 1, n, share), rel=1e-8, abs=2e-11)


SMALL = [
    (Lip(Prior(levels=3), (1.0,)), (4, 5, 3)),
    (Lip(Prior(levels=2), (0.5, 4.0)), (2, 3, 2, 2)),
    (Lip(Prior(levels=2), (8.0,)), (7, 11)),
    (Lip(Prior(0.03), (2.0,)), (60,)),
]


@pytest.mark.parametrize(("mechanism", "reports"), SMALL, ids=["levels", "budgets", "large", "one"])
def test_right_priors_are_called_wrong_no_more_often_than_the_significance(
    mechanism: Lip, reports: tuple[int, ...]
):
    """Every outcome with its probability, priors at all ends of their levels and in between.

    P(p <= d) <= d holds at every attained p-value d: so few reports hardly ever reach 0.001.
    """
    sizes = np.array(reports)
    outcomes = list(product(*(range(n + 1) for n in reports)))
    found = np.array(
        [
            calibrate(mechanism, np.stack([sizes - ones, ones], 1).ravel(), sizes.sum()).smallest
            for ones in outcomes
        ]
    )
    order = np.argsort(found, kind="stable")
    ordered = found[order]
    last = np.append(ordered[1:] > ordered[:-1], True)
    edges = mechanism.prior.edges
    budgets = len(mechanism.epsilons)
    parts = np.array(mechanism.thresholds, dtype=float) / WORD
    for places in product((0.0, 0.3, 1.0), repeat=len(edges) - 1):
        priors = [a + part * (b - a) for a, b, part in zip(edges, edges[1:], places, strict=False)]
        prior = np.repeat(priors, budgets)
        shares = prior * parts[:, 1] + (1.0 - prior) * parts[:, 0]
        chances = np.ones(1)
        for n, share in zip(reports, shares, strict=True):
            chances = np.outer(chances, binom.pmf(np.arange(n + 1), n, share)).ravel()
        below = np.cumsum(chances[order])
        assert (below[last] <= ordered[last] + 1e-12).all()
    assert ordered[0] < 0.05


@pytest.mark.parametrize(
    ("told", "suspicion"),
    [
        (lambda p: p / (2.0 - p), "too low"),
        (lambda p: 2.0 * p / (1.0 + p), "too high"),
        (lambda p: p**2 / (p**2 + (1.0 - p) ** 2), "too far from 1/2"),
        (lambda p: np.sqrt(p) / (np.sqrt(p) + np.sqrt(1.0 - p)), "too near 1/2"),
    ],
)
def test_the_suspicion_says_how_the_priors_are_wrong(
    told: Callable[[np.ndarray], np.ndarray], suspicion: str
):
    """Ones as often as the true priors have it, so that no chance is left."""
    mechanism = Lip(Prior(levels=64), (1.0,))
    truth = np.random.default_rng(2).uniform(0.02, 0.98, 100_000)
    level = np.searchsorted(mechanism.prior.edges, told(truth), side="right") - 1
    parts = np.array(mechanism.thresholds, dtype=float)[level] / WORD
    expected = truth * parts[:, 1] + (1.0 - truth) * parts[:, 0]
    reports = np.bincount(level, minlength=64)
    ones = np.rint(np.bincount(level, expected, 64)).astype(np.int64)
    test = calibrate(mechanism, np.stack([reports - ones, ones], 1).ravel(), len(truth))
    assert test.suspicion == suspicion
    assert test.smallest < 1e-6
