"""Draws of `optimal`, word by word, and its decoder against the channel."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms.channels.designed import DesignedChannel, load_channel
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.optimal import Optimal
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from tests.exact.enumeration import Scripted

CHANNELS = Path(__file__).parents[2] / "vectors" / "channels"
MANGAT = Optimal(
    DesignedChannel(
        MatrixPolicy.of([[0, 1.0], ["inf", 0]]),
        ((WORD // 2, 0, WORD // 2), (WORD - 2, 1, 1)),
        (0.5, 0.5),
    )
)


def drawn(mechanism: Optimal, values: list[int], words: list[int]) -> list[int]:
    """Return the reports of these values, which take exactly these words."""
    entropy = Scripted(words)
    reports: list[int] = mechanism.privatize(np.array(values), entropy=entropy).tolist()
    assert not entropy.left
    return reports


@pytest.mark.parametrize(
    "mechanism", [Optimal(load_channel("line.json", CHANNELS)), MANGAT], ids=["line", "zeros"]
)
def test_every_interval_of_words_begins_and_ends_where_it_should(mechanism: Optimal):
    for value, row in enumerate(mechanism.design.weights):
        start = 0
        for output, weight in enumerate(row):
            if weight:
                words = [start, start + weight - 1]
                assert drawn(mechanism, [value, value], words) == [output, output]
            start += weight
        assert start == WORD


def test_each_value_has_its_own_row():
    mechanism = Optimal(load_channel("graph.json", CHANNELS))
    values = [3, 0, 3, 5, 1]
    words = [1 << 40, 1 << 63, WORD - 1, 12345, 1 << 62]
    alone = [
        report
        for value, word in zip(values, words, strict=True)
        for report in drawn(mechanism, [value], [word])
    ]
    assert drawn(mechanism, values, words) == alone


def test_no_other_linear_decoder_has_less_variance_under_the_design_prior():
    mechanism = Optimal(load_channel("asymmetric.json", CHANNELS))
    channel, prior = mechanism.design.matrix, np.array(mechanism.design.prior)
    decoder = mechanism.decoder
    rng = np.random.default_rng(1)
    null = np.linalg.svd(channel)[2][len(channel) :]
    for value in range(mechanism.size):
        weights = np.eye(mechanism.size)[value]
        best = decoder.decode(weights)
        moment = prior @ (channel @ best**2)
        for _ in range(20):
            other = best + 0.1 * rng.normal(size=len(null)) @ null
            assert np.allclose(channel @ other, weights)
            assert prior @ (channel @ other**2) > moment


def test_the_channel_is_the_table():
    rows = MANGAT.channel().rows
    assert rows[0] == {0: Fraction(1, 2), 2: Fraction(1, 2)}
    assert rows[1] == {0: Fraction(WORD - 2, WORD), 1: Fraction(1, WORD), 2: Fraction(1, WORD)}
