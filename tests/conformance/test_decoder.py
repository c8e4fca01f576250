"""Decoders and estimates against the channel as a plain matrix; closed forms and general ones."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.estimators.planning.predictions import (
    predicted_linear_variances,
    predicted_set_variances,
)
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.interface.decoder import Decoder, LinearDecoder
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.interface.symbols import CountDecoder
from tests.conformance.instances import DECODED, is_listed
from tests.exact.dense import dense_of
from tests.seeded import SeededEntropy

Matrix = NDArray[np.float64]
LISTED = {name: m for name, m in DECODED.items() if is_listed(m)}
COUNTED = {name: m for name, m in DECODED.items() if isinstance(m.decoder, CountDecoder)}
SUMMED = {name: m for name, m in LISTED.items() if isinstance(m.decoder, LinearDecoder)}

EVERY = pytest.mark.parametrize("mechanism", DECODED.values(), ids=DECODED.keys())
EVERY_LISTED = pytest.mark.parametrize("mechanism", LISTED.values(), ids=LISTED.keys())
EVERY_COUNTED = pytest.mark.parametrize("mechanism", COUNTED.values(), ids=COUNTED.keys())
EVERY_SUMMED = pytest.mark.parametrize("mechanism", SUMMED.values(), ids=SUMMED.keys())


_DENSE: dict[int, tuple[Matrix, Matrix]] = {}


def dense(mechanism: Mechanism) -> tuple[Matrix, Matrix]:
    """The channel and the single values' decoders, float64 `(k, outputs)` each, read-only.

    The decoders are what the estimates are of a single report. Both are computed once.
    """
    if id(mechanism) not in _DENSE:
        channel = np.zeros((mechanism.size, len(mechanism.possible_reports())))
        for value, row in enumerate(mechanism.channel().rows):
            channel[value, list(row)] = [float(p) for p in row.values()]
        decoder = mechanism.decoder
        decoders = np.stack([decoder.totals(one) for one in singles(mechanism)], axis=1)
        for table in (channel, decoders):
            table.flags.writeable = False
        _DENSE[id(mechanism)] = channel, decoders
    return _DENSE[id(mechanism)]


def singles(mechanism: Mechanism) -> list[NDArray[np.int64]]:
    """The statistic of each possible report alone."""
    reports = mechanism.possible_reports()
    statistics = [mechanism.empty() for _ in reports]
    for place, statistic in enumerate(statistics):
        mechanism.accumulate(statistic, reports[place : place + 1])
    return statistics


def close(left: Matrix, right: Matrix, scale: float) -> bool:
    """Equal but for the rounding of sums of terms as large as `scale`."""
    return np.allclose(left, right, rtol=1e-12, atol=1e-12 * scale)


def some_statistic(mechanism: Mechanism, seed: int, n: int) -> NDArray[np.int64]:
    """The statistic of n reports of uniform values."""
    statistic = mechanism.empty()
    values = np.random.default_rng(seed).integers(0, mechanism.size, n)
    mechanism.accumulate(statistic, mechanism.privatize(values, entropy=SeededEntropy(seed)))
    return statistic


@EVERY_LISTED
def test_decoders_are_unbiased(mechanism: Mechanism):
    channel, decoders = dense(mechanism)
    assert close(channel @ decoders.T, np.eye(mechanism.size), np.abs(decoders).max())


@EVERY_LISTED
def test_noise_is_the_variance_that_a_user_adds(mechanism: Mechanism):
    channel, decoders = dense(mechanism)
    weights = np.random.default_rng(1).normal(size=mechanism.size)
    noise = channel @ (weights @ decoders) ** 2 - weights**2
    scale = np.abs(weights @ decoders).max() ** 2
    assert close(mechanism.decoder.noise(weights), noise, scale)


@EVERY
def test_a_statistic_counts_its_reports(mechanism: Mechanism):
    statistic = some_statistic(mechanism, 2, 700)
    assert mechanism.count(statistic) == 700
    assert mechanism.count(mechanism.empty()) == 0
    assert mechanism.decoder.group_reports(statistic).sum() == 700


@EVERY
def test_estimates_leave_the_statistic_as_it_is(mechanism: Mechanism):
    statistic = some_statistic(mechanism, 3, 50)
    before, decoder = statistic.copy(), mechanism.decoder
    first = decoder.totals(statistic)
    second_moments(decoder, statistic)
    assert np.array_equal(statistic, before)
    assert np.array_equal(first, mechanism.decoder.totals(statistic))


@EVERY_LISTED
def test_extremes_are_those_of_the_dense_decoders(mechanism: Mechanism):
    _, decoders = dense(mechanism)
    low, high = mechanism.decoder.extremes()
    assert close(low, decoders.min(axis=1), 1.0)
    assert close(high, decoders.max(axis=1), 1.0)


@EVERY
def test_noise_extremes_equal_the_general_form(mechanism: Mechanism):
    decoder = mechanism.decoder
    scale = max(1.0, np.abs(decoder.extremes()[1]).max() ** 2)
    for closed, general in zip(
        decoder.noise_extremes(), Decoder.noise_extremes(decoder), strict=True
    ):
        assert closed.shape == (mechanism.size,)
        assert close(closed, general, scale)
        assert (closed >= 0).all()


@EVERY_LISTED
def test_groups_are_what_a_report_discloses(mechanism: Mechanism):
    channel, decoders = dense(mechanism)
    decoder = mechanism.decoder
    of_value = decoder.groups()
    counted = np.stack([decoder.group_reports(one) for one in singles(mechanism)])
    if of_value is None:
        # Nothing is disclosed: some report can come from any value.
        assert np.any((channel > 0).all(axis=0))
        assert counted.shape == (channel.shape[1], 1)
        return
    assert of_value.shape == (mechanism.size,)
    assert set(of_value.tolist()) == set(range(counted.shape[1]))
    assert np.array_equal(np.sort(counted, axis=1)[:, -2:], [[0, 1]] * channel.shape[1])
    same = of_value[:, None] == counted.argmax(axis=1)[None, :]
    assert np.array_equal(channel > 0, same)
    assert not decoders[~same].any()


@EVERY_COUNTED
def test_decode_is_linear(mechanism: Mechanism):
    _, decoders = dense(mechanism)
    decoder = counting(mechanism)
    weights = np.random.default_rng(1).normal(size=mechanism.size)
    decoded = decoder.decode(weights)
    scale = np.abs(decoders).max() * mechanism.size
    assert decoded.shape == (decoders.shape[1],)
    assert close(decoded, weights @ decoders, scale)
    assert close(np.stack([decoder.decode(w) for w in np.eye(mechanism.size)]), decoders, scale)


@EVERY_COUNTED
def test_sums_over_counts_are_those_of_the_dense_decoders(mechanism: Mechanism):
    _, decoders = dense(mechanism)
    decoder = mechanism.decoder
    statistic = np.random.default_rng(2).integers(0, 1000, mechanism.statistic_size)
    scale = np.abs(decoders).max() * statistic.sum()
    assert close(decoder.totals(statistic), decoders @ statistic, scale)
    moments = second_moments(decoder, statistic)
    assert close(moments, decoders**2 @ statistic, np.abs(decoders).max() * scale)


@EVERY_COUNTED
def test_means_over_the_channel_are_those_of_the_dense_one(mechanism: Mechanism):
    channel, _ = dense(mechanism)
    function = np.random.default_rng(3).normal(size=channel.shape[1])
    assert close(counting(mechanism).expect(function), channel @ function, 10.0)


@EVERY_COUNTED
def test_groups_of_outputs_agree_with_their_reports(mechanism: Mechanism):
    decoder = counting(mechanism)
    of_output = decoder.output_groups()
    assert (of_output is None) == (decoder.groups() is None)
    if of_output is not None:
        statistic = np.random.default_rng(4).integers(0, 9, mechanism.statistic_size)
        reports = np.bincount(of_output, statistic).astype(np.int64)
        assert np.array_equal(decoder.group_reports(statistic), reports)


@EVERY_SUMMED
def test_totals_of_sums_are_those_of_the_dense_decoders(mechanism: Mechanism):
    _, decoders = dense(mechanism)
    decoder = summing(mechanism)
    weights = np.random.default_rng(1).normal(size=mechanism.size)
    scale = np.abs(decoders).max() * mechanism.size
    totals = np.array([decoder.total(weights, one) for one in singles(mechanism)])
    assert close(totals, weights @ decoders, scale)
    statistic = some_statistic(mechanism, 5, 400)
    shares = decoder.totals(statistic)
    assert close(np.array(decoder.total(weights, statistic)), weights @ shares, 400 * scale)


@EVERY_SUMMED
def test_spans_hold_every_report(mechanism: Mechanism):
    _, decoders = dense(mechanism)
    decoder = summing(mechanism)
    for weights in (np.ones(mechanism.size), np.random.default_rng(2).normal(size=mechanism.size)):
        least, largest = decoder.span(weights)
        decoded = weights @ decoders
        slack = 1e-9 * max(1.0, np.abs(decoded).max())
        assert least <= decoded.min() + slack
        assert largest >= decoded.max() - slack


@EVERY_SUMMED
def test_second_moments_are_unbiased(mechanism: Mechanism):
    channel, decoders = dense(mechanism)
    estimated = np.stack([second_moments(mechanism.decoder, one) for one in singles(mechanism)])
    scale = np.abs(estimated).max()
    assert close(channel @ estimated, channel @ (decoders**2).T, scale)


def second_moments(decoder: Decoder, statistic: NDArray[np.int64]) -> Matrix:
    return decoder.moments(decoder.decode_values(statistic), slice(None))


def counting(mechanism: Mechanism) -> CountDecoder:
    decoder = mechanism.decoder
    assert isinstance(decoder, CountDecoder)
    return decoder


def summing(mechanism: Mechanism) -> LinearDecoder:
    decoder = mechanism.decoder
    assert isinstance(decoder, LinearDecoder)
    return decoder


N = 1000
ALONE = {n: m for n, m in LISTED.items() if m.size <= 64 and not isinstance(m, Sampled)}
"""All small ones but records, whose attributes have estimates of their own."""
COUNTED_ALONE = {name: m for name, m in ALONE.items() if isinstance(m.decoder, CountDecoder)}
COMPARED = [name for name in COUNTED_ALONE if not name.endswith(":huge")]
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
    if name not in COUNTED_ALONE:
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
    mechanism, size = COUNTED_ALONE[name], COUNTED_ALONE[name].size
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
