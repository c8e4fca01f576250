"""The test of priors: its tails against convolutions, its size by enumeration, in every case."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from ldpstream.estimators.lip.calibration import calibrate, tail_at_least
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.lip.domain import Prior
from ldpstream.mechanisms.families.lip.lip import Lip


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
