"""Unbiasedness and variances by enumeration of every possible set of reports.

The sums over all reports are exact up to float rounding, so tolerances are relative 1e-9.
"""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from ldpstream.estimators.bounds.bounded import plug_in
from ldpstream.estimators.bounds.types import Sums
from ldpstream.estimators.estimate import set_sums, value_sums
from ldpstream.estimators.planning.predictions import (
    predicted_linear_variances,
    predicted_set_variances,
)
from ldpstream.estimators.queries import indicator, prepare_queries
from ldpstream.estimators.weights import linear_sums
from tests.exact.dense import Dense, block_channel, random_channel
from tests.exact.enumeration import predicted_value_variances

CHANNELS = {
    "two values": random_channel(1, 2, 2),
    "square": random_channel(2, 3, 3),
    "wide": random_channel(3, 3, 5),
    "blocks": block_channel(4, (2, 1, 2)),
}
SETS = ([0], [0, 1], [1], [])
WEIGHTS = np.array([[0.5, -1.0, 2.0, 0.25, 3.0], [1.0, 1.0, 1.0, 1.0, 1.0]])


def weights_of(mechanism: Dense, kind: str) -> np.ndarray:
    """Return the weights (q, k) of a kind of queries."""
    if kind == "values":
        return np.eye(mechanism.size)
    if kind == "sets":
        return np.stack([indicator(mechanism.size, np.array(s, dtype=np.int64)) for s in SETS])
    return WEIGHTS[:, : mechanism.size]


def sums_of(mechanism: Dense, statistic: np.ndarray, n: int, kind: str) -> Sums:
    """Return the sums of a kind of queries."""
    if kind == "values":
        return value_sums(mechanism, statistic, n)
    decoder, weights = prepare_queries(mechanism), weights_of(mechanism, kind)
    if kind == "sets":
        return set_sums(decoder, statistic, list(weights))
    return linear_sums(decoder, statistic, weights)


def outcomes(rows: list[np.ndarray]) -> Iterator[tuple[float, np.ndarray]]:
    """Every statistic of reports of independent users with these rows, and its probability."""
    outputs, found = rows[0].size, Counter[tuple[int, ...]]()
    for reports in product(range(outputs), repeat=len(rows)):
        probability = math.prod(float(row[y]) for row, y in zip(rows, reports, strict=True))
        found[tuple(map(reports.count, range(outputs)))] += probability
    for statistic, probability in found.items():
        if probability > 0.0:
            yield probability, np.array(statistic)


def moments(mechanism: Dense, rows: list[np.ndarray], kind: str, estimand: str):
    """Exact mean and variance of the estimates, and the exact mean of the plug-in."""
    n = len(rows)
    mean = square = plugged = 0.0
    for probability, statistic in outcomes(rows):
        sums = sums_of(mechanism, statistic, n, kind)
        estimate = sums.total / n
        mean = mean + probability * estimate
        square = square + probability * estimate**2
        plugged = plugged + probability * plug_in(sums, n, estimand)
    return mean, square - mean**2, plugged


def predicted(mechanism: Dense, n: int, kind: str, shares: np.ndarray, estimand: str):
    if kind == "values":
        every = range(mechanism.size)
        return predicted_value_variances(mechanism, every, shares=shares, estimand=estimand) / n
    if kind == "sets":
        sets = [np.array(s, dtype=np.int64) for s in SETS]
        return predicted_set_variances(mechanism, sets, shares=shares, estimand=estimand) / n
    weights = WEIGHTS[:, : mechanism.size]
    return predicted_linear_variances(mechanism, weights, shares=shares, estimand=estimand) / n


@pytest.mark.parametrize("kind", ["values", "sets", "linear"])
@pytest.mark.parametrize("name", CHANNELS)
def test_respondents_are_estimated_without_bias_and_with_the_stated_variance(name: str, kind: str):
    mechanism = CHANNELS[name]
    for users in [(0, 0, 1), (1, 0, mechanism.size - 1)]:
        shares = np.bincount(users, minlength=mechanism.size) / len(users)
        weights = weights_of(mechanism, kind)
        rows = [mechanism.channel[x] for x in users]
        mean, variance, plugged = moments(mechanism, rows, kind, "respondents")
        np.testing.assert_allclose(mean, weights @ shares, rtol=0, atol=1e-9)
        expected = predicted(mechanism, len(users), kind, shares, "respondents")
        np.testing.assert_allclose(variance, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(plugged, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["values", "sets", "linear"])
@pytest.mark.parametrize("name", CHANNELS)
def test_populations_are_estimated_without_bias_and_with_the_stated_variance(name: str, kind: str):
    mechanism, n = CHANNELS[name], 3
    shares = np.arange(1.0, mechanism.size + 1.0)
    shares /= shares.sum()
    weights = weights_of(mechanism, kind)
    mean, variance, plugged = moments(
        mechanism, [shares @ mechanism.channel] * n, kind, "population"
    )
    np.testing.assert_allclose(mean, weights @ shares, rtol=0, atol=1e-9)
    expected = predicted(mechanism, n, kind, shares, "population")
    np.testing.assert_allclose(variance, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(plugged, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.grid
@pytest.mark.parametrize("kind", ["values", "sets", "linear"])
@pytest.mark.parametrize("name", CHANNELS)
def test_the_noise_lies_between_floor_and_ceiling_whatever_the_users_hold(name: str, kind: str):
    mechanism, n = CHANNELS[name], 3
    groups = mechanism.decoder.groups()
    of_value = np.zeros(mechanism.size, dtype=int) if groups is None else groups
    rng = np.random.default_rng(5)
    for _ in range(20):
        users = rng.integers(0, mechanism.size, n)
        shares = np.bincount(users, minlength=mechanism.size) / n
        reports = [rng.choice(mechanism.outputs, p=mechanism.channel[x]) for x in users]
        statistic = np.bincount(reports, minlength=mechanism.outputs)
        sums = sums_of(mechanism, statistic, n, kind)
        truth = predicted(mechanism, n, kind, shares, "respondents")
        assert (sums.noise.floor / n**2 <= truth + 1e-12).all()
        assert (truth <= sums.noise.ceiling / n**2 + 1e-12).all()
        if groups is not None:
            same = np.bincount(of_value[users], minlength=3)
            of_report = mechanism.decoder.output_groups()[reports]
            assert (same == np.bincount(of_report, minlength=3)).all()
