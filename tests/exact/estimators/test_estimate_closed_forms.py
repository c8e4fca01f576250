"""Closed forms of the errors of [CA]'s mechanisms equal docs/theory.md section 0."""

import math

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.high_low import HighLow
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.exact.dense import dense_of
from tests.exact.enumeration import predicted_value_variances

OF_VALUE = np.array([0, 0, 2, 0, 1, 2, 2, 2, 0, 2, 3, 3])
N = 1000
EPSILONS = [0.5, 1.0, 3.0]


def mechanisms(epsilon: float) -> list[Mechanism]:
    return [
        Binary(epsilon, epsilon),
        Binary(epsilon, 2 * epsilon),
        Binary(math.inf, epsilon),
        HighLow(epsilon, 9, frozenset({1, 4, 5})),
        HighLow(epsilon, 3, frozenset({0, 1, 2})),
        BlockHadamard(epsilon, Blocks(OF_VALUE)),
        BlockHadamard(epsilon, Blocks.one(6)),
        L1Geometric(epsilon, (7,)),
        L1Geometric(epsilon, (3, 1, 4)),
    ]


ALL = [pytest.param(m, id=f"{m.id}-{e}-{i}") for e in EPSILONS for i, m in enumerate(mechanisms(e))]


def shares_of(size: int) -> np.ndarray:
    shares = 1.0 / np.arange(1, size + 1)
    return shares / shares.sum()


def statistic_of(mechanism: Mechanism, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.multinomial(N, shares_of(mechanism.size) @ dense_of(mechanism).channel)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_errors_of_binary_are_those_of_a_bernoulli_mean(epsilon: float):
    mechanism = Binary(epsilon, 2 * epsilon)
    statistic = statistic_of(mechanism)
    q, r = dense_of(mechanism).channel[:, 1]
    mean = statistic[1] / N
    estimate = estimate_values(mechanism, statistic, N)
    assert estimate.value[1] == pytest.approx((mean - q) / (r - q), rel=1e-9)
    # A Bernoulli mean over (r - q): its noise is that of the two rows.
    share = estimate.value[1]
    noise = ((1 - share) * q * (1 - q) + share * r * (1 - r)) / (r - q) ** 2
    assert estimate.se[1] ** 2 == pytest.approx(noise / N, rel=1e-9)
    assert estimate.se[0] == pytest.approx(estimate.se[1], rel=1e-9)
    population = estimate_values(mechanism, statistic, N, estimand="population")
    assert population.se[1] ** 2 == pytest.approx(
        mean * (1 - mean) / (r - q) ** 2 / (N - 1), rel=1e-9
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_errors_of_high_low_are_the_closed_forms(epsilon: float):
    mechanism = HighLow(epsilon, 9, frozenset({1, 4, 5}))
    c, t = 1 / math.tanh(epsilon / 2), math.tanh(epsilon / 2)
    p = shares_of(9)
    sensitive = np.isin(np.arange(9), [1, 4, 5])
    positions = 2 / (math.exp(epsilon) + 1) + t * p[sensitive].sum()
    expected = np.where(sensitive, c**2 * positions - p**2, c * p - p**2) / N
    predicted = predicted_value_variances(mechanism, range(9), shares=p, estimand="population") / N
    np.testing.assert_allclose(predicted, expected, rtol=1e-9)
    noise = np.where(sensitive, c**2 * positions - p, c * p - p) / N
    predicted = predicted_value_variances(mechanism, range(9), shares=p) / N
    np.testing.assert_allclose(predicted, noise, rtol=1e-9)
    # C.2 of the paper estimates the share of all sensitive values by the share of positions; its
    # variance is c^2 P(S)(1 - P(S))/n, not p(A)(1 - p(A))/n.
    whole = (
        predicted_set_variances(mechanism, [np.array([1, 4, 5])], shares=p, estimand="population")
        / N
    )
    np.testing.assert_allclose(whole, c**2 * positions * (1 - positions) / N, rtol=1e-9)
    statistic = statistic_of(mechanism)
    estimate = estimate_values(mechanism, statistic, N)
    in_positions = statistic[:4].sum() / N
    plug_in = np.where(sensitive, c**2 * in_positions, c * estimate.value) - estimate.value
    np.testing.assert_allclose(estimate.se**2, plug_in / N, rtol=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_errors_of_block_hadamard_are_the_closed_forms(epsilon: float):
    mechanism = BlockHadamard(epsilon, Blocks(OF_VALUE))
    c = 1 / math.tanh(epsilon / 2)
    p = shares_of(12)
    block_shares = np.bincount(OF_VALUE, p)[OF_VALUE]
    alone = OF_VALUE == 1
    second = np.where(alone, p, c**2 * block_shares)
    predicted = predicted_value_variances(mechanism, range(12), shares=p, estimand="population") / N
    np.testing.assert_allclose(predicted, (second - p**2) / N, rtol=1e-9)
    predicted = predicted_value_variances(mechanism, range(12), shares=p) / N
    np.testing.assert_allclose(predicted, (second - p) / N, rtol=1e-9, atol=1e-15)
    statistic = statistic_of(mechanism)
    of_report = mechanism.decoder.output_groups()
    block_shares = np.bincount(of_report, statistic)[OF_VALUE] / N
    value = estimate_values(mechanism, statistic, N).value
    inside = (value > 0) & (value < block_shares)
    respondents = (c**2 * block_shares - value) / N
    respondents = np.clip(respondents, (c**2 - 1) * block_shares / N, c**2 * block_shares / N)
    se = estimate_values(mechanism, statistic, N).se
    np.testing.assert_allclose(se**2, np.where(alone, 0.0, respondents), rtol=1e-9)
    population = (np.where(alone, value, c**2 * block_shares) - value**2) / (N - 1)
    se = estimate_values(mechanism, statistic, N, estimand="population").se
    np.testing.assert_allclose(se[inside] ** 2, population[inside], rtol=1e-9)


@pytest.mark.grid
@pytest.mark.parametrize("mechanism", ALL)
@pytest.mark.parametrize("method", ["normal", "bernstein"])
@pytest.mark.parametrize("estimand", ["respondents", "population"])
def test_every_estimate_equals_that_of_the_dense_channel(
    mechanism: Mechanism, method: str, estimand: str
):
    dense, statistic = dense_of(mechanism), statistic_of(mechanism)
    options = {"method": method, "estimand": estimand, "simultaneous": True}
    size = mechanism.size
    sets = [np.arange(size), np.arange(size - 1), np.arange(0, size, 2), np.array([size - 1])]
    weights = np.stack([np.arange(size) ** 2.0, np.cos(np.arange(size))])
    for fast, plain in (
        (estimate_values(m, statistic, N, **options) for m in (mechanism, dense)),
        (estimate_sets(m, statistic, N, sets, **options) for m in (mechanism, dense)),
        (estimate_linear(m, statistic, N, weights, **options) for m in (mechanism, dense)),
    ):
        for name in ("value", "se", "low", "high", "influence"):
            np.testing.assert_allclose(
                getattr(fast, name), getattr(plain, name), rtol=1e-7, atol=1e-9, err_msg=name
            )


@pytest.mark.parametrize("mechanism", ALL)
def test_the_least_and_largest_noise_of_each_value_are_those_of_the_dense_channel(
    mechanism: Mechanism,
):
    for fast, plain in zip(
        mechanism.decoder.noise_extremes(),
        dense_of(mechanism).decoder.noise_extremes(),
        strict=True,
    ):
        np.testing.assert_allclose(fast, plain, rtol=1e-9, atol=1e-12)


def test_respondents_never_have_the_larger_variance():
    for epsilon in EPSILONS:
        for mechanism in mechanisms(epsilon):
            every, p = range(mechanism.size), shares_of(mechanism.size)
            respondents = predicted_value_variances(mechanism, every, shares=p) / N
            population = (
                predicted_value_variances(mechanism, every, shares=p, estimand="population") / N
            )
            assert (respondents < population).all()
