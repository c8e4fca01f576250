"""Total errors of linear counting, simulated, are the predicted ones; bounds cover as they say.

Seeds are fixed. Squared errors of a workload are quadratic forms of nearly normal noise: their
mean over the repetitions errs by at most `sqrt(2 / REPETITIONS)` of itself, as in one direction.
"""

from functools import cache

import numpy as np
import pytest
from benchmarks.accuracy.total_error import predicted_total_error
from scipy.stats import binom

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy
from tests.exact.enumeration import counted
from tests.seeded import SeededEntropy
from tests.soak import chosen

SIZE, N, REPETITIONS = 12, 60, 1500
COVERED = chosen(150, soak=400)
LINE, ANY = MetricPolicy(0.8, (SIZE,)), BlockPolicy(1.0, Blocks.one(SIZE))
UNEVEN = (6.0, 3.0, 4.0, 5.0, 6.0, *[4.5] * 6)
CASES = {
    "prefix": Matrix(LINE, Strategy.built_in("prefix", SIZE)),
    "hierarchical": Matrix(LINE, Strategy.built_in("hierarchical", SIZE)),
    "haar-any": Matrix(ANY, Strategy.built_in("haar", SIZE)),
    "identity-any": Matrix(ANY, Strategy.built_in("identity", SIZE)),
    "haar-own-scales": Matrix(LINE, Strategy.built_in("haar", SIZE), tuple(2 * s for s in UNEVEN)),
}
BOUNDS = [(i, j) for i in range(SIZE) for j in range(i, SIZE)]
SHARES = 1.0 / np.arange(1, SIZE + 1) ** 1.1
SHARES /= SHARES.sum()
RANGES = np.array([[i <= x <= j for x in range(SIZE)] for i, j in BOUNDS], dtype=float)


def statistics(mechanism: Matrix, values: np.ndarray, seed: int) -> np.ndarray:
    """The statistics of REPETITIONS rounds of reports of the same values."""
    reports = mechanism.privatize(np.tile(values, REPETITIONS), entropy=SeededEntropy(seed))
    rounds = reports.reshape(REPETITIONS, len(values), -1)
    sums = rounds.sum(axis=1)
    counts = np.full((REPETITIONS, 1), len(values))
    return np.concatenate([sums, counts], axis=1)


@pytest.mark.parametrize("name", CASES)
def test_total_errors_agree_with_the_prediction(name: str):
    """Six of the deviations above are 22%; nearly all workloads err in many directions, not one."""
    mechanism = CASES[name]
    values = np.random.default_rng(3).integers(0, SIZE, N)
    truth = RANGES @ np.bincount(values, minlength=SIZE)
    decoder, squares = mechanism.decoder, 0.0
    for statistic in statistics(mechanism, values, 31):
        squares += ((RANGES @ decoder.totals(statistic) - truth) ** 2).sum()
    predicted = predicted_total_error(mechanism, N, "ranges")
    assert abs(squares / REPETITIONS / predicted - 1.0) < 0.22


def test_every_way_to_ask_gives_one_estimate():
    mechanism = CASES["haar-own-scales"]
    values = np.random.default_rng(4).integers(0, SIZE, N)
    statistic = statistics(mechanism, values, 32)[0]
    members = [np.arange(i, j + 1) for i, j in BOUNDS]
    sets = estimate_sets(mechanism, statistic, N, members)
    linear = estimate_linear(mechanism, statistic, N, RANGES)
    shares = estimate_values(mechanism, statistic, N)
    assert np.allclose(sets.value, linear.value)
    assert np.allclose(sets.value, RANGES @ shares.value)
    assert np.allclose(sets.se, linear.se)
    whole = BOUNDS.index((0, SIZE - 1))
    assert (sets.low[whole], sets.value[whole], sets.high[whole]) == (1.0, 1.0, 1.0)
    predicted = predicted_set_variances(mechanism, members) / N
    assert predicted.sum() * N**2 == pytest.approx(predicted_total_error(mechanism, N, "ranges"))


@cache
def drawn(mechanism: Matrix) -> list[tuple[np.ndarray, np.ndarray]]:
    """What 400 users hold and report, for every estimand."""
    rng, repetitions = np.random.default_rng(6), []
    for seed in range(COVERED):
        values = rng.choice(SIZE, 400, p=SHARES)
        statistic = counted(mechanism, values, seed)
        repetitions.append((np.bincount(values, minlength=SIZE), statistic))
    return repetitions


@pytest.mark.soak
@pytest.mark.parametrize("name", ["prefix", "identity-any", "haar-own-scales"])
@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_bounds_cover(name: str, estimand: str):
    """Assumes a coverage of 0.94 to 0.96 (`normal`), at least 0.99 (`bernstein`).

    24 checks with tails of 1e-8: with other seeds one fails with probability below 1e-6.
    """
    mechanism, n = CASES[name], 400
    sets = [np.arange(3), np.arange(2, 9), np.array([0]), np.arange(7, SIZE)]
    covered = {"normal": np.zeros(len(sets)), "bernstein": np.zeros(len(sets))}
    for counts, statistic in drawn(mechanism):
        found = counts / n if estimand == "respondents" else SHARES
        truth = np.array([found[members].sum() for members in sets])
        for method, hits in covered.items():
            bounds = estimate_sets(mechanism, statistic, n, sets, method=method, estimand=estimand)
            hits += (bounds.low <= truth) & (truth <= bounds.high)
    low, high = binom.ppf(1e-8, COVERED, 0.94) / COVERED, binom.isf(1e-8, COVERED, 0.96) / COVERED
    assert ((covered["normal"] / COVERED >= low) & (covered["normal"] / COVERED <= high)).all()
    assert (covered["bernstein"] / COVERED >= binom.ppf(1e-8, COVERED, 0.99) / COVERED).all()
