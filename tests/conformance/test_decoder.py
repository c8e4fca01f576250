"""Decoders against the channel: unbiased, and every closed form equal to the general one."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpstream.mechanisms.mechanism import Decoder, Mechanism
from tests.conformance.instances import INSTANCES

Matrix = NDArray[np.float64]

EVERY = pytest.mark.parametrize("mechanism", INSTANCES.values(), ids=INSTANCES.keys())


def dense(mechanism: Mechanism) -> tuple[Matrix, Matrix]:
    """The channel and the single values' decoders, float64 `(k, outputs)` each."""
    channel = np.zeros((mechanism.size, mechanism.outputs))
    for value, row in enumerate(mechanism.channel().rows):
        channel[value, list(row)] = [float(p) for p in row.values()]
    decoder = mechanism.decoder()
    return channel, np.stack([decoder.decode(w) for w in np.eye(mechanism.size)])


def close(left: Matrix, right: Matrix, scale: float) -> bool:
    """Equal but for the rounding of sums of terms as large as `scale`."""
    return np.allclose(left, right, rtol=1e-12, atol=1e-12 * scale)


@EVERY
def test_decoders_are_unbiased(mechanism: Mechanism):
    channel, decoders = dense(mechanism)
    assert close(channel @ decoders.T, np.eye(mechanism.size), np.abs(decoders).max())


@EVERY
def test_decode_is_linear(mechanism: Mechanism):
    _, decoders = dense(mechanism)
    weights = np.random.default_rng(1).normal(size=mechanism.size)
    decoded = mechanism.decoder().decode(weights)
    assert decoded.shape == (mechanism.outputs,)
    assert close(decoded, weights @ decoders, np.abs(decoders).max() * mechanism.size)


@EVERY
def test_sums_over_the_statistic(mechanism: Mechanism):
    _, decoders = dense(mechanism)
    statistic = np.random.default_rng(2).integers(0, 1000, mechanism.outputs)
    before = statistic.copy()
    decoder = mechanism.decoder()
    scale = np.abs(decoders).max() * statistic.sum()
    assert close(decoder.shares(statistic), decoders @ statistic, scale)
    moments = decoder.second_moments(statistic)
    assert close(moments, decoders**2 @ statistic, np.abs(decoders).max() * scale)
    assert np.array_equal(statistic, before)


@EVERY
def test_means_over_the_channel(mechanism: Mechanism):
    channel, _ = dense(mechanism)
    function = np.random.default_rng(3).normal(size=mechanism.outputs)
    assert close(mechanism.decoder().expect(function), channel @ function, 10.0)


@EVERY
def test_extremes(mechanism: Mechanism):
    _, decoders = dense(mechanism)
    low, high = mechanism.decoder().extremes()
    assert close(low, decoders.min(axis=1), 1.0)
    assert close(high, decoders.max(axis=1), 1.0)


@EVERY
def test_noise_extremes_equal_the_general_form(mechanism: Mechanism):
    decoder = mechanism.decoder()
    scale = max(1.0, np.abs(decoder.extremes()[1]).max() ** 2)
    for closed, general in zip(
        decoder.noise_extremes(), Decoder.noise_extremes(decoder), strict=True
    ):
        assert closed.shape == (mechanism.size,)
        assert close(closed, general, scale)
        assert (closed >= 0).all()


@EVERY
def test_groups_are_what_a_report_discloses(mechanism: Mechanism):
    channel, decoders = dense(mechanism)
    groups = mechanism.decoder().groups()
    if groups is None:
        # Nothing is disclosed: some report can come from any value.
        assert np.any((channel > 0).all(axis=0))
        return
    of_value, of_output = groups
    assert of_value.shape == (mechanism.size,)
    assert of_output.shape == (mechanism.outputs,)
    assert set(of_value.tolist()) == set(of_output.tolist()) == set(range(of_value.max() + 1))
    same = of_value[:, None] == of_output[None, :]
    assert np.array_equal(channel > 0, same)
    assert not decoders[~same].any()


@EVERY
def test_the_decoder_is_a_function_of_its_arguments(mechanism: Mechanism):
    statistic = np.random.default_rng(4).integers(0, 9, mechanism.outputs)
    first = mechanism.decoder().shares(statistic)
    assert np.array_equal(first, mechanism.decoder().shares(statistic))
