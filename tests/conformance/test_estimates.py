"""Estimates of every mechanism, against those of its channel as a plain matrix."""

from typing import Any

import numpy as np
import pytest

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.planning.predictions import (
    predicted_linear_variances,
    predicted_set_variances,
)
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.interface.symbols import CountDecoder
from tests.conformance.test_decoder import LISTED, dense
from tests.exact.dense import dense_of

N = 1000
ALONE = {n: m for n, m in LISTED.items() if m.size <= 64 and not isinstance(m, Sampled)}
"""All small ones but records, whose attributes have estimates of their own."""
COUNTED = {name: m for name, m in ALONE.items() if isinstance(m.decoder, CountDecoder)}
COMPARED = [name for name in COUNTED if not name.endswith(":huge")]
"""All but those without noise in double precision, of which rounding decides what is known."""
ESTIMANDS = ("respondents", "population")


def shares_of(size: int) -> np.ndarray:
    shares = 1.0 / np.arange(1.0, size + 1.0)
    return shares / shares.sum()


@pytest.mark.grid
@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_predicted_variances_are_those_of_the_enumeration(name: str, estimand: str):
    mechanism, size = ALONE[name], ALONE[name].size
    channel, decoders = dense(mechanism)
    p, known = shares_of(size), {"shares": shares_of(size), "estimand": estimand}
    asked = {"values": np.eye(size), "weights": np.random.default_rng(1).normal(size=(2, size))}
    found = {
        "values": predicted_set_variances(mechanism, [np.array([x]) for x in range(size)], **known)
    }
    if name not in COUNTED:
        # Where outputs are counted, weights may take a known total instead of their own decoder.
        found["weights"] = predicted_linear_variances(mechanism, asked["weights"], **known)
    for kind, variances in found.items():
        weights = asked[kind]
        second = p @ channel @ ((weights @ decoders) ** 2).T
        first = (weights @ p) ** 2 if estimand == "population" else weights**2 @ p
        scale = np.abs(second).max()
        np.testing.assert_allclose(variances, second - first, rtol=1e-7, atol=1e-9 * scale)


@pytest.mark.grid
@pytest.mark.parametrize("name", COMPARED)
@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_every_estimate_equals_that_of_the_dense_channel(name: str, estimand: str):
    mechanism, size = COUNTED[name], COUNTED[name].size
    plain, p = dense_of(mechanism), shares_of(size)
    statistic = np.random.default_rng(3).multinomial(N, p @ plain.channel)
    sets = [np.arange(size), np.arange(size - 1), np.arange(0, size, 2), np.array([size - 1])]
    weights = np.stack([np.arange(size) ** 2.0, np.cos(np.arange(size))])
    fields, tolerance = (
        ("value", "se", "low", "high", "influence"),
        1e-9 * np.abs(plain.decoders).max(),
    )
    for method in ("normal", "bernstein"):
        options: Any = {"method": method, "estimand": estimand, "simultaneous": True}
        for one, other in (
            (estimate_values(m, statistic, N, **options) for m in (mechanism, plain)),
            (estimate_sets(m, statistic, N, sets, **options) for m in (mechanism, plain)),
            (estimate_linear(m, statistic, N, weights, **options) for m in (mechanism, plain)),
        ):
            for field in fields:
                pair = getattr(one, field), getattr(other, field)
                np.testing.assert_allclose(*pair, rtol=1e-7, atol=tolerance, err_msg=field)
    for predicted, queries in (
        (predicted_set_variances, sets),
        (predicted_linear_variances, weights),
    ):
        pair = (predicted(m, queries, shares=p, estimand=estimand) for m in (mechanism, plain))
        np.testing.assert_allclose(*pair, rtol=1e-7, atol=1e-9)
