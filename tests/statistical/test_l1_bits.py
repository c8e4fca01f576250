"""`l1-bits`: bounds cover, and squared errors measured from reports are the predicted variances.

Seeds are fixed; with other seeds a test fails with the probability it states.
"""

from functools import cache
from itertools import product

import numpy as np
import pytest
from benchmarks.accuracy.l1_variance import measured_ratio, variances
from benchmarks.accuracy.simulate import Case, draw_by_privatizing, zipf
from scipy.stats import binom

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles
from ldpstream.estimators.queries import range_values
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from tests.exact.enumeration import counted
from tests.soak import chosen

REPETITIONS = chosen(120, soak=1000)
TAIL = 1e-9
LINE = [[(0, 9)], [(5, 30)], [(7, 7)], [(38, 39)]]
PLANE = [[(0, 2), (1, 6)], [(1, 3), (3, 3)], [(0, 4), (4, 7)], [(2, 2), (2, 2)], [(4, 4), (6, 7)]]
VALUES = [0, 17, 39]


METHODS = ("normal", "bernstein")
EPSILONS, SHAPES = (0.3, 1.0, 3.0), ((64,), (16, 12), (5, 1, 4, 3))


@cache
def drawn(n: int, shape: tuple[int, ...]) -> tuple[Case, list[tuple[np.ndarray, np.ndarray]]]:
    """A case of a shape, and repetitions of what n users hold and report, for every estimand."""
    shares = np.ones(())
    for m in shape:
        shares = np.multiply.outer(shares, zipf(m))
    case = Case("", L1Bits(1.0, shape), "zipf", shares.ravel(), n)
    return case, list(draw_by_privatizing(case, REPETITIONS, 5))


def covered(n: int, shape: tuple[int, ...], bounds: list, estimand: str) -> np.ndarray:
    """The share of repetitions whose 95% bounds cover the ranges, then some values, by method."""
    case, repetitions = drawn(n, shape)
    sets = [range_values(shape, pairs) for pairs in bounds]
    hits = np.zeros((2, len(sets) + len(VALUES)))
    for counts, statistic in repetitions:
        truth = counts / n if estimand == "respondents" else case.shares
        truths = np.array([truth[s].sum() for s in sets] + [truth[v] for v in VALUES])
        for row, method in zip(hits, METHODS, strict=True):
            options = {"estimand": estimand, "method": method}
            ranges = estimate_sets(case.mechanism, statistic, n, sets, **options)
            values = estimate_values(case.mechanism, statistic, n, **options).take(VALUES)
            low = np.concatenate([ranges.low, values.low])
            high = np.concatenate([ranges.high, values.high])
            row += (low <= truths) & (truths <= high)
    return hits / REPETITIONS


@pytest.mark.soak
@pytest.mark.parametrize("n", [200, 5000])
@pytest.mark.parametrize(("shape", "bounds"), [((40,), LINE), ((5, 8), PLANE)], ids=["1d", "2d"])
@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_bounds_cover(n: int, shape: tuple[int, ...], bounds: list, estimand: str):
    """Assumes a coverage of at least 0.94 (`normal`) or 0.95 (`bernstein`), of at most 0.99.

    130 shares, each wrong with probability below 1e-9 then: below 1e-6 together.
    """
    normal, bernstein = covered(n, shape, bounds, estimand)
    least = binom.ppf(TAIL, REPETITIONS, 0.94) / REPETITIONS
    assert least > chosen(0.76, soak=0.88)
    assert (normal >= least).all()
    assert (normal <= binom.isf(TAIL, REPETITIONS, 0.99) / REPETITIONS).all()
    assert (bernstein >= binom.ppf(TAIL, REPETITIONS, 0.95) / REPETITIONS).all()


@pytest.mark.soak
@pytest.mark.parametrize("method", ["normal", "bernstein"])
@pytest.mark.parametrize("n", [200, 5000])
def test_quantile_bounds_cover_the_quantiles_of_the_respondents(n: int, method: str):
    """Assumes a coverage of at least 0.95: each of 12 shares is wrong with probability 1e-9."""
    mechanism, p = L1Bits(1.0, (32,)), np.array([0.25, 0.5, 0.9])
    case, prefixes = Case("", mechanism, "zipf", zipf(32), n), Prefixes.of(mechanism)
    hits = np.zeros(3)
    for counts, statistic in draw_by_privatizing(case, REPETITIONS, 6):
        truth = np.searchsorted(np.cumsum(counts / n) + 1e-12, p)
        found = estimate_quantiles(
            mechanism, statistic, n, p.tolist(), prefixes=prefixes, method=method
        )
        hits += (found.low <= truth) & (truth <= found.high)
    assert (hits / REPETITIONS >= binom.ppf(TAIL, REPETITIONS, 0.95) / REPETITIONS).all()


@pytest.mark.soak
@pytest.mark.parametrize(
    ("epsilon", "shape"),
    chosen([*zip(EPSILONS, SHAPES, strict=True)], soak=[*product(EPSILONS, SHAPES)]),
    ids=str,
)
def test_squared_errors_agree_with_the_prediction(epsilon: float, shape: tuple[int, ...]):
    """Of 500 nearly normal errors a mean square errs by 6.3%, that of many ranges by less.

    So 0.35 is more than 5.5 of these: nine cases fail with probability below 1e-6 for other seeds;
    with the seeds fixed here all lie within 10%.
    """
    assert measured_ratio(L1Bits(epsilon, shape), shape, 500) == pytest.approx(1.0, abs=0.1)


# Mean variance over all ranges, l1-bits over l1-geometric.
STATED = [(1.0, 16, 1, 5.0), (1.0, 64, 1, 19.6), (1.0, 64, 2, 90.0), (1.0, 64, 3, 497.0)]


@pytest.mark.parametrize(("epsilon", "m", "dimensions", "stated"), [*STATED, (0.1, 64, 1, 1 / 2.2)])
def test_gains_over_all_ranges_are_as_stated(
    epsilon: float, m: int, dimensions: int, stated: float
):
    bits, geometric = variances(epsilon, m, dimensions)
    assert bits / geometric == pytest.approx(stated, rel=0.02)


def test_both_mechanisms_estimate_the_same_shares():
    """Differences over their predicted standard errors: 6 sigma, below 1e-6 for 64 values."""
    case = zipf(64, 1.1)
    values = np.random.default_rng(8).choice(64, 20_000, p=case)
    estimates = []
    for mechanism in (L1Bits(1.0, (64,)), L1Geometric(1.0, (64,))):
        statistic = counted(mechanism, values, 8)
        estimates.append(estimate_values(mechanism, statistic, 20_000))
    bits, geometric = estimates
    error = np.hypot(bits.se, geometric.se)
    assert (np.abs(bits.value - geometric.value) < 6 * error).all()
