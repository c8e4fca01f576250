"""`privatize` realises the channel exactly: its draws are enumerated with scripted words."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms.exact.entropy import WORD, uniform_below
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.conformance.instances import INSTANCES
from tests.exact.enumeration import Scripted

# The others draw as often as they need: tests of their own enumerate them.
SMALL = {
    name: m
    for name, m in INSTANCES.items()
    if isinstance(m, Binary | HighLow | BlockHadamard) and m.outputs <= 128
}


def thresholds(mechanism: Mechanism) -> set[int]:
    """The words at which a mechanism's decision changes, as its channel needs them."""
    match mechanism:
        case Binary():
            return set(mechanism.thresholds)
        case HighLow():
            return {mechanism.threshold, 2 * mechanism.threshold - WORD}
        case BlockHadamard():
            return {mechanism.threshold}
    raise AssertionError("a mechanism without an enumeration of its draws")


def outcomes(mechanism: Mechanism, value: int, decision: int) -> Counter[int]:
    """How often each report comes up over all positions, after one decision word."""
    positions = 1 if isinstance(mechanism, Binary) else 1 << mechanism.outputs.bit_length()
    values = np.full(positions, value)
    # The high bits of a position word must not matter.
    words = [y + (y * 2654435761 << 40) for y in range(positions)]
    entropy = Scripted([decision] * positions, words)
    return Counter(mechanism.privatize(values, entropy=entropy).tolist())


@pytest.mark.parametrize("mechanism", SMALL.values(), ids=SMALL.keys())
def test_the_draws_have_exactly_the_probabilities_of_the_channel(mechanism: Mechanism):
    edges = sorted({0, WORD} | thresholds(mechanism))
    for value, row in enumerate(mechanism.channel().rows):
        realised: dict[int, Fraction] = {}
        for start, end in itertools.pairwise(edges):
            counts = outcomes(mechanism, value, start)
            assert counts == outcomes(mechanism, value, end - 1), "a decision inside a range"
            for report, count in counts.items():
                share = Fraction(end - start, WORD) * Fraction(count, counts.total())
                realised[report] = realised.get(report, Fraction(0)) + share
        assert realised == dict(row)


def test_uniform_draws_reject_and_draw_again():
    # Masked to 3 bits: 7, 5, 6, 0, 7. Below 6 are 5 and 0; the others are drawn until they are.
    entropy = Scripted([7, 5, 6, 8, 15], [7, 4, 6], [14, 0], [9])
    assert uniform_below(entropy, 6, 5).tolist() == [1, 5, 4, 0, 0]


def test_uniform_draws_over_a_power_of_two_reject_nothing():
    entropy = Scripted([8, 9, 7, WORD - 1])
    assert uniform_below(entropy, 8, 4).tolist() == [0, 1, 7, 7]
